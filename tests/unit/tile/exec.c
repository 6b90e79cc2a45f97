// The walk over roles, loops and rings: order, blocking and deadlock.
#include "sketch.h"
#include "tile/exec.h"

typedef struct trace {
  int num_events;
  int32_t ops[256], roles[256], stages[256];
  int64_t ctas[256];
} trace;

static ftl_status record(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  trace *t = context;
  cr_assert_lt(t->num_events, 256);
  t->ops[t->num_events] = event->op_idx;
  t->roles[t->num_events] = event->role_idx;
  t->stages[t->num_events] = event->stage;
  t->ctas[t->num_events++] = event->point->cta;
  return FTL_OK;
}

static trace trace_of(const ftl_tile_program *program, int64_t tile_stride) {
  trace t = {0};
  ftl_error error = {0};
  ftl_exec_options options = {.tile_stride = tile_stride, .visit = record, .context = &t};
  cr_assert_eq(ftl_exec_cta(program, &options, &error), FTL_OK, "%s", error.message);
  return t;
}

static int count_op(const trace *t, int32_t op_idx) {
  int count = 0;
  for (int i = 0; i < t->num_events; i++) count += t->ops[i] == op_idx;
  return count;
}

Test(unit_tile_exec, loops_run_from_lo_to_below_hi_and_not_at_all_when_empty) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_expr two = ftl_const(s.b, 2), five = ftl_const(s.b, 5);
  ftl_expr i = ftl_loop_value(s.b, ftl_loop(s.b, two, five));  // op 0; i = 2, 3, 4
  ftl_loop(s.b, i, ftl_const(s.b, 4));                         // op 1; 2, 1 and 0 iterations
  ftl_barrier(s.b);                                            // op 2
  ftl_end_loop(s.b);
  ftl_barrier(s.b);  // op 4
  ftl_end_loop(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  trace t = trace_of(program, 1);
  cr_assert_eq(count_op(&t, 2), 3);
  cr_assert_eq(count_op(&t, 4), 3);
  ftl_tile_program_destroy(program);
}

// A producer role fills `num_stages` stages for a consumer, four tiles in all.
static ftl_tile_program *producer_consumer(int32_t num_stages, bool consumer_releases, ftl_status expected) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "producer", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, 16, 16, num_stages, 0, 2);
  ftl_expr zero = ftl_const(s.b, 0), four = ftl_const(s.b, 4);
  ftl_loop(s.b, zero, four);  // op 0
  ftl_acquire(s.b, ring);
  ftl_load(s.b, ring, sketch_ref(&s, s.x, zero, zero));
  ftl_commit(s.b, ring);
  ftl_end_loop(s.b);
  ftl_builder_role(s.b, "consumer", 4, 0);
  ftl_loop(s.b, zero, four);  // op 5
  ftl_wait(s.b, ring);        // op 6
  ftl_barrier(s.b);           // op 7
  if (consumer_releases) ftl_release(s.b, ring);
  ftl_end_loop(s.b);
  ftl_tile_program *program;
  cr_assert_eq(ftl_builder_finish(s.b, &program, &s.error), expected, "%s", s.error.message);
  if (expected != FTL_OK)
    cr_assert(strstr(s.error.message, "op 1 (acquire r): role producer waits for ever") != NULL, "%s", s.error.message);
  ftl_builder_destroy(s.b);
  return program;
}

Test(unit_tile_exec, a_producer_runs_ahead_by_the_number_of_stages_and_no_further) {
  ftl_tile_program *program = producer_consumer(3, true, FTL_OK);
  trace t = trace_of(program, 1);
  // 3 times acquire, load, commit; then the producer waits and the consumer runs.
  for (int i = 0; i < 9; i++) cr_assert_eq(t.roles[i], 0, "event %d", i);
  cr_assert_eq(t.roles[9], 1);
  cr_assert_eq(t.ops[9], 6);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_exec, stages_are_filled_in_turn) {
  ftl_tile_program *program = producer_consumer(3, true, FTL_OK);
  trace t = trace_of(program, 1);
  int num_loads = 0;
  for (int i = 0; i < t.num_events; i++)
    if (program->ops[t.ops[i]].kind == FTL_TILE_LOAD) cr_assert_eq(t.stages[i], num_loads++ % 3);
  cr_assert_eq(num_loads, 4);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_exec, a_consumer_that_never_releases_is_a_deadlock_that_names_the_producer) {
  producer_consumer(3, false, FTL_BAD_INPUT);
}

Test(unit_tile_exec, a_cta_with_a_stride_walks_its_tiles) {
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 7, true, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_barrier(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  trace t = trace_of(program, 3);
  cr_assert_eq(t.num_events, 3);
  for (int i = 0; i < 3; i++) cr_assert_eq(t.ctas[i], 3 * i);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_exec, shortened_loops_keep_their_first_and_last_iterations) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 1000000));
  ftl_barrier(s.b);
  ftl_end_loop(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  trace t = {0};
  ftl_error error = {0};
  ftl_exec_options options = {.tile_stride = 1, .max_trips = 10, .visit = record, .context = &t};
  cr_assert_eq(ftl_exec_cta(program, &options, &error), FTL_OK);
  cr_assert_eq(t.num_events, 10);
  ftl_tile_program_destroy(program);
}

Test(unit_tile_exec, a_persistent_cta_that_leaves_a_stage_unread_is_refused) {
  sketch s = sketch_create();
  ftl_builder_grid(s.b, 4, true, FTL_TILES_BY_STRIDE);
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, 16, 16, 4, 0, 1);
  ftl_tile_ref absent = sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0));
  absent.present = ftl_const(s.b, 0);
  ftl_fill_stage(s.b, ring, absent);  // an empty stage: allowed where the CTA ends, not where it goes on
  sketch_assert_refused(&s, "a persistent CTA left a stage unread");
}

// acquire, commit and wait of a ring; `fill` adds what stands between the first two.
static sketch stage_of(void (*fill)(sketch *s, int32_t ring)) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 1, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, 16, 16, 2, 0, 1);
  ftl_fill_stage(s.b, ring, sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0)));
  ftl_acquire(s.b, ring);
  fill(&s, ring);
  ftl_commit(s.b, ring);
  for (int i = 0; i < 2; i++) ftl_wait(s.b, ring);
  for (int i = 0; i < 2; i++) ftl_release(s.b, ring);
  return s;
}

static void fill_with_nothing(sketch *s, int32_t ring) {
  (void)s;
  (void)ring;
}

// A tile that is never there still announces its copy.
static void fill_absent(sketch *s, int32_t ring) {
  ftl_tile_ref ref = sketch_ref(s, s->x, ftl_const(s->b, 0), ftl_const(s->b, 0));
  ref.present = ftl_const(s->b, 0);
  ftl_load(s->b, ring, ref);
}

Test(unit_tile_exec, a_stage_that_no_op_fills_is_refused_and_an_absent_tile_fills_one) {
  sketch s = stage_of(fill_with_nothing);
  sketch_assert_refused(&s, "(commit): nothing was loaded into this stage of ring r");
  s = stage_of(fill_absent);
  ftl_tile_program_destroy(sketch_finish(&s));
}
