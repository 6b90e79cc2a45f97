// Operations in their order: adding one with the lookups that it needs, loops, barriers.
#include <stdlib.h>
#include <string.h>

#include "tile/builder_internal.h"

static bool ops_reserve(ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  if (program->num_ops < builder->capacity_ops) return true;
  int32_t capacity = builder->capacity_ops ? 2 * builder->capacity_ops : 128;
  ftl_tile_op *ops = realloc(program->ops, sizeof *ops * (size_t)capacity);
  if (!ops) {
    ftl_builder_fail(builder, FTL_NO_MEMORY, "out of memory");
    return false;
  }
  program->ops = ops;
  builder->capacity_ops = capacity;
  return true;
}

void ftl_builder_insert_op(ftl_builder *builder, int32_t at, const ftl_tile_op *op) {
  ftl_tile_program *program = builder->program;
  if (program->num_roles == 0 || program->num_ops == FTL_TILE_MAX_OPS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "%s: ops come after a role began, at most %d", ftl_tile_op_name(op->kind),
                     FTL_TILE_MAX_OPS);
  if (!ftl_builder_is_ok(builder) || !ops_reserve(builder)) return;
  memmove(&program->ops[at + 1], &program->ops[at], sizeof *op * (size_t)(program->num_ops - at));
  program->ops[at] = *op;
  program->ops[at].source_line = builder->source_line;
  program->num_ops++;
  program->roles[program->num_roles - 1].num_ops++;
  for (int32_t i = 0; i < builder->num_open_loops; i++)
    if (builder->open_loop_ops[i] >= at) builder->open_loop_ops[i]++;
}

void ftl_builder_add_op(ftl_builder *builder, ftl_tile_op op) {
  ftl_builder_add_lookups(builder, &op);
  ftl_builder_insert_op(builder, builder->program->num_ops, &op);
}

ftl_tile_op ftl_builder_op_of(ftl_tile_op_kind kind) {
  ftl_operand none = {.value = -1};
  return (ftl_tile_op){.kind = kind,
                       .dst = -1,
                       .a = none,
                       .b = none,
                       .c = none,
                       .ring = -1,
                       .ring_a = -1,
                       .ring_scales = -1,
                       .barrier = -1,
                       .loop_var = -1,
                       .ref = {.tensor = -1, .present = FTL_ALWAYS},
                       .diagonal = FTL_ALWAYS,
                       .left = FTL_ALWAYS};
}

static int32_t add_loop(ftl_builder *builder, ftl_expr lo, ftl_expr hi, bool by_threads, ftl_loop_part part) {
  ftl_tile_program *program = builder->program;
  if (builder->num_role_loops == FTL_TILE_MAX_LOOP_VARS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "allowed are %d loops a role", FTL_TILE_MAX_LOOP_VARS);
  if (!ftl_builder_is_ok(builder)) return 0;
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOOP);
  op.loop_var = builder->num_role_loops++;
  if (builder->num_role_loops > program->num_loop_vars) program->num_loop_vars = builder->num_role_loops;
  op.lo = lo;
  op.hi = hi;
  op.by_threads = by_threads;
  op.part = part;
  ftl_builder_add_op(builder, op);
  builder->open_loop_ops[builder->num_open_loops] = program->num_ops - 1;
  builder->open_loops[builder->num_open_loops++] = op.loop_var;
  return op.loop_var;
}

int32_t ftl_loop(ftl_builder *builder, ftl_expr lo, ftl_expr hi) {
  return add_loop(builder, lo, hi, false, (ftl_loop_part){.steps = FTL_LOOP_BEGINS});
}

int32_t ftl_loop_once(ftl_builder *builder, ftl_expr lo, ftl_expr hi) {
  int32_t loop_var = add_loop(builder, lo, hi, false, (ftl_loop_part){.steps = FTL_LOOP_BEGINS});
  if (ftl_builder_is_ok(builder)) builder->program->ops[builder->program->num_ops - 1].is_condition = true;
  return loop_var;
}

int32_t ftl_loop_by_threads(ftl_builder *builder, ftl_expr lo, ftl_expr hi, ftl_loop_part part) {
  return add_loop(builder, lo, hi, true, part);
}

void ftl_end_loop(ftl_builder *builder) {
  if (builder->num_open_loops == 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "end_loop without a loop");
  if (!ftl_builder_is_ok(builder)) return;
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_END_LOOP);
  ftl_builder_drop_lookups(builder, builder->num_open_loops);
  op.loop_var = builder->open_loops[--builder->num_open_loops];
  ftl_builder_add_op(builder, op);
}

void ftl_barrier(ftl_builder *builder) { ftl_builder_add_op(builder, ftl_builder_op_of(FTL_TILE_BARRIER)); }

static void barrier_op(ftl_builder *builder, ftl_tile_op_kind kind, int32_t barrier) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.barrier = barrier;
  ftl_builder_add_op(builder, op);
}

void ftl_arrive(ftl_builder *builder, int32_t barrier) { barrier_op(builder, FTL_TILE_ARRIVE, barrier); }
void ftl_sync(ftl_builder *builder, int32_t barrier) { barrier_op(builder, FTL_TILE_SYNC, barrier); }
