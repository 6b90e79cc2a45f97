// Under AddressSanitizer the interpreter, the checker and `full` take five times as long, and their numbers are the
// release build's business: of every five cases of a test one is run, the first among them. Programs are built for all
// of them, as in the release build.
#ifndef FTL_TESTS_THINNED_H
#define FTL_TESTS_THINNED_H

#include <stdbool.h>

#ifdef __SANITIZE_ADDRESS__
enum { THINNED_STEP = 5 };
#else
enum { THINNED_STEP = 1 };
#endif

// Whether the case that comes as number *count in its test is run; counts it. Each test is a process of its own.
static inline bool thinned_runs(int *count) { return (*count)++ % THINNED_STEP == 0; }

#endif
