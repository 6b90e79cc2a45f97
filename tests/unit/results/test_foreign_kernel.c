// Rows of kernels of others whose problems are more than lengths and heads: windows, dropout, packed sequences, masks,
// pages, element types.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "results/measured_case.h"
#include "tests/spec_words.h"

#define PROBLEM "source,pass,batch,heads,kv_heads,seqlen_q,seqlen_kv,head_dim,causal,"
#define RUN "status,gpu,condition,kernel\n"
#define RAN "ok,NVIDIA H200,ncu,"
#define FLASH_KERNEL "\"flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, 0, 0, half>\"\n"

// The case of the first row, or (with `reason`) why it is none.
static ftl_measured_case case_of(const char *text, const char *reason) {
  ftl_csv csv;
  ftl_measurement_file file;
  ftl_error error = {0};
  ftl_measured_case c;
  cr_assert_eq(ftl_csv_init(&csv, "m.csv", text, strlen(text), &error), FTL_OK);
  cr_assert_eq(ftl_measurement_file_parse(&file, &csv, &error), FTL_OK, "%s", error.message);
  ftl_csv_fini(&csv);
  ftl_status status = ftl_measured_case_make(&c, &file.rows[0], &error);
  cr_assert_eq(status, reason == NULL ? FTL_OK : FTL_INFEASIBLE, "%s", error.message);
  if (reason != NULL) cr_assert_str_eq(error.message, reason);
  ftl_measurement_file_fini(&file);
  return c;
}

typedef struct expectation {
  ftl_param param;
  int64_t value;
} expectation;

static void has(const ftl_measured_case *c, const expectation *expected, size_t count) {
  for (size_t i = 0; i < count; i++)
    cr_expect_eq(c->spec.value[expected[i].param], expected[i].value, "%s: %lld",
                 ftl_param_get(expected[i].param)->name, (long long)c->spec.value[expected[i].param]);
}
#define HAS(c, ...) \
  has(c, (const expectation[]){__VA_ARGS__}, sizeof((const expectation[]){__VA_ARGS__}) / sizeof(expectation))

Test(unit_results_foreign_kernel, the_flash_operator_keeps_tokens_before_heads) {
  ftl_measured_case c =
      case_of(PROBLEM "window,dropout_p," RUN "aten_flash,fwd,1,8,2,512,512,128,1,300,0.25," RAN FLASH_KERNEL, NULL);
  HAS(&c, {FTL_PARAM_layout, FTL_LAYOUT_BSHD}, {FTL_PARAM_window, 300}, {FTL_PARAM_dropout_p, 250000000},
      {FTL_PARAM_block_m, 128}, {FTL_PARAM_block_n, 64}, {FTL_PARAM_schedule, FTL_SCHEDULE_INTERLEAVED},
      {FTL_PARAM_code, FTL_CODE_BUFFERED});
  cr_expect_eq(c.part, FTL_PART_HELD_OUT);
}

Test(unit_results_foreign_kernel, packed_sequences_are_lengths) {
  ftl_measured_case c =
      case_of(PROBLEM "lengths," RUN "aten_flash,fwd,3,8,8,400,400,128,0,37:400:5," RAN FLASH_KERNEL, NULL);
  int32_t lengths[3];
  cr_assert_eq(ftl_spec_list(&c.spec, FTL_PARAM_lengths, lengths, 3), 3);
  cr_expect(lengths[0] == 37 && lengths[1] == 400 && lengths[2] == 5);
  HAS(&c, {FTL_PARAM_batch, 3}, {FTL_PARAM_seqlen_q, 400}, {FTL_PARAM_seqlen_kv, 400});
}

// Its split kernel, and the one that combines, have their tile in their names; sdpa_flash does not pack several
// queries.
Test(unit_results_foreign_kernel, splits_of_the_flash_operator_are_flash_decode) {
#define SPLITS "\"flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>\"\n"
#define COMBINE "\"flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4>\"\n"
  ftl_measured_case c = case_of(PROBLEM RUN "aten_flash,fwd,1,8,2,1,4096,128,0," RAN SPLITS, NULL);
  cr_expect_str_eq(c.spec.workload->name, "flash_decode");
  HAS(&c, {FTL_PARAM_block_m, 64}, {FTL_PARAM_block_n, 128}, {FTL_PARAM_num_warps, 4}, {FTL_PARAM_kv_heads, 2},
      {FTL_PARAM_schedule, FTL_SCHEDULE_INTERLEAVED}, {FTL_PARAM_layout, FTL_LAYOUT_BSHD}, {FTL_PARAM_num_stages, 1});
  c = case_of(PROBLEM RUN "sdpa_flash,fwd,1,8,2,1,4096,64,0," RAN COMBINE, NULL);
  HAS(&c, {FTL_PARAM_block_n, 256}, {FTL_PARAM_layout, FTL_LAYOUT_BHSD});
  case_of(PROBLEM RUN "sdpa_flash,fwd,1,8,2,4,4096,128,0," RAN SPLITS,
          "sdpa_flash with splits: several queries of grouped heads");
}

// One query's heads share a tile.
Test(unit_results_foreign_kernel, decoding_by_the_flash_operator_is_no_configuration) {
  case_of(PROBLEM RUN "aten_flash,fwd,1,8,2,1,4096,128,0," RAN FLASH_KERNEL,
          "aten_flash of one query: heads of a group in a tile");
  case_of(PROBLEM RUN "flex_decode,fwd,1,8,2,1,4096,128,0," RAN "k\n", "flex_decode");
}

// flex_attention lists blocks of 128, whatever its mask; packed documents have no lists here.
Test(unit_results_foreign_kernel, flex_walks_lists_of_blocks) {
#define FLEX                                                                             \
  PROBLEM "block_m,block_n,num_warps,num_stages,mma,window,mask,mask_width,lengths," RUN \
          "flex,fwd,2,8,8,1024,1024,64,1,64,64,4,2,wgmma,"
  ftl_measured_case c = case_of(FLEX "256,,,," RAN "k\n", NULL);
  HAS(&c, {FTL_PARAM_mask_steps, FTL_MASK_STEPS_BLOCKS}, {FTL_PARAM_mask_block, 128}, {FTL_PARAM_window, 256},
      {FTL_PARAM_num_stages, 2}, {FTL_PARAM_guard, FTL_GUARD_ALWAYS}, {FTL_PARAM_head_order, FTL_SEQUENCES_FIRST});
  c = case_of(FLEX ",strided,5,," RAN "k\n", NULL);
  HAS(&c, {FTL_PARAM_mask, FTL_MASK_STRIDED}, {FTL_PARAM_mask_width, 5}, {FTL_PARAM_mask_steps, FTL_MASK_STEPS_BLOCKS});
  c = case_of(FLEX ",,,," RAN "k\n", NULL);
  HAS(&c, {FTL_PARAM_mask, FTL_MASK_NONE}, {FTL_PARAM_mask_steps, FTL_MASK_STEPS_BLOCKS});
  c = case_of(FLEX ",,,1024:512," RAN "k\n", NULL);
  resolve_code(&c.spec);
  HAS(&c, {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES});
}

// Half of Triton's stages are buffers: the others lie between the entries of the block table and the copies.
Test(unit_results_foreign_kernel, a_paged_triton_kernel_is_paged_decode) {
  ftl_measured_case c =
      case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,lengths,page_size,page_layout,splits,layout," RUN
                      "triton_paged,fwd,2,8,2,1,900,128,0,16,64,4,3,mma,900:77,32,scattered,3,bshd," RAN "k\n",
              NULL);
  cr_assert_str_eq(c.spec.workload->name, "paged_decode");
  HAS(&c, {FTL_PARAM_num_stages, 1}, {FTL_PARAM_page_size, 32}, {FTL_PARAM_page_layout, FTL_PAGES_SCATTERED},
      {FTL_PARAM_splits, 3}, {FTL_PARAM_layout, FTL_LAYOUT_BSHD}, {FTL_PARAM_block_m, 16}, {FTL_PARAM_warps_n, 4},
      {FTL_PARAM_code, FTL_CODE_LEAN});
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,lengths,page_size," RUN
                      "triton_paged,fwd,2,8,2,1,900,128,0,16,64,4,4,mma,900:77,32," RAN "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_num_stages, 2});
}

Test(unit_results_foreign_kernel, a_product_in_triton_has_a_tile_a_program) {
  ftl_measured_case c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,block_k,mma," RUN
                                        "triton_product,fwd,3,1,1,512,1024,256,0,128,256,8,3,64,wgmma," RAN "k\n",
                                NULL);
  cr_assert_str_eq(c.spec.workload->name, "matmul_tiled");
  HAS(&c, {FTL_PARAM_batch, 3}, {FTL_PARAM_m, 512}, {FTL_PARAM_n, 1024}, {FTL_PARAM_k, 256}, {FTL_PARAM_block_k, 64},
      {FTL_PARAM_num_stages, 3}, {FTL_PARAM_persistent, 0}, {FTL_PARAM_code, FTL_CODE_LEAN});
  HAS(&c, {FTL_PARAM_warps_n, 1});
  cr_expect((c.spec.given & FTL_TAKES(tile_strip)) != 0 && c.spec.value[FTL_PARAM_tile_strip] == 0, "in no groups");
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,block_k,mma," RUN
                      "triton_product,fwd,3,1,1,512,1024,256,0,64,256,8,3,64,wgmma," RAN "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_num_warps, 8}, {FTL_PARAM_warps_n, 2});
  case_of(PROBLEM "block_m,block_n,num_warps,num_stages,block_k,mma," RUN
                  "triton_product,fwd,3,1,1,512,1024,256,0,64,256,8,3,64,mma," RAN "k\n",
          "triton_product with mma.sync");
}

// Its pipeliner leaves num_stages - 1 buffers of each tile, and loops of one stage alone: tiles come through registers.
Test(unit_results_foreign_kernel, a_backward_pass_in_triton_has_a_kernel_for_dq) {
  ftl_measured_case c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,copy," RUN
                                        "triton_backward,bwd,1,8,8,512,512,64,0,32,128,4,3,wgmma,cp_async," RAN "k\n",
                                NULL);
  cr_expect_str_eq(c.spec.workload->name, "flash2_bwd");
  HAS(&c, {FTL_PARAM_dq, FTL_DQ_KERNEL}, {FTL_PARAM_code, FTL_CODE_LEAN}, {FTL_PARAM_copy, FTL_SPEC_COPY_CP_ASYNC},
      {FTL_PARAM_block_m, 32}, {FTL_PARAM_block_n, 128}, {FTL_PARAM_num_stages, 3});
  cr_expect_eq(c.part, FTL_PART_HELD_OUT);
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,copy," RUN
                      "triton_backward,bwd,1,8,8,512,512,64,0,64,128,4,1,wgmma,cp_async," RAN "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_copy, FTL_SPEC_COPY_LDG}, {FTL_PARAM_num_stages, 1});
  case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,copy," RUN
                  "triton_backward,bwd,1,8,8,512,512,64,0,64,128,4,2,mma,cp_async," RAN "k\n",
          "triton_backward with mma.sync");
}

// 8-bit products: cuBLAS's own kernels on fp8, but for those that keep sums apart, and CUTLASS's for Ampere on
// integers.
Test(unit_results_foreign_kernel, products_of_bytes_have_their_kernels) {
#define BYTES PROBLEM "dtype,transpose_b," RUN "cublas,fwd,1,1,1,512,1024,256,0,"
  ftl_measured_case c = case_of(BYTES "fp8_e4m3,1," RAN "nvjet_sm90_qqtst_320x128_128x3_1x2_h_bz_coopB_TNT\n", NULL);
  HAS(&c, {FTL_PARAM_dtype, FTL_SPEC_FP8_E4M3}, {FTL_PARAM_block_m, 320}, {FTL_PARAM_block_n, 128},
      {FTL_PARAM_block_k, 128}, {FTL_PARAM_store, FTL_SPEC_STORE_STAGED}, {FTL_PARAM_groups_n, 2});
  case_of(BYTES "fp8_e4m3,1," RAN "nvjet_sm90_qqtst_128x128_128x6_1x2_h_bz_algo2_TNT\n",
          "cublas with another kernel, or split K");
  static const struct {
    const char *name;
    int64_t block_n, num_stages, num_warps, warps_n;
  } integers[] = {{"128x256_128x3", 256, 3, 8, 4}, {"128x128_128x5", 128, 5, 4, 2}, {"128x64_128x3", 64, 3, 4, 2}};
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    char text[512];
    snprintf(text, sizeof text, BYTES "int8,1," RAN "cutlass_80_tensorop_i16832gemm_s8_%s_tn_align16>\n",
             integers[i].name);
    c = case_of(text, NULL);
    HAS(&c, {FTL_PARAM_dtype, FTL_SPEC_INT8}, {FTL_PARAM_m, 1024}, {FTL_PARAM_n, 512}, {FTL_PARAM_block_m, 128},
        {FTL_PARAM_block_n, integers[i].block_n}, {FTL_PARAM_block_k, 128},
        {FTL_PARAM_num_stages, integers[i].num_stages}, {FTL_PARAM_num_warps, integers[i].num_warps},
        {FTL_PARAM_warps_n, integers[i].warps_n}, {FTL_PARAM_code, FTL_CODE_BUFFERED});
  }
  case_of(BYTES "int8,1," RAN "cutlass_80_tensorop_i16832gemm_s8_0x64_128x3_tn_align16>\n",
          "cublas with another kernel, or split K");
}

Test(unit_results_foreign_kernel, a_softmax_in_triton_keeps_its_row) {
  ftl_measured_case c =
      case_of(PROBLEM "block_n,num_warps," RUN "triton_softmax,fwd,1,1,1,300,1536,1,0,2048,4," RAN "k\n", NULL);
  cr_assert_str_eq(c.spec.workload->name, "softmax_safe");
  HAS(&c, {FTL_PARAM_seqlen_q, 300}, {FTL_PARAM_seqlen_kv, 1536}, {FTL_PARAM_block_m, 1}, {FTL_PARAM_block_n, 2048},
      {FTL_PARAM_schedule, FTL_SCHEDULE_EXPONENTIALS}, {FTL_PARAM_exp2, FTL_EXP2_IEEE}, {FTL_PARAM_num_warps, 4});
}

// Triton puts the warps side by side where a tile has fewer rows than V has columns, whether or not they fit below each
// other, and refills what a step has read.
Test(unit_results_foreign_kernel, warps_of_triton_with_mma_sync_lie_along_the_keys) {
  ftl_measured_case c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN
                                        "triton,fwd,1,8,8,512,512,64,0,32,64,4,2,mma," RAN "k\n",
                                NULL);
  HAS(&c, {FTL_PARAM_warps_n, 4}, {FTL_PARAM_num_stages, 1}, {FTL_PARAM_refill, FTL_REFILL_BEHIND},
      {FTL_PARAM_code, FTL_CODE_LEAN});
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN "triton,fwd,1,8,8,512,512,64,0,32,32,2,3,mma," RAN
                      "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_warps_n, 2}, {FTL_PARAM_num_stages, 2});
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN "triton,fwd,1,8,8,512,512,64,0,64,32,4,3,mma," RAN
                      "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_warps_n, 1}, {FTL_PARAM_refill, FTL_REFILL_BEHIND});
}

Test(unit_results_foreign_kernel, warpgroups_of_triton_beyond_the_rows_share_the_columns_of_v) {
  ftl_measured_case c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN
                                        "triton,fwd,1,8,8,512,512,64,0,64,64,8,2,wgmma," RAN "k\n",
                                NULL);
  HAS(&c, {FTL_PARAM_warps_n, 2}, {FTL_PARAM_num_stages, 2});
  c = case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN
                      "triton,fwd,1,8,8,512,512,64,0,128,64,8,2,wgmma," RAN "k\n",
              NULL);
  HAS(&c, {FTL_PARAM_warps_n, 1});
}

// Two warps on 16 keys; four on 32.
Test(unit_results_foreign_kernel, warps_that_divide_too_little_are_no_configuration) {
  case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma," RUN "triton,fwd,1,8,8,512,512,128,0,64,16,2,3,mma," RAN
                  "k\n",
          "triton with fewer than 16 keys a warp");
  case_of(PROBLEM "block_m,block_n,num_warps,num_stages,mma,lengths," RUN
                  "triton_paged,fwd,2,8,2,1,900,128,0,16,32,4,3,mma,900:77," RAN "k\n",
          "triton_paged with fewer than 16 keys a warp");
}

Test(unit_results_foreign_kernel, a_product_names_its_type_and_transposition) {
  ftl_measured_case c = case_of(PROBLEM "dtype,transpose_b," RUN "cublas,fwd,1,1,1,512,1024,256,0,bf16,1," RAN
                                        "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT\n",
                                NULL);
  // A of C^T = B^T A^T is B^T, stored so, and its B is A^T, stored as A.
  HAS(&c, {FTL_PARAM_dtype, FTL_SPEC_BF16}, {FTL_PARAM_transpose_a, 0}, {FTL_PARAM_transpose_b, 1}, {FTL_PARAM_m, 1024},
      {FTL_PARAM_n, 512}, {FTL_PARAM_k, 256}, {FTL_PARAM_block_m, 128}, {FTL_PARAM_block_n, 256},
      {FTL_PARAM_code, FTL_CODE_LEAN});
  c = case_of(PROBLEM "dtype,transpose_b," RUN "cublas,fwd,1,1,1,512,1024,256,0,fp16,0," RAN
                      "nvjet_sm90_hsh_320x128_64x3_1x2_h_bz_coopB_NNT\n",
              NULL);
  HAS(&c, {FTL_PARAM_transpose_a, 1}, {FTL_PARAM_transpose_b, 1}, {FTL_PARAM_m, 1024}, {FTL_PARAM_block_m, 320},
      {FTL_PARAM_block_n, 128}, {FTL_PARAM_groups_n, 2});
  c = case_of(PROBLEM "dtype,transpose_b," RUN "cublas,fwd,1,1,1,512,1024,256,0,fp16,0," RAN
                      "nvjet_sm90_hsh_128x256_64x4_1x2_h_bz_coopA_NNN\n",
              NULL);
  HAS(&c, {FTL_PARAM_transpose_a, 0}, {FTL_PARAM_transpose_b, 0}, {FTL_PARAM_m, 512}, {FTL_PARAM_block_m, 256},
      {FTL_PARAM_block_n, 128}, {FTL_PARAM_groups_n, 1});
}

Test(unit_results_foreign_kernel, cudnns_causal_tiles_are_handed_out_as_the_others) {
  ftl_measured_case c = case_of(PROBLEM RUN "sdpa_cudnn,fwd,1,8,2,512,512,64,1," RAN
                                            "sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0\n",
                                NULL);
  HAS(&c, {FTL_PARAM_causal, 1}, {FTL_PARAM_kv_heads, 2}, {FTL_PARAM_tile_scheduler, FTL_TILE_SCHEDULER_DYNAMIC_LATE},
      {FTL_PARAM_tile_order, FTL_ORDER_M_FIRST}, {FTL_PARAM_tile_reverse, 0}, {FTL_PARAM_head_dim_multiple, 64});
}

Test(unit_results_foreign_kernel, memory_efficient_attention_has_its_tile_in_its_name) {
  ftl_measured_case c =
      case_of(PROBLEM RUN "sdpa_efficient,fwd,1,8,8,512,512,96,1," RAN
                          "fmha_cutlassF_f16_aligned_64x128_rf_sm80(AttentionKernel<cutlass::half_t>)\n",
              NULL);
  HAS(&c, {FTL_PARAM_block_m, 64}, {FTL_PARAM_block_n, 128}, {FTL_PARAM_num_warps, 8}, {FTL_PARAM_warps_n, 4},
      {FTL_PARAM_schedule, FTL_SCHEDULE_BACK_TO_BACK}, {FTL_PARAM_causal, 1}, {FTL_PARAM_num_stages, 1});
  case_of(PROBLEM RUN "sdpa_efficient,fwd,1,8,8,512,512,256,0," RAN "fmha_cutlassF_f16_aligned_32x128_gmem_sm80(x)\n",
          "sdpa_efficient with O in memory between keys");
  case_of(PROBLEM RUN "sdpa_efficient,fwd,1,8,8,512,512,64,0," RAN "fmha_cutlassF_other\n",
          "sdpa_efficient with another kernel");
}

// Its kernel's SASS multiplies and shifts before the exponentials apart, adds the warps' sums up behind the loop and
// looks for empty rows in every step.
Test(unit_results_foreign_kernel, cudnns_softmax_is_as_its_code_says) {
  ftl_measured_case c = case_of(PROBLEM RUN "sdpa_cudnn,fwd,1,8,2,512,512,64,1," RAN
                                            "sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0\n",
                                NULL);
  HAS(&c, {FTL_PARAM_code, FTL_CODE_LEAN}, {FTL_PARAM_scaling, FTL_SCALING_APART},
      {FTL_PARAM_row_sums, FTL_ROW_SUMS_END}, {FTL_PARAM_guard, FTL_GUARD_ALWAYS});
}

Test(unit_results_foreign_kernel, cudnn_pads_heads_to_the_columns_in_its_kernels_name) {
  ftl_measured_case c = case_of(PROBLEM RUN "sdpa_cudnn,fwd,1,8,8,512,512,96,0," RAN
                                            "sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0\n",
                                NULL);
  HAS(&c, {FTL_PARAM_head_dim, 96}, {FTL_PARAM_head_dim_multiple, 128}, {FTL_PARAM_block_n, 128});
}

Test(unit_results_foreign_kernel, cudnn_masks_all_tiles_where_keys_end_inside_one_unless_causal) {
  static const struct {
    const char *problem;
    int64_t steps;
  } cases[] = {{"sdpa_cudnn,fwd,1,8,8,500,500,128,0,", FTL_MASK_STEPS_ALL},
               {"sdpa_cudnn,fwd,1,8,8,512,512,128,0,", FTL_MASK_STEPS_EDGES},
               {"sdpa_cudnn,fwd,1,8,8,500,500,128,1,", FTL_MASK_STEPS_EDGES}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", PROBLEM RUN, cases[i].problem,
             RAN "sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0\n");
    ftl_measured_case c = case_of(text, NULL);
    resolve_code(&c.spec);
    HAS(&c, {FTL_PARAM_mask_steps, cases[i].steps});
  }
}

// Strips as measurements/tile_order.csv has them, along m where the columns are wgmma's rows (T): sqrt(66 x 256 / 128)
// is 11.5, sqrt(66 x 320 / 128) 12.8, sqrt(66) 8.1, sqrt(66 x 128 / 144) 7.7, and sqrt(15 x 256 / 128) 5.5 clusters of
// four columns.
Test(unit_results_foreign_kernel, a_cublas_kernel_walks_its_tiles_in_strips) {
  static const struct {
    const char *kernel;
    int64_t order, strip;
  } cases[] = {{"256x128_64x4_1x2_h_bz_coopA_NNT", FTL_ORDER_M_FIRST, 11},
               {"320x128_64x3_1x2_h_bz_coopB_NNT", FTL_ORDER_M_FIRST, 13},
               {"192x192_64x3_2x1_v_bz_coopB_NNN", FTL_ORDER_M_FIRST, 8},
               {"144x128_64x6_2x1_v_bz_TNN", FTL_ORDER_M_FIRST, 8},
               {"256x128_64x4_4x2_h_bz_coopA_NNT", FTL_ORDER_M_FIRST, 20}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, PROBLEM RUN "cublas,fwd,1,1,1,8192,8192,4096,0," RAN "nvjet_sm90_hsh_%s\n",
             cases[i].kernel);
    ftl_measured_case c = case_of(text, NULL);
    HAS(&c, {FTL_PARAM_tile_order, cases[i].order}, {FTL_PARAM_tile_strip, cases[i].strip});
  }
}

// Names come from outside: a number of each place that no kernel has.
Test(unit_results_foreign_kernel, names_with_impossible_numbers_are_no_kernels) {
  static const char *const cublas[] = {"0x128_64x4_1x2_h_bz_NNT",   "256x0_64x4_1x2_h_bz_NNT",
                                       "256x128_0x4_1x2_h_bz_NNT",  "256x128_64x0_1x2_h_bz_NNT",
                                       "256x128_64x4_0x2_h_bz_NNT", "256x128_64x4_1x-2_h_bz_NNT",
                                       "256x128_64x4_17x1_h_NNT",   "2147483647x128_64x4_1x2_h_NNT"};
  static const char *const cudnn[] = {"7_0x128x128_4x1x1_cga1x1x1",  "7_64x0x128_4x1x1_cga1x1x1",
                                      "7_64x128x0_4x1x1_cga1x1x1",   "7_64x-128x128_4x1x1_cga1x1x1",
                                      "7_64x128x128_2x1x1_cga1x1x1", "7_2147483647x128x128_4x1x1_cga1x1x1"};
  char text[512];
  for (size_t i = 0; i < sizeof cublas / sizeof *cublas; i++) {
    snprintf(text, sizeof text, PROBLEM RUN "cublas,fwd,1,1,1,8192,8192,4096,0," RAN "nvjet_sm90_hsh_%s\n", cublas[i]);
    case_of(text, "cublas with another kernel, or split K");
  }
  for (size_t i = 0; i < sizeof cudnn / sizeof *cudnn; i++) {
    snprintf(text, sizeof text,
             PROBLEM RUN "sdpa_cudnn,fwd,1,8,8,500,500,128,0," RAN "sm90_flash_fprop_wgmma_f16_knob_%s_kernel0\n",
             cudnn[i]);
    case_of(text, "sdpa_cudnn with another kernel");
  }
}
