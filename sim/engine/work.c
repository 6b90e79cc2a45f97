#include "engine/work.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/integer.h"
#include "tile/cta_exprs.h"

enum { WGMMA_M = 64, WARPS_A_WGMMA = 4, FP16_WGMMA_K = 16 };

static int64_t trips_at(const ftl_tile_program *tile, const ftl_warp_loop *loop, const ftl_expr_point *point) {
  int64_t trips = ftl_expr_eval(tile, loop->hi, point) - ftl_expr_eval(tile, loop->lo, point);
  return trips > 0 ? trips : 0;
}

// Multiply-adds of one warp's instruction: a wgmma is issued by four warps, a quarter each.
static int64_t macs_of(const ftl_warp_program *program, const ftl_warp_inst *inst) {
  const ftl_product *product = &program->product;
  if (inst->opcode == FTL_OP_MMA) return product->mma_macs;
  return (int64_t)WGMMA_M * inst->arg * product->operand_columns / WARPS_A_WGMMA;
}

// Of fp16, as many as read the same operand bytes.
static int64_t fp16_macs_of(const ftl_warp_program *program, const ftl_warp_inst *inst) {
  if (inst->opcode == FTL_OP_MMA) return program->product.mma_fp16_macs;
  return (int64_t)WGMMA_M * inst->arg * FP16_WGMMA_K / WARPS_A_WGMMA;
}

static int64_t tensor_cycles_of(const ftl_warp_program *program, const ftl_warp_inst *inst) {
  const ftl_product *product = &program->product;
  if (inst->opcode == FTL_OP_MMA) return product->mma_interval_cycles;
  return (int64_t)WGMMA_M * inst->arg * product->operand_columns / product->wgmma_fma_per_cycle;
}

ftl_work_class ftl_work_class_of(ftl_opcode opcode) {
  enum { FTL_WORK_NONE = FTL_WORK_MARK };
  static const ftl_work_class table[FTL_OPCODE_COUNT] = {
#define X(name, pipe, text) [FTL_OP_##name] = (ftl_work_class)FTL_WORK_##pipe,
      FTL_OPCODES(X)
#undef X
  };
  return table[opcode];
}

static void count_inst(const ftl_warp_program *program, const ftl_warp_inst *inst, int64_t times,
                       ftl_static_work *work) {
  ftl_work_class class = ftl_work_class_of(inst->opcode);
  if (class == FTL_WORK_MARK) return;
  int64_t insts = times * inst->repeat;
  work->warp_insts += insts;
  work->insts[class] += insts;
  work->shared_wavefronts += insts * inst->wavefronts;
  work->bank_conflicts += insts * inst->conflicts;
  if (class != FTL_WORK_TENSOR) return;
  work->tensor_insts += insts;
  work->tensor_macs += insts * macs_of(program, inst);
  work->tensor_fp16_macs += insts * fp16_macs_of(program, inst);
  work->tensor_busy_cycles += insts * tensor_cycles_of(program, inst);
}

// A loop of the role: its body, without the loops in it, is counted once and multiplied by how often it is run. Loops
// with loops in them are walked with their variable set, since an inner trip count may depend on it.
typedef struct counted_loop {
  const ftl_warp_loop *loop;
  bool has_inner, has_trips_of_warps;
  int64_t trips;         // of all CTAs counted; where warps differ, `work` instead
  ftl_static_work body;  // what all warps run of one iteration
  ftl_static_work work;
} counted_loop;

typedef struct counter {
  const ftl_warp_program *program;
  const ftl_warp_role *role;
  counted_loop *loops;  // in the order in which they begin
  int32_t num_loops;
} counter;

static void add_times(ftl_static_work *sum, const ftl_static_work *part, int64_t times) {
  int64_t *to = (int64_t *)sum;  // every field is an int64_t
  const int64_t *from = (const int64_t *)part;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += times * from[i];
}

static void add_share(ftl_static_work *sum, const ftl_static_work *all, int64_t shares) {
  int64_t *to = (int64_t *)sum;
  const int64_t *from = (const int64_t *)all;
  for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i] / shares;
}

static const ftl_warp_inst *role_inst(const counter *c, int32_t i) {
  return &c->program->insts[c->role->first_inst + i];
}

// The instructions of [from, to), counted from the role's first, outside loops.
static ftl_static_work count_straight(const counter *c, int32_t from, int32_t to) {
  ftl_static_work work = {0};
  for (int32_t i = from; i < to; i++) {
    const ftl_warp_inst *inst = role_inst(c, i);
    if (inst->opcode == FTL_OP_LOOP)
      i = c->program->loops[inst->arg].end;
    else
      count_inst(c->program, inst, inst->flags & FTL_INST_WARP0 ? 1 : c->role->num_warps, &work);
  }
  return work;
}

static bool has_inner_loop(const counter *c, const ftl_warp_loop *loop) {
  for (int32_t i = loop->begin + 1; i < loop->end; i++)
    if (role_inst(c, i)->opcode == FTL_OP_LOOP) return true;
  return false;
}

static void find_loops(counter *c) {
  for (int32_t i = 0; i < c->role->num_insts; i++) {
    if (role_inst(c, i)->opcode != FTL_OP_LOOP) continue;
    const ftl_warp_loop *loop = &c->program->loops[role_inst(c, i)->arg];
    c->loops[c->num_loops++] = (counted_loop){.loop = loop,
                                              .has_inner = has_inner_loop(c, loop),
                                              .has_trips_of_warps = ftl_expr_uses_warp(c->program->tile, loop->hi),
                                              .body = count_straight(c, loop->begin + 1, loop->end)};
  }
}

// What all warps run of a loop where they run it a different number of times.
static void add_trips_of_warps(const counter *c, counted_loop *counted, ftl_expr_point point) {
  int64_t trips = 0;
  for (point.warp = 0; point.warp < c->role->num_warps; point.warp++)
    trips += trips_at(c->program->tile, counted->loop, &point);
  ftl_static_work all = {0};
  add_times(&all, &counted->body, trips);
  add_share(&counted->work, &all, c->role->num_warps);
}

// Of the loops from `first` on that begin before instruction `end`.
static void count_loops(const counter *c, int32_t first, int32_t end, ftl_expr_point *point) {
  int32_t loop_end = 0;
  for (int32_t i = first; i < c->num_loops && c->loops[i].loop->begin < end; i++) {
    counted_loop *counted = &c->loops[i];
    if (counted->loop->begin < loop_end) continue;  // in the one before
    loop_end = counted->loop->end;
    int64_t trips = trips_at(c->program->tile, counted->loop, point);
    if (counted->has_trips_of_warps)
      add_trips_of_warps(c, counted, *point);
    else
      counted->trips += trips;
    if (trips == 0 || !counted->has_inner) continue;
    int64_t lo = ftl_expr_eval(c->program->tile, counted->loop->lo, point);
    for (int64_t n = 0; n < trips; n++) {
      point->loop[counted->loop->loop_var] = lo + n;
      count_loops(c, i + 1, loop_end, point);
    }
  }
}

static bool depends_on_cta(const counter *c) {
  const ftl_tile_program *tile = c->program->tile;
  for (int32_t i = 0; i < c->num_loops; i++)
    if (ftl_expr_uses_cta(tile, c->loops[i].loop->lo) || ftl_expr_uses_cta(tile, c->loops[i].loop->hi)) return true;
  return false;
}

// The bounds of all loops; where memory is out they are none, and each is worked out for itself.
static int64_t *find_bounds(const counter *c, ftl_cta_exprs *exprs) {
  ftl_error error;
  if (ftl_cta_exprs_init(exprs, c->program->tile, &error) != FTL_OK) return NULL;
  for (int32_t i = 0; i < c->num_loops; i++) {
    ftl_cta_exprs_add(exprs, c->loops[i].loop->lo);
    ftl_cta_exprs_add(exprs, c->loops[i].loop->hi);
  }
  return calloc((size_t)exprs->count, sizeof(int64_t));
}

static void count_loops_of_ctas(const counter *c, int64_t num_ctas) {
  ftl_cta_exprs exprs;
  int64_t *values = find_bounds(c, &exprs);
  for (int64_t cta = 0; cta < num_ctas; cta++) {
    ftl_expr_point point = {.cta = cta};
    if (values != NULL) {
      ftl_cta_exprs_eval(&exprs, cta, values);
      point.of_cta = (ftl_cta_values){.place = exprs.place, .values = values};
    }
    count_loops(c, 0, c->role->num_insts, &point);
  }
  free(values);
  ftl_cta_exprs_fini(&exprs);
}

// What the loops of all CTAs run: of one, where they are alike, as often as there are CTAs.
static void count_all_loops(const counter *c, ftl_static_work *work) {
  int64_t num_ctas = c->program->tile->num_ctas, num_counted = depends_on_cta(c) ? num_ctas : 1;
  count_loops_of_ctas(c, num_counted);
  ftl_static_work counted = {0};
  for (int32_t i = 0; i < c->num_loops; i++) {
    add_times(&counted, &c->loops[i].body, c->loops[i].trips);
    add_times(&counted, &c->loops[i].work, 1);
  }
  add_times(work, &counted, num_ctas / num_counted);
}

// A loop, or the end of one whose body is cut too.
static bool cuts(const counter *c, int32_t i, const int32_t *place_of_loop) {
  const ftl_warp_inst *inst = role_inst(c, i);
  return inst->opcode == FTL_OP_LOOP || (inst->opcode == FTL_OP_END_LOOP && place_of_loop[inst->arg] < 0);
}

// Iterations that warps of a CTA run for each that the first one runs, of as many.
typedef struct warp_share {
  int64_t run, of;
} warp_share;

static warp_share share_of(const counter *c, const ftl_warp_loop *loop) {
  enum { MOST_CTAS = 1024 };
  warp_share share = {1, 1};
  if (!ftl_expr_uses_warp(c->program->tile, loop->hi)) return share;
  int64_t num_ctas = c->program->tile->num_ctas, stride = ftl_divide_up(num_ctas, MOST_CTAS);
  share = (warp_share){0, 0};
  for (ftl_expr_point point = {.cta = 0}; point.cta < num_ctas; point.cta += stride) {
    point.warp = 0;
    share.of += trips_at(c->program->tile, loop, &point) * c->role->num_warps;
    for (; point.warp < c->role->num_warps; point.warp++) share.run += trips_at(c->program->tile, loop, &point);
  }
  return share.of > 0 ? share : (warp_share){1, 1};
}

void ftl_static_work_of_segments(const ftl_warp_program *program, const int32_t *place_of_loop,
                                 ftl_static_work *segments, int32_t num_segments) {
  for (int32_t s = 0; s < num_segments; s++) segments[s] = (ftl_static_work){0};
  for (int32_t r = 0; r < program->num_roles; r++) {
    counter c = {.program = program, .role = &program->roles[r]};
    int32_t segment = 0, from = 0;
    for (int32_t i = 0; i <= c.role->num_insts && segment < num_segments; i++) {
      bool at_end = i == c.role->num_insts;
      if (!at_end && !cuts(&c, i, place_of_loop)) continue;
      ftl_static_work part = count_straight(&c, from, i);
      add_times(&segments[segment], &part, 1);
      if (at_end) break;
      int32_t loop_idx = role_inst(&c, i)->arg;
      if (place_of_loop[loop_idx] < 0) {
        segment += 2;
        from = i + 1;
        continue;
      }
      const ftl_warp_loop *loop = &program->loops[loop_idx];
      segment = 2 * place_of_loop[loop_idx] + 1;
      if (segment >= num_segments) break;
      part = count_straight(&c, loop->begin + 1, loop->end);
      warp_share share = share_of(&c, loop);
      ftl_static_work all = {0};
      add_times(&all, &part, share.run);
      add_share(&segments[segment++], &all, share.of);
      i = loop->end;
      from = i + 1;
    }
  }
}

enum { MAX_LOOPS = 64 };

ftl_static_work ftl_static_work_of(const ftl_warp_program *program, int64_t num_started) {
  FTL_CHECK(program->num_loops <= MAX_LOOPS, "%d loops in a warp program", (int)program->num_loops);
  ftl_static_work work = {0};
  counted_loop loops[MAX_LOOPS];
  for (int32_t r = 0; r < program->num_roles; r++) {
    const ftl_warp_role *role = &program->roles[r];
    counter c = {.program = program, .role = role, .loops = loops};
    find_loops(&c);
    ftl_static_work once = count_straight(&c, 0, role->tile_inst);
    ftl_static_work each_tile = count_straight(&c, role->tile_inst, role->num_insts);
    add_times(&work, &once, num_started);
    add_times(&work, &each_tile, program->tile->num_ctas);
    count_all_loops(&c, &work);
  }
  return work;
}

// Tensors that a launch does not touch do not count, nor what it reads of its own temporary ones.
ftl_compulsory_bytes ftl_compulsory_bytes_of(const ftl_tile_program *program) {
  bool touched[FTL_TILE_MAX_TENSORS] = {false}, stored[FTL_TILE_MAX_TENSORS] = {false};
  for (int32_t i = 0; i < program->num_ops; i++) {
    const ftl_tile_op *op = &program->ops[i];
    if (ftl_tile_op_loads(op->kind) || ftl_tile_op_stores(op->kind)) touched[op->ref.tensor] = true;
    if (ftl_tile_op_stores(op->kind)) stored[op->ref.tensor] = true;
  }
  ftl_compulsory_bytes sum = {0};
  for (int32_t i = 0; i < program->num_tensors; i++) {
    if (!touched[i]) continue;
    *(stored[i] ? &sum.written : &sum.read) += program->tensors[i].needed_bytes;
  }
  return sum;
}
