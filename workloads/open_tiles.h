// Tiles, stages and warps that a user left open, where a GPU's shared memory does not take the general defaults, or its
// registers do not.
// Source: FlashAttention-2's library chooses so by shared memory and head_dim (csrc/flash_attn/src/
//   flash_fwd_launch_template.h: 128 x 64 tiles become 128 x 32, then 64 x 64 with one buffer).
#ifndef FTL_WORKLOADS_OPEN_TILES_H
#define FTL_WORKLOADS_OPEN_TILES_H

#include "workloads/spec.h"

// block_m, block_n and num_stages: whether the workload takes the parameter and the user did not name it. num_warps:
// whether tiles are open besides.
bool ftl_spec_leaves_open(const ftl_spec *spec, ftl_param param);
// Whether the user named none of block_m, block_n and num_stages that the workload takes. Who names one of them means
// the others' defaults.
bool ftl_spec_leaves_tiles_open(const ftl_spec *spec);
// The next tiles to try after those of `spec`: fewer keys down to 32, fewer queries down to 64, 16 keys; then the same,
// beginning with those of `general`, in one buffer each; then all that with half as many warps, down to one, of which
// each has keys or columns of its own in decoding. False where there are none.
bool ftl_spec_narrow_tiles(ftl_spec *spec, const ftl_spec *general);
// Tiles that were left open become those of `resolved`, the same configuration on some GPU, and count as given; stages
// and warps only where they had to give way.
void ftl_spec_take_tiles(ftl_spec *spec, const ftl_spec *resolved);

#endif
