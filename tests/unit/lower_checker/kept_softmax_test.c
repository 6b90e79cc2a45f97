// Softmaxes that keep exponentials in registers, as Triton compiles kernels/foreign/triton_softmax.py.
#include <criterion/criterion.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

#define SHAPE "heads=3 seqlen_q=50 schedule=exponentials "

static programs lowered(const char *arch, const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, arch, "softmax_safe", parameters, &error), FTL_OK, "%s %s: %s", arch, parameters,
               error.message);
  return p;
}

Test(unit_lower_kept_softmax, rows_are_proved_whatever_their_length_block_and_warps) {
  static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
  static const char *const parameters[] = {
      SHAPE "seqlen_kv=1000",                 // element by element: no multiple of 16
      SHAPE "seqlen_kv=1001 num_warps=1",     // the same by one warp
      SHAPE "seqlen_kv=2000 block_n=8192",    // six vectors beyond the row
      SHAPE "seqlen_kv=1024 num_warps=8",     // four columns a thread
      SHAPE "seqlen_kv=5000",                 // 64 elements a thread
      SHAPE "seqlen_kv=100 num_warps=8",      // the later warps have no column
      SHAPE "seqlen_kv=20000 block_n=32768",  // 256 numbers a thread: some leave registers
  };
  for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
      programs p = lowered(archs[a], parameters[i]);
      ftl_error error = {0};
      for (int64_t cta = 0; cta < p.tile->num_ctas; cta += p.tile->num_ctas - 1)
        cr_expect_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s: %s", archs[a], parameters[i],
                     error.message);
      programs_fini(&p);
    }
}

static int64_t num_insts(const char *parameters, ftl_opcode opcode) {
  programs p = lowered("h200", parameters);
  int64_t n = 0;
  for (int32_t i = 0; i < p.warps->num_insts; i++)
    n += p.warps->insts[i].opcode == opcode ? p.warps->insts[i].repeat : 0;
  programs_fini(&p);
  return n;
}

// 16 columns a thread. Each is converted, exponentiated once and divided by one reciprocal; it is loaded in a vector of
// 8 where rows are a multiple of 16 long. The LSE is one more store; conversions pack two of a vector.
Test(unit_lower_kept_softmax, a_thread_has_vectors_where_rows_are_a_multiple_of_16) {
  static const struct {
    const char *parameters;
    int64_t vectors, packs;
  } cases[] = {{SHAPE "seqlen_kv=2000", 2, 8}, {SHAPE "seqlen_kv=2008", 16, 16}, {SHAPE "seqlen_kv=2001", 16, 16}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *text = cases[i].parameters;
    cr_expect_eq(num_insts(text, FTL_OP_LDG), cases[i].vectors, "%s", text);
    cr_expect_eq(num_insts(text, FTL_OP_STG), cases[i].vectors + 1, "%s", text);
    cr_expect_eq(num_insts(text, FTL_OP_CVT), cases[i].packs, "%s", text);
    cr_expect_eq(num_insts(text, FTL_OP_HFMA2), 16, "%s", text);
    cr_expect_eq(num_insts(text, FTL_OP_MUFU), 16 + 1, "%s", text);
  }
}

// Of each of 16 elements: its difference from the maximum, the multiplication by log2(e), two around the exponential,
// the sum, and three of the division. Sums of 5 lanes' steps and of 4 warps; two that scale the divisor; 15 of logf,
// and the addition of the maximum to it.
Test(unit_lower_kept_softmax, a_division_scales_both_and_a_logarithm_is_a_polynomial) {
  cr_expect_eq(num_insts(SHAPE "seqlen_kv=2000", FTL_OP_FFMA), 16 * 8 + 5 + 3 + 2 + 15 + 1);
}

// Four vectors a thread, of which a row of 1000 columns reaches into one and one of 4080 into all: how long rows are is
// a run-time number, so that the code is the same.
Test(unit_lower_kept_softmax, what_lies_beyond_the_row_is_loaded_under_a_predicate) {
  static const ftl_opcode opcodes[] = {FTL_OP_LDG, FTL_OP_STG, FTL_OP_ISETP, FTL_OP_LOP, FTL_OP_FFMA, FTL_OP_MOV};
  for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
    cr_expect_eq(num_insts(SHAPE "block_n=4096 seqlen_kv=1008", opcodes[i]),
                 num_insts(SHAPE "block_n=4096 seqlen_kv=4080", opcodes[i]), "%s", ftl_opcode_name(opcodes[i]));
  cr_expect_eq(num_insts(SHAPE "block_n=4096 seqlen_kv=1008", FTL_OP_LDG), 4);
}

static int64_t more_insts(const char *parameters, const char *than, ftl_opcode opcode) {
  return num_insts(parameters, opcode) - num_insts(than, opcode);
}

// Four vectors have a predicate each from load to store. Of eight three keep theirs; the others are put in a register
// (LOP) and compared again by the store.
Test(unit_lower_kept_softmax, predicates_of_more_than_four_vectors_are_kept_in_registers) {
  const char *eight = SHAPE "block_n=8192 seqlen_kv=4080", *four = SHAPE "block_n=4096 seqlen_kv=4080";
  cr_expect_eq(more_insts(eight, four, FTL_OP_ISETP), 4 + 5 + 4 * 8);  // at loads, at stores, of exponentials
  cr_expect_eq(more_insts(eight, four, FTL_OP_LOP), 4 + 5);            // columns, registers
  // 32 and 64 vectors of one number
  const char *all = SHAPE "block_n=8192 seqlen_kv=5000", *half = SHAPE "block_n=4096 seqlen_kv=4001";
  cr_expect_eq(more_insts(all, half, FTL_OP_ISETP), 32 + 32 + 32);
  cr_expect_eq(more_insts(all, half, FTL_OP_LOP), 32 + 32);
}

// 128 numbers and 125 registers of bits are as many as 255 leave no room beside: a word has 32 bits, each cleared and
// set, and tested at the store by a LOP, which is no ISETP.
Test(unit_lower_kept_softmax, predicates_share_words_where_a_register_each_would_be_too_many) {
  const char *words = SHAPE "block_n=16384 seqlen_kv=9001", *single = SHAPE "block_n=8192 seqlen_kv=5000";
  cr_expect_eq(more_insts(words, single, FTL_OP_LOP), (128 + 3 * 125) - (64 + 61));
  cr_expect_eq(more_insts(words, single, FTL_OP_ISETP), (128 + 128) - (64 + 61 + 64));
}

// A thread's number has 10 bits, of which 4 warps use 7: a vector whose distance has the other three set has an address
// of its own at its load and its store. That is each eighth of 4 warps, each fourth of 8; all of 32 warps share one.
Test(unit_lower_kept_softmax, a_vector_whose_distance_covers_what_threads_leave_has_its_own_address) {
  const char *none = SHAPE "block_n=4096 seqlen_kv=4001 num_warps=32";
  cr_expect_eq(more_insts(SHAPE "block_n=4096 seqlen_kv=4001 num_warps=4", none, FTL_OP_IMAD), 2 * 32 / 8);
  cr_expect_eq(more_insts(SHAPE "block_n=4096 seqlen_kv=4001 num_warps=8", none, FTL_OP_IMAD), 2 * 16 / 4);
  cr_expect_eq(more_insts(SHAPE "block_n=16384 seqlen_kv=16000 num_warps=8", none, FTL_OP_IMAD), 2 * 8 / 4);
}

static int32_t num_registers(const char *parameters) {
  programs p = lowered("h200", parameters);
  int32_t n = p.warps->registers_per_thread;
  programs_fini(&p);
  return n;
}

// Numbers and bits of 32 single elements are 64, of 64 elements 128: with what stands beside them more than the 128
// registers of four CTAs of 4 warps, and of two of 8 warps. What costs no CTA is taken: ptxas has 80, 167 and 186, and
// with words 168.
Test(unit_lower_kept_softmax, registers_of_bits_decide_how_many_ctas_fit) {
  cr_expect_eq(num_registers(SHAPE "block_n=4096 seqlen_kv=4001 num_warps=4"), 80);
  cr_expect_eq(num_registers(SHAPE "block_n=8192 seqlen_kv=5000 num_warps=4"), 168);
  cr_expect_eq(num_registers(SHAPE "block_n=16384 seqlen_kv=9001 num_warps=8"), 255);
  cr_expect_eq(num_registers(SHAPE "block_n=16384 seqlen_kv=9001 num_warps=4"), 168);
}

// Vectors of 8: 32 numbers miss the 48 registers of five CTAs by less than two and are made to fit, 64 miss the 80 of
// three by more than 4 %, and take the 128 of two. ptxas has 48, 127 and, on 4 warps, 163.
Test(unit_lower_kept_softmax, rows_that_miss_a_step_by_little_are_made_to_fit) {
  cr_expect_eq(num_registers(SHAPE "seqlen_kv=8192 num_warps=8"), 48);
  cr_expect_eq(num_registers(SHAPE "seqlen_kv=16384 num_warps=8"), 128);
  cr_expect_eq(num_registers(SHAPE "seqlen_kv=16384 num_warps=4"), 168);
}

// MUFUs that are issued without an FSETP since the one before.
static int64_t num_begun_together(const char *parameters) {
  programs p = lowered("h200", parameters);
  int64_t num = 0;
  bool begun = true;
  for (int32_t i = 0; i < p.warps->num_insts; i++) {
    const ftl_warp_inst *inst = &p.warps->insts[i];
    if (inst->opcode == FTL_OP_ISETP) begun = true;
    if (inst->opcode != FTL_OP_MUFU) continue;
    num += inst->repeat - begun;
    begun = false;
  }
  programs_fini(&p);
  return num;
}

// Each exponential is begun by an FSETP, whose predicate is free when the exponential is done. Four vectors leave one
// predicate, so that no MUFU follows another without an FSETP in between. Two leave two: those of the first vector's
// exponentials, but for the first, stand beside those of the other's, 7 pairs. One vector leaves three: its eight are
// begun together.
Test(unit_lower_kept_softmax, exponentials_take_turns_at_the_predicates_that_masks_leave) {
  cr_expect_eq(num_begun_together(SHAPE "seqlen_kv=8192"), 0);
  cr_expect_eq(num_begun_together(SHAPE "seqlen_kv=4096"), 0);
  cr_expect_eq(num_begun_together(SHAPE "seqlen_kv=2048"), 7);
  cr_expect_eq(num_begun_together(SHAPE "seqlen_kv=1024"), 7);
}

static void infeasible(const char *parameters, const char *because) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "softmax_safe", parameters, &error), FTL_INFEASIBLE, "%s", parameters);
  cr_expect(strstr(error.message, because) != NULL, "%s: %s", parameters, error.message);
  programs_fini(&p);
}

Test(unit_lower_kept_softmax, a_block_is_a_power_of_two_of_columns_a_thread_for_one_row) {
  infeasible(SHAPE "seqlen_kv=1000 block_m=2", "block_m=2: schedule=exponentials has a row a CTA");
  infeasible(SHAPE "seqlen_kv=1000 block_n=1536", "block_n=1536: schedule=exponentials");
  infeasible(SHAPE "seqlen_kv=2000 block_n=1024", "block_n=1024: schedule=exponentials");
  infeasible(SHAPE "seqlen_kv=1000 block_n=64", "block_n=64: schedule=exponentials");
  infeasible(SHAPE "seqlen_kv=65000", "block_n=65536: schedule=exponentials");  // 512 columns a thread
}
