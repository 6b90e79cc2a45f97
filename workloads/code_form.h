// What `auto` of code, scaling, row_sums, guard, exp2, mask_steps, q_operand, refill and head_order stands for.
//
// These parameters say how a kernel's source is written, which its tiles and schedule do not tell. Left open they are
// those of the program that the others describe:
//
// clang-format off
//   described                    program                               code      softmax; mask_steps
//   schedule=interleaved with    FlashAttention-2's forward kernel     buffered  scores, end, always, ieee; unrolled
//   FlashAttention-2's tiles
//   wgmma without TMA            Triton's, as kernels/foreign/triton_* lean      scores, step, masked, ftz; edges, or
//                                                                                all where lengths cut tiles
//   mask_steps=blocks            PyTorch's flex_attention              lean      twice, behind (with wgmma), always, ftz
//   turns=softmax                cuDNN's for Hopper                    lean      apart, end, always, ftz; edges, or
//                                                                                all where keys end inside a tile
//   products with cluster or     cuBLAS'                               lean
//   tile_strip
//   elementwise=eager_...        the libraries that PyTorch calls      lean
//   flash2_bwd with dq=atomics   CUDA by an unknown author             stepped   exponent, ftz
//   the same, code=lean          FlashAttention-2's backward kernel              scores, ieee
//   flash2_bwd with dq=kernel    Triton's (wgmma with cp.async), or    lean      exponent, ftz
//                                by hand
//   other attention without a    CUDA by an unknown author             stepped   exponent, end, masked, ftz; edges;
//   producer, sketches in Lua                                                    early
//   softmax_*                    CUDA by an unknown author                       exponent; apart for
//                                                                                schedule=exponentials (Triton)
//   others                       CUDA as kernels/attention             plain     exponent, end, always, ftz; edges;
//                                                                                Q in shared memory, when_free
// clang-format on
//
// FlashAttention-2's grids are (tiles, batch, heads), its backward kernels' too (flash_{fwd,bwd}_launch_template.h):
// head_order=sequences_first, as flex_attention's. Triton's tutorial and kernels/attention have one axis of heads, a
// sequence's side by side.
//
// FlashAttention-2 is taken as PyTorch compiles it (UNFUSE_FMA, no -use_fast_math; its own package has
// scaling=exponent exp2=ftz). Where `code` is given the rest follows from it; with dq=atomics lean and buffered are
// FlashAttention-2's. Steps of flash2_bwd refill early, Triton's of two stages and more late. p_operand, dq_adds and
// kv_group are FlashAttention-2's (shared, lines, grid) or, by hand, those of backward_transposed.h where its tiles do.
#ifndef FTL_WORKLOADS_CODE_FORM_H
#define FTL_WORKLOADS_CODE_FORM_H

#include "arch/arch.h"
#include "workloads/spec.h"

enum { FTL_MOST_UNROLLED_STEPS = 8 };  // of mask_steps=unrolled: tiles of a diagonal

// Resolves them, those of a completed spec whose copy and mma are resolved already. What the user gave stays.
void ftl_spec_resolve_code(ftl_spec *spec, const ftl_arch *arch);

// Whether nothing but the end of the keys is masked, and that lies inside a tile: where cuDNN's kernel masks all steps.
bool ftl_spec_masks_end_alone(const ftl_spec *spec);

// Leaves those that the workload takes open, whatever was given: as a user does who knows tiles and schedule of a
// kernel, not its source.
void ftl_spec_open_code(ftl_spec *spec);

#endif
