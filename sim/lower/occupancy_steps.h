// The steps of occupancy: how many registers a thread may have for a number of CTAs to fit on an SM, as ptxas reckons
// with them. It knows the block size (__launch_bounds__), not the shared memory that a launch asks for.
#ifndef FTL_LOWER_OCCUPANCY_STEPS_H
#define FTL_LOWER_OCCUPANCY_STEPS_H

#include "arch/arch.h"

// The most registers a thread may have for so many CTAs to fit.
int32_t ftl_registers_for_ctas(const ftl_arch *arch, int32_t num_warps, int64_t ctas);

// The most registers a thread may have for one CTA more to fit than with `registers`; 0: warps or CTAs allow no more.
int32_t ftl_next_occupancy_step(const ftl_arch *arch, int32_t num_warps, int32_t registers);

// What a thread may have for as many CTAs to fit as warps and CTAs allow.
int32_t ftl_fewest_registers(const ftl_arch *arch, int32_t num_warps);

// What ptxas makes of `registers` that a kernel without products needs: the most that cost it no CTA, from sm_80 on.
// Source: kernels/measurements/registers.csv. Of the 14 row kernels for each of sm_80, sm_86, sm_89 and sm_90a, 13
// stand at the top of a step, the one left at 254 or 255; sm_86, whose SMs hold 48 warps, has 40 where sm_80 has 32. Of
// those for sm_75 a third do.
int32_t ftl_registers_taken(const ftl_arch *arch, int32_t num_warps, int32_t registers);

#endif
