// A producer warp and consumer warpgroups that talk through mbarriers.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "lower/lower.h"
#include "script/arch_loader.h"
#include "tile/builder.h"

enum { ROWS = 128, COLUMNS = 64, TILES = 8 };

static int32_t tensor(ftl_builder *b, const char *name, ftl_tensor_use use, int64_t rows) {
  return ftl_builder_tensor(b, name, FTL_FP16, use,
                            (ftl_tensor_shape){.num_batches = 1,
                                               .num_heads = 1,
                                               .num_rows = rows,
                                               .num_columns = COLUMNS,
                                               .batch_stride = rows * COLUMNS,
                                               .head_stride = rows * COLUMNS,
                                               .row_stride = COLUMNS});
}

static ftl_tile_ref tile_at(ftl_builder *b, int32_t t, ftl_expr row) {
  return (ftl_tile_ref){.tensor = t,
                        .batch = ftl_const(b, 0),
                        .head = ftl_const(b, 0),
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = ROWS,
                        .columns = COLUMNS};
}

static void fill_stage(ftl_builder *b, int32_t ring, ftl_tile_ref ref) {
  ftl_acquire(b, ring);
  ftl_load(b, ring, ref);
  ftl_commit(b, ring);
}

// s = q k^T summed over TILES tiles of k; two consumer warpgroups of 64 rows.
static ftl_tile_program *producer_consumer(void) {
  ftl_builder *b;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_create(&b, "roles", &error), FTL_OK);
  ftl_builder_grid(b, 1, false, FTL_TILES_BY_STRIDE);
  int32_t q = tensor(b, "q", FTL_TENSOR_INPUT, ROWS), k = tensor(b, "k", FTL_TENSOR_INPUT, ROWS * TILES);
  ftl_expr zero = ftl_const(b, 0), tiles = ftl_const(b, TILES);
  ftl_builder_role(b, "producer", 4, 24);
  int32_t ring_q = ftl_builder_ring(b, "q", FTL_FP16, ROWS, COLUMNS, 1, 0, 1 << 1);
  int32_t ring_k = ftl_builder_ring(b, "k", FTL_FP16, ROWS, COLUMNS, 2, 0, 1 << 1);
  fill_stage(b, ring_q, tile_at(b, q, zero));
  ftl_expr j = ftl_loop_value(b, ftl_loop(b, zero, tiles));
  fill_stage(b, ring_k, tile_at(b, k, ftl_mul(b, j, ftl_const(b, ROWS))));
  ftl_end_loop(b);
  ftl_builder_role(b, "consumer", 8, 240);
  int32_t s = ftl_builder_tile(b, "s", FTL_FP32, ROWS, ROWS);
  ftl_fill(b, s, 0.0F);
  ftl_wait(b, ring_q);
  ftl_loop(b, zero, tiles);
  ftl_wait(b, ring_k);
  ftl_mma_shared(b, s, ring_q, ring_k, true);
  ftl_release(b, ring_k);
  ftl_end_loop(b);
  ftl_release(b, ring_q);
  ftl_tile_program *program = NULL;
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_OK, "%s", error.message);
  ftl_builder_destroy(b);
  return program;
}

typedef struct lowered {
  ftl_arch *arch;
  ftl_tile_program *tile;
  ftl_warp_program *warps;
} lowered;

static lowered lower_roles(void) {
  lowered l = {.tile = producer_consumer()};
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &l.arch, &error), FTL_OK, "%s", error.message);
  ftl_lower_options options = {.copy = FTL_COPY_TMA, .mma = FTL_MMA_WGMMA};
  cr_assert_eq(ftl_lower(l.tile, l.arch, options, &l.warps, &error), FTL_OK, "%s", error.message);
  return l;
}

static void fini(lowered *l) {
  ftl_warp_program_destroy(l->warps);
  ftl_tile_program_destroy(l->tile);
  ftl_arch_destroy(l->arch);
}

static int64_t count(const ftl_warp_program *p, int32_t role, ftl_opcode opcode) {
  int64_t n = 0;
  for (int32_t i = 0; i < p->roles[role].num_insts; i++)
    if (p->insts[p->roles[role].first_inst + i].opcode == opcode) n += p->insts[p->roles[role].first_inst + i].repeat;
  return n;
}

Test(unit_lower_roles, stages_pass_between_the_roles_in_order) {
  lowered l = lower_roles();
  ftl_error error = {0};
  cr_expect_eq(ftl_checker_prove(l.warps, 0, &error), FTL_OK, "%s", error.message);
  fini(&l);
}

Test(unit_lower_roles, only_the_producer_copies_and_only_consumers_compute) {
  lowered l = lower_roles();
  cr_expect_eq(count(l.warps, 0, FTL_OP_TMA_LOAD), 2);
  cr_expect_eq(count(l.warps, 0, FTL_OP_MBAR_ACQUIRE), 2);
  cr_expect_eq(count(l.warps, 0, FTL_OP_WGMMA), 0);
  cr_expect_eq(count(l.warps, 1, FTL_OP_TMA_LOAD), 0);
  cr_expect_eq(count(l.warps, 1, FTL_OP_WGMMA), COLUMNS / 16);
  cr_expect_eq(count(l.warps, 1, FTL_OP_MBAR_RELEASE), 2);
  cr_expect_eq(l.warps->rings[1].num_consumer_warps, 8);
  fini(&l);
}

Test(unit_lower_roles, registers_move_from_the_producer_to_the_consumers) {
  lowered l = lower_roles();
  cr_expect_eq(l.warps->roles[0].num_registers, 24);
  cr_expect_eq(l.warps->roles[1].num_registers, 240);
  // an even share of 65536 registers among 384 threads, in units of 8
  cr_expect_eq(l.warps->registers_per_thread, 168);
  cr_expect_eq(count(l.warps, 0, FTL_OP_SETMAXREG), 1);
  fini(&l);
}

Test(unit_lower_roles, roles_need_tma) {
  lowered l = lower_roles();
  ftl_error error = {0};
  ftl_warp_program *warps = NULL;
  ftl_lower_options options = {.copy = FTL_COPY_CP_ASYNC, .mma = FTL_MMA_WGMMA};
  cr_expect_eq(ftl_lower(l.tile, l.arch, options, &warps, &error), FTL_INFEASIBLE);
  fini(&l);
}
