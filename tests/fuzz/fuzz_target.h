// What libFuzzer and run_corpus.c call. Always returns 0.
#ifndef FTL_TESTS_FUZZ_TARGET_H
#define FTL_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
