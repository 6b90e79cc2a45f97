// Executes a tile program numerically on the CPU: what proves that a workload computes what its paper says.
//
// Rounds where the GPU rounds: products accumulate in the type of their sums (fp32; fp16, rounded after every 16 of k;
// int32, held as fp32 and so an error beyond 2^24), exp2 and log2 are fp32, CONVERT and
// stores round to nearest even. Does not model the order in which a tensor core adds, nor MUFU's 2-ulp error. A row is
// shared by four lanes that hold alternating pairs of columns, as in the accumulators of mma.sync: a ROWS value that
// was not reduced over lanes gives wrong results here as on the GPU.
#ifndef FTL_TILE_INTERPRETER_H
#define FTL_TILE_INTERPRETER_H

#include "tile/tile.h"

// How often each (query, key) pair took part in a product of `queries` and `keys` that reached an exponential unmasked.
typedef struct ftl_pair_visits {
  int32_t queries, keys;  // tensors
  uint8_t *counts;        // [batch][head of queries][query row][key row], stops at 255; the caller zeroes it
  int64_t num_keys;       // rows of keys; 0: as many as the tensor has (which of a tensor of pages says nothing)
  int64_t num_outside;    // unmasked pairs of an existing query row with a key row that does not exist
} ftl_pair_visits;

// tensors[i]: size_bytes / bytes per element floats, laid out by the strides of tensor i; inputs must be representable
// in its dtype. Persistent programs run as three CTAs. visits may be NULL. FTL_RUN_FAILED names the op that reads a
// value never written, stores a row whose lanes differ, leaves a tensor, or breaks the ring protocol.
FTL_MUST_USE ftl_status ftl_interpret(const ftl_tile_program *program, float *const *tensors, ftl_pair_visits *visits,
                                      ftl_error *error);

// The same, for programs of unknown origin: gives up with FTL_BAD_INPUT when more than *work_left steps would be needed
// (about 16 elements, 64 multiply-adds or one op of loop control each), and counts *work_left down.
FTL_MUST_USE ftl_status ftl_interpret_within(const ftl_tile_program *program, float *const *tensors,
                                             ftl_pair_visits *visits, int64_t *work_left, ftl_error *error);

#endif
