// Structure and feasibility of flash2_fwd. That it computes attention is proved in tests/numeric/attention.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"
#include "tile/exec.h"
#include "workloads/attention.h"
#include "tests/spec_words.h"

static ftl_status build(const char *params, ftl_tile_program **program, ftl_error *error) {
  ftl_spec spec;
  cr_assert_eq(spec_of_words(&spec, "flash2_fwd", "heads=2 head_dim=64 copy=cp_async mma=mma", params, error), FTL_OK,
               "%s", error->message);
  int num_launches;
  *program = NULL;
  return spec.workload->build(&spec, program, &num_launches, error);
}

static ftl_tile_program *build_ok(const char *params) {
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(build(params, &program, &error), FTL_OK, "%s", error.message);
  return program;
}

// Bytes of the rings that take room.
static int64_t ring_bytes(const char *params) {
  ftl_tile_program *program = build_ok(params);
  int64_t bytes = 0;
  for (int32_t r = 0; r < program->num_rings; r++) {
    const ftl_ring *ring = &program->rings[r];
    if (!ring->overlaid) bytes += (int64_t)ring->rows * ring->columns * ring->num_stages * ftl_dtype_bytes(ring->dtype);
  }
  ftl_tile_program_destroy(program);
  return bytes;
}

#define TILES "seqlen=256 block_m=64 block_n=32 num_warps=4 "

Test(unit_workloads_flash2_fwd, buffers_have_the_columns_of_what_they_hold) {
  enum { Q = 64 * 96 * 2, K = 32 * 96 * 2, V = 32 * 64 * 2 };
  cr_expect_eq(ring_bytes(TILES "head_dim=96 head_dim_v=64 num_stages=2"), Q + 2 * (K + V));
  cr_expect_eq(ring_bytes(TILES "head_dim=96 head_dim_v=64 schedule=interleaved"), Q + K + V);
  // 40 columns are padded to 48, or as far as head_dim_multiple says.
  cr_expect_eq(ring_bytes(TILES "head_dim=96 head_dim_v=40 num_stages=2"), Q + 2 * (K + 32 * 48 * 2));
  cr_expect_eq(ring_bytes(TILES "head_dim=96 head_dim_v=40 num_stages=2 head_dim_multiple=32"), Q + 2 * (K + V));
}

// K and V that take turns in one buffer have the room of the wider one.
Test(unit_workloads_flash2_fwd, a_single_buffer_holds_the_wider_of_keys_and_values) {
  cr_expect_eq(ring_bytes(TILES "head_dim=96 head_dim_v=64 num_stages=1"), (64 + 32) * 96 * 2);
  cr_expect_eq(ring_bytes(TILES "head_dim=64 head_dim_v=96 num_stages=1"), 64 * 64 * 2 + 32 * 96 * 2);
}

// P of 64 x 64 and V in parts of 32 keys, both of them over the parts of Q and K; and by row of 64 maximum, sum, what
// both go on by and 16 bytes that keep P's rows apart, and a sum of each warp's: with the driver's KB what Nsight
// Compute says of PyTorch's kernels (19968 and 53248 bytes, kernels/measurements/foreign_efficient_ncu.csv).
Test(unit_workloads_flash2_fwd, products_back_to_back_lie_over_each_other) {
  cr_expect_eq(ring_bytes("seqlen=256 head_dim=64 schedule=back_to_back block_m=64 block_n=64 copy=cp_async"),
               19968 - 1024);
  cr_expect_eq(ring_bytes("seqlen=256 head_dim=96 schedule=back_to_back block_m=64 block_n=128 copy=cp_async"),
               53248 - 1024);
  // Loads to registers have two stages: P of 32 x 128, 2 x 32 keys of V, and 12 numbers a row.
  cr_expect_eq(ring_bytes("seqlen=256 head_dim=128 schedule=back_to_back block_m=32 block_n=128 copy=ldg"),
               32 * 128 * 2 + 2 * 32 * 128 * 2 + 32 * 12 * 4);
}

// What a user leaves open is as the library has it: keys enough for O of a head, and a warp for each 32 x 32.
Test(unit_workloads_flash2_fwd, products_back_to_back_have_tiles_as_wide_as_heads) {
  static const struct {
    const char *heads;
    int64_t block_m, block_n, num_warps;
  } cases[] = {
      {"head_dim=64", 64, 64, 4},
      {"head_dim=72", 64, 128, 8},
      {"head_dim=64 head_dim_v=128", 64, 128, 8},
      {"head_dim=128 block_m=32 block_n=160", 32, 160, 5},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ftl_error error = {0};
    char params[160];
    ftl_spec spec;
    snprintf(params, sizeof params, "heads=1 seqlen=64 schedule=back_to_back %s", cases[i].heads);
    cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
    cr_assert_eq(spec_set_words(&spec, params, &error), FTL_OK, "%s", error.message);
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
    cr_expect_eq(spec.value[FTL_PARAM_block_m], cases[i].block_m, "%s", params);
    cr_expect_eq(spec.value[FTL_PARAM_block_n], cases[i].block_n, "%s", params);
    cr_expect_eq(spec.value[FTL_PARAM_num_warps], cases[i].num_warps, "%s", params);
  }
}

// An output that Q's rows are too short for lies over all buffers, unless these are smaller or the next tile's come.
Test(unit_workloads_flash2_fwd, an_output_wider_than_queries_has_a_buffer_of_its_own) {
  enum { Q = 64 * 64 * 2, STAGES = 2 * 32 * (64 + 128) * 2, O = 64 * 128 * 2 };
  cr_expect_eq(ring_bytes(TILES "head_dim=64 head_dim_v=128 num_stages=2"), Q + STAGES);
  cr_expect_eq(ring_bytes(TILES "head_dim=64 head_dim_v=128 num_stages=2 persistent=1"), Q + STAGES + O);
  cr_expect_eq(ring_bytes(TILES "head_dim=64 head_dim_v=256 num_stages=1"), Q + 32 * 256 * 2 + 64 * 256 * 2);
}

// Two multiply-adds a pair and column: of QK^T over head_dim, of PV for head_dim_v.
Test(unit_workloads_flash2_fwd, flops_count_the_columns_of_each_product) {
  ftl_tile_program *program = build_ok("seqlen_q=100 seqlen_kv=300 head_dim=96 head_dim_v=64");
  cr_expect_eq(program->model_flops, (int64_t)2 * 2 * 100 * 300 * (96 + 64));
  ftl_tile_program_destroy(program);
}

Test(unit_workloads_flash2_fwd, infeasible_configurations_name_the_parameter_and_the_limit) {
  static const struct {
    const char *params, *reason;
  } cases[] = {
      {"seqlen=64 block_m=64 num_warps=8", "block_m=64 num_warps=8: with mma each warp needs a multiple of 16 rows"},
      {"seqlen=64 block_m=128 num_warps=6 mma=wgmma", "num_warps=6: with wgmma it must be a multiple of 4"},
      {"seqlen=64 block_m=64 num_warps=8 mma=wgmma", "with wgmma each 4 warps need a multiple of 64 rows"},
      {"seqlen=64 copy=ldg num_stages=3", "num_stages=3: copy=ldg keeps one tile in flight"},
      {"seqlen=64 block_n=24", "block_n=24: it is the K of the second matrix product, a multiple of 16"},
      {"seqlen=64 schedule=interleaved refill=late", "refill=late: buffers to refill are those of schedule=stages"},
      {"seqlen=64 num_stages=1 refill=late", "refill=late: buffers to refill are those of schedule=stages"},
      {"seqlen=64 copy=ldg num_stages=2 refill=when_free", "refill=when_free: copy=ldg keeps one tile in flight"},
      {"seqlen=64 copy=ldg num_stages=2 refill=amid", "refill=amid: copy=ldg keeps one tile in flight"},
      {"seqlen=64 copy=ldg num_stages=2 refill=joint", "refill=joint: copy=ldg keeps one tile in flight"},
      {"seqlen=64 num_stages=1 refill=joint", "refill=joint: buffers to refill are those of schedule=stages"},
      {"seqlen=64 schedule=interleaved refill=amid", "refill=amid: buffers to refill are those of schedule=stages"},
      {"seqlen=64 schedule=interleaved refill=behind", "refill=behind: buffers to refill are those of schedule=stages"},
      {"seqlen=64 head_dim=64 block_m=64 num_warps=4 warps_n=2 mma=wgmma",
       "warps_n=2: num_warps=4 must be a multiple of 8, block_n=64 of 16, and head_dim 64 of 16"},
      {"seqlen=64 head_dim=64 block_m=64 num_warps=16 warps_n=2 mma=wgmma",
       "block_m=64 num_warps=16: with wgmma each 4 warps need a multiple of 64 rows"},
      {"seqlen=64 head_dim=64 block_m=32 num_warps=2 warps_n=2 q_operand=registers",
       "warps_n=2: warps side by side take Q from shared memory"},
      // Of four warps 48 keys, and of three the warps, do not divide; of two a tile of 16 rows has one below the other.
      {"seqlen=64 head_dim=64 block_m=16 block_n=48 num_warps=4 warps_n=4",
       "warps_n=4: num_warps=4 must be a multiple of 4, block_n=48 of 64, and head_dim 64 of 64"},
      {"seqlen=64 head_dim=64 head_dim_v=48 block_m=16 block_n=64 num_warps=4 warps_n=4",
       "warps_n=4: num_warps=4 must be a multiple of 4, block_n=64 of 64, and head_dim_v 48 of 64"},
      {"seqlen=64 head_dim=48 block_m=16 block_n=48 num_warps=4 warps_n=3",
       "warps_n=3: num_warps=4 must be a multiple"},
      {"seqlen=64 head_dim=64 block_m=16 block_n=64 num_warps=4 warps_n=2",
       "with mma each warp needs a multiple of 16 rows"},
      {"seqlen=64 schedule=interleaved num_stages=2", "num_stages=2: schedule=interleaved has one buffer"},
      {"seqlen=64 head_dim=64 schedule=back_to_back block_m=64 block_n=64 num_warps=8",
       "num_warps=8 warps_n=2: schedule=back_to_back has a warp for each 32 x 32 of block_m x block_n"},
      {"seqlen=64 head_dim=64 schedule=back_to_back block_m=48 block_n=64",
       "schedule=back_to_back has a warp for each"},
      {"seqlen=64 head_dim=64 head_dim_v=128 schedule=back_to_back block_m=64 block_n=64",
       "head_dim=128: schedule=back_to_back keeps O in registers where heads have no more columns than block_n=64"},
      {"seqlen=64 head_dim=64 schedule=back_to_back block_m=64 block_n=64 num_stages=2",
       "schedule=back_to_back: one buffer (num_stages=1), mma.sync and copies by threads"},
      {"seqlen=64 head_dim=64 schedule=back_to_back block_m=64 block_n=64 mma=wgmma",
       "schedule=back_to_back: one buffer (num_stages=1), mma.sync and copies by threads"},
      {"seqlen=64 head_dim=64 schedule=back_to_back block_m=64 block_n=64 persistent=true",
       "schedule=back_to_back: walks all keys of one query tile"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ftl_tile_program *program;
    ftl_error error = {0};
    cr_assert_eq(build(cases[i].params, &program, &error), FTL_INFEASIBLE, "%s", cases[i].params);
    cr_assert_null(program);
    cr_assert(strstr(error.message, cases[i].reason) != NULL, "%s", error.message);
  }
}

static int32_t count_kind(const ftl_tile_program *program, ftl_tile_op_kind kind) {
  int32_t count = 0;
  for (int32_t i = 0; i < program->num_ops; i++) count += program->ops[i].kind == kind;
  return count;
}

Test(unit_workloads_flash2_fwd, lengths_that_tiles_divide_need_no_masked_loop) {
  ftl_tile_program *program = build_ok("seqlen=128 block_n=64");
  cr_assert_eq(count_kind(program, FTL_TILE_LOOP), 1);
  cr_assert_eq(count_kind(program, FTL_TILE_MASK), 0);
  ftl_tile_program_destroy(program);
  program = build_ok("seqlen=130 block_n=64");
  cr_assert_eq(count_kind(program, FTL_TILE_LOOP), 2);
  cr_assert_eq(count_kind(program, FTL_TILE_MASK), 1);
  ftl_tile_program_destroy(program);
}

// Loads of a ring ahead of the first loop.
static int32_t prologue_loads(const ftl_tile_program *program, const char *ring) {
  int32_t count = 0;
  for (int32_t i = 0; program->ops[i].kind != FTL_TILE_LOOP; i++)
    if (program->ops[i].kind == FTL_TILE_LOAD) count += strcmp(program->rings[program->ops[i].ring].name, ring) == 0;
  return count;
}

// Three stages: all of K, and all but one of V, whose last the first step fills; two each where a step refills what it
// reads after that. The rings that a step's loads fill, in order.
Test(unit_workloads_flash2_fwd, buffers_refilled_when_free_are_full_before_the_first_step) {
  static const struct {
    const char *refill, *order;
    int32_t k, v;
  } cases[] = {{"early", "kv", 2, 2}, {"when_free", "vk", 3, 2}, {"amid", "kv", 2, 2}, {"joint", "kv", 2, 2}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char params[64], order[8] = {0};
    snprintf(params, sizeof params, "seqlen=256 num_stages=3 refill=%s", cases[c].refill);
    ftl_tile_program *program = build_ok(params);
    cr_expect_eq(prologue_loads(program, "k"), cases[c].k, "%s", params);
    cr_expect_eq(prologue_loads(program, "v"), cases[c].v, "%s", params);
    int32_t i = 0, length = 0;
    while (program->ops[i].kind != FTL_TILE_LOOP) i++;
    for (; program->ops[i].kind != FTL_TILE_END_LOOP; i++)
      if (program->ops[i].kind == FTL_TILE_LOAD) order[length++] = program->rings[program->ops[i].ring].name[0];
    cr_expect_str_eq(order, cases[c].order);
    ftl_tile_program_destroy(program);
  }
}

// wgmma reads Q from shared memory; late refills need wgmma and a second buffer, and by TMA lean code. What was given
// stays.
Test(unit_workloads_flash2_fwd, an_answer_says_where_q_is_and_when_buffers_are_refilled) {
  static const struct {
    const char *params;
    int64_t q_operand, refill;
  } cases[] = {{"mma=mma", FTL_Q_OPERAND_REGISTERS, FTL_REFILL_EARLY},
               {"mma=wgmma num_stages=2", FTL_Q_OPERAND_SHARED, FTL_REFILL_LATE},
               {"mma=wgmma num_stages=1", FTL_Q_OPERAND_SHARED, FTL_REFILL_EARLY},
               {"mma=wgmma copy=tma", FTL_Q_OPERAND_SHARED, FTL_REFILL_LATE},
               {"mma=wgmma copy=tma code=plain", FTL_Q_OPERAND_SHARED, FTL_REFILL_EARLY},
               {"mma=wgmma copy=tma num_stages=1", FTL_Q_OPERAND_SHARED, FTL_REFILL_EARLY},
               {"mma=mma q_operand=shared refill=behind", FTL_Q_OPERAND_SHARED, FTL_REFILL_BEHIND}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ftl_spec spec;
    ftl_error error = {0};
    cr_assert_eq(
        spec_of_words(&spec, "flash2_fwd", "heads=2 seqlen=256 head_dim=64 copy=cp_async", cases[c].params, &error),
        FTL_OK, "%s", error.message);
    spec.workload->resolve(&spec, NULL);
    cr_expect_eq(spec.value[FTL_PARAM_q_operand], cases[c].q_operand, "%s", cases[c].params);
    cr_expect_eq(spec.value[FTL_PARAM_refill], cases[c].refill, "%s", cases[c].params);
  }
}

// Plain code compares before each copy of its loop with mma.sync, before K's alone with wgmma, as kernels/attention;
// lean code with one buffer before none, interleaved before the next K.
Test(unit_workloads_flash2_fwd, plain_code_asks_whether_tiles_exist_that_always_do) {
  static const struct {
    const char *how;
    int32_t compared;
  } cases[] = {{"num_stages=1 code=plain", 2},
               {"num_stages=1 code=plain mma=wgmma", 1},
               {"num_stages=1 code=lean", 0},
               {"schedule=interleaved code=plain", 2},
               {"schedule=interleaved code=lean", 1}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char params[96];
    snprintf(params, sizeof params, "seqlen=256 block_m=64 num_warps=4 %s", cases[c].how);
    ftl_tile_program *program = build_ok(params);
    int32_t i = 0, compared = 0;
    while (program->ops[i].kind != FTL_TILE_LOOP) i++;
    for (; program->ops[i].kind != FTL_TILE_END_LOOP; i++)
      compared += program->ops[i].kind == FTL_TILE_LOAD && program->ops[i].ref.present != FTL_ALWAYS;
    cr_expect_eq(compared, cases[c].compared, "%s: %d", params, compared);
    ftl_tile_program_destroy(program);
  }
}

Test(unit_workloads_flash2_fwd, q_is_fetched_once_with_mma_and_stays_in_shared_memory_otherwise) {
  ftl_tile_program *program = build_ok("seqlen=128");
  cr_assert_eq(count_kind(program, FTL_TILE_FETCH), 1);
  ftl_tile_program_destroy(program);
  program = build_ok("seqlen=128 mma=wgmma");
  cr_assert_eq(count_kind(program, FTL_TILE_FETCH), 0);
  ftl_tile_program_destroy(program);
  program = build_ok("seqlen=128 schedule=interleaved");
  cr_assert_eq(count_kind(program, FTL_TILE_FETCH), 0);
  ftl_tile_program_destroy(program);
}

typedef struct counts {
  const ftl_tile_program *program;
  int key_loads, masks;
  int64_t rows[64];  // of the loads of K, in order
} counts;

static ftl_status count(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  counts *c = context;
  if (event->op->kind == FTL_TILE_MASK) c->masks++;
  if (event->op->kind == FTL_TILE_LOAD && event->present &&
      strcmp(c->program->tensors[event->op->ref.tensor].name, "k") == 0)
    c->rows[c->key_loads++] = ftl_expr_eval(c->program, event->op->ref.row, event->point);
  return FTL_OK;
}

static counts count_cta(const ftl_tile_program *program, int64_t cta) {
  counts c = {.program = program};
  ftl_error error = {0};
  ftl_exec_options options = {.first_tile = cta, .tile_stride = program->num_ctas, .visit = count, .context = &c};
  cr_assert_eq(ftl_exec_cta(program, &options, &error), FTL_OK, "%s", error.message);
  return c;
}

Test(unit_workloads_flash2_fwd, causal_tiles_above_the_diagonal_are_not_loaded_and_only_those_on_it_masked) {
  // 512 x 512, tiles of 128 queries and 64 keys. Tile 2 has queries 256 .. 383: keys 0 .. 383 are seen, in 6 tiles;
  // those up to key 255, 4 tiles, by every row, so 2 are masked.
  ftl_tile_program *program = build_ok("seqlen=512 block_m=128 block_n=64 causal=true num_stages=3");
  counts c = count_cta(program, 2);
  cr_assert_eq(c.key_loads, 6);
  cr_assert_eq(c.masks, 2);
  ftl_tile_program_destroy(program);
}

// Of 200 keys in tiles of 64 the last, 192 .. 255, is cut; without a window mask_steps=window masks as edges does.
Test(unit_workloads_flash2_fwd, all_tiles_are_masked_where_it_is_said) {
  static const struct {
    const char *steps;
    int masks;
  } cases[] = {{"edges", 1}, {"window", 1}, {"all", 4}, {"all schedule=interleaved", 4}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[128];
    snprintf(params, sizeof params, "seqlen=200 block_m=64 block_n=64 mask_steps=%s", cases[i].steps);
    ftl_tile_program *program = build_ok(params);
    counts c = count_cta(program, 0);
    cr_expect_eq(c.key_loads, 4);
    cr_expect_eq(c.masks, cases[i].masks, "%s: %d", cases[i].steps, (int)c.masks);
    ftl_tile_program_destroy(program);
  }
}

// Tiles of 128 x 64 where nothing else is said. Loops: those of the last tiles, which run once or not at all, and one
// of all others. Without a diagonal one tile is last. A diagonal crosses ceil(block_m / block_n) tiles; one more where
// it does not enter and leave at corners: with tiles cut, on 128 x 96, in packed sequences; and with a window, whose
// loop of all others masks too. Masks stand in all the last tiles or, where no tile can have an edge, in none.
Test(unit_workloads_flash2_fwd, the_last_tiles_have_code_of_their_own) {
  static const struct {
    const char *params;
    int loops, masks;
  } cases[] = {{"seqlen=256", 1 + 1, 0},
               {"seqlen=200", 1 + 1, 1},
               {"seqlen=256 causal=true", 2 + 1, 2},
               {"seqlen_q=320 seqlen_kv=256 causal=true", 3 + 1, 3},
               {"seqlen_q=256 seqlen_kv=288 causal=true", 3 + 1, 3},
               {"seqlen=768 block_n=96 causal=true", 3 + 1, 3},
               {"seqlen=256 block_m=64 block_n=128 causal=true", 1 + 1, 1},
               {"seqlen=256 causal=true window=100", 3 + 1, 3 + 1},
               {"seqlen=256 window=100", 3 + 1, 3 + 1},
               {"lengths=256:256 causal=true", 3 + 1, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[192];
    snprintf(params, sizeof params, "block_m=128 block_n=64 schedule=interleaved mask_steps=unrolled %s",
             cases[i].params);
    ftl_tile_program *program = build_ok(params);
    cr_expect_eq(count_kind(program, FTL_TILE_LOOP), cases[i].loops, "%s", cases[i].params);
    cr_expect_eq(count_kind(program, FTL_TILE_MASK), cases[i].masks, "%s", cases[i].params);
    ftl_tile_program_destroy(program);
  }
}

// Of 64 keys there is one tile, in the first of three steps that have code of their own. Tile 2 of 512 queries sees six
// tiles of keys, of which the last two have code of their own.
Test(unit_workloads_flash2_fwd, last_tiles_that_are_none_are_passed_over) {
  static const struct {
    const char *params;
    int64_t cta;
    int tiles, masks;
  } cases[] = {{"seqlen=64", 0, 1, 1}, {"seqlen=512", 2, 6, 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char params[128];
    snprintf(params, sizeof params, "%s block_m=128 block_n=64 causal=true schedule=interleaved mask_steps=unrolled",
             cases[i].params);
    ftl_tile_program *program = build_ok(params);
    counts c = count_cta(program, cases[i].cta);
    cr_assert_eq(c.key_loads, cases[i].tiles, "%s", params);
    cr_expect_eq(c.masks, cases[i].masks, "%s", params);
    for (int k = 0; k < c.key_loads; k++) cr_expect_eq(c.rows[k], 64 * (cases[i].tiles - 1 - k));
    ftl_tile_program_destroy(program);
  }
}

Test(unit_workloads_flash2_fwd, keys_ascend_in_stages_and_descend_in_interleaved) {
  ftl_tile_program *program = build_ok("seqlen=200 block_n=64 causal=true block_m=64");
  counts c = count_cta(program, 3);
  cr_assert_eq(c.key_loads, 4);
  for (int i = 0; i < 4; i++) cr_assert_eq(c.rows[i], 64 * i);
  ftl_tile_program_destroy(program);
  program = build_ok("seqlen=200 block_n=64 causal=true block_m=64 schedule=interleaved");
  c = count_cta(program, 3);
  cr_assert_eq(c.key_loads, 4);
  for (int i = 0; i < 4; i++) cr_assert_eq(c.rows[i], 64 * (3 - i));
  ftl_tile_program_destroy(program);
}

// The sequence, head and query row that a CTA's store goes to.
static void output_of(const ftl_tile_program *program, int64_t cta, int64_t *batch, int64_t *head, int64_t *row) {
  for (int32_t i = 0; i < program->num_ops; i++) {
    const ftl_tile_op *op = &program->ops[i];
    if (op->kind != FTL_TILE_STORE) continue;
    *batch = ftl_expr_eval(program, op->ref.batch, &(ftl_expr_point){.cta = cta});
    *head = ftl_expr_eval(program, op->ref.head, &(ftl_expr_point){.cta = cta});
    *row = ftl_expr_eval(program, op->ref.row, &(ftl_expr_point){.cta = cta});
  }
}

Test(unit_workloads_flash2_fwd, launch_order_follows_tile_order_and_tile_reverse) {
  // 2 heads, 3 tiles of 64 rows: the (head, row) of CTA 1 in each order.
  static const struct {
    const char *params;
    int64_t head, row;
  } cases[] = {{"tile_order=m_first", 0, 64},
               {"tile_order=head_first", 1, 0},
               {"tile_order=m_first tile_reverse=true", 0, 64},
               {"tile_order=head_first tile_reverse=true", 1, 128}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char params[128];
    snprintf(params, sizeof params, "seqlen=192 block_m=64 %s", cases[i].params);
    ftl_tile_program *program = build_ok(params);
    int64_t batch = -1, head = -1, row = -1;
    output_of(program, 1, &batch, &head, &row);
    cr_assert_eq(head, cases[i].head, "%s", cases[i].params);
    cr_assert_eq(row, cases[i].row, "%s", cases[i].params);
    ftl_tile_program_destroy(program);
  }
}

// 3 sequences, 2 heads, 2 tiles of 64 rows: where each CTA stores, as (sequence, head) with its tile as sign: '-' the
// second one.
Test(unit_workloads_flash2_fwd, heads_and_sequences_follow_each_other_as_head_order_says) {
  static const struct {
    const char *params, *places;
  } cases[] = {
      {"kv_heads=1 head_order=auto", "00 00- 01 01- 10 10- 11 11- 20 20- 21 21- "},
      {"kv_heads=1 head_order=heads_first", "00 00- 01 01- 10 10- 11 11- 20 20- 21 21- "},
      {"kv_heads=1 head_order=sequences_first", "00 00- 10 10- 20 20- 01 01- 11 11- 21 21- "},
      {"kv_heads=1 head_order=heads_first tile_order=head_first", "00 01 10 11 20 21 00- 01- 10- 11- 20- 21- "},
      {"kv_heads=1 head_order=sequences_first tile_order=head_first", "00 10 20 01 11 21 00- 10- 20- 01- 11- 21- "},
      {"kv_heads=2 head_order=sequences_first", "00 00- 01 01- 10 10- 11 11- 20 20- 21 21- "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char params[128], places[128] = "";
    snprintf(params, sizeof params, "batch=3 seqlen=128 block_m=64 %s", cases[i].params);
    ftl_tile_program *program = build_ok(params);
    cr_assert_eq(program->num_ctas, 12);
    for (int64_t cta = 0, used = 0; cta < 12; cta++) {
      int64_t batch, head, row;
      output_of(program, cta, &batch, &head, &row);
      used += snprintf(places + used, sizeof places - (size_t)used, "%d%d%s ", (int)batch, (int)head, row ? "-" : "");
    }
    cr_expect_str_eq(places, cases[i].places, "%s", cases[i].params);
    ftl_tile_program_destroy(program);
  }
}

Test(unit_workloads_flash2_fwd, the_head_dim_is_padded_in_shared_memory_and_not_in_hbm) {
  ftl_tile_program *program = build_ok("seqlen=64 head_dim=72");
  cr_assert_eq(program->rings[0].columns, 80);
  cr_assert_eq(program->tensors[0].num_columns, 72);
  cr_assert_eq(program->tensors[0].size_bytes, 2 * 64 * 72 * 2);
  ftl_tile_program_destroy(program);
}

Test(unit_workloads_flash2_fwd, layouts_are_strides) {
  ftl_tile_program *program = build_ok("batch=3 seqlen=64 layout=bshd");
  cr_assert_eq(program->tensors[0].row_stride, 2 * 64);
  cr_assert_eq(program->tensors[0].head_stride, 64);
  cr_assert_eq(program->tensors[0].batch_stride, 64 * 2 * 64);
  ftl_tile_program_destroy(program);
}

static int64_t pairs(int64_t seqlen_q, int64_t seqlen_kv, bool causal, int64_t window) {
  int64_t diagonal = seqlen_kv - seqlen_q, counted = 0;
  ftl_attention a = {
      .seqlen_q = seqlen_q, .seqlen_kv = seqlen_kv, .causal = causal, .diagonal = diagonal, .window = window};
  for (int64_t i = 0; i < seqlen_q; i++)
    for (int64_t j = 0; j < seqlen_kv; j++) {
      bool in_window = window == 0 || (j > i + diagonal - window && j < i + diagonal + window);
      counted += (!causal || j <= i + diagonal) && in_window;
    }
  cr_assert_eq(ftl_attention_num_pairs(&a), counted, "%d %d %d %d", (int)seqlen_q, (int)seqlen_kv, causal, (int)window);
  return counted;
}

Test(unit_workloads_flash2_fwd, scores_are_scaled_by_the_root_of_head_dim_or_as_given) {
  ftl_spec spec;
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  spec.value[FTL_PARAM_head_dim] = 64;
  spec.value[FTL_PARAM_block_m] = spec.value[FTL_PARAM_block_n] = 64;
  cr_assert_eq(ftl_attention_of(&spec).scale, 0.125F);
  cr_assert_eq(ftl_spec_set_text(&spec, "softmax_scale", "0.75", &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_attention_of(&spec).scale, 0.75F);
}

Test(unit_workloads_flash2_fwd, model_flops_count_unmasked_pairs_only) {
  cr_assert_eq(pairs(5, 5, true, 0), 15);
  cr_assert_eq(pairs(5, 9, true, 0), 5 + 6 + 7 + 8 + 9);
  cr_assert_eq(pairs(9, 5, true, 0), 15);
  cr_assert_eq(pairs(9, 5, false, 0), 45);
  cr_assert_eq(pairs(5, 9, true, 3), 5 * 3);
  for (int64_t seqlen_q = 1; seqlen_q < 12; seqlen_q++)
    for (int64_t seqlen_kv = 1; seqlen_kv < 12; seqlen_kv++)
      for (int64_t window = 0; window < 14; window++) {
        pairs(seqlen_q, seqlen_kv, true, window);
        pairs(seqlen_q, seqlen_kv, false, window);
      }
  ftl_tile_program *program = build_ok("seqlen_q=5 seqlen_kv=9 causal=true batch=3");
  cr_assert_eq(program->model_flops, INT64_C(4) * 64 * 2 * 3 * 35);
  ftl_tile_program_destroy(program);
}

// 16 warps an SM of 65536 registers have 128 a thread, 12 of them 170, of which 168 are given; a user's cap stays.
Test(unit_workloads_flash2_fwd, products_back_to_back_have_the_registers_of_their_launch_bounds) {
  static const struct {
    int64_t compute_capability;
    const char *more;
    int64_t registers;
  } cases[] = {{90, "", 128}, {75, "", 168}, {90, "max_registers=96", 96}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const ftl_arch arch = {.chip_compute_capability = cases[i].compute_capability, .sm_num_registers = 65536};
    ftl_error error = {0};
    char params[160];
    ftl_spec spec;
    snprintf(params, sizeof params, "heads=1 seqlen=64 head_dim=64 schedule=back_to_back block_m=64 block_n=64 %s",
             cases[i].more);
    cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
    cr_assert_eq(spec_set_words(&spec, params, &error), FTL_OK, "%s", error.message);
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
    spec.workload->resolve(&spec, &arch);
    cr_expect_eq(spec.value[FTL_PARAM_max_registers], cases[i].registers, "%s", params);
  }
}
