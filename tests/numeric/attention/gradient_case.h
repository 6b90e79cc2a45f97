// The gradients of attention by a workload's launches on the interpreter, against float64: dQ, dK and dV.
//
// Launches declare their tensors in the order of gradient_tensor; what is kept from the forward pass (O, LSE, and P in
// a tensor of that name) comes from float64 too. All else is NaN until it is written.
#ifndef FTL_TESTS_GRADIENT_CASE_H
#define FTL_TESTS_GRADIENT_CASE_H

#include "reference.h"
#include "tile/interpreter.h"

typedef enum gradient_tensor { Q, K, V, O, D_O, LSE, DELTA, D_Q, D_K, D_V } gradient_tensor;

typedef struct gradients {
  ftl_spec spec;
  ftl_attention a;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  int stored_p, dropped_p, kept;  // tensor indices, or -1
  float *tensors[FTL_TILE_MAX_TENSORS];
  double *expected[3];   // dQ, dK, dV: [batch][head][row][head_dim]
  double *magnitude[3];  // of the terms that are rounded on the way to it, all positive
} gradients;

// `params`: "name=value ..."; copy and mma default to cp_async and mma. Runs everything.
void gradients_run(gradients *g, const char *workload, const char *params);
float *gradients_row(const gradients *g, gradient_tensor tensor, int64_t batch, int64_t head, int64_t row);
void gradients_fini(gradients *g);

// Runs, and asserts that each gradient is what float64 gives.
void gradients_prove(const char *workload, const char *params);

#endif
