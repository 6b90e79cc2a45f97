// How many registers a thread of a role may have.
#ifndef FTL_LOWER_REGISTER_CAP_H
#define FTL_LOWER_REGISTER_CAP_H

#include "lower/fragment.h"
#include "lower/lower.h"

// What the register file allows a thread when the warps of one CTA share it, or of the CTAs that the source asks for,
// the chip's limit, and the user's. Either of what is asked for counts as 24 where it is less, as ptxas has it.
int32_t ftl_register_cap(const ftl_arch *arch, ftl_lower_options options, int32_t num_warps);

// The same of a role, or what setmaxnreg gives it. Where the accumulators of two products with mma.sync, the second of
// which reads the first's result from registers, are alone more than a thread can have, ptxas gives up on them: it does
// not spill what exceeds them, but takes the 32 registers at which SMs of 64 warps are full. It does so of lean code,
// as Triton writes it, for any block of two and more warps that says nothing of CTAs an SM (.minnctapersm), on chips of
// 64 warps an SM; docs/model_lowering.md has the kernels that were compiled. A kernel that does say it has min_ctas=1,
// or a cap that was asked for, and keeps it. By hand such a kernel says no more than Triton's (flash2_mma.h has
// __launch_bounds__(threads)) and keeps 255 all the same: what tells the two apart is not known, so that `code` does.
int32_t ftl_register_cap_of_role(const ftl_tile_program *tile, const ftl_role *role, const ftl_arch *arch,
                                 ftl_lower_options options, const ftl_fragment_shape *shape);

#endif
