// Lowering: tile program -> warp program for one architecture. The only place that knows instruction sets.
#ifndef FTL_LOWER_LOWER_H
#define FTL_LOWER_LOWER_H

#include "arch/arch.h"
#include "lower/warp_program.h"

typedef struct ftl_lower_options {
  ftl_copy copy;         // AUTO: TMA with wgmma on Hopper, else cp.async where the chip has it, else LDG+STS
  ftl_mma mma;           // AUTO: wgmma where the chip has it and every MMA role fits it, else mma.sync
  bool keeps_denormals;  // exponentials and logarithms are those of IEEE single precision, without .ftz
  bool plain_code;       // the source computes every address from row and column, and aligns its shared memory by hand;
                         // else it steps from shared bases, which leaves most offsets to immediates
  bool is_cuda;          // written in CUDA, which nvcc compiles, not in PTX that Triton writes
  bool fills_sm;         // without products: ptxas fits an SM full of warps from farther away
  bool buffers_fragments;  // the source loads the fragments of a k step before it multiplies those of the step before
  int32_t max_registers;   // 0: the architecture's limit, and what num_warps allows; else a cap (-maxrregcount)
  int32_t min_ctas;        // CTAs of an SM that registers shall allow (__launch_bounds__); 0: nothing is said
} ftl_lower_options;

// Resolves AUTO for an architecture. FTL_INFEASIBLE when the chip lacks what is asked for.
FTL_MUST_USE ftl_status ftl_lower_resolve(const ftl_arch *arch, ftl_lower_options *options, ftl_error *error);

// FTL_INFEASIBLE with the reason and the limit when the chip cannot run it (shared memory, threads, shapes, dtype).
// Registers over the cap are spilled, never infeasible. `tile` must outlive *out.
FTL_MUST_USE ftl_status ftl_lower(const ftl_tile_program *tile, const ftl_arch *arch, ftl_lower_options options,
                                  ftl_warp_program **out, ftl_error *error);

// How many CTAs of the program an SM holds, and what limits it.
typedef enum ftl_occupancy_limit {
  FTL_LIMIT_CTAS,
  FTL_LIMIT_WARPS,
  FTL_LIMIT_REGISTERS,
  FTL_LIMIT_SHARED,
  FTL_LIMIT_BARRIERS,
  FTL_LIMIT_COUNT
} ftl_occupancy_limit;
typedef struct ftl_occupancy {
  int32_t ctas_per_sm;              // 0: does not fit at all
  int32_t limits[FTL_LIMIT_COUNT];  // CTAs per SM that each resource alone would allow
  ftl_occupancy_limit limited_by;
} ftl_occupancy;
ftl_occupancy ftl_occupancy_of(const ftl_warp_program *program, const ftl_arch *arch);

#endif
