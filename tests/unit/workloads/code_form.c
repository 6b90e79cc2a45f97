// What `auto` of the parameters of a kernel's source stands for.
#include "workloads/code_form.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/spec_words.h"

// As after copy and mma are resolved for a GPU.
static ftl_spec spec_of(const char *workload, const char *params) {
  ftl_spec spec;
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_init(&spec, workload, &error), FTL_OK);
  cr_assert_eq(spec_set_words(&spec, params, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  resolve_code(&spec);
  return spec;
}

typedef struct expectation {
  ftl_param param;
  int64_t value;
} expectation;

static void check(const char *workload, const char *params, const expectation *expected, size_t count) {
  ftl_spec spec = spec_of(workload, params);
  for (size_t i = 0; i < count; i++)
    cr_expect_eq(spec.value[expected[i].param], expected[i].value, "%s %s: %s is %lld", workload, params,
                 ftl_param_get(expected[i].param)->name, (long long)spec.value[expected[i].param]);
}
#define CHECK(workload, params, ...)                          \
  check(workload, params, (const expectation[]){__VA_ARGS__}, \
        sizeof((const expectation[]){__VA_ARGS__}) / sizeof(expectation))

#define FORWARD "heads=2 seqlen=256 head_dim=64 "
#define FLASH2 FORWARD "schedule=interleaved block_m=128 block_n=128 num_warps=4 mma=mma copy=cp_async "

// PyTorch's build of it: UNFUSE_FMA scales the scores, and exponentials keep denormals.
Test(unit_workloads_code_form, the_interleaved_schedule_is_flash_attention_2) {
  CHECK("flash2_fwd", FLASH2, {FTL_PARAM_code, FTL_CODE_BUFFERED}, {FTL_PARAM_scaling, FTL_SCALING_SCORES},
        {FTL_PARAM_row_sums, FTL_ROW_SUMS_END}, {FTL_PARAM_guard, FTL_GUARD_ALWAYS}, {FTL_PARAM_exp2, FTL_EXP2_IEEE},
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_UNROLLED}, {FTL_PARAM_refill, FTL_REFILL_AUTO},
        {FTL_PARAM_head_order, FTL_SEQUENCES_FIRST});
  CHECK("flash2_fwd", FLASH2 "mask=strided", {FTL_PARAM_mask_steps, FTL_MASK_STEPS_WINDOW});
  CHECK("flash2_fwd", FORWARD "code=buffered mma=mma copy=cp_async", {FTL_PARAM_mask_steps, FTL_MASK_STEPS_WINDOW});
}

Test(unit_workloads_code_form, products_back_to_back_are_cutlass_attention) {
  static const char *const codes[] = {"", "code=buffered"};
  char params[160];
  for (int i = 0; i < 2; i++) {
    snprintf(params, sizeof params, FORWARD "schedule=back_to_back block_m=64 block_n=64 mma=mma copy=cp_async %s",
             codes[i]);
    CHECK("flash2_fwd", params, {FTL_PARAM_code, FTL_CODE_BUFFERED}, {FTL_PARAM_scaling, FTL_SCALING_TWICE},
          {FTL_PARAM_row_sums, FTL_ROW_SUMS_STEP}, {FTL_PARAM_guard, FTL_GUARD_MASKED}, {FTL_PARAM_exp2, FTL_EXP2_IEEE},
          {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES}, {FTL_PARAM_head_order, FTL_HEADS_FIRST},
          {FTL_PARAM_num_stages, 1}, {FTL_PARAM_num_warps, 4}, {FTL_PARAM_warps_n, 2});
  }
}

// flash_fwd_launch_template.h: one tile for a head, a mask, dropout and a chip; of another the author is not known.
Test(unit_workloads_code_form, only_its_own_tiles_are_flash_attention_2s) {
  static const struct {
    const char *params;
    int32_t compute_capability;
    bool is_flash2;
  } cases[] = {
      {"head_dim=64 block_m=128 block_n=128", 90, true},
      {"head_dim=64 block_m=128 block_n=64", 90, false},
      {"head_dim=64 block_m=128 block_n=64 dropout_p=0.1", 90, true},
      {"head_dim=96 block_m=128 block_n=64 causal=1", 90, true},
      {"head_dim=96 block_m=128 block_n=64 causal=1", 89, false},
      {"head_dim=96 block_m=64 block_n=64 causal=1", 89, true},
      {"head_dim=128 block_m=128 block_n=64", 80, true},
      {"head_dim=128 block_m=128 block_n=32", 90, false},
      {"head_dim=128 block_m=128 block_n=32", 86, true},
      {"head_dim=128 block_m=64 block_n=64 causal=1", 86, true},
      {"head_dim=128 block_m=128 block_n=32 dropout_p=0.1", 90, true},
      {"head_dim=160 block_m=128 block_n=32", 90, true},
      {"head_dim=192 block_m=128 block_n=64 num_warps=8", 90, true},
      {"head_dim=192 block_m=64 block_n=64 dropout_p=0.1", 90, true},
      {"head_dim=256 block_m=64 block_n=64", 90, true},
      {"head_dim=256 block_m=128 block_n=64 num_warps=8", 80, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_spec spec;
    ftl_error error = {0};
    int32_t cc = cases[i].compute_capability, kib = cc == 80 ? 164 : cc == 90 ? 228 : 100;
    ftl_arch arch = {
        .chip_compute_capability = cc, .shared_max_bytes_per_cta = (kib - 1) * 1024, .shared_bytes_per_sm = kib * 1024};
    cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
    cr_assert_eq(
        spec_set_words(&spec, "heads=2 seqlen=256 schedule=interleaved mma=mma copy=cp_async num_warps=4", &error),
        FTL_OK);
    cr_assert_eq(spec_set_words(&spec, cases[i].params, &error), FTL_OK, "%s", error.message);
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
    ftl_spec_resolve_code(&spec, &arch);
    cr_expect_eq(spec.value[FTL_PARAM_code], cases[i].is_flash2 ? FTL_CODE_BUFFERED : FTL_CODE_STEPPED, "%s on %d",
                 cases[i].params, (int)cc);
  }
}

// A diagonal crosses 8 tiles of 128 x 16, and 9 of 144 x 16.
Test(unit_workloads_code_form, eight_steps_are_unrolled_at_the_most) {
  CHECK("flash2_fwd", FORWARD "schedule=interleaved mma=mma copy=cp_async code=buffered block_m=128 block_n=16",
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_UNROLLED});
  CHECK("flash2_fwd", FORWARD "schedule=interleaved mma=mma copy=cp_async code=buffered block_m=144 block_n=16",
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_WINDOW});
}

// window_size_left = window - 1 >= seqlen_k: 256 keys, so 257 and not 256. With more queries than keys, or by another's
// code, it stays.
Test(unit_workloads_code_form, flash_attention_2_drops_a_window_that_hides_nothing) {
  CHECK("flash2_fwd", FLASH2 "window=257", {FTL_PARAM_window, 0});
  CHECK("flash2_fwd", FLASH2 "window=256", {FTL_PARAM_window, 256});
  CHECK("flash2_fwd", FLASH2 "seqlen_q=257 window=257", {FTL_PARAM_window, 257});
  CHECK("flash2_bwd", FORWARD "dq=atomics mma=mma code=lean window=257", {FTL_PARAM_window, 0});
  CHECK("flash2_fwd", FORWARD "mma=mma window=257", {FTL_PARAM_window, 257});
}

Test(unit_workloads_code_form, warpgroups_that_copy_by_cp_async_are_tritons) {
  CHECK("flash2_fwd", FORWARD "mma=wgmma copy=cp_async", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_scaling, FTL_SCALING_SCORES}, {FTL_PARAM_row_sums, FTL_ROW_SUMS_STEP},
        {FTL_PARAM_guard, FTL_GUARD_MASKED}, {FTL_PARAM_exp2, FTL_EXP2_FTZ},
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES}, {FTL_PARAM_refill, FTL_REFILL_AUTO},
        {FTL_PARAM_head_order, FTL_HEADS_FIRST});
  CHECK("matmul_tiled", "m=256 n=256 k=256 mma=wgmma copy=cp_async", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_refill, FTL_REFILL_AUTO});
}

// foreign_kernel.c sets the same by hand; FlexAttention adds up behind the product with wgmma only.
Test(unit_workloads_code_form, lists_of_blocks_are_flex_attentions) {
  CHECK("flash2_fwd", FORWARD "mma=wgmma copy=cp_async mask_steps=blocks", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_scaling, FTL_SCALING_TWICE}, {FTL_PARAM_row_sums, FTL_ROW_SUMS_BEHIND},
        {FTL_PARAM_guard, FTL_GUARD_ALWAYS}, {FTL_PARAM_head_order, FTL_SEQUENCES_FIRST});
  CHECK("flash2_fwd", FORWARD "mma=mma copy=cp_async mask_steps=blocks", {FTL_PARAM_row_sums, FTL_ROW_SUMS_STEP});
  CHECK("flash2_fwd", FORWARD "mma=wgmma copy=cp_async mask_steps=blocks code=plain",
        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT}, {FTL_PARAM_head_order, FTL_HEADS_FIRST});
}

// Keys that end inside a tile are masked in all steps, unless a causal mask is.
Test(unit_workloads_code_form, exponentials_by_turns_are_cudnns) {
  CHECK("flash3_fwd", FORWARD "turns=softmax block_n=128", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_scaling, FTL_SCALING_APART}, {FTL_PARAM_row_sums, FTL_ROW_SUMS_END},
        {FTL_PARAM_guard, FTL_GUARD_ALWAYS}, {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES});
  CHECK("flash3_fwd", "heads=2 seqlen=250 head_dim=64 turns=softmax block_n=128",
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_ALL});
  CHECK("flash3_fwd", "heads=2 seqlen=250 head_dim=64 turns=softmax block_n=128 causal=true",
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES});
}

Test(unit_workloads_code_form, products_in_clusters_or_strips_are_cublas) {
  CHECK("matmul_tiled", "m=512 n=512 k=256 mma=wgmma copy=tma cluster=1x2", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_refill, FTL_REFILL_AUTO});
  CHECK("matmul_tiled", "m=512 n=512 k=256 mma=wgmma copy=tma tile_strip=4", {FTL_PARAM_code, FTL_CODE_LEAN});
  CHECK("matmul_tiled", "m=512 n=512 k=256 mma=wgmma copy=tma persistent=true", {FTL_PARAM_code, FTL_CODE_PLAIN});
  CHECK("flash3_fwd", FORWARD "mma=wgmma copy=tma cluster=2x1", {FTL_PARAM_code, FTL_CODE_STEPPED});
}

// One buffer is nothing that its pipeliner makes.
Test(unit_workloads_code_form, lean_warpgroups_that_copy_by_tma_themselves_are_tritons_with_tensor_descriptors) {
  CHECK("flash2_fwd", FORWARD "mma=wgmma copy=tma num_stages=3 code=lean", {FTL_PARAM_scaling, FTL_SCALING_BY_TILE},
        {FTL_PARAM_row_sums, FTL_ROW_SUMS_STEP}, {FTL_PARAM_guard, FTL_GUARD_MASKED}, {FTL_PARAM_exp2, FTL_EXP2_FTZ},
        {FTL_PARAM_refill, FTL_REFILL_AUTO}, {FTL_PARAM_head_order, FTL_HEADS_FIRST});
  CHECK("flash2_fwd", FORWARD "mma=wgmma copy=tma num_stages=1 code=lean", {FTL_PARAM_scaling, FTL_SCALING_SCORES});
}

// K and V of a step are one group of cp.async where there are buffers of both.
Test(unit_workloads_code_form, attention_by_an_unknown_author_is_stepped) {
  static const struct {
    const char *params;
    int64_t refill;
  } kinds[] = {{"mma=mma copy=cp_async", FTL_REFILL_JOINT},
               {"mma=mma copy=cp_async num_stages=1", FTL_REFILL_EARLY},
               {"mma=wgmma copy=tma num_stages=1", FTL_REFILL_EARLY},
               {"mma=wgmma copy=tma num_stages=3", FTL_REFILL_EARLY},
               {"mma=mma copy=cp_async schedule=interleaved block_m=64 block_n=32", FTL_REFILL_EARLY}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    char params[128];
    snprintf(params, sizeof params, FORWARD "%s", kinds[i].params);
    CHECK("flash2_fwd", params, {FTL_PARAM_code, FTL_CODE_STEPPED}, {FTL_PARAM_scaling, FTL_SCALING_EXPONENT},
          {FTL_PARAM_row_sums, FTL_ROW_SUMS_END}, {FTL_PARAM_guard, FTL_GUARD_MASKED}, {FTL_PARAM_exp2, FTL_EXP2_FTZ},
          {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES}, {FTL_PARAM_q_operand, FTL_Q_OPERAND_AUTO},
          {FTL_PARAM_refill, kinds[i].refill}, {FTL_PARAM_head_order, FTL_HEADS_FIRST});
  }
  CHECK("paged_decode", "heads=2 seqlen_kv=256 head_dim=64 mma=mma copy=cp_async", {FTL_PARAM_code, FTL_CODE_STEPPED});
  CHECK("flash3_fwd", FORWARD "mma=wgmma copy=tma", {FTL_PARAM_code, FTL_CODE_STEPPED});
}

Test(unit_workloads_code_form, plain_code_is_this_projects_own) {
  CHECK("flash2_fwd", FORWARD "mma=mma copy=cp_async code=plain", {FTL_PARAM_scaling, FTL_SCALING_EXPONENT},
        {FTL_PARAM_guard, FTL_GUARD_ALWAYS}, {FTL_PARAM_q_operand, FTL_Q_OPERAND_SHARED},
        {FTL_PARAM_refill, FTL_REFILL_WHEN_FREE});
  CHECK("standard_attention", FORWARD "mma=mma copy=cp_async", {FTL_PARAM_code, FTL_CODE_PLAIN});
  CHECK("matmul_tiled", "m=256 n=256 k=256 mma=mma copy=cp_async", {FTL_PARAM_code, FTL_CODE_PLAIN});
}

// Every load and all scores have a mask there.
Test(unit_workloads_code_form, tritons_loops_mask_all_steps_where_lengths_cut_tiles) {
  CHECK("flash2_fwd", "heads=2 seqlen=250 head_dim=64 mma=wgmma copy=cp_async", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_ALL});
  CHECK("flash2_fwd", "heads=2 seqlen=250 head_dim=64 mma=mma copy=cp_async",
        {FTL_PARAM_mask_steps, FTL_MASK_STEPS_EDGES});
}

// Without asynchronous copies no buffer can be filled as it falls free.
Test(unit_workloads_code_form, loads_to_registers_refill_no_buffer_early) {
  CHECK("flash2_fwd", FORWARD "mma=mma copy=ldg", {FTL_PARAM_code, FTL_CODE_STEPPED},
        {FTL_PARAM_refill, FTL_REFILL_AUTO});
}

Test(unit_workloads_code_form, the_backward_pass_and_eager_kernels_are_libraries) {
  CHECK("flash2_bwd", FORWARD "mma=mma copy=cp_async code=lean", {FTL_PARAM_dq, FTL_DQ_ATOMICS},
        {FTL_PARAM_scaling, FTL_SCALING_SCORES}, {FTL_PARAM_exp2, FTL_EXP2_IEEE},
        {FTL_PARAM_head_order, FTL_SEQUENCES_FIRST}, {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED},
        {FTL_PARAM_dq_adds, FTL_DQ_ADDS_LINES}, {FTL_PARAM_kv_group, FTL_KV_GROUP_GRID});
  CHECK("flash2_bwd", FORWARD "dq=kernel mma=mma copy=cp_async", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT}, {FTL_PARAM_exp2, FTL_EXP2_FTZ},
        {FTL_PARAM_head_order, FTL_HEADS_FIRST});
  CHECK("flash2_bwd", FORWARD "dq=kernel mma=wgmma copy=cp_async", {FTL_PARAM_code, FTL_CODE_LEAN},
        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT}, {FTL_PARAM_exp2, FTL_EXP2_FTZ});
  CHECK("flash2_bwd", FORWARD "dq=atomics mma=mma copy=cp_async code=plain", {FTL_PARAM_scaling, FTL_SCALING_EXPONENT},
        {FTL_PARAM_exp2, FTL_EXP2_FTZ}, {FTL_PARAM_head_order, FTL_HEADS_FIRST},
        {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED}, {FTL_PARAM_dq_adds, FTL_DQ_ADDS_LINES});
  CHECK("standard_attention", FORWARD "mma=mma copy=cp_async elementwise=eager_einsum",
        {FTL_PARAM_code, FTL_CODE_LEAN});
  CHECK("standard_attention", FORWARD "mma=mma copy=cp_async elementwise=eager_baddbmm",
        {FTL_PARAM_code, FTL_CODE_LEAN});
}

// Transposed scores where each warp has 16 keys and more, and a lane of them at most 224 numbers of S, dP, P, dS, dK
// and dV: of 128 keys on 8 warps (3 * 64 + 2 * 128) / 2 = 224 at block_m 64 and head_dim 128.
Test(unit_workloads_code_form, a_backward_pass_by_hand_keeps_keys_with_a_warp) {
#define BACKWARD "heads=4 kv_heads=2 seqlen=256 mma=mma copy=cp_async "
  CHECK("flash2_bwd", BACKWARD "head_dim=128 block_m=64 block_n=128 num_warps=8", {FTL_PARAM_code, FTL_CODE_STEPPED},
        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT}, {FTL_PARAM_exp2, FTL_EXP2_FTZ},
        {FTL_PARAM_head_order, FTL_HEADS_FIRST}, {FTL_PARAM_refill, FTL_REFILL_EARLY},
        {FTL_PARAM_p_operand, FTL_P_OPERAND_REGISTERS}, {FTL_PARAM_dq_adds, FTL_DQ_ADDS_PAIRS},
        {FTL_PARAM_kv_group, FTL_KV_GROUP_LOOP});
  static const char *const shared[] = {
      "head_dim=128 block_m=80 block_n=128 num_warps=8", "head_dim=136 block_m=64 block_n=128 num_warps=8",
      "head_dim=64 block_m=64 block_n=64 num_warps=8", "head_dim=64 block_m=48 block_n=64 num_warps=4 dropout_p=0.1",
      "head_dim=64 block_m=64 block_n=64 num_warps=4 code=lean"};
  char params[160];
  for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
    snprintf(params, sizeof params, BACKWARD "%s", shared[i]);
    CHECK("flash2_bwd", params, {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED}, {FTL_PARAM_dq_adds, FTL_DQ_ADDS_LINES},
          {FTL_PARAM_kv_group, FTL_KV_GROUP_GRID});
  }
  CHECK("flash2_bwd", "heads=4 kv_heads=2 lengths=100:200 head_dim=64 mma=mma copy=cp_async",
        {FTL_PARAM_p_operand, FTL_P_OPERAND_REGISTERS}, {FTL_PARAM_kv_group, FTL_KV_GROUP_GRID});
#undef BACKWARD
}

Test(unit_workloads_code_form, sums_are_added_by_words_where_there_are_no_pairs) {
  ftl_spec spec;
  ftl_error error = {0};
  ftl_arch arch = {
      .chip_compute_capability = 80, .shared_max_bytes_per_cta = 163 * 1024, .shared_bytes_per_sm = 164 * 1024};
  cr_assert_eq(ftl_spec_init(&spec, "flash2_bwd", &error), FTL_OK);
  cr_assert_eq(spec_set_words(&spec, FORWARD "mma=mma copy=cp_async", &error), FTL_OK);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  ftl_spec_resolve_code(&spec, &arch);
  cr_expect_eq(spec.value[FTL_PARAM_dq_adds], FTL_DQ_ADDS_WORDS);
}

// A CTA for all heads of a group: batch 1, 2 groups and 8 tiles of 128 keys are 16 CTAs, half of 32 SMs.
Test(unit_workloads_code_form, heads_of_a_group_share_a_cta_where_half_of_the_sms_have_one) {
  ftl_arch arch = {
      .chip_compute_capability = 90, .shared_max_bytes_per_cta = 227 * 1024, .shared_bytes_per_sm = 228 * 1024};
  static const int32_t num_sms[] = {32, 33};
  static const int64_t kv_group[] = {FTL_KV_GROUP_LOOP, FTL_KV_GROUP_GRID};
  for (int i = 0; i < 2; i++) {
    ftl_spec spec;
    ftl_error error = {0};
    arch.chip_num_sms = num_sms[i];
    cr_assert_eq(ftl_spec_init(&spec, "flash2_bwd", &error), FTL_OK);
    cr_assert_eq(spec_set_words(&spec, "heads=4 kv_heads=2 seqlen_q=1024 seqlen_kv=1000 head_dim=64 mma=mma", &error),
                 FTL_OK);
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
    ftl_spec_resolve_code(&spec, &arch);
    cr_expect_eq(spec.value[FTL_PARAM_kv_group], kv_group[i]);
  }
}

// Tiles that suit the library alone, but what it has not.
Test(unit_workloads_code_form, what_only_transposed_scores_have_asks_for_them) {
#define WIDE "heads=4 kv_heads=2 seqlen=256 mma=mma copy=cp_async head_dim=256 "
  CHECK("flash2_bwd", WIDE, {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED});
  CHECK("flash2_bwd", WIDE "kv_group=loop", {FTL_PARAM_p_operand, FTL_P_OPERAND_REGISTERS});
  CHECK("flash2_bwd", WIDE "dq_adds=words", {FTL_PARAM_p_operand, FTL_P_OPERAND_REGISTERS});
  CHECK("flash2_bwd", WIDE "dq_adds=lines", {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED});
  CHECK("flash2_bwd", "heads=2 seqlen=256 mma=mma copy=cp_async head_dim=256 kv_group=loop",
        {FTL_PARAM_p_operand, FTL_P_OPERAND_SHARED});
#undef WIDE
}

Test(unit_workloads_code_form, packed_sequences_come_before_heads_whatever_the_program) {
  CHECK("flash2_fwd", "heads=2 lengths=100:200 head_dim=64 mma=mma copy=cp_async", {FTL_PARAM_code, FTL_CODE_STEPPED},
        {FTL_PARAM_head_order, FTL_SEQUENCES_FIRST});
}

Test(unit_workloads_code_form, the_rest_follows_from_code_and_what_is_given_stays) {
  CHECK("flash2_fwd", FORWARD "mma=mma copy=cp_async code=lean", {FTL_PARAM_scaling, FTL_SCALING_SCORES},
        {FTL_PARAM_row_sums, FTL_ROW_SUMS_STEP}, {FTL_PARAM_q_operand, FTL_Q_OPERAND_AUTO});
  CHECK("flash2_fwd", FORWARD "mma=mma copy=cp_async schedule=interleaved code=plain exp2=ieee refill=early",
        {FTL_PARAM_code, FTL_CODE_PLAIN}, {FTL_PARAM_scaling, FTL_SCALING_EXPONENT}, {FTL_PARAM_exp2, FTL_EXP2_IEEE},
        {FTL_PARAM_refill, FTL_REFILL_EARLY});
}

Test(unit_workloads_code_form, what_is_left_open_is_as_if_nobody_had_given_it) {
  static const char given[] = FORWARD
      "mma=mma copy=cp_async block_m=64 code=buffered scaling=twice row_sums=step guard=masked exp2=ieee "
      "mask_steps=all "
      "q_operand=registers refill=early head_order=sequences_first";
  ftl_spec spec, bare;
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  cr_assert_eq(spec_set_words(&spec, given, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_init(&bare, "flash2_fwd", &error), FTL_OK);
  cr_assert_eq(spec_set_words(&bare, FORWARD "mma=mma copy=cp_async block_m=64", &error), FTL_OK);
  ftl_spec_open_code(&spec);
  cr_expect_eq(spec.given, bare.given);
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    cr_expect_eq(spec.value[i], bare.value[i], "%s", ftl_param_get((ftl_param)i)->name);
}

// Rows whose author is not known have one multiply-add an exponential, Triton's a difference and a factor; what is
// given stays.
Test(unit_workloads_code_form, rows_scale_in_the_exponent_unless_they_are_tritons) {
  CHECK("softmax_safe", "heads=1 seqlen_q=64 seqlen_kv=1024", {FTL_PARAM_scaling, FTL_SCALING_EXPONENT});
  CHECK("softmax_online", "heads=1 seqlen_q=64 seqlen_kv=1024 schedule=registers",
        {FTL_PARAM_scaling, FTL_SCALING_EXPONENT});
  CHECK("softmax_safe", "heads=1 seqlen_q=64 seqlen_kv=1024 schedule=exponentials",
        {FTL_PARAM_scaling, FTL_SCALING_APART});
  CHECK("softmax_online", "heads=1 seqlen_q=64 seqlen_kv=1024 scaling=apart", {FTL_PARAM_scaling, FTL_SCALING_APART});
}

// Which exponentials Triton's softmax has is no parameter of it.
Test(unit_workloads_code_form, what_a_workload_does_not_take_is_not_left_open) {
  ftl_spec spec = spec_of("softmax_safe", "heads=1 seqlen_q=64 seqlen_kv=1000 schedule=exponentials");
  cr_assert_eq(spec.value[FTL_PARAM_exp2], FTL_EXP2_IEEE);
  ftl_spec_open_code(&spec);
  cr_expect_eq(spec.value[FTL_PARAM_exp2], FTL_EXP2_IEEE);
}
