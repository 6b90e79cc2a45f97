// What a chip cannot run is answered with the reason in the user's terms.
#include "fixture.h"
#include "tests/spec_words.h"

static ftl_prediction predict(const char *arch_name, const char *parameters) {
  ftl_arch *arch = shipped_arch(arch_name);
  ftl_spec spec = spec_of(parameters);
  ftl_prediction prediction;
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &prediction, NULL), FTL_OK);
  ftl_arch_destroy(arch);
  return prediction;
}

Test(unit_engine_feasibility, too_much_shared_memory_is_named_with_the_parameters_and_the_limit) {
  ftl_prediction p =
      predict("a100_80", "heads=1 seqlen=512 head_dim=128 block_m=256 block_n=128 num_stages=3 num_warps=8");
  cr_assert_not(p.feasible);
  // Q 256x128, K and V 3 stages of 128x128 each, 2 bytes: 64 KiB + 192 KiB.
  cr_assert_str_eq(p.reason,
                   "block_m=256 block_n=128 num_stages=3 head_dim=128 needs 262144 bytes of shared memory a CTA, "
                   "a100_80 allows 166912");
}

static void check_tiles(const char *arch_name, const char *parameters, int64_t block_m, int64_t block_n,
                        int64_t num_stages) {
  ftl_prediction p = predict(arch_name, parameters);
  cr_expect(p.feasible, "%s %s: %s", arch_name, parameters, p.reason);
  const int64_t *value = p.spec.value;
  cr_expect(value[FTL_PARAM_block_m] == block_m && value[FTL_PARAM_block_n] == block_n &&
                value[FTL_PARAM_num_stages] == num_stages,
            "%s %s: %lld x %lld, %lld stages", arch_name, parameters, (long long)value[FTL_PARAM_block_m],
            (long long)value[FTL_PARAM_block_n], (long long)value[FTL_PARAM_num_stages]);
}

// KiB of Q, and of two buffers of K and of V; V100 allows 96, T4 64, RTX 3090 99, A100 163, H200 227 (V100 also keeps
// P).
Test(unit_engine_feasibility, tiles_that_nobody_named_fit_the_chip) {
  check_tiles("h200", "heads=1 seqlen=512 head_dim=128", 128, 64, 2);     // 32 + 64
  check_tiles("t4", "heads=1 seqlen=512 head_dim=128", 128, 32, 2);       // 32 + 32
  check_tiles("v100", "heads=1 seqlen=512 head_dim=128", 128, 32, 2);     // 32 + 32
  check_tiles("rtx3090", "heads=1 seqlen=512 head_dim=160", 128, 32, 2);  // 40 + 40
  check_tiles("rtx3090", "heads=1 seqlen=512 head_dim=256", 64, 32, 2);   // 32 + 64
  check_tiles("t4", "heads=1 seqlen=512 head_dim=256", 64, 16, 2);        // 32 + 32
  // Four warps share the keys of a tile, 16 each, so that it has 64: 4 + 2 * 32 of them in two buffers each.
  check_tiles("t4", "flash_decode heads=16 seqlen_kv=1024 head_dim=128", 16, 64, 1);
  // An H200 has no room for 128 keys of K and V (128), 64 rows of Q and dO twice (128), beside dS.
  check_tiles("h200", "flash2_bwd heads=1 seqlen=512 head_dim=256", 64, 64, 2);
}

// A thread of 4 warps that compute 128 x D has D sums of O beside its scores, and no more than 255 registers.
Test(unit_engine_feasibility, tiles_that_nobody_named_spill_a_few_registers_at_most_where_some_do) {
  check_tiles("v100", "heads=8 seqlen=512 head_dim=168", 64, 32, 2);  // 128 x 32 fit V100's shared memory, 77 spilled
  check_tiles("l40s", "heads=8 seqlen=512 head_dim=200", 64, 32, 2);
  check_tiles("a100_80", "heads=8 seqlen=512 head_dim=256", 64, 32, 2);
  check_tiles("h200", "heads=8 seqlen=512 head_dim=192", 128, 32, 2);
  check_tiles("h200", "flash2_bwd heads=8 seqlen=512 head_dim=192", 64, 64, 2);
  check_tiles("v100", "flash1_bwd heads=8 seqlen=512 head_dim=64", 16, 128, 2);
  ftl_prediction p = predict("v100", "heads=8 seqlen=512 head_dim=168");
  cr_expect_eq(p.metrics.value[FTL_METRIC_spill_registers], 0);
}

Test(unit_engine_feasibility, tiles_that_spill_stay_where_narrower_ones_cost_more_or_registers_are_capped) {
  check_tiles("l40s", "heads=8 seqlen=512 head_dim=168", 128, 32, 2);  // 10 registers
  check_tiles("v100", "flash1_fwd heads=8 seqlen=512 head_dim=192", 16, 64, 2);
  check_tiles("h200", "heads=8 seqlen=512 head_dim=128 max_registers=64", 128, 64, 2);
  check_tiles("v100", "flash2_bwd heads=8 seqlen=512 head_dim=192", 64, 32, 1);  // all do
}

static void check_warps(const char *arch_name, const char *parameters, int64_t block_n, int64_t num_stages,
                        int64_t num_warps) {
  ftl_prediction p = predict(arch_name, parameters);
  cr_assert(p.feasible, "%s %s: %s", arch_name, parameters, p.reason);
  const int64_t *value = p.spec.value;
  cr_expect(value[FTL_PARAM_block_n] == block_n && value[FTL_PARAM_num_stages] == num_stages &&
                value[FTL_PARAM_num_warps] == num_warps,
            "%s %s: %lld keys, %lld stages, %lld warps", arch_name, parameters, (long long)value[FTL_PARAM_block_n],
            (long long)value[FTL_PARAM_num_stages], (long long)value[FTL_PARAM_num_warps]);
}

// Warps that share a tile's keys have 16 each, those that share the columns of dQ 16 of them: half as many need less.
// KiB of K and V: 4 warps of keys of 256 columns have 64, once; 2 have 32. Four of FlashAttention-1 have 2 * 16 and as
// much for dK and dV, or P, in two buffers each.
Test(unit_engine_feasibility, warps_that_nobody_named_give_way_after_tiles_and_stages) {
  check_warps("t4", "flash_decode heads=8 seqlen_kv=1024 head_dim=256", 32, 1, 2);
  check_warps("t4", "flash1_fwd heads=8 seqlen=512 head_dim=128", 64, 2, 2);
  check_warps("v100", "flash1_bwd heads=8 seqlen=512 head_dim=64", 128, 2, 4);  // 256 keys fit, and spill
  check_warps("h200", "flash_decode heads=8 seqlen_kv=1024 head_dim=256", 64, 2, 4);
  ftl_prediction named = predict("t4", "flash_decode heads=8 seqlen_kv=1024 head_dim=256 num_warps=4");
  cr_expect_not(named.feasible);
  cr_expect_not_null(strstr(named.reason, "block_n=64 num_stages=2"), "%s", named.reason);
}

// Who names one of them means the defaults of the others; where nothing fits, the general defaults are the reason.
Test(unit_engine_feasibility, tiles_that_somebody_named_stay) {
  ftl_prediction named = predict("t4", "heads=1 seqlen=512 head_dim=128 num_stages=2");
  cr_expect_not(named.feasible);
  cr_expect_eq(named.spec.value[FTL_PARAM_block_n], 64);
  ftl_prediction none = predict("t4", "flash2_bwd heads=1 seqlen=512 head_dim=256");
  cr_expect_not(none.feasible);
  cr_expect_not_null(strstr(none.reason, "block_m=64 block_n=64 num_stages=2"), "%s", none.reason);
}

Test(unit_engine_feasibility, wgmma_gives_way_to_mma_sync_where_the_rows_do_not_fit) {
  ftl_prediction p = predict("h200", "heads=1 seqlen=512 head_dim=64 block_m=32 block_n=32 num_warps=2");
  cr_assert(p.feasible, "%s", p.reason);
  cr_assert_eq(p.spec.value[FTL_PARAM_mma], FTL_MMA_MMA);
  cr_assert_eq(p.spec.value[FTL_PARAM_copy], FTL_COPY_CP_ASYNC);
}

// wgmma with cp_async would be Triton's code (workloads/code_form.h); nothing of it is left when wgmma has given way.
Test(unit_engine_feasibility, the_form_of_the_code_is_that_of_the_instructions_that_run) {
  ftl_prediction p = predict("h200", "heads=1 seqlen=512 head_dim=64 block_m=32 block_n=32 num_warps=2 copy=cp_async");
  cr_assert(p.feasible, "%s", p.reason);
  cr_expect_eq(p.spec.value[FTL_PARAM_mma], FTL_MMA_MMA);
  cr_expect_eq(p.spec.value[FTL_PARAM_code], FTL_CODE_STEPPED);
  cr_expect_eq(p.spec.value[FTL_PARAM_row_sums], FTL_ROW_SUMS_END);
}

// Warps of mma.sync divide a tile so that rows and columns of each are fewest together: 64 + 32 of 128 x 128 for eight,
// 64 + 64 for four; 32 + 32 of 64 x 64. Where that is given it stays, and warpgroups have none.
Test(unit_engine_feasibility, warps_of_a_product_divide_both_sides_of_its_tile) {
  static const struct {
    const char *tile;
    int64_t warps_n;
  } cases[] = {{"block_m=128 block_n=128 num_warps=8 mma=mma", 4},
               {"block_m=128 block_n=128 num_warps=4 mma=mma", 2},
               {"block_m=128 block_n=256 num_warps=8 mma=mma", 4},
               {"block_m=64 block_n=64 num_warps=4 mma=mma", 2},
               {"block_m=16 block_n=64 num_warps=4 mma=mma", 4},
               {"block_m=128 block_n=128 num_warps=8 mma=mma warps_n=1", 1},
               {"block_m=128 block_n=128 num_warps=8 mma=wgmma copy=cp_async", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "matmul_tiled m=512 n=512 k=256 block_k=64 %s", cases[i].tile);
    ftl_prediction p = predict("h200", parameters);
    cr_assert(p.feasible, "%s: %s", cases[i].tile, p.reason);
    cr_expect_eq(p.spec.value[FTL_PARAM_warps_n], cases[i].warps_n, "%s: %lld", cases[i].tile,
                 (long long)p.spec.value[FTL_PARAM_warps_n]);
  }
}

// Code of an unknown author keeps Q in registers where a warp has 16 rows, beside at most 192 columns of O and S.
Test(unit_engine_feasibility, stepped_code_keeps_q_in_registers_where_they_leave_room) {
  static const struct {
    const char *tile;
    int64_t operand;
  } cases[] = {{"head_dim=64 block_m=64 block_n=128 num_warps=4", FTL_Q_OPERAND_REGISTERS},
               {"head_dim=128 block_m=64 block_n=64 num_warps=4", FTL_Q_OPERAND_REGISTERS},
               {"head_dim=128 block_m=64 block_n=80 num_warps=4", FTL_Q_OPERAND_SHARED},
               {"head_dim=64 block_m=128 block_n=64 num_warps=4", FTL_Q_OPERAND_SHARED},
               {"head_dim=64 block_m=128 block_n=64 num_warps=4 code=lean", FTL_Q_OPERAND_REGISTERS}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "heads=1 seqlen=640 mma=mma copy=cp_async %s", cases[i].tile);
    ftl_prediction p = predict("h200", parameters);
    cr_assert(p.feasible, "%s: %s", cases[i].tile, p.reason);
    cr_expect_eq(p.spec.value[FTL_PARAM_q_operand], cases[i].operand, "%s", cases[i].tile);
  }
}

// What the first loop of a launch executes, and what of it stands ahead of its first product.
typedef struct loop_counts {
  int64_t insts[FTL_OPCODE_COUNT], fragments_ahead;
} loop_counts;

static loop_counts count_first_loop(const char *parameters) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_spec spec = spec_of(parameters);
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict_programs(&spec, arch, 0, &tile, &warps, &error), FTL_OK, "%s", error.message);
  loop_counts c = {0};
  for (int32_t i = warps->loops[0].begin + 1; i < warps->loops[0].end; i++) {
    const ftl_warp_inst *inst = &warps->insts[i];
    if (inst->opcode == FTL_OP_LDSM && c.insts[FTL_OP_MMA] == 0) c.fragments_ahead += inst->repeat;
    c.insts[inst->opcode] += inst->repeat;
  }
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  ftl_arch_destroy(arch);
  return c;
}

static int64_t num_alu(const loop_counts *c) {
  return c->insts[FTL_OP_IADD] + c->insts[FTL_OP_LOP] + c->insts[FTL_OP_IMAD] + c->insts[FTL_OP_MOV];
}

// Buffered code branches around none of a step's copies. A warp's k step of 16 rows and 128 columns takes a block of A
// and 8 of B, which it has loaded before it first multiplies, in the step before or this one. Plain code has an address
// for each of 36 ldmatrix and works out 8 places of copies, as unit/lower/plain_products derives it. A thread's 32
// scores of a step and the corrections of two rows each take two multiplications more where denormals are kept.
Test(unit_engine_feasibility, programs_have_the_form_of_their_code) {
#define PRODUCT                                                                                            \
  "matmul_tiled m=1024 n=1024 k=1024 block_m=128 block_n=128 block_k=64 num_warps=8 num_stages=3 mma=mma " \
  "warps_n=1 copy=cp_async "
#define STEP "heads=1 seqlen=512 head_dim=64 block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async "
  loop_counts buffered = count_first_loop(PRODUCT "code=buffered"), lean = count_first_loop(PRODUCT "code=lean");
  loop_counts plain = count_first_loop(PRODUCT "code=plain");
  loop_counts ieee = count_first_loop(STEP "exp2=ieee"), ftz = count_first_loop(STEP "exp2=ftz");
  cr_expect_eq(buffered.insts[FTL_OP_BRA], 1);
  cr_expect_eq(lean.insts[FTL_OP_BRA], 2);
  cr_expect_leq(buffered.fragments_ahead, 1 + 8);
  cr_expect_lt(lean.fragments_ahead, 1 + 8);
  cr_expect_eq(num_alu(&plain), 36 + 8 * (4 + 3) + 2 * 3 + 2 + 4 + 1);
  cr_expect_eq(ieee.insts[FTL_OP_FFMA] - ftz.insts[FTL_OP_FFMA], 2 * (32 + 2));
#undef PRODUCT
#undef STEP
}

// Q, K, V and O of 2^20 tokens in 32 heads of 128 are 8 GiB each, LSE is 128 MiB.
Test(unit_engine_feasibility, tensors_need_room_in_memory) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_spec spec = spec_of("heads=32 seqlen=1048576 head_dim=128");
  int64_t bytes = 4 * (INT64_C(8) << 30) + (INT64_C(128) << 20);
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_error error = {0};
  arch->dram_size_bytes = bytes;
  cr_assert_eq(ftl_predict_programs(&spec, arch, 0, &tile, &warps, &error), FTL_OK, "%s", error.message);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  arch->dram_size_bytes = bytes - 1;
  cr_expect_eq(ftl_predict_programs(&spec, arch, 0, &tile, &warps, &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "flash2_fwd: tensors of 34493956096 bytes; h200 has 34493956095 bytes of memory");
  ftl_arch_destroy(arch);
}

Test(unit_engine_feasibility, bf16_needs_ampere) {
  ftl_prediction p = predict("v100", "heads=1 seqlen=512 head_dim=64 dtype=bf16 num_stages=1");
  cr_assert_not(p.feasible);
  cr_assert(strstr(p.reason, "bf16"), "%s", p.reason);
}

static void expect_reason_on(const char *chip, const char *workload, const char *parameters, const char *reason) {
  ftl_arch *arch = shipped_arch(chip);
  ftl_spec spec;
  ftl_prediction p;
  cr_assert_eq(spec_of_words(&spec, workload, parameters, "", NULL), FTL_OK);
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, NULL), FTL_OK);
  cr_expect_not(p.feasible, "%s", parameters);
  cr_expect_not_null(strstr(p.reason, reason), "\"%s\" does not say \"%s\"", p.reason, reason);
  ftl_arch_destroy(arch);
}

static void expect_reason(const char *workload, const char *parameters, const char *reason) {
  expect_reason_on("h200", workload, parameters, reason);
}

// 256 x 128 results of 16 bits are all of a T4's shared memory, beside stages that they do not fit over.
Test(unit_engine_feasibility, results_are_staged_by_default_where_there_is_room) {
  static const struct {
    const char *chip, *parameters;
    int64_t store;
  } cases[] = {{"t4", "block_m=256 block_n=128", FTL_SPEC_STORE_DIRECT},
               {"a100_80", "block_m=256 block_n=128", FTL_SPEC_STORE_STAGED},
               {"t4", "block_m=128 block_n=64", FTL_SPEC_STORE_STAGED},
               {"a100_80", "block_m=256 block_n=128 code=plain", FTL_SPEC_STORE_DIRECT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_arch *arch = shipped_arch(cases[i].chip);
    ftl_spec spec;
    ftl_prediction p;
    cr_assert_eq(ftl_spec_init(&spec, "matmul_tiled", NULL), FTL_OK);
    cr_assert_eq(spec_set_words(&spec, cases[i].parameters, NULL), FTL_OK);
    cr_assert_eq(spec_set_words(&spec, "m=512 n=512 k=512 block_k=32 num_warps=8 num_stages=1 mma=mma", NULL), FTL_OK);
    cr_assert_eq(ftl_spec_complete(&spec, NULL), FTL_OK);
    cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, NULL), FTL_OK);
    cr_expect(p.feasible, "%s: %s", cases[i].parameters, p.reason);
    cr_expect_eq(p.spec.value[FTL_PARAM_store], cases[i].store, "%s on %s", cases[i].parameters, cases[i].chip);
    ftl_arch_destroy(arch);
  }
}

Test(unit_engine_feasibility, warpgroups_side_by_side_need_a_chip_that_has_them) {
  expect_reason_on("t4", "matmul_tiled", "m=7 n=8 k=256 block_m=48 groups_n=2", "groups_n=2: needs mma=wgmma copy=tma");
}

// H200 has wgmma: that mma.sync cannot do it is no reason.
Test(unit_engine_feasibility, what_has_no_form_with_mma_sync_is_refused_for_what_wgmma_lacks) {
  expect_reason("flash3_fwd", "heads=1 seqlen=512 head_dim=256 block_n=256 num_stages=4", "bytes of shared memory");
  expect_reason("flash3_fwd", "heads=1 seqlen=512 head_dim=64 copy=cp_async", "needs copy=tma");
  expect_reason("matmul_tiled", "m=1024 n=1024 k=1024 block_m=256 block_n=256 num_warps=8 num_stages=8 persistent=1",
                "bytes of shared memory");
}
