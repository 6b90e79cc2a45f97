// Every launch of flash2_bwd does what its tile program says, on every generation.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs };

static void prove(const char *arch, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, arch, "flash2_bwd", parameters, launch, &error);
  cr_assert_eq(status, FTL_OK, "%s %s: %s", arch, parameters, error.message);
  int64_t last = p.tile->num_ctas - 1, ctas[] = {0, last / 2, last};
  for (size_t i = 0; i < sizeof ctas / sizeof *ctas; i++)
    cr_assert_eq(ftl_checker_prove(p.warps, ctas[i], &error), FTL_OK, "%s %s: launch %d: %s", arch, parameters, launch,
                 error.message);
  programs_fini(&p);
}

Test(unit_lower_flash2_bwd, launches_are_proved) {
  static const struct {
    const char *parameters;
    int num_launches;
  } cases[] = {
      {"dq=kernel heads=2 seqlen=256 head_dim=64 block_n=64 num_stages=1", 3},
      {"dq=kernel heads=2 kv_heads=1 seqlen=200 head_dim=96 head_dim_v=64 block_n=64 num_stages=1", 4},
      {"dq=kernel heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=64 causal=1", 3},
      {"dq=kernel heads=4 kv_heads=2 seqlen_q=300 seqlen_kv=70 head_dim=40 block_m=48 block_n=64 causal=1 num_stages=1",
       4},
      {"dq=kernel heads=2 kv_heads=1 seqlen=200 head_dim=96 block_n=64 num_stages=1 layout=bshd mma=mma", 4},
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int launch = 0; launch < cases[i].num_launches; launch++) prove(archs[a], cases[i].parameters, launch);
}

Test(unit_lower_flash2_bwd, launches_that_refill_late_are_proved) {
  static const char *const cases[] = {
      "heads=2 seqlen=256 head_dim=64 block_n=64 num_stages=2",
      "heads=2 seqlen=200 head_dim=96 head_dim_v=64 block_n=64 num_stages=3 causal=1",
      "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_m=48 block_n=64 num_stages=4",
      "heads=2 seqlen=256 head_dim=64 block_n=128 num_stages=2 mma=mma code=lean",
      "heads=2 seqlen=256 head_dim=64 block_n=64 num_stages=2 mma=mma code=plain"};
  char parameters[256];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int launch = 1; launch < 3; launch++) {
      bool says = strstr(cases[i], "mma=") != NULL;
      snprintf(parameters, sizeof parameters, "dq=kernel copy=cp_async refill=late %s %s", says ? "" : "mma=wgmma",
               cases[i]);
      prove("h200", parameters, launch);
      if (says) prove("a100_80", parameters, launch);
    }
}

Test(unit_lower_flash2_bwd, launches_with_atomics_are_proved) {
  static const struct {
    const char *parameters;
    int num_launches;
  } cases[] = {
      {"dq=atomics mma=mma heads=2 seqlen=256 head_dim=64 block_n=64", 3},
      {"dq=atomics mma=mma heads=2 kv_heads=1 seqlen=200 head_dim=64 head_dim_v=96 block_n=64 num_warps=4", 4},
      {"dq=atomics mma=mma heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=64 num_warps=4 causal=1 num_stages=1",
       3},
      {"dq=atomics mma=mma heads=4 kv_heads=2 seqlen_q=300 seqlen_kv=70 head_dim=40 block_m=32 block_n=64 causal=1", 4},
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int launch = 0; launch < cases[i].num_launches; launch++) prove(archs[a], cases[i].parameters, launch);
}

Test(unit_lower_flash2_bwd, launches_of_transposed_scores_are_proved) {
  static const struct {
    const char *parameters;
    int num_launches;
  } cases[] = {
      {"heads=2 seqlen=256 head_dim=64 block_n=64 num_warps=4", 3},
      {"kv_group=loop heads=2 kv_heads=1 seqlen=200 head_dim=32 head_dim_v=64 block_n=64 num_warps=4 dq_adds=words", 3},
      {"kv_group=loop heads=4 kv_heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=128 causal=1 num_stages=1 "
       "dq_adds=lines",
       3},
      {"heads=4 kv_heads=2 seqlen_q=300 seqlen_kv=70 head_dim=40 block_m=32 block_n=64 num_warps=4 causal=1 "
       "kv_group=grid",
       4},
      {"kv_group=loop heads=2 kv_heads=1 seqlen=200 head_dim=64 block_m=32 block_n=64 num_warps=4 dropout_p=0.1 "
       "causal=1",
       3},
  };
  char parameters[256];
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int launch = 0; launch < cases[i].num_launches; launch++) {
        snprintf(parameters, sizeof parameters, "dq=atomics mma=mma p_operand=registers %s", cases[i].parameters);
        prove(archs[a], parameters, launch);
      }
}

Test(unit_lower_flash2_bwd, launches_that_drop_hide_or_pack_are_proved) {
  static const char *const kernels[] = {"dq=kernel mma=mma heads=2 head_dim=64 block_m=32 block_n=64 num_stages=1",
                                        "dq=kernel heads=2 head_dim=64 block_m=32 block_n=64 num_stages=1",
                                        "dq=atomics mma=mma heads=2 head_dim=64 block_m=32 block_n=64 num_warps=4"};
  static const char *const problems[] = {"seqlen_q=200 seqlen_kv=300 dropout_p=0.1 causal=1",
                                         "seqlen=500 mask=strided mask_width=3 mask_block=64 dropout_p=0.1",
                                         "seqlen=500 mask=local_global mask_width=2 mask_block=64 causal=1",
                                         "lengths=33:1:190:64", "lengths=200:77 causal=1 window=50"};
  char parameters[256];
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
      for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        for (int launch = 0; launch < 3; launch++) {
          snprintf(parameters, sizeof parameters, "%s %s", kernels[k], problems[i]);
          prove(archs[a], parameters, launch);
        }
}

static void count_insts(const char *parameters, int launch, int64_t count[FTL_OPCODE_COUNT]) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "a100_80", "flash2_bwd", parameters, launch, &error), FTL_OK, "%s", error.message);
  memset(count, 0, FTL_OPCODE_COUNT * sizeof *count);
  for (int32_t i = 0; i < p.warps->num_insts; i++) count[p.warps->insts[i].opcode] += p.warps->insts[i].repeat;
  programs_fini(&p);
}

// 64 x 32 scores are 16 a thread of 4 warps. Queries by keys one call of the generator serves them, of 10 IMAD.WIDE and
// 12 LOP3, and once 4 and 2; keys by queries each 16 x 16 need two, so four in all. An element's byte (PRMT), its
// comparison and its select, and another comparison and select for dP.
Test(unit_lower_flash2_bwd, dropout_costs_its_random_numbers_and_five_instructions_an_element) {
  static const char *const shape =
      "dq=kernel heads=1 seqlen_q=64 seqlen_kv=64 head_dim=64 block_m=32 block_n=64 mma=mma";
  static const int64_t num_calls[] = {0, 4, 1};  // of launch 1, transposed, and 2
  for (int launch = 1; launch <= 2; launch++) {
    int64_t without[FTL_OPCODE_COUNT], with[FTL_OPCODE_COUNT];
    char dropped[128];
    snprintf(dropped, sizeof dropped, "%s dropout_p=0.1", shape);
    count_insts(shape, launch, without);
    count_insts(dropped, launch, with);
    cr_expect_eq(with[FTL_OP_IMAD_WIDE] - without[FTL_OP_IMAD_WIDE], num_calls[launch] * 10 + 4, "%d", launch);
    cr_expect_eq(with[FTL_OP_LOP] - without[FTL_OP_LOP], num_calls[launch] * 12 + 2, "%d", launch);
    cr_expect_eq(with[FTL_OP_PRMT] - without[FTL_OP_PRMT], 16, "%d", launch);
    cr_expect_eq(with[FTL_OP_ISETP] - without[FTL_OP_ISETP], 32, "%d", launch);
    cr_expect_eq(with[FTL_OP_SEL] - without[FTL_OP_SEL], 32, "%d", launch);
  }
}

// Registers of a launch as Triton has it, and how many of its copies bring a number of 4 bytes for each column.
static int32_t lower_triton(const char *tile, int launch, int32_t *num_copies) {
  char parameters[256];
  programs p;
  ftl_error error = {0};
  snprintf(parameters, sizeof parameters,
           "dq=kernel heads=16 seqlen=2048 mma=wgmma copy=cp_async code=lean refill=late %s", tile);
  cr_assert_eq(lower_launch(&p, "h200", "flash2_bwd", parameters, launch, &error), FTL_OK, "%s", error.message);
  int32_t registers = p.warps->registers_per_thread;
  *num_copies = 0;
  for (int32_t i = 0; i < p.warps->num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    bool is_column = inst->opcode == FTL_OP_CP_ASYNC && p.warps->accesses[inst->access].bytes == 4;
    if (is_column) *num_copies += inst->repeat;
  }
  programs_fini(&p);
  return registers;
}

// LSE and delta beside the tiles that are asked for late: a copy for the 8 columns of a fragment, before the loop and
// in it. dQ has rows of its own, which need none.
Test(unit_lower_flash2_bwd, numbers_a_column_are_copied_a_fragment_each) {
  int32_t num_copies;
  lower_triton("head_dim=64 block_m=32 block_n=128 num_warps=4 num_stages=2", 1, &num_copies);
  cr_expect_eq(num_copies, 2 * 2 * 32 / 8, "%d", num_copies);
  lower_triton("head_dim=64 block_m=64 block_n=128 num_warps=8 num_stages=2", 1, &num_copies);
  cr_expect_eq(num_copies, 2 * 2 * 64 / 8);
  lower_triton("head_dim=64 block_m=64 block_n=128 num_warps=8 num_stages=2", 2, &num_copies);
  cr_expect_eq(num_copies, 0);
}

// dS lies over P or dP: no registers are set aside beside them. Triton 3.6 has 122 registers for 64 queries a warpgroup
// and 64 keys, of which dQ, S and dP are 96 (kernels/measurements/foreign_backward_ncu.csv); 16 would be set aside.
Test(unit_lower_flash2_bwd, the_gradient_of_scores_has_no_registers_of_its_own) {
  int32_t num_copies;
  int32_t registers = lower_triton("head_dim=64 block_m=64 block_n=128 num_warps=8 num_stages=2", 2, &num_copies);
  cr_expect(registers >= 114 && registers <= 130, "%d", registers);
}

// The library's tile on the GPUs that have the shared memory for it: 144 KB.
Test(unit_lower_flash2_bwd, the_tile_of_the_library_is_proved) {
  static const char *const large[] = {"a100_80", "h200"};
  for (int a = 0; a < 2; a++)
    for (int launch = 0; launch < 3; launch++)
      prove(large[a], "dq=atomics mma=mma heads=2 seqlen_q=200 seqlen_kv=300 head_dim=128 causal=1", launch);
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "flash2_bwd", "dq=atomics mma=mma heads=2 seqlen=256 head_dim=128", 1, &error),
               FTL_OK);
  cr_expect_eq(p.warps->shared_bytes, 144 * 1024);
  programs_fini(&p);
}

// S, dK and dQ have head_dim columns; dP and dV those of values.
Test(unit_lower_flash2_bwd, products_of_values_have_their_columns) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(
      lower_launch(&p, "a100_80", "flash2_bwd", "dq=atomics heads=1 seqlen=128 head_dim=64 head_dim_v=32", 1, &error),
      FTL_OK);
  ftl_work work;
  cr_assert_eq(ftl_work_of_warps(p.warps, 0, &work, &error), FTL_OK);
  cr_expect_eq(work.mma_macs, 128 * 128 * (3 * 64 + 2 * 32));
  cr_expect_eq(p.tile->model_flops, 2 * work.mma_macs);
  programs_fini(&p);
}

// S, dP, dV, dK and dQ once each: 5 n^2 head_dim.
Test(unit_lower_flash2_bwd, with_atomics_nothing_is_computed_twice) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "a100_80", "flash2_bwd", "dq=atomics heads=1 seqlen=128 head_dim=64", 1, &error),
               FTL_OK);
  ftl_work work;
  cr_assert_eq(ftl_work_of_warps(p.warps, 0, &work, &error), FTL_OK);
  cr_expect_eq(work.mma_macs, 5 * 128 * 128 * 64);
  programs_fini(&p);
}

// Of n keys and as many queries the two kernels multiply: S and dP twice, dV, dK, dQ once: 7 n^2 head_dim.
Test(unit_lower_flash2_bwd, scores_and_their_gradients_are_computed_twice) {
  int64_t macs = 0;
  for (int launch = 1; launch <= 2; launch++) {
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_launch(&p, "a100_80", "flash2_bwd", "dq=kernel heads=1 seqlen=128 head_dim=64", launch, &error),
                 FTL_OK);
    ftl_work work;
    cr_assert_eq(ftl_work_of_warps(p.warps, 0, &work, &error), FTL_OK);
    macs += work.mma_macs;
    programs_fini(&p);
  }
  cr_expect_eq(macs, 7 * 128 * 128 * 64);
}

// 64 x 64 of dQ a step, 4 warps: 16 rows of 64 columns each are 8 REDs of 8 rows and 8 columns for the upper rows and
// as many for the lower ones, of words twice as many, of lines 16 rows of two. Numbers of 64 queries are two copies of
// one warp, LSE and delta.
Test(unit_lower_flash2_bwd, a_step_adds_and_copies_as_its_author_writes_it) {
  static const struct {
    const char *adds;
    int32_t reds;
  } cases[] = {{"pairs", 16}, {"words", 32}, {"lines", 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    programs p;
    ftl_error error = {0};
    snprintf(parameters, sizeof parameters,
             "dq=atomics mma=mma copy=cp_async p_operand=registers code=stepped heads=1 seqlen=512 head_dim=64 "
             "block_m=64 block_n=64 num_warps=4 dq_adds=%s",
             cases[i].adds);
    cr_assert_eq(lower_launch(&p, "h200", "flash2_bwd", parameters, 1, &error), FTL_OK, "%s", error.message);
    int32_t reds = 0, numbers = 0;
    for (int32_t k = p.warps->loops[0].begin; k < p.warps->loops[0].end; k++) {
      const ftl_warp_inst *inst = &p.warps->insts[k];
      if (inst->opcode == FTL_OP_RED) reds += inst->repeat;
      if (inst->opcode == FTL_OP_CP_ASYNC && (inst->flags & FTL_INST_WARP0)) numbers++;
    }
    cr_expect_eq(reds, cases[i].reds, "%s: %d", cases[i].adds, reds);
    cr_expect_eq(numbers, 2);
    programs_fini(&p);
  }
}

Test(unit_lower_flash2_bwd, what_cannot_be_is_the_reason) {
  static const struct {
    const char *parameters, *reason;
  } cases[] = {
      {"dq=kernel heads=1 seqlen=128 head_dim=64 block_n=64 num_warps=8", "each a multiple of 16"},
      {"dq=kernel heads=1 seqlen=128 head_dim=64 copy=ldg num_stages=3", "at most 2"},
      {"dq=atomics heads=1 seqlen=128 head_dim=64 num_warps=7", "multiples of 16 rows and columns"},
      {"dq=kernel heads=1 seqlen=128 head_dim=64 block_m=48 dropout_p=0.1",
       "block_m=48: with dropout_p random numbers come for 32"},
      {"dq=atomics heads=1 seqlen=128 head_dim=64 block_m=32 block_n=64 dropout_p=0.1", "multiples of 16 x 32"},
      {"dq=kernel heads=1 seqlen=128 head_dim=64 mask=butterfly mask_block=64", "mask_block=64: a block must hold"},
      {"dq=atomics p_operand=registers heads=1 seqlen=128 head_dim=64 block_n=64", "a multiple of 16"},
      {"dq=atomics p_operand=registers heads=1 seqlen=128 head_dim=80 block_m=48 num_warps=8", "dQ's tile of block_m"},
      {"dq=atomics p_operand=registers heads=1 seqlen=128 head_dim=64 block_m=16 block_n=64 num_warps=4 dropout_p=0.1",
       "block_m=16: with dropout_p random numbers come for 32 queries"},
      {"dq=atomics p_operand=registers heads=2 kv_heads=1 lengths=64:64 head_dim=64 kv_group=loop",
       "kv_group=loop: lengths"},
      {"dq=atomics p_operand=registers heads=1 seqlen=128 head_dim=64 dq_adds=pairs", "atomics of two words"},
      {"dq=atomics p_operand=shared heads=1 seqlen=128 head_dim=64 dq_adds=words", "only with p_operand=registers"},
      {"dq=atomics p_operand=shared heads=2 kv_heads=1 seqlen=128 head_dim=64 kv_group=loop", "kv_group=loop: only"},
      {"dq=kernel p_operand=registers heads=1 seqlen=128 head_dim=64", "p_operand=registers: only with dq=atomics"},
      {"dq=kernel heads=1 seqlen=128 head_dim=64 dq_adds=words", "dq_adds other than lines: only with dq=atomics"},
      {"dq=kernel heads=2 kv_heads=1 seqlen=128 head_dim=64 kv_group=loop", "kv_group=loop: only with dq=atomics"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    programs p;
    ftl_error error = {0};
    cr_expect_eq(lower_launch(&p, "a100_80", "flash2_bwd", cases[i].parameters, 1, &error), FTL_INFEASIBLE);
    cr_expect_not_null(strstr(error.message, cases[i].reason), "\"%s\" does not say \"%s\"", error.message,
                       cases[i].reason);
    programs_fini(&p);
  }
}
