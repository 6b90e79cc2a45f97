// Decoding over quantised caches: the loop of the split kernel against the SASS of kernels/attention/decode_quantized.h
// (nvcc 13.0, sm_90a; 64 keys a tile, 4 warps, 3 buffers, head_dim 128). 64 x 128 numbers by eights on 128 lanes: 8
// rounds for K and 8 for V.
#include <criterion/criterion.h>

#include "../lower_checker/programs.h"

#define SHAPE                                                                                                        \
  "batch=16 heads=32 kv_heads=8 seqlen_kv=8192 head_dim=128 block_m=16 block_n=64 num_warps=4 num_stages=3 mma=mma " \
  "copy=cp_async seqlen_q=1 splits=2 "
enum { ROUNDS = 16 };

static programs lowered(const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash_decode", parameters, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(p.warps->num_loops, 1);
  return p;
}

static int64_t count(const programs *p, ftl_opcode opcode) {
  int64_t insts = 0;
  for (int32_t i = p->warps->loops[0].begin; i < p->warps->loops[0].end; i++)
    if (p->warps->insts[i].opcode == opcode) insts += p->warps->insts[i].repeat;
  return insts;
}

Test(unit_lower_dequantize, conversions_are_what_is_compiled) {
  programs p = lowered(SHAPE "code=plain kv_dtype=int8");
  cr_expect_eq(count(&p, FTL_OP_PRMT), 4 * ROUNDS);         // 64 in SASS: none for the scale
  cr_expect_eq(count(&p, FTL_OP_HFMA2), (4 + 4) * ROUNDS);  // 64 HADD2, 64 HMUL2
  cr_expect_eq(count(&p, FTL_OP_STS), ROUNDS);
  cr_expect_eq(count(&p, FTL_OP_LDS), 2 * ROUNDS);
  programs_fini(&p);
  p = lowered(SHAPE "code=plain kv_dtype=int4");
  cr_expect_eq(count(&p, FTL_OP_LOP), 9 * ROUNDS);  // 128 LOP3, 16 SHF
  programs_fini(&p);
  p = lowered(SHAPE "code=plain kv_dtype=fp8");
  cr_expect_eq(count(&p, FTL_OP_CVT), 4 * ROUNDS + 4);  // 4 of P, 16 x 16 a warp
  cr_expect_eq(count(&p, FTL_OP_LOP), 2 * ROUNDS);      // 32 SHF
  programs_fini(&p);
}

Test(unit_lower_dequantize, addresses_stay_over_the_loop_and_v_shares_those_of_k) {
  programs p = lowered(SHAPE "code=plain kv_dtype=int8");
  // The signs of 8 bytes alone: the products read one buffer, so ldmatrix and STS need no address of the iteration.
  cr_expect_eq(count(&p, FTL_OP_LOP), 2 * ROUNDS);
  // A scale's row a round of K, and V's are K's; stages to read and to fill of K's numbers, from which V's are an
  // immediate away, and of the scales of both; copies of runs of bytes need none.
  cr_expect_eq(count(&p, FTL_OP_IMAD), 8 + 2 * 3);
  programs_fini(&p);
}

// How many loads stand before the first store of the loop, and after it between one store and the next, at most.
static void expect_loads_between_stores(const char *parameters, int32_t before_first, int32_t between) {
  programs p = lowered(parameters);
  int32_t loads = 0, most = 0, first = -1;
  for (int32_t i = p.warps->loops[0].begin; i < p.warps->loops[0].end; i++) {
    if (p.warps->insts[i].opcode == FTL_OP_LDS) loads++;
    if (p.warps->insts[i].opcode != FTL_OP_STS) continue;
    if (first < 0)
      first = loads;
    else if (loads > most)
      most = loads;
    loads = 0;
  }
  cr_expect_eq(first, before_first, "%s: %d", parameters, first);
  cr_expect_eq(most, between, "%s: %d", parameters, most);
  programs_fini(&p);
}

Test(unit_lower_dequantize, plain_loads_do_not_pass_the_store_before_them) {
  expect_loads_between_stores(SHAPE "code=plain kv_dtype=int8", 2, 2);
  expect_loads_between_stores(SHAPE "code=plain kv_dtype=fp8", 2, 2);
}

Test(unit_lower_dequantize, lean_loads_go_ahead) {
  programs p = lowered(SHAPE "code=lean kv_dtype=int8");
  int32_t loads = 0;
  for (int32_t i = p.warps->loops[0].begin; p.warps->insts[i].opcode != FTL_OP_STS; i++)
    loads += p.warps->insts[i].opcode == FTL_OP_LDS;
  cr_expect_gt(loads, 2);
  programs_fini(&p);
}

Test(unit_lower_dequantize, merging_lies_over_the_idle_buffers) {
  programs p = lowered(SHAPE "code=plain kv_dtype=int8");
  // Q 16 x 128 fp16, K and V 64 x 128 fp16 and in 3 buffers 64 x 128 bytes and 64 scales: as launched. The outputs of 4
  // warps, 16 x 128 fp32 each, are 32768 bytes, maxima and sums 512.
  cr_expect_eq(p.warps->shared_bytes, 4096 + 2 * 16384 + 3 * 2 * (8192 + 128));
  programs_fini(&p);
}
