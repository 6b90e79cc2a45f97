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
  uint8_t *seen;                  // of a block mask, as reference_block_mask gives it
  float *tensors[FTL_TILE_MAX_TENSORS];
  double *expected[3];   // dQ, dK, dV, laid out as the tensors
  double *magnitude[3];  // of the terms that are rounded on the way to it, all positive
} gradients;

// `params`: "name=value ..."; copy and mma default to cp_async and mma. Builds the programs, inputs and what is
// expected.
void gradients_init(gradients *g, const char *workload, const char *params);
// Runs every launch. False where a gradient is not what float64 gives: `where` says which.
bool gradients_try(gradients *g, char *where, size_t size);
void gradients_fini(gradients *g);
// Index of a row's first element in its tensor; the row.
size_t gradients_at(const gradients *g, gradient_tensor tensor, int64_t batch, int64_t head, int64_t row);
float *gradients_row(const gradients *g, gradient_tensor tensor, int64_t batch, int64_t head, int64_t row);

// Both of the first; asserts on nothing but that the launches run.
void gradients_run(gradients *g, const char *workload, const char *params);
// Runs, and asserts that each gradient is what float64 gives.
void gradients_prove(const char *workload, const char *params);

// ---- the definition (gradient_reference.c) ----

// A sequence's rows begin at `first` of batch `batch`; `a` has its lengths; it is number `number` for dropout.
typedef struct gradient_sequence {
  ftl_attention a;
  int64_t batch, first, number;
} gradient_sequence;
// Adds a sequence's share to what is expected, and fills in what its forward pass leaves.
void gradients_of_sequence(gradients *g, const gradient_sequence *sequence);

#endif
