// Every launch of unfused attention and of the softmaxes does what its tile program says, on every generation.
#include <criterion/criterion.h>
#include <stdio.h>

#include "lower/checker.h"
#include "lower/select/select.h"
#include "programs.h"

static void prove(const char *arch, const char *workload, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, arch, workload, parameters, launch, &error);
  cr_assert_eq(status, FTL_OK, "%s %s: %s", arch, parameters, error.message);
  int64_t last = p.tile->num_ctas - 1, ctas[] = {0, 1, last / 2, last - 1, last};
  for (size_t i = 0; i < sizeof ctas / sizeof *ctas; i++)
    cr_assert_eq(ftl_checker_prove(p.warps, ctas[i], &error), FTL_OK, "%s %s: %s", arch, parameters, error.message);
  programs_fini(&p);
}

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs, NUM_LAUNCHES = 3 };

Test(unit_lower_unfused, launches_of_unfused_attention_are_proved) {
  static const char *const parameters[] = {
      "heads=2 seqlen=256 head_dim=64 block_m=64 block_n=64 num_warps=4",
      "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=1100 head_dim=40 block_m=64 block_n=32 num_warps=4 causal=1",
      "heads=2 seqlen_q=100 seqlen_kv=60 head_dim=64 block_m=64 block_n=64 num_warps=4 causal=1 softmax=online mma=mma",
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
      for (int launch = 0; launch < NUM_LAUNCHES; launch++)
        prove(archs[a], "standard_attention", parameters[i], launch);
}

Test(unit_lower_unfused, element_wise_launches_are_proved) {
  static const char parameters[] =
      "heads=2 seqlen_q=70 seqlen_kv=1100 head_dim=64 block_m=64 block_n=64 num_warps=4 causal=1 padding_mask=1 "
      "dropout_p=0.1";
  for (int a = 0; a < NUM_ARCHS; a++)
    for (int launch = 0; launch < 5; launch++) prove(archs[a], "standard_attention", parameters, launch);
  enum { DROPOUT_GRADIENT = 2 };
  for (int a = 0; a < NUM_ARCHS; a++)
    prove(archs[a], "standard_attention",
          "pass=bwd heads=2 seqlen=300 head_dim=64 block_m=64 block_n=64 num_warps=4 dropout_p=0.1", DROPOUT_GRADIENT);
}

// In the epilogue of the first product under a mask of blocks; all in the softmax; a kernel each. Backward likewise.
Test(unit_lower_unfused, element_wise_work_is_proved_wherever_it_is_done) {
  static const char shape[] =
      "heads=2 seqlen=300 head_dim=64 block_m=64 block_n=64 num_warps=4 causal=1 dropout_p=0.1 padding_mask=1";
  static const struct {
    const char *how;
    int num_launches;
  } cases[] = {{"mask=butterfly mask_block=64", 5},
               {"mask=butterfly mask_block=64 mma=mma elementwise=fused", 3},
               {"elementwise=fused softmax=online", 3},
               {"elementwise=separate", 7},
               {"elementwise=fused pass=bwd", 5},
               {"elementwise=separate pass=bwd", 7},
               {"elementwise=eager_baddbmm", 9},
               {"elementwise=eager_einsum", 10},
               {"elementwise=eager_baddbmm pass=bwd", 10},
               {"elementwise=eager_einsum pass=bwd", 21},
               {"elementwise=eager_matmul", 7}};
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      char parameters[256];
      snprintf(parameters, sizeof parameters, "%s %s", shape, cases[i].how);
      for (int launch = 0; launch < cases[i].num_launches; launch++)
        prove(archs[a], "standard_attention", parameters, launch);
    }
}

static int64_t num_insts(const char *parameters, int launch, ftl_opcode opcode) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "standard_attention", parameters, launch, &error), FTL_OK, "%s", error.message);
  int64_t n = 0;
  for (int32_t i = 0; i < p.warps->num_insts; i++)
    n += p.warps->insts[i].opcode == opcode ? p.warps->insts[i].repeat : 0;
  programs_fini(&p);
  return n;
}

// copy_queries: four times an element a thread, each loaded at a place that takes 48 instructions to find, a quarter of
// them IMAD, a third ALU, the rest of no pipe; scale_keys: 24.
Test(unit_lower_unfused, elements_of_strided_tensors_are_found_by_instructions) {
  static const char parameters[] =
      "heads=2 seqlen=256 head_dim=64 block_m=64 block_n=64 num_warps=4 elementwise=eager_einsum layout=bshd";
  enum { SCALE_KEYS, COPY_QUERIES };
  cr_expect_eq(num_insts(parameters, COPY_QUERIES, FTL_OP_LDG), 4);
  cr_expect_eq(num_insts(parameters, COPY_QUERIES, FTL_OP_STG), 4);
  static const ftl_opcode opcodes[] = {FTL_OP_IMAD, FTL_OP_IADD, FTL_OP_NOP};
  static const int64_t more[] = {4 * (48 / 4 - 24 / 4), 4 * (48 / 3 - 24 / 3), 4 * (20 - 10)};
  for (int i = 0; i < 3; i++)
    cr_expect_eq(num_insts(parameters, COPY_QUERIES, opcodes[i]) - num_insts(parameters, SCALE_KEYS, opcodes[i]),
                 more[i], "%s", ftl_opcode_name(opcodes[i]));
}

// copy_keys: a thread has four elements of a row of K^T, one of head_dim's columns. What a warp loads lies in 32 rows
// of K, two bytes each; what it stores is 64 bytes of a row. 2 heads of 64 columns of 2000 tokens, 512 a CTA.
Test(unit_lower_unfused, keys_of_eager_pytorch_are_read_across_their_rows) {
  static const char parameters[] =
      "heads=2 seqlen=2000 head_dim=64 block_m=64 block_n=64 num_warps=4 elementwise=eager_baddbmm layout=bshd";
  enum { COPY_KEYS = 1 };
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "standard_attention", parameters, COPY_KEYS, &error), FTL_OK, "%s",
               error.message);
  cr_expect_eq(p.tile->num_ctas, 2 * 64 * 4);
  int num_loads = 0, num_stores = 0;
  for (int32_t i = 0; i < p.warps->num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode != FTL_OP_LDG && inst->opcode != FTL_OP_STG) continue;
    const ftl_access *access = &p.warps->accesses[inst->access];
    bool is_load = inst->opcode == FTL_OP_LDG;
    num_loads += is_load, num_stores += !is_load;
    cr_expect_eq(access->num_rows, is_load ? 32 : 1);
    cr_expect_eq(access->bytes, is_load ? 2 : 64);
    cr_expect_eq(access->warp_row_step, is_load ? 32 : 1);
  }
  cr_expect_eq(num_loads, 4);
  cr_expect_eq(num_stores, 4);
  programs_fini(&p);
}

static int64_t num_ctas(const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "standard_attention", parameters, launch, &error), FTL_OK, "%s", error.message);
  int64_t n = p.tile->num_ctas;
  programs_fini(&p);
  return n;
}

// PyTorch's kernel on the elements of S has 128 threads with four each: rows of 2000 columns are 3 CTAs of 512 and one
// of 464; 2 heads of 16 rows. The softmax takes a row in one CTA.
Test(unit_lower_unfused, element_wise_kernels_of_eager_pytorch_take_512_elements_a_cta) {
  static const char parameters[] =
      "heads=2 seqlen_q=16 seqlen_kv=2000 head_dim=64 block_m=16 block_n=64 num_warps=1 mma=mma padding_mask=1 "
      "elementwise=eager_baddbmm";
  enum { ADD_PADDING = 3, SOFTMAX };
  cr_expect_eq(num_ctas(parameters, ADD_PADDING), 2 * 16 * 4);
  cr_expect_eq(num_ctas(parameters, SOFTMAX), 2 * 16);
}

// A row of 1024 columns is 32 elements a lane, loaded and stored one by one. Each is exponentiated once and divided, by
// a reciprocal and an FCHK; the LSE takes a logarithm: 3 x 32 + 1 MUFU. An exponential and its difference are 7 FFMA
// (SUB, FFMA.SAT, FFMA.RM, FADD, 2 FFMA, FMUL), a division 5; the sum takes 32, a butterfly of 5 shuffles 5, the LSE 1.
// A division stands between a BRA and a BSYNC; before its store are 7 instructions of control, and its BSSY.
Test(unit_lower_unfused, exponentials_and_divisions_of_eager_pytorch_are_precise) {
  static const char parameters[] =
      "heads=1 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 elementwise=eager_baddbmm";
  enum { SOFTMAX = 3, ELEMENTS = 32 };
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_LDG), ELEMENTS);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_STG), ELEMENTS + 1);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_MUFU), 3 * ELEMENTS + 1);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_FFMA), 7 * ELEMENTS + 5 * ELEMENTS + ELEMENTS + 5 + 1);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_BRA), ELEMENTS);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_BSYNC), ELEMENTS);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_NOP), (7 + 1) * ELEMENTS);
}

// A row of 2048 columns is one of a CTA of 8 warps: 8 elements a lane, each exponentiated twice, for the sum and for
// the result, in vectors of 16 bytes. FFMA: those of both exponentials and of the division as above, and sums of a
// lane's elements, of 32 lanes by 5 shuffles and of 8 warps; the LSE takes 1.
Test(unit_lower_unfused, long_rows_of_eager_pytorch_are_exponentiated_twice) {
  static const char parameters[] =
      "heads=1 seqlen=2048 head_dim=64 block_m=64 block_n=64 num_warps=4 elementwise=eager_baddbmm";
  enum { SOFTMAX = 3, ELEMENTS = 8 };
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_LDG), 1);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_MUFU), 4 * ELEMENTS + 1);
  cr_expect_eq(num_insts(parameters, SOFTMAX, FTL_OP_FFMA),
               2 * 7 * ELEMENTS + 5 * ELEMENTS + ELEMENTS + 5 + (8 - 1) + 1);
}

// Six columns of a lane are on their way: the seventh load stands behind the first conversion; backward, with two
// matrices, the thirteenth.
static int num_loads_before_conversions(const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "h200", "standard_attention", parameters, launch, &error), FTL_OK, "%s", error.message);
  int n = 0;
  for (int32_t i = 0; i < p.warps->num_insts && p.warps->insts[i].opcode != FTL_OP_HFMA2; i++)
    n += p.warps->insts[i].opcode == FTL_OP_LDG;
  programs_fini(&p);
  return n;
}

Test(unit_lower_unfused, rows_of_eager_pytorch_come_six_columns_at_a_time) {
  static const char forward[] =
      "heads=1 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 "
      "elementwise=eager_baddbmm";
  static const char backward[] =
      "heads=1 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 "
      "elementwise=eager_baddbmm pass=bwd";
  enum { SOFTMAX = 3, GRADIENT = 3 };
  cr_expect_eq(num_loads_before_conversions(forward, SOFTMAX), 6);
  cr_expect_eq(num_loads_before_conversions(backward, GRADIENT), 12);
}

Test(unit_lower_unfused, launches_of_the_backward_pass_are_proved) {
  static const struct {
    const char *parameters;
    int num_launches;
  } cases[] = {
      {"pass=bwd heads=2 seqlen=256 head_dim=64 block_m=64 block_n=64 num_warps=4", 5},
      {"pass=bwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=1100 head_dim=40 block_m=64 block_n=64 causal=1", 6},
      {"pass=bwd heads=2 seqlen_q=100 seqlen_kv=60 head_dim=64 block_m=64 block_n=64 causal=1 window=30 mma=mma", 5},
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int launch = 0; launch < cases[i].num_launches; launch++)
        prove(archs[a], "standard_attention", cases[i].parameters, launch);
}

Test(unit_lower_unfused, softmaxes_are_proved) {
  static const char *const parameters[] = {
      "heads=3 seqlen_q=50 seqlen_kv=1000",
      "heads=3 seqlen_q=50 seqlen_kv=5000 block_m=4",
      "heads=3 seqlen_q=50 seqlen_kv=2000 schedule=registers block_n=4096",
      "heads=3 seqlen_q=50 seqlen_kv=2000 schedule=registers num_warps=16 block_m=4",
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
      prove(archs[a], "softmax_safe", parameters[i], 0);
      prove(archs[a], "softmax_online", parameters[i], 0);
    }
}

// The exponentials of a row of n columns, m warps a row: safe computes each element's twice, online as often and one
// more a lane and step, and one a lane at the end, for the running maximum.
Test(unit_lower_unfused, an_online_softmax_trades_a_pass_for_exponentials_of_the_running_maximum) {
  ftl_work safe, online;
  programs p;
  ftl_error error = {0};
  const char *parameters = "heads=1 seqlen_q=4 seqlen_kv=4096";
  cr_assert_eq(lower_workload(&p, "h200", "softmax_safe", parameters, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_work_of_warps(p.warps, 0, &safe, &error), FTL_OK);
  programs_fini(&p);
  cr_assert_eq(lower_workload(&p, "h200", "softmax_online", parameters, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_work_of_warps(p.warps, 0, &online, &error), FTL_OK);
  programs_fini(&p);
  cr_expect_eq(safe.exps, 2 * 4096);
  cr_expect_eq(online.exps, 2 * 4096 + 128 * (4096 / 1024 + 1));
  // arXiv:1805.02867: memory accesses an element: 4 and 3
  cr_expect_eq(safe.load_bytes[0] + safe.store_bytes[1], (3 + 1) * 4096 * 2);
  cr_expect_eq(online.load_bytes[0] + online.store_bytes[1], (2 + 1) * 4096 * 2);
}

static int32_t divisions(const char *workload, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_launch(&p, "a100_80", workload, parameters, launch, &error), FTL_OK, "%s", error.message);
  int32_t count = ftl_select_num_divisions(p.tile, &p.tile->roles[0]);
  programs_fini(&p);
  return count;
}

// A row of every tensor is the CTA's index: nothing is divided. Under `causal` the row within its head says how far it
// sees (index / 200), and which tile of 64 rows it is in (that / 64). Products have the four of a query and its KV
// head.
Test(unit_lower_unfused, a_place_costs_the_divisions_that_its_addresses_need) {
  const char *plain = "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 block_m=64 num_warps=4";
  const char *causal = "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 block_m=64 num_warps=4 causal=1";
  cr_expect_eq(divisions("standard_attention", plain, 1), 0);
  cr_expect_eq(divisions("standard_attention", causal, 1), 2);
  cr_expect_eq(divisions("standard_attention", plain, 2), 4);
}

// PyTorch 2.11: of 2048 columns a warp holds a row, 64 a lane, of 4096 a CTA of 1024 threads, four each, two bytes at a
// time. Before it a CTA of 512 threads has 16 bytes of 4096 columns each. scores and scale stand before the softmax, or
// two copies and scores.
Test(unit_lower_unfused, rows_of_a_later_pytorch_come_an_element_at_a_time) {
  static const struct {
    const char *parameters;
    int launch;
    int64_t loads;
  } cases[] = {{"seqlen=2048 elementwise=eager_matmul", 2, 64},
               {"seqlen=4096 elementwise=eager_matmul", 2, 4},
               {"seqlen=4096 elementwise=eager_baddbmm", 3, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters, "heads=1 head_dim=64 block_m=64 block_n=64 num_warps=4 %s",
             cases[i].parameters);
    cr_expect_eq(num_insts(parameters, cases[i].launch, FTL_OP_LDG), cases[i].loads, "%s", parameters);
  }
}
