// Named barriers between roles, what a role does once a CTA, and rings that several roles read by rows.
#include "sketch.h"
#include "tile/exec.h"

typedef struct turns {
  int count;
  int32_t roles[64];
  int64_t ctas[64];
} turns;

// Remembers who came to a BARRIER, the sketches' stand-in for work.
static ftl_status record(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  turns *t = context;
  if (event->op->kind != FTL_TILE_BARRIER) return FTL_OK;
  cr_assert_lt(t->count, 64);
  t->roles[t->count] = event->role_idx;
  t->ctas[t->count++] = event->point->cta;
  return FTL_OK;
}

typedef struct two_roles {
  sketch s;
  int32_t a_turn, b_turn;
} two_roles;

// Role a works when b has arrived at its barrier, and the other way round; b has to arrive before anything else.
static two_roles take_turns(int64_t num_tiles, bool b_lines_up) {
  two_roles t = {.s = sketch_create()};
  ftl_builder *b = t.s.b;
  ftl_builder_grid(b, num_tiles, true, FTL_TILES_BY_STRIDE);
  t.a_turn = ftl_builder_named_barrier(b, "a's turn", 3);
  t.b_turn = ftl_builder_named_barrier(b, "b's turn", 3);
  for (int role = 0; role < 2; role++) {
    ftl_builder_role(b, role ? "b" : "a", 4, 0);
    if (role == 1 && b_lines_up) ftl_arrive(b, t.a_turn);
    ftl_builder_tile_begins(b);
    ftl_loop(b, ftl_const(b, 0), ftl_const(b, 3));
    ftl_sync(b, role ? t.b_turn : t.a_turn);
    ftl_barrier(b);
    ftl_arrive(b, role ? t.a_turn : t.b_turn);
    ftl_end_loop(b);
  }
  return t;
}

Test(unit_tile_named_barrier, roles_take_turns_over_all_tiles_of_a_cta) {
  two_roles t = take_turns(2, true);
  ftl_tile_program *program = sketch_finish(&t.s);
  turns seen = {0};
  ftl_error error = {0};
  ftl_exec_options options = {.tile_stride = 1, .visit = record, .context = &seen};
  cr_assert_eq(ftl_exec_cta(program, &options, &error), FTL_OK, "%s", error.message);
  // Two tiles of three turns each. What b arrives once a CTA carries over: a second arrival would be one too many.
  cr_assert_eq(seen.count, 12);
  for (int i = 0; i < 12; i++) {
    cr_assert_eq(seen.roles[i], i % 2, "turn %d", i);
    cr_assert_eq(seen.ctas[i], i / 6, "turn %d", i);
  }
  ftl_tile_program_destroy(program);
}

Test(unit_tile_named_barrier, a_deadlock_names_who_waits_where_and_for_whom) {
  two_roles t = take_turns(1, false);
  sketch_assert_refused(&t.s, "(sync a's turn): role a waits for ever in CTA 0, for b");
}

Test(unit_tile_named_barrier, coming_twice_in_a_phase_is_refused) {
  sketch s = sketch_create();
  int32_t meet = ftl_builder_named_barrier(s.b, "meet", 3);
  ftl_builder_role(s.b, "a", 4, 0);
  ftl_arrive(s.b, meet);
  ftl_arrive(s.b, meet);
  ftl_builder_role(s.b, "b", 4, 0);
  ftl_sync(s.b, meet);
  sketch_assert_refused(&s, "op 1 (arrive meet): role a comes twice in one phase");
}

Test(unit_tile_named_barrier, only_roles_of_a_barrier_may_use_it) {
  sketch s = sketch_create();
  int32_t meet = ftl_builder_named_barrier(s.b, "meet", 1);
  ftl_builder_role(s.b, "a", 4, 0);
  ftl_sync(s.b, meet);
  ftl_builder_role(s.b, "b", 4, 0);
  ftl_arrive(s.b, meet);
  sketch_assert_refused(&s, "role b does not take part in barrier meet");
}

Test(unit_tile_named_barrier, a_barrier_of_roles_that_do_not_exist_is_refused) {
  sketch s = sketch_create();
  ftl_builder_named_barrier(s.b, "meet", 4);
  ftl_builder_role(s.b, "a", 4, 0);
  ftl_barrier(s.b);
  sketch_assert_refused(&s, "barrier meet needs roles among the 1");
}

Test(unit_tile_named_barrier, each_role_numbers_its_own_loops) {
  sketch s = sketch_create();
  for (int role = 0; role < 2; role++) {
    ftl_builder_role(s.b, role ? "b" : "a", 4, 0);
    for (int i = 0; i < FTL_TILE_MAX_LOOP_VARS; i++) {
      cr_assert_eq(ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 1)), i);
      ftl_barrier(s.b);
      ftl_end_loop(s.b);
    }
  }
  ftl_tile_program *program = sketch_finish(&s);
  cr_assert_eq(program->num_loop_vars, FTL_TILE_MAX_LOOP_VARS);
  ftl_tile_program_destroy(program);
}

// A producer fills one stage; the consumer stages its output through it, released first or not.
static sketch stage_through(bool released) {
  sketch s = sketch_create();
  ftl_expr zero = ftl_const(s.b, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 2);
  ftl_builder_role(s.b, "producer", 1, 0);
  ftl_acquire(s.b, ring);
  ftl_load(s.b, ring, sketch_ref(&s, s.x, zero, zero));
  ftl_commit(s.b, ring);
  ftl_builder_role(s.b, "consumer", 1, 0);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_wait(s.b, ring);
  ftl_fetch(s.b, tile, ring);
  if (released) ftl_release(s.b, ring);
  ftl_store(s.b, sketch_ref(&s, s.y, zero, zero), tile, ring);
  if (!released) ftl_release(s.b, ring);
  return s;
}

Test(unit_tile_named_barrier, a_reader_stages_through_the_ring_that_it_holds) {
  sketch s = stage_through(false);
  ftl_tile_program_destroy(sketch_finish(&s));
}

Test(unit_tile_named_barrier, a_reader_that_gave_the_stage_back_may_not_stage_through_it) {
  sketch s = stage_through(true);
  sketch_assert_refused(&s, "(store r): stages through a ring that this role does not hold whole");
}

Test(unit_tile_named_barrier, rows_beyond_the_ring_are_refused) {
  sketch s = sketch_create();
  ftl_expr zero = ftl_const(s.b, 0);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, 2 * SKETCH_ROWS, SKETCH_COLUMNS, 1, 0, 1);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_fill(s.b, tile, 0);
  ftl_store(s.b, sketch_ref(&s, s.y, zero, zero), tile, ring);
  ftl_at_ring_row(s.b, SKETCH_ROWS + 1);  // rows 17 to 32 of 0 to 31
  sketch_assert_refused(&s, "ring r is too small to stage the tile");
}

// Role a works between its syncs at a barrier at which b arrives `num_ahead` times before it waits for anything.
static two_roles arrive_ahead(int num_ahead) {
  two_roles t = {.s = sketch_create()};
  ftl_builder *b = t.s.b;
  t.a_turn = ftl_builder_named_barrier(b, "a's turn", 3);
  for (int role = 0; role < 2; role++) {
    ftl_builder_role(b, role ? "b" : "a", 4, 0);
    for (int i = 0; i < num_ahead; i++) {
      if (role == 0) ftl_sync(b, t.a_turn);
      if (role == 1) ftl_arrive(b, t.a_turn);
      ftl_barrier(b);
    }
  }
  return t;
}

Test(unit_tile_named_barrier, an_arrival_that_can_overtake_the_phase_before_is_refused) {
  two_roles once = arrive_ahead(1), twice = arrive_ahead(2);
  ftl_tile_program_destroy(sketch_finish(&once.s));
  // With a first and then b there is no trouble: it takes an a that is late.
  sketch_assert_refused(&twice.s, "(arrive a's turn): role b comes twice in one phase");
}
