#include "engine/sampled/segments.h"

#include <string.h>

#include "base/sectors.h"

static int32_t find_leading_role(const ftl_warp_program *program) {
  int32_t leading = 0;
  for (int32_t r = 1; r < program->num_roles; r++)
    if (program->roles[r].num_insts > program->roles[leading].num_insts) leading = r;
  return leading;
}

bool ftl_warp_loop_is_outer(const ftl_warp_program *program, const ftl_warp_role *role, int32_t loop) {
  const ftl_warp_inst *insts = program->insts + role->first_inst;
  for (int32_t j = program->loops[loop].begin + 1; j < program->loops[loop].end; j++)
    if (insts[j].opcode == FTL_OP_LOOP) return true;
  return false;
}

static bool try_add_loop(ftl_segments *segments, int32_t loop) {
  if (segments->num_loops == FTL_MAX_SEGMENT_LOOPS) return false;
  segments->loops[segments->num_loops++] = loop;
  return true;
}

// What of the leading role's loops begins in [from, to); loops in an outer one are added between two that never run.
static bool try_find_loops(ftl_segments *segments, const ftl_warp_program *program, int32_t from, int32_t to) {
  const ftl_warp_role *role = &program->roles[segments->leading_role];
  for (int32_t i = from; i < to; i++) {
    const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
    if (inst->opcode != FTL_OP_LOOP) continue;
    int32_t loop = inst->arg;
    i = program->loops[loop].end;
    if (!ftl_warp_loop_is_outer(program, role, loop)) {
      if (!try_add_loop(segments, loop)) return false;
      continue;
    }
    if (segments->outer.loop >= 0 || program->num_roles > 1 || !try_add_loop(segments, -1)) return false;
    segments->outer = (ftl_outer_loop){.loop = loop, .first = 2 * segments->num_loops};
    if (!try_find_loops(segments, program, program->loops[loop].begin + 1, program->loops[loop].end)) return false;
    segments->outer.last = 2 * segments->num_loops;
    if (!try_add_loop(segments, -1)) return false;
  }
  return true;
}

// The loops around an operation; NULL: none.
typedef struct loops_around {
  const ftl_tile_op *loop, *outer;
} loops_around;

// An expression as another one and a constant, as the builder writes sums.
typedef struct expr_sum {
  ftl_expr base;  // -1: the constant is all
  int64_t constant;
} expr_sum;

static expr_sum sum_of(const ftl_tile_program *tile, ftl_expr expr) {
  const ftl_expr_node *node = &tile->exprs[expr];
  if (node->kind == FTL_EXPR_CONST) return (expr_sum){-1, node->value};
  if (node->kind != FTL_EXPR_ADD || tile->exprs[node->b].kind != FTL_EXPR_CONST) return (expr_sum){expr, 0};
  return (expr_sum){node->a, tile->exprs[node->b].value};
}

// Whether the columns of `right` begin where those of `left` end, wherever these are.
static bool continues(const ftl_tile_program *tile, const ftl_tile_ref *left, const ftl_tile_ref *right) {
  if (left->tensor != right->tensor || left->batch != right->batch || left->head != right->head ||
      left->row != right->row || left->rows != right->rows || left->present != right->present ||
      left->column_end != right->column_end || left->row_end != right->row_end)
    return false;
  if (left->pages.page_rows > 0 || right->pages.page_rows > 0) return false;
  expr_sum from = sum_of(tile, left->column), to = sum_of(tile, right->column);
  return from.base == to.base && from.constant + left->columns == to.constant;
}

// Steps of an unrolled loop load pieces of a row into registers that lie side by side: they are one tile that is wider.
// So are those that they store. (Pieces that share a sector ask for it each.)
static bool try_widen(const ftl_tile_program *tile, ftl_segment *segment, const ftl_segment_ref *ref) {
  if (!(ref->is_direct || ref->is_store) || ref->is_lookup || ref->is_atomic) return false;
  if (ref->ref.columns * ftl_dtype_bytes(tile->tensors[ref->ref.tensor].dtype) % FTL_SECTOR_BYTES != 0) return false;
  for (int32_t i = 0; i < segment->num_refs; i++) {
    ftl_segment_ref *left = &segment->refs[i];
    if (left->is_store != ref->is_store || left->is_direct != ref->is_direct || left->is_lookup || left->is_atomic ||
        left->piece_columns != ref->piece_columns || !continues(tile, &left->ref, &ref->ref))
      continue;
    left->ref.columns += ref->ref.columns;
    return true;
  }
  return false;
}

// Fills of a ring that a role which reads it holds when it begins a loop, and through each of its steps: that of the
// step before, where products run on.
static int32_t fills_held(const ftl_tile_program *tile, int32_t ring) {
  int32_t most = 0;
  for (int32_t r = 0; r < tile->num_roles; r++) {
    if ((tile->rings[ring].consumers_mask >> r & 1) == 0) continue;
    int32_t held = 0;
    for (int32_t i = tile->roles[r].first_op; i < tile->roles[r].first_op + tile->roles[r].num_ops; i++) {
      const ftl_tile_op *op = &tile->ops[i];
      if (op->kind == FTL_TILE_LOOP && held > most) most = held;
      if (op->ring == ring) held += (op->kind == FTL_TILE_WAIT) - (op->kind == FTL_TILE_RELEASE);
    }
  }
  return most;
}

// Iterations between a load into a ring and the wait for it.
static int32_t lookahead_of(const ftl_tile_program *tile, int32_t ring) {
  int32_t ahead = tile->rings[ring].num_stages - 1 - fills_held(tile, ring);
  return ahead > 0 ? ahead : 0;
}

// Whether no operation of a role ahead of this one loads into its ring.
static bool is_first_load(const ftl_tile_program *tile, const ftl_tile_op *op) {
  int32_t idx = (int32_t)(op - tile->ops);
  for (int32_t r = 0; r < tile->num_roles; r++)
    for (int32_t i = tile->roles[r].first_op; i < tile->roles[r].first_op + tile->roles[r].num_ops && i < idx; i++)
      if (tile->ops[i].kind == FTL_TILE_LOAD && tile->ops[i].ring == op->ring) return false;
  return true;
}

// Whether a warp takes the rows that it copies into the ring in pieces, of which some begin within a line.
static bool copies_split_lines(const ftl_warp_program *program, int32_t ring) {
  for (int32_t i = 0; i < program->num_insts; i++) {
    const ftl_warp_inst *inst = &program->insts[i];
    if (inst->opcode != FTL_OP_CP_ASYNC || inst->ring_a != ring) continue;
    if (program->accesses[inst->access].column_byte % FTL_LINE_BYTES != 0) return true;
  }
  return false;
}

static bool try_add_ref(const ftl_warp_program *program, ftl_segment *segment, const ftl_tile_op *op,
                        const loops_around *around) {
  const ftl_tile_program *tile = program->tile;
  const ftl_tile_op *loop = around->loop;
  bool is_store = ftl_tile_op_stores(op->kind), is_direct = ftl_tile_op_loads_direct(op->kind);
  if (!is_store && !ftl_tile_op_loads(op->kind)) return true;
  ftl_segment_ref ref = {.ref = op->ref,
                         .piece_columns = op->ref.columns,
                         .is_store = is_store,
                         .is_atomic = op->kind == FTL_TILE_ATOMIC_ADD,
                         .is_direct = is_direct,
                         .is_lookup = op->kind == FTL_TILE_LOOKUP,
                         .loop_var = loop ? loop->loop_var : -1,
                         .lo = loop ? loop->lo : -1,
                         .outer_var = around->outer ? around->outer->loop_var : -1,
                         .lookahead = loop && !is_store && !is_direct ? lookahead_of(tile, op->ring) : 0};
  if (op->kind == FTL_TILE_LOAD) {
    ref.multicast = tile->rings[op->ring].multicast;
    ref.box_bytes = program->rings[op->ring].box_bytes;
    ref.is_first = !loop && is_first_load(tile, op);
    ref.splits_lines = copies_split_lines(program, op->ring);
  }
  if (try_widen(tile, segment, &ref)) return true;
  if (segment->num_refs == FTL_MAX_SEGMENT_REFS) return false;
  segment->refs[segment->num_refs++] = ref;
  return true;
}

static int32_t num_loops_of(const ftl_warp_program *program, const ftl_warp_role *role) {
  int32_t count = 0;
  for (int32_t i = 0; i < role->num_insts; i++) count += program->insts[role->first_inst + i].opcode == FTL_OP_LOOP;
  return count;
}

// Finds, in order, the loop of the leading role that each loop of this one stands for.
static bool try_place_loops(ftl_segments *segments, const ftl_warp_program *program, const ftl_warp_role *role) {
  int32_t num_runs = segments->outer.loop >= 0 ? segments->num_loops - 1 : segments->num_loops;
  bool one_to_one = num_loops_of(program, role) == num_runs;  // the outer loop has two places
  int32_t place = 0;
  for (int32_t i = 0; i < role->num_insts; i++) {
    const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
    if (inst->opcode != FTL_OP_LOOP) continue;
    const ftl_warp_loop *loop = &program->loops[inst->arg];
    if (inst->arg == segments->outer.loop) {
      segments->place_of_loop[inst->arg] = -1;
      place = segments->outer.first / 2;
      continue;
    }
    if (segments->outer.loop >= 0 && 2 * place == segments->outer.last) place++;  // behind the outer loop
    while (!one_to_one && place < segments->num_loops &&
           (program->loops[segments->loops[place]].lo != loop->lo ||
            program->loops[segments->loops[place]].hi != loop->hi))
      place++;
    if (place >= segments->num_loops) return false;
    segments->place_of_loop[inst->arg] = place++;
  }
  return true;
}

static bool try_add_role(ftl_segments *segments, const ftl_warp_program *program, const ftl_role *role,
                         const int32_t *places) {
  int32_t segment = 0;
  loops_around around = {NULL, NULL};
  for (int32_t i = role->first_op; i < role->first_op + role->num_ops; i++) {
    const ftl_tile_op *op = &segments->tile->ops[i];
    if (op->kind == FTL_TILE_LOOP && *places < 0) {
      places++;
      around.outer = op;
      segment = segments->outer.first;
    } else if (op->kind == FTL_TILE_LOOP) {
      around.loop = op;
      segment = 2 * *places++ + 1;
    } else if (op->kind == FTL_TILE_END_LOOP) {
      if (around.loop == NULL) around.outer = NULL;
      segment = around.loop ? segment + 1 : segments->outer.last + 2;
      around.loop = NULL;
    } else if (!try_add_ref(program, &segments->segments[segment], op, &around)) {
      return false;
    }
  }
  return true;
}

bool ftl_segments_try_init(ftl_segments *segments, const ftl_warp_program *program) {
  memset(segments, 0, sizeof *segments);
  segments->tile = program->tile;
  segments->leading_role = find_leading_role(program);
  segments->outer.loop = -1;
  int32_t num_insts = program->roles[segments->leading_role].num_insts;
  if (program->num_loops > FTL_MAX_PROGRAM_LOOPS || !try_find_loops(segments, program, 0, num_insts)) return false;
  int32_t first_loop = 0;  // the loops of a role follow those of the role before
  for (int32_t r = 0; r < program->tile->num_roles; r++) {
    if (!try_place_loops(segments, program, &program->roles[r]) ||
        !try_add_role(segments, program, &program->tile->roles[r], &segments->place_of_loop[first_loop]))
      return false;
    first_loop += num_loops_of(program, &program->roles[r]);
  }
  for (int32_t k = 0; k < 2 * segments->num_loops + 1; k++)
    for (int32_t i = 0; i < segments->segments[k].num_refs; i++)
      segments->has_direct |= segments->segments[k].refs[i].is_direct;
  return true;
}

static int64_t trips_at(const ftl_warp_program *program, const ftl_warp_loop *loop, const ftl_expr_point *point,
                        int64_t *first_value) {
  int64_t lo = ftl_expr_eval(program->tile, loop->lo, point), hi = ftl_expr_eval(program->tile, loop->hi, point);
  *first_value = lo;
  return hi > lo ? hi - lo : 0;
}

static bool is_in_outer(const ftl_segments *segments, int32_t s) {
  return segments->outer.loop >= 0 && s >= segments->outer.first && s <= segments->outer.last;
}

int64_t ftl_segments_trips_in(const ftl_segments *segments, const ftl_warp_program *program, int32_t k,
                              const ftl_cta_at *at, int64_t *first_value) {
  *first_value = 0;
  if (segments->loops[k] < 0) return 0;
  ftl_expr_point point = {.cta = at->cta, .of_cta = at->of_cta};
  if (is_in_outer(segments, 2 * k + 1)) point.loop[program->loops[segments->outer.loop].loop_var] = at->outer;
  return trips_at(program, &program->loops[segments->loops[k]], &point, first_value);
}

int64_t ftl_segments_trips(const ftl_segments *segments, const ftl_warp_program *program, int32_t k, int64_t cta,
                           int64_t *first_value) {
  int64_t outer = 0;
  if (is_in_outer(segments, 2 * k + 1)) (void)ftl_segments_outer_trips(segments, program, cta, &outer);
  return ftl_segments_trips_in(segments, program, k, &(ftl_cta_at){.cta = cta, .outer = outer}, first_value);
}

int64_t ftl_segments_outer_trips(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta,
                                 int64_t *first_value) {
  *first_value = 0;
  if (segments->outer.loop < 0) return 1;
  ftl_expr_point point = {.cta = cta};
  return trips_at(program, &program->loops[segments->outer.loop], &point, first_value);
}

static void add_ref_exprs(const ftl_segment_ref *ref, ftl_cta_exprs *exprs) {
  const ftl_tile_ref *r = &ref->ref;
  const ftl_expr all[] = {ref->lo, r->batch, r->head, r->row, r->column, r->present};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) ftl_cta_exprs_add(exprs, all[i]);
  if (r->column_end != FTL_TENSOR_END) ftl_cta_exprs_add(exprs, r->column_end);
  if (r->row_end != FTL_TENSOR_END) ftl_cta_exprs_add(exprs, r->row_end);
  if (r->pages.page_rows > 0) ftl_cta_exprs_add(exprs, r->pages.entry);
}

void ftl_segments_add_exprs(const ftl_segments *segments, const ftl_warp_program *program, ftl_cta_exprs *exprs) {
  for (int32_t k = 0; k < segments->num_loops; k++) {
    if (segments->loops[k] < 0) continue;
    ftl_cta_exprs_add(exprs, program->loops[segments->loops[k]].lo);
    ftl_cta_exprs_add(exprs, program->loops[segments->loops[k]].hi);
  }
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++)
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) add_ref_exprs(&segments->segments[s].refs[i], exprs);
}

int64_t ftl_segments_visits(const ftl_segments *segments, const ftl_warp_program *program, int32_t s, int64_t cta) {
  int64_t first;
  return is_in_outer(segments, s) ? ftl_segments_outer_trips(segments, program, cta, &first) : 1;
}
