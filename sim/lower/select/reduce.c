// Row reductions: each lane over the columns it holds, then over the lanes that share a row, then over the warps side
// by side that do.
#include "base/integer.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { BANKS = 32, HALF_ROWS = 8 };  // an STS or LDS of a slab's rows has those of half of it

static ftl_opcode opcode_of(ftl_elem_fn fn) { return fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA; }

bool ftl_select_contracts(const ftl_select *s, int32_t op_idx) {
  if (op_idx < 0 || op_idx + 1 >= s->role->num_ops) return false;
  const ftl_tile_op *scale = ftl_select_op_at(s, op_idx), *sum = scale + 1;
  return scale->kind == FTL_TILE_ELEM && scale->fn == FTL_ELEM_MUL && scale->a.value == scale->dst &&
         sum->kind == FTL_TILE_REDUCE_ROWS && sum->fn == FTL_ELEM_ADD && sum->dst == scale->dst &&
         !ftl_select_is_by_rows(s, sum->dst);
}

bool ftl_select_starts_sum(const ftl_select *s, const ftl_tile_op *op) {
  return op->kind == FTL_TILE_REDUCE_ROWS && op->fn == FTL_ELEM_ADD && !s->plain_code &&
         s->values[op->dst].zero_pending && !ftl_select_is_by_rows(s, op->dst) &&
         s->values[op->a.value].map.num_registers == 4;
}

// One instruction an element; the two rows of a slab that a lane holds are two independent chains, of which the first
// two elements of a sum are the beginning.
void ftl_select_reduce_rows(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_reduce_rows_by_rows(s, op);
    return;
  }
  const ftl_select_value *a = &s->values[op->a.value];
  int32_t factor = ftl_select_contracts(s, s->op_idx - 1) ? op[-1].b.value : NONE;
  bool starts = ftl_select_starts_sum(s, op);
  s->values[op->dst].zero_pending = false;
  for (int32_t i = 0; i < a->map.per_slab; i++)
    for (int32_t slab = 0; slab < a->map.num_slabs; slab++)
      for (int32_t pair = 0; pair < a->map.num_registers / 2; pair++) {
        int32_t rows = ftl_select_fragment(s, op->dst, slab, 0),
                elements = ftl_select_fragment(s, op->a.value, slab, i);
        if (starts && i == 0 && pair == 0) continue;
        int32_t sum = starts && i == 0 ? elements : rows;
        int32_t scaled_by = factor >= 0 && i == 0 && pair == 0 ? ftl_select_fragment(s, factor, slab, 0) : NONE;
        ftl_select_add(s, opcode_of(op->fn), ftl_select_lane_rows(s), rows, sum, elements, scaled_by);
      }
}

// rows <- fn over themselves and those of another lane: the two rows of a slab, or a number.
static void add_exchange(ftl_select *s, ftl_elem_fn fn, int32_t rows, int32_t num_rows) {
  int32_t other = ftl_select_temp(s, num_rows);
  ftl_select_add(s, FTL_OP_SHFL, num_rows, other, rows, NONE, NONE)->inst.wavefronts = 1;
  ftl_select_add(s, opcode_of(fn), num_rows, rows, rows, other, NONE);
}

void ftl_select_reduce_row_lanes(ftl_select *s, const ftl_tile_op *op) {
  for (int32_t lanes = 1; lanes < s->shape.row_lanes; lanes *= 2)
    for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++)
      add_exchange(s, op->fn, ftl_select_fragment(s, op->dst, slab, 0), ftl_select_lane_rows(s));
}

void ftl_select_reduce_lanes(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->dst))
    ftl_select_reduce_lanes_by_rows(s, op);
  else
    ftl_select_reduce_row_lanes(s, op);
}

// Whether the warps of a row meet in more than one loop of the role, as in Triton's causal kernels: one for the tiles
// before the diagonal, one for those on it.
static bool meets_in_many_loops(const ftl_select *s) {
  int32_t num_loops = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    if (ftl_select_op_at(s, i)->kind != FTL_TILE_LOOP) continue;
    bool meets = false;
    for (int32_t k = i + 1; k < s->role->num_ops && ftl_select_op_at(s, k)->kind != FTL_TILE_END_LOOP; k++)
      meets = meets || ftl_select_op_at(s, k)->kind == FTL_TILE_REDUCE_WARPS;
    num_loops += meets;
  }
  return num_loops > 1;
}

// A slab's two stores, of one lane of each row. Two stores of one predicate stand behind a branch instead
// (kernels/micro/diverge.cu), round which the other lanes go: a BSYNC each. Of the kernels that Triton makes
// (kernels/measurements/sass_triton_exchange.csv) those with one loop predicate them nevertheless.
static void add_row_stores(ftl_select *s, int32_t value, int32_t address, int32_t wavefronts, bool branches) {
  if (branches) {
    ftl_select_idle(s, 1, 0);  // BSSY
    ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, NONE, NONE, NONE);
    branch->inst.flags = FTL_INST_GUARD;
    branch->effects = FTL_EFFECT_PINNED;
  }
  ftl_select_add_shared(s, FTL_OP_STS, 2, NONE, value, address, wavefronts);
  for (int32_t path = 0; branches && path < 2; path++) ftl_select_join(s);
  if (branches) ftl_select_add(s, FTL_OP_LABEL, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
}

// As Triton exchanges them (lib/Conversion/TritonGPUToLLVM/ReduceOpToLLVM.cpp; SASS of triton_attention.py with warps
// side by side): a lane of each row writes its warp's number beside the other warps'; the threads read a number each,
// reduce over the lanes that have a row's, and write it back; then all lanes read their rows'.
void ftl_select_reduce_warps(ftl_select *s, const ftl_tile_op *op) {
  if (op->in_shared) {
    ftl_select_reduce_in_shared(s, op);
    return;
  }
  const ftl_value *dst = &s->tile->values[op->dst];
  const ftl_select_ring *ring = &s->rings[op->ring];
  int32_t num_slabs = s->values[op->dst].map.num_slabs, across = dst->warps_per_row;
  int32_t num_threads = s->role->num_warps * FTL_WARP_LANES;
  int32_t rows_wavefronts = (int32_t)ftl_divide_up(HALF_ROWS * across, BANKS);
  bool branches = meets_in_many_loops(s);
  ftl_select_reduce_row_lanes(s, op);
  if (!s->orders || s->orders[s->op_idx].barrier_before) ftl_select_barrier(s);
  for (int32_t slab = 0; slab < num_slabs; slab++)
    add_row_stores(s, ftl_select_fragment(s, op->dst, slab, 0), ring->write_address, rows_wavefronts, branches);
  ftl_select_barrier(s);
  for (int64_t i = 0; i < ftl_divide_up((int64_t)dst->rows * across, num_threads); i++) {
    int32_t number = ftl_select_temp(s, 1);
    ftl_select_add_shared(s, FTL_OP_LDS, 1, number, ring->read_address, NONE, 1);
    for (int32_t lanes = 1; lanes < across; lanes *= 2) add_exchange(s, op->fn, number, 1);
    ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, number, ring->write_address, 1);
  }
  ftl_select_barrier(s);
  for (int32_t slab = 0; slab < num_slabs; slab++)
    ftl_select_add_shared(s, FTL_OP_LDS, 2, ftl_select_fragment(s, op->dst, slab, 0), ring->read_address, NONE,
                          rows_wavefronts);
}
