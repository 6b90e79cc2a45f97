// A stand-in for the engine: answers by a formula, and counts.
#ifndef FTL_TESTS_FAKE_ENGINE_H
#define FTL_TESTS_FAKE_ENGINE_H

#include <stdatomic.h>

// Calls of ftl_predict in this process.
extern atomic_int ftl_fake_num_predictions;

// The formula, for tests to compare with: nanoseconds = heads * seqlen_q * seqlen_kv / (block_m * block_n), times two
// with num_warps below 8. Infeasible where block_m * block_n > 16384. Fails where block_n = 24.
// From the environment: FTL_FAKE_DELAY_MS, how long each answer takes; FTL_FAKE_LOG, a file that gets a line an answer.

#endif
