// Roles whose warps are groups: what a program may not do with their copies.
#include <criterion/criterion.h>
#include <string.h>

#include "tile/builder.h"

enum { ROWS = 16, KEYS = 64, COLUMNS = 32 };

typedef struct sketch {
  ftl_builder *b;
  int32_t q, k, o, ring_q, ring_k, scores, output, max, sum;
} sketch;

static sketch begin(int32_t num_warps, int32_t num_groups, int32_t share) {
  sketch s;
  ftl_error error = {0};
  ftl_tensor_shape rows = {1, 1, ROWS, COLUMNS, ROWS * COLUMNS, ROWS * COLUMNS, COLUMNS};
  ftl_tensor_shape keys = {1, 1, KEYS, COLUMNS, KEYS * COLUMNS, KEYS * COLUMNS, COLUMNS};
  cr_assert_eq(ftl_builder_create(&s.b, "groups", &error), FTL_OK);
  s.q = ftl_builder_tensor(s.b, "q", FTL_FP16, FTL_TENSOR_INPUT, rows);
  s.k = ftl_builder_tensor(s.b, "k", FTL_FP16, FTL_TENSOR_INPUT, keys);
  s.o = ftl_builder_tensor(s.b, "o", FTL_FP32, FTL_TENSOR_OUTPUT, rows);
  ftl_builder_role(s.b, "main", num_warps, 0);
  ftl_builder_groups(s.b, num_groups);
  s.ring_q = ftl_builder_ring(s.b, "q", FTL_FP16, ROWS, COLUMNS, 1, 0, 1);
  s.ring_k = ftl_builder_ring(s.b, "k", FTL_FP16, KEYS, COLUMNS, 1, 0, 1);
  s.scores = ftl_builder_tile(s.b, "s", FTL_FP32, ROWS, share);
  s.output = ftl_builder_tile(s.b, "o", FTL_FP32, ROWS, COLUMNS);
  s.max = ftl_builder_rows(s.b, "max", ROWS);
  s.sum = ftl_builder_rows(s.b, "sum", ROWS);
  return s;
}

static ftl_tile_ref ref_of(int32_t tensor, int32_t rows) {
  return (ftl_tile_ref){.tensor = tensor, .present = FTL_ALWAYS, .rows = rows, .columns = COLUMNS};
}

static void load(const sketch *s, int32_t ring, int32_t tensor, int32_t rows) {
  ftl_acquire(s->b, ring);
  ftl_load(s->b, ring, ref_of(tensor, rows));
  ftl_commit(s->b, ring);
  ftl_wait(s->b, ring);
}

static void multiply(const sketch *s) {
  load(s, s->ring_q, s->q, ROWS);
  load(s, s->ring_k, s->k, KEYS);
  ftl_fill(s->b, s->scores, 0);
  ftl_mma_shared(s->b, s->scores, s->ring_q, s->ring_k, true);
  ftl_release(s->b, s->ring_k);
  ftl_release(s->b, s->ring_q);
}

static void finish(sketch *s, const char *expected) {
  ftl_tile_program *program;
  ftl_error error = {0};
  ftl_status status = ftl_builder_finish(s->b, &program, &error);
  if (expected == NULL)
    cr_expect_eq(status, FTL_OK, "%s", error.message);
  else
    cr_expect(status == FTL_BAD_INPUT && strstr(error.message, expected), "%s", error.message);
  ftl_tile_program_destroy(program);
  ftl_builder_destroy(s->b);
}

Test(unit_tile_groups, a_product_has_a_groups_share_of_the_keys_as_columns) {
  sketch right = begin(4, 4, KEYS / 4), wrong = begin(4, 4, KEYS);
  multiply(&right);
  finish(&right, NULL);
  multiply(&wrong);
  finish(&wrong, "shapes do not fit");
}

Test(unit_tile_groups, groups_are_equal) {
  sketch s = begin(4, 3, KEYS / 4);
  multiply(&s);
  finish(&s, "role main of 4 warps in 3 groups; groups must be equal");
}

Test(unit_tile_groups, copies_are_stored_merged_through_enough_memory) {
  sketch plain = begin(4, 4, KEYS / 4), small = begin(8, 8, KEYS / 8), right = begin(2, 2, KEYS / 2);
  ftl_fill(plain.b, plain.output, 0);
  ftl_store(plain.b, ref_of(plain.o, ROWS), plain.output, plain.ring_k);
  finish(&plain, "each of several groups has a copy of o");

  sketch *both[] = {&small, &right};
  for (int i = 0; i < 2; i++) {
    ftl_fill(both[i]->b, both[i]->output, 0);
    ftl_fill(both[i]->b, both[i]->max, 0);
    ftl_fill(both[i]->b, both[i]->sum, 1);
    ftl_store_merged(both[i]->b, ref_of(both[i]->o, ROWS), both[i]->output, both[i]->max, both[i]->sum, 1.0f,
                     both[i]->ring_k, both[i]->ring_q);
  }
  // Eight copies of 16 x 32 in fp32 are 16384 bytes, the ring has 64 x 32 x 2 = 4096, which is what two copies take.
  finish(&small, "ring k of 4096 bytes is too small to stage 16384");
  finish(&right, NULL);
}

// Q's 16 x 32 and K's 64 x 32 in fp16 are 5120 bytes: 40 rows of 32 in fp32.
Test(unit_tile_groups, a_ring_lies_over_those_before_it_where_they_have_room) {
  sketch fits = begin(4, 4, KEYS / 4), does_not = begin(4, 4, KEYS / 4);
  multiply(&fits);
  ftl_builder_overlay(fits.b, ftl_builder_ring(fits.b, "over", FTL_FP32, 40, COLUMNS, 1, 0, 1));
  finish(&fits, NULL);
  multiply(&does_not);
  ftl_builder_overlay(does_not.b, ftl_builder_ring(does_not.b, "over", FTL_FP32, 41, COLUMNS, 1, 0, 1));
  finish(&does_not, "ring over of 5248 bytes lies over 5120");
}

// B of 64 keys and 32 columns, stored [n][k]: 16 keys of each of four warps, of 32 k.
static void multiply_fetched(const sketch *s, int32_t rows, int32_t columns, ftl_dtype dtype) {
  int32_t held = ftl_builder_tile(s->b, "held", dtype, rows, columns);
  load(s, s->ring_q, s->q, ROWS);
  load(s, s->ring_k, s->k, KEYS);
  ftl_fetch_b(s->b, held, s->ring_k, true);
  ftl_release(s->b, s->ring_k);
  ftl_fill(s->b, s->scores, 0);
  ftl_mma_shared(s->b, s->scores, s->ring_q, s->ring_k, true);
  ftl_fetched_b(s->b, held);
  ftl_release(s->b, s->ring_q);
}

Test(unit_tile_groups, a_warp_fetches_its_share_of_a_products_b) {
  sketch right = begin(4, 4, KEYS / 4), all = begin(4, 4, KEYS / 4), wide = begin(4, 4, KEYS / 4);
  multiply_fetched(&right, KEYS / 4, COLUMNS, FTL_FP16);
  finish(&right, NULL);  // the stage was released before: the product reads none
  multiply_fetched(&all, KEYS, COLUMNS, FTL_FP16);
  finish(&all, "held differs from a group's share of ring k, [16][32]");
  multiply_fetched(&wide, KEYS / 4, COLUMNS, FTL_FP32);
  finish(&wide, "held differs from a group's share of ring k, [16][32]");
}

Test(unit_tile_groups, warps_that_share_rows_fetch_no_b) {
  sketch s = begin(4, 2, KEYS / 2);
  multiply_fetched(&s, KEYS / 2, COLUMNS, FTL_FP16);
  finish(&s, "B in registers: each warp of the role is a group with an equal share of k");
}

Test(unit_tile_groups, a_fetched_b_is_fetched_first) {
  sketch s = begin(4, 4, KEYS / 4);
  int32_t held = ftl_builder_tile(s.b, "held", FTL_FP16, KEYS / 4, COLUMNS);
  multiply(&s);
  load(&s, s.ring_q, s.q, ROWS);
  ftl_mma_shared(s.b, s.scores, s.ring_q, s.ring_k, true);
  ftl_fetched_b(s.b, held);
  finish(&s, "held");
}
