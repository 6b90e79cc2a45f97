#include <criterion/criterion.h>
#include <string.h>

#include "lower/ring_order.h"

// Rings k (0) and v (1) of `num_stages` stages, one role; operations appended by hand.
typedef struct sketch {
  ftl_tile_program tile;
  ftl_tile_op ops[512];
  ftl_expr_node exprs[2];
  ftl_op_order orders[512];
  ftl_status status;
} sketch;

static sketch *sketch_of(int32_t num_stages) {
  static sketch s;
  memset(&s, 0, sizeof s);
  s.exprs[0] = (ftl_expr_node){.kind = FTL_EXPR_CONST, .value = 0};
  s.exprs[1] = (ftl_expr_node){.kind = FTL_EXPR_CTA};
  s.tile.exprs = s.exprs;
  s.tile.ops = s.ops;
  s.tile.num_rings = 2;
  s.tile.num_roles = 1;
  for (int r = 0; r < 2; r++) s.tile.rings[r] = (ftl_ring){.num_stages = num_stages, .consumers_mask = 1};
  return &s;
}

static int32_t add(sketch *s, ftl_tile_op_kind kind, int32_t ring) {
  s->ops[s->tile.num_ops] = (ftl_tile_op){.kind = kind, .ring = ring, .lo = 0, .hi = 1};
  return s->tile.num_ops++;
}

static void fill(sketch *s, int32_t ring) {
  add(s, FTL_TILE_ACQUIRE, ring);
  add(s, FTL_TILE_LOAD, ring);
  add(s, FTL_TILE_COMMIT, ring);
}

static void find(sketch *s, ftl_copy copy) {
  s->tile.roles[0].num_ops = s->tile.num_ops;
  ftl_error error;
  s->status = ftl_ring_order_find(&s->tile, &s->tile.roles[0], copy, s->orders, &error);
}

Test(unit_lower_ring_order, a_wait_leaves_the_younger_groups_in_flight) {
  sketch *s = sketch_of(2);
  fill(s, 0);
  fill(s, 1);
  add(s, FTL_TILE_LOOP, -1);
  int32_t wait_k = add(s, FTL_TILE_WAIT, 0);  // outstanding: k v
  fill(s, 0);                                 // v k'
  add(s, FTL_TILE_RELEASE, 0);
  int32_t wait_v = add(s, FTL_TILE_WAIT, 1);  // v is the oldest; k' may stay
  fill(s, 1);                                 // k' v'
  add(s, FTL_TILE_RELEASE, 1);
  add(s, FTL_TILE_END_LOOP, -1);
  find(s, FTL_COPY_CP_ASYNC);
  cr_assert_eq(s->status, FTL_OK);
  cr_expect_eq(s->orders[wait_k].groups_left, 1);
  cr_expect_eq(s->orders[wait_v].groups_left, 1);
}

Test(unit_lower_ring_order, commits_next_to_each_other_are_one_group) {
  sketch *s = sketch_of(3);
  for (int i = 0; i < 2; i++) {
    add(s, FTL_TILE_ACQUIRE, 0);
    add(s, FTL_TILE_ACQUIRE, 1);
    add(s, FTL_TILE_LOAD, 0);
    add(s, FTL_TILE_LOAD, 1);
    int32_t first = add(s, FTL_TILE_COMMIT, 0), second = add(s, FTL_TILE_COMMIT, 1);
    s->tile.roles[0].num_ops = s->tile.num_ops;
    cr_expect_not(ftl_ring_order_closes_group(&s->tile, &s->tile.roles[0], first));
    cr_expect(ftl_ring_order_closes_group(&s->tile, &s->tile.roles[0], second));
  }
  int32_t wait_k = add(s, FTL_TILE_WAIT, 0), wait_v = add(s, FTL_TILE_WAIT, 1);
  find(s, FTL_COPY_CP_ASYNC);
  cr_assert_eq(s->status, FTL_OK);
  // one group behind that of the first tiles, of two commits
  cr_expect_eq(s->orders[wait_k].groups_left, 1);
  cr_expect_eq(s->orders[wait_v].groups_left, 1);
}

// Committed between two copies, it separates their groups and is in none: when v is waited for nothing is younger.
Test(unit_lower_ring_order, a_stage_loaded_through_registers_is_in_no_group) {
  sketch *s = sketch_of(1);
  s->tile.rings[0].through_registers = true;
  fill(s, 1);
  int32_t v = s->tile.num_ops - 1;
  fill(s, 0);
  int32_t wait_v = add(s, FTL_TILE_WAIT, 1);
  add(s, FTL_TILE_WAIT, 0);
  find(s, FTL_COPY_CP_ASYNC);
  cr_assert_eq(s->status, FTL_OK);
  cr_expect(ftl_ring_order_closes_group(&s->tile, &s->tile.roles[0], v));
  cr_expect_eq(s->orders[wait_v].groups_left, 0);
}

Test(unit_lower_ring_order, the_smallest_number_of_all_paths_holds) {
  sketch *s = sketch_of(2);
  fill(s, 0);
  fill(s, 0);
  add(s, FTL_TILE_LOOP, -1);
  add(s, FTL_TILE_WAIT, 0);
  add(s, FTL_TILE_RELEASE, 0);
  add(s, FTL_TILE_BARRIER, -1);
  fill(s, 0);
  add(s, FTL_TILE_END_LOOP, -1);
  int32_t first = add(s, FTL_TILE_WAIT, 0), last = add(s, FTL_TILE_WAIT, 0);
  find(s, FTL_COPY_CP_ASYNC);
  cr_expect_eq(s->orders[first].groups_left, 1);
  cr_expect_eq(s->orders[last].groups_left, 0);
}

Test(unit_lower_ring_order, a_stage_is_refilled_behind_a_barrier_only_if_none_passed_since_its_release) {
  sketch *s = sketch_of(1);
  fill(s, 0);
  fill(s, 1);
  add(s, FTL_TILE_LOOP, -1);
  add(s, FTL_TILE_WAIT, 0);
  add(s, FTL_TILE_RELEASE, 0);
  add(s, FTL_TILE_WAIT, 1);  // its barrier shows that all are done with k
  int32_t acquire_k = s->tile.num_ops;
  fill(s, 0);
  add(s, FTL_TILE_RELEASE, 1);
  int32_t acquire_v = s->tile.num_ops;
  fill(s, 1);
  add(s, FTL_TILE_END_LOOP, -1);
  find(s, FTL_COPY_CP_ASYNC);
  cr_expect_not(s->orders[acquire_k].barrier_before);
  cr_expect(s->orders[acquire_v].barrier_before);
}

Test(unit_lower_ring_order, waits_for_tma_pass_no_barrier) {
  sketch *s = sketch_of(1);
  fill(s, 0);
  fill(s, 1);
  add(s, FTL_TILE_LOOP, -1);
  add(s, FTL_TILE_WAIT, 0);
  add(s, FTL_TILE_RELEASE, 0);
  add(s, FTL_TILE_WAIT, 1);
  int32_t acquire_k = s->tile.num_ops;
  fill(s, 0);
  add(s, FTL_TILE_RELEASE, 1);
  int32_t acquire_v = s->tile.num_ops;
  fill(s, 1);
  add(s, FTL_TILE_END_LOOP, -1);
  find(s, FTL_COPY_TMA);
  cr_expect(s->orders[acquire_k].barrier_before);
  cr_expect(s->orders[acquire_v].barrier_before);
}

Test(unit_lower_ring_order, a_tile_leaves_its_registers_before_the_next_of_its_ring_arrives) {
  sketch *s = sketch_of(2);
  fill(s, 0);
  int32_t second_load = s->tile.num_ops + 1;
  fill(s, 0);
  int32_t first_wait = add(s, FTL_TILE_WAIT, 0);
  add(s, FTL_TILE_RELEASE, 0);
  int32_t second_wait = add(s, FTL_TILE_WAIT, 0);
  find(s, FTL_COPY_LDG);
  cr_assert_eq(s->status, FTL_OK);
  cr_expect(s->orders[second_load].store_pending);
  cr_expect_not(s->orders[first_wait].store_here);
  cr_expect(s->orders[second_wait].store_here);
}

Test(unit_lower_ring_order, a_tile_that_is_in_registers_on_some_paths_only_is_refused) {
  sketch *s = sketch_of(2);
  fill(s, 0);
  add(s, FTL_TILE_LOOP, -1);  // may run no time: then the tile is still in registers at the next load
  add(s, FTL_TILE_WAIT, 0);
  add(s, FTL_TILE_RELEASE, 0);
  add(s, FTL_TILE_END_LOOP, -1);
  fill(s, 0);
  find(s, FTL_COPY_LDG);
  cr_expect_eq(s->status, FTL_RUN_FAILED);
}

// Half of the stages are filled and the first of them is read: it is filled again behind the other half, which nobody
// has read.
Test(unit_lower_ring_order, a_stage_of_a_deep_ring_is_refilled_behind_a_barrier) {
  static const int32_t stages[] = {2, 16, 34, 64};
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    sketch *s = sketch_of(stages[i]);
    for (int32_t n = 0; n < stages[i] / 2; n++) fill(s, 0);
    add(s, FTL_TILE_WAIT, 0);
    add(s, FTL_TILE_RELEASE, 0);
    int32_t other_half = s->tile.num_ops;
    for (int32_t n = 0; n < stages[i] / 2; n++) fill(s, 0);
    int32_t refill = s->tile.num_ops;
    fill(s, 0);
    find(s, FTL_COPY_TMA);
    cr_assert_eq(s->status, FTL_OK);
    for (int32_t op = other_half; op < refill; op++) cr_expect_not(s->orders[op].barrier_before);
    cr_expect(s->orders[refill].barrier_before, "%d stages", stages[i]);
  }
}

// 40 of each ring: 80 are more than the search keeps apart.
Test(unit_lower_ring_order, more_tiles_in_flight_than_are_followed_cannot_be) {
  sketch *s = sketch_of(40);
  for (int32_t n = 0; n < 40; n++) {
    fill(s, 0);
    fill(s, 1);
  }
  find(s, FTL_COPY_CP_ASYNC);
  cr_expect_eq(s->status, FTL_INFEASIBLE);
}
