// Runs one attention configuration on the interpreter with random inputs and compares with the reference.
#ifndef FTL_TESTS_ATTENTION_CASE_H
#define FTL_TESTS_ATTENTION_CASE_H

#include "tile/interpreter.h"
#include "workloads/attention.h"

typedef struct attention_case {
  ftl_spec spec;
  ftl_attention a;
  ftl_tile_program *program;  // of the first launch
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  char names[FTL_TILE_MAX_TENSORS][FTL_TILE_NAME_BYTES];
  float *tensors[FTL_TILE_MAX_TENSORS];  // q, k, v, o, lse, then what one launch leaves for the next
  int num_tensors;
  float *dequantised[2];  // K and V of a quantised cache, as `q` is laid out; else NULL
  ftl_pair_visits visits;
  uint8_t *seen;                          // [seqlen_q][seqlen_kv] of a block mask; NULL: there is none
  char failure[FTL_ERROR_MESSAGE_BYTES];  // empty: all is well so far
} attention_case;

// `params` is "workload name=value name=value"; workload defaults to flash2_fwd, copy and mma to cp_async and mma.
// Builds the programs and random inputs.
void attention_case_init(attention_case *c, const char *params);
// Runs the interpreter, launch after launch.
void attention_case_run(attention_case *c);
// O and LSE against the reference.
void attention_case_check_numbers(attention_case *c);
// Every pair that the mask allows took part once, and no other.
void attention_case_check_visits(attention_case *c);
void attention_case_fini(attention_case *c);

// All of the above: the failure, or "" (static storage).
const char *attention_case_prove(const char *params);

#endif
