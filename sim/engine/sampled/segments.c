#include "engine/sampled/segments.h"

#include <string.h>

static int32_t find_leading_role(const ftl_warp_program *program) {
  int32_t leading = 0;
  for (int32_t r = 1; r < program->num_roles; r++)
    if (program->roles[r].num_insts > program->roles[leading].num_insts) leading = r;
  return leading;
}

static bool try_find_loops(ftl_segments *segments, const ftl_warp_program *program) {
  const ftl_warp_role *role = &program->roles[segments->leading_role];
  const ftl_warp_inst *insts = program->insts + role->first_inst;
  for (int32_t i = 0; i < role->num_insts; i++) {
    if (insts[i].opcode != FTL_OP_LOOP) continue;
    int32_t loop = insts[i].arg;
    for (int32_t j = i + 1; j < program->loops[loop].end; j++)
      if (insts[j].opcode == FTL_OP_LOOP) return false;
    if (segments->num_loops == FTL_MAX_SEGMENT_LOOPS) return false;
    segments->loops[segments->num_loops++] = loop;
    i = program->loops[loop].end;
  }
  return true;
}

static bool try_add_ref(const ftl_tile_program *tile, ftl_segment *segment, const ftl_tile_op *op,
                        const ftl_tile_op *loop) {
  bool is_store = ftl_tile_op_stores(op->kind), is_direct = ftl_tile_op_loads_direct(op->kind);
  if (!is_store && !ftl_tile_op_loads(op->kind)) return true;
  if (segment->num_refs == FTL_MAX_SEGMENT_REFS) return false;
  segment->refs[segment->num_refs++] =
      (ftl_segment_ref){.ref = &op->ref,
                        .is_store = is_store,
                        .is_direct = is_direct,
                        .loop_var = loop ? loop->loop_var : -1,
                        .lo = loop ? loop->lo : -1,
                        .lookahead = loop && !is_store && !is_direct ? tile->rings[op->ring].num_stages - 1 : 0};
  return true;
}

static bool try_add_role(ftl_segments *segments, const ftl_role *role) {
  int32_t segment = 0;
  const ftl_tile_op *loop = NULL;
  for (int32_t i = role->first_op; i < role->first_op + role->num_ops; i++) {
    const ftl_tile_op *op = &segments->tile->ops[i];
    if (op->kind == FTL_TILE_LOOP || op->kind == FTL_TILE_END_LOOP) {
      segment++;
      loop = op->kind == FTL_TILE_LOOP ? op : NULL;
      continue;
    }
    if (segment > 2 * segments->num_loops || !try_add_ref(segments->tile, &segments->segments[segment], op, loop))
      return false;
  }
  return segment == 2 * segments->num_loops;
}

bool ftl_segments_try_init(ftl_segments *segments, const ftl_warp_program *program) {
  memset(segments, 0, sizeof *segments);
  segments->tile = program->tile;
  segments->leading_role = find_leading_role(program);
  if (!try_find_loops(segments, program)) return false;
  for (int32_t r = 0; r < program->tile->num_roles; r++)
    if (!try_add_role(segments, &program->tile->roles[r])) return false;
  return true;
}

int64_t ftl_segments_trips(const ftl_segments *segments, const ftl_warp_program *program, int32_t k, int64_t cta,
                           int64_t *first_value) {
  const ftl_warp_loop *loop = &program->loops[segments->loops[k]];
  ftl_expr_point point = {.cta = cta};
  int64_t lo = ftl_expr_eval(program->tile, loop->lo, &point), hi = ftl_expr_eval(program->tile, loop->hi, &point);
  *first_value = lo;
  return hi > lo ? hi - lo : 0;
}
