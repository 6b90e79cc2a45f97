// Runs a workload of one or more launches on the interpreter with random inputs. Tensors keep their numbers from launch
// to launch: every launch declares the same ones in the same order.
#ifndef FTL_TESTS_PIPELINE_CASE_H
#define FTL_TESTS_PIPELINE_CASE_H

#include "tile/interpreter.h"
#include "workloads/attention.h"

typedef struct pipeline_case {
  ftl_spec spec;
  char text[512];
  int num_launches;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  float *tensors[FTL_TILE_MAX_TENSORS];
} pipeline_case;

// `params`: "name=value ..."; copy and mma default to cp_async and mma where the workload takes them. A later value
// replaces an earlier one. Inputs lie in [-2, 2], integers anywhere; outputs start as NaN. Asserts that all of it
// works.
void pipeline_case_run(pipeline_case *c, const char *workload, const char *params);
// The same in two steps, between which inputs may be changed.
void pipeline_case_make(pipeline_case *c, const char *workload, const char *params);
void pipeline_case_execute(pipeline_case *c);
void pipeline_case_fini(pipeline_case *c);

// How far an element of O and of LSE may be from `expected`: as attention_case.c derives it, of these inputs and fp16.
double pipeline_output_tolerance(const ftl_attention *a, double expected);
double pipeline_lse_tolerance(const ftl_attention *a, double expected);

#endif
