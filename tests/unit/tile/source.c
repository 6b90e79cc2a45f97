// Programs that a script writes: errors name its lines, and come as soon as an op is wrong.
#include "sketch.h"
#include "tile/interpreter.h"

static sketch script_at(int32_t line) {
  sketch s = sketch_create();
  ftl_builder_role(s.b, "main", 4, 0);
  ftl_builder_source(s.b, "sketch.lua", line);
  return s;
}

static void expect_now(sketch *s, const char *message) {
  cr_assert_eq(ftl_builder_check_latest(s->b, &s->error), FTL_BAD_INPUT, "not refused: %s", message);
  cr_assert_str_eq(s->error.message, message);
  ftl_builder_destroy(s->b);
}

Test(unit_tile_source, a_wrong_op_is_refused_at_once_with_its_line) {
  sketch s = script_at(7);
  int32_t a = ftl_builder_tile(s.b, "a", FTL_FP32, 16, 16), b = ftl_builder_tile(s.b, "b", FTL_FP32, 16, 32);
  ftl_fill(s.b, a, 0.0f);
  cr_assert_eq(ftl_builder_check_latest(s.b, &s.error), FTL_OK, "%s", s.error.message);
  ftl_builder_source(s.b, "sketch.lua", 8);
  ftl_unary(s.b, FTL_ELEM_COPY, b, a);
  expect_now(&s,
             "sketch.lua:8: elem: operand 1 does not fit b: an fp32 value of this role, 16 x 32 and with its layout");
}

Test(unit_tile_source, a_wrong_declaration_is_refused_at_once) {
  sketch s = script_at(3);
  ftl_builder_tile(s.b, "a", FTL_FP32, 0, 16);
  expect_now(&s, "sketch: value a of 0 x 16; allowed are 16777216 elements");
}

Test(unit_tile_source, an_error_of_the_builder_names_the_line) {
  sketch s = script_at(5);
  ftl_end_loop(s.b);
  expect_now(&s, "sketch.lua:5: end_loop without a loop");
}

Test(unit_tile_source, a_value_that_nothing_wrote_before_is_refused) {
  sketch s = script_at(4);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_const(s.b, 0), ftl_const(s.b, 0)), tile, -1);
  ftl_fill(s.b, tile, 0.0f);
  sketch_assert_refused(&s, "sketch.lua:4: store: t is read and nothing before wrote it");
}

// Role a takes a turn that role b gives only if it `arrives`.
static sketch take_turn(bool arrives) {
  sketch s = sketch_create();
  int32_t turn = ftl_builder_named_barrier(s.b, "turn", 0);
  for (int role = 0; role < 2; role++) {
    ftl_builder_role(s.b, role ? "b" : "a", 4, 0);
    ftl_builder_barrier_joined_by(s.b, turn, role);
    ftl_builder_source(s.b, "sketch.lua", 20 + role);
    if (role == 0) ftl_sync(s.b, turn);
    if (role == 1 && arrives) ftl_arrive(s.b, turn);
    if (role == 1) ftl_barrier(s.b);
  }
  return s;
}

Test(unit_tile_source, a_barrier_that_nobody_arrives_at_is_explained) {
  sketch s = take_turn(true);
  ftl_tile_program_destroy(sketch_finish(&s));
  s = take_turn(false);
  sketch_assert_refused(&s, "sketch.lua:20: sync turn: role a waits for ever in CTA 0, for b (done)");
}

Test(unit_tile_source, a_deadlock_of_two_names_both) {
  sketch s = sketch_create();
  int32_t first = ftl_builder_named_barrier(s.b, "first", 3), second = ftl_builder_named_barrier(s.b, "second", 3);
  for (int role = 0; role < 2; role++) {
    ftl_builder_role(s.b, role ? "b" : "a", 4, 0);
    ftl_builder_source(s.b, "sketch.lua", 30 + role);
    ftl_sync(s.b, role ? second : first);
    ftl_sync(s.b, role ? first : second);
  }
  sketch_assert_refused(&s,
                        "sketch.lua:30: sync first: role a waits for ever in CTA 0, for b; "
                        "b waits at sketch.lua:31: sync second");
}

Test(unit_tile_source, a_stage_that_is_loaded_and_never_read_names_its_commit) {
  sketch s = sketch_create();
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 2, -1, 0);
  int32_t role = ftl_builder_role(s.b, "main", 4, 0);
  ftl_builder_ring_filled_by(s.b, ring, role);
  ftl_builder_ring_read_by(s.b, ring, role);
  ftl_builder_source(s.b, "sketch.lua", 12);
  ftl_fill_stage(s.b, ring, sketch_ref(&s, s.x, ftl_const(s.b, 0), ftl_const(s.b, 0)));
  sketch_assert_refused(&s, "sketch.lua:12: commit r: at the end of a CTA: a loaded stage was never waited for");
}

Test(unit_tile_source, the_interpreter_gives_up_when_it_was_given_too_little_work) {
  static float x[2 * SKETCH_LENGTH * SKETCH_COLUMNS], y[2 * SKETCH_LENGTH * SKETCH_COLUMNS];
  float *const tensors[] = {x, y};
  sketch s = script_at(1);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_loop(s.b, ftl_const(s.b, 0), ftl_const(s.b, 10));
  ftl_fill(s.b, tile, 0.0f);
  ftl_end_loop(s.b);
  ftl_tile_program *program = sketch_finish(&s);
  // Ten fills of 256 elements, 16 a step; a step for each op: the loop, ten fills and ten ends, and the role's end.
  int64_t enough = 10 * 256 / 16 + 22, work_left = enough;
  cr_assert_eq(ftl_interpret_within(program, tensors, NULL, &work_left, &s.error), FTL_OK, "%s", s.error.message);
  cr_assert_eq(work_left, 0);
  work_left = enough - 1;
  cr_assert_eq(ftl_interpret_within(program, tensors, NULL, &work_left, &s.error), FTL_BAD_INPUT);
  cr_assert(strstr(s.error.message, "too much to compute") != NULL, "%s", s.error.message);
  ftl_tile_program_destroy(program);
}
