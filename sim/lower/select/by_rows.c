// Row-wise values: a row lies over consecutive threads, each thread holds vectors of adjacent columns.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { SUM_BYTES = 4, VECTOR_SUMS = 4, MOST_CHAINED_WARPS = 8 };

bool ftl_select_is_by_rows(const ftl_select *s, int32_t value) {
  return s->tile->values[value].layout.threads_per_row > 0;
}

static int32_t threads_of(const ftl_select *s, int32_t value) { return s->tile->values[value].layout.threads_per_row; }

static ftl_opcode opcode_of(ftl_elem_fn fn) { return fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA; }

// ---- mask ----
// The vector's first column is compared as it is, or as its distance from the last, or first, that its row sees.
static int32_t distance_to(ftl_select *s, int32_t base, bool of_row) {
  if (!of_row) return base;
  int32_t distance = ftl_draft_value_add(&s->draft, 1, true);
  ftl_select_add(s, FTL_OP_IADD, 1, distance, base, NONE, NONE);
  ftl_select_add(s, FTL_OP_FMNMX, 1, distance, distance, NONE, NONE);
  return distance;
}

// Whether the value is exponentiated before it is read again: 0 then takes the place of what is masked.
static bool is_exponentiated(const ftl_select *s, int32_t value) {
  for (int32_t i = s->op_idx + 1; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_END_LOOP || (op->kind == FTL_TILE_CONVERT && op->dst == value)) return false;
    bool exponentiates = op->kind == FTL_TILE_ELEM && (op->fn == FTL_ELEM_EXP2 || op->fn == FTL_ELEM_EXP);
    if (exponentiates && op->dst == value) return true;
  }
  return false;
}

// The compiler knows nothing of the limit: a column number but for the first element, a compare an element and bound.
// What follows is predicated, so that no select is needed; what is exponentiated is a MOV of 0 before (SASS of
// softmax_row in kernels/attention/standard_mma.h, a vector: 8 ISETP, 7 IADD3, no FSEL; 8 MOV in passes that
// exponentiate). The compare is then what the element waits for.
static void mask_vector(ftl_select *s, int32_t fragment, int32_t num_registers, int32_t distance, bool with_zero) {
  int32_t columns = ftl_select_temp(s, 1);
  if (num_registers > 1) ftl_select_add(s, FTL_OP_IADD, num_registers - 1, columns, distance, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, num_registers, fragment, fragment, distance, num_registers > 1 ? columns : NONE);
  if (with_zero) ftl_select_add(s, FTL_OP_MOV, num_registers, ftl_select_temp(s, 1), NONE, NONE, NONE);
}

void ftl_select_mask_by_rows(ftl_select *s, const ftl_tile_op *op) {
  ftl_fragment_map map = s->values[op->dst].map;
  bool with_zero = is_exponentiated(s, op->dst);
  int32_t base = ftl_draft_value_add(&s->draft, 1, true);
  ftl_select_add(s, FTL_OP_IADD, 1, base, s->thread, NONE, NONE);
  for (int32_t slab = 0; slab < map.num_slabs; slab++)
    for (int32_t i = 0; i < map.per_slab; i++) {
      int32_t fragment = ftl_select_fragment(s, op->dst, slab, i);
      mask_vector(s, fragment, map.num_registers, distance_to(s, base, op->diagonal != FTL_ALWAYS), with_zero);
      if (op->left != FTL_ALWAYS) mask_vector(s, fragment, map.num_registers, distance_to(s, base, true), false);
    }
}

// ---- reductions ----
// One instruction an element, in a chain.
void ftl_select_reduce_rows_by_rows(ftl_select *s, const ftl_tile_op *op) {
  ftl_fragment_map map = s->values[op->a.value].map;
  for (int32_t i = 0; i < map.per_slab; i++)
    for (int32_t k = 0; k < map.num_registers; k++)
      for (int32_t slab = 0; slab < map.num_slabs; slab++) {
        int32_t rows = ftl_select_fragment(s, op->dst, slab, 0);
        ftl_select_add(s, opcode_of(op->fn), 1, rows, rows, ftl_select_fragment(s, op->a.value, slab, i), NONE);
      }
}

// A butterfly of shuffles over `lanes` neighbours.
static void shuffle(ftl_select *s, const ftl_tile_op *op, int32_t rows, int32_t lanes) {
  for (int32_t step = 1; step < lanes; step *= 2) {
    int32_t other = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_SHFL, 1, other, rows, NONE, NONE)->inst.wavefronts = 1;
    ftl_select_add(s, opcode_of(op->fn), 1, rows, rows, other, NONE);
  }
}

// Each warp's part is in shared memory: a few are read by every thread, four a load; of many each lane reads one.
void ftl_select_read_parts(ftl_select *s, const ftl_tile_op *op, int32_t rows, int32_t num_parts) {
  if (num_parts > MOST_CHAINED_WARPS) {
    ftl_select_add_shared(s, FTL_OP_LDS, 1, rows, NONE, NONE, 1);
    shuffle(s, op, rows, num_parts);
    return;
  }
  for (int32_t first = 0; first < num_parts; first += VECTOR_SUMS) {
    int32_t num = num_parts - first < VECTOR_SUMS ? num_parts - first : VECTOR_SUMS, parts = ftl_select_temp(s, num);
    ftl_select_add_shared(s, FTL_OP_LDS, 1, parts, NONE, NONE, 1);
    for (int32_t i = first == 0 ? 1 : 0; i < num; i++)
      ftl_select_add(s, opcode_of(op->fn), 1, rows, i == 1 && first == 0 ? NONE : rows, parts, NONE);
  }
}

// Where a row spans warps, one lane a warp leaves its part in shared memory between two barriers: the first keeps it
// from parts of the reduction before that are still being read.
void ftl_select_reduce_lanes_by_rows(ftl_select *s, const ftl_tile_op *op) {
  int32_t threads = threads_of(s, op->dst), num_slabs = s->values[op->dst].map.num_slabs;
  for (int32_t slab = 0; slab < num_slabs; slab++)
    shuffle(s, op, ftl_select_fragment(s, op->dst, slab, 0), threads < FTL_WARP_LANES ? threads : FTL_WARP_LANES);
  if (threads <= FTL_WARP_LANES) return;
  ftl_select_barrier(s);
  int32_t first = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, first, s->thread, NONE, NONE);
  for (int32_t slab = 0; slab < num_slabs; slab++) {
    ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, ftl_select_fragment(s, op->dst, slab, 0), NONE, 1);
  }
  ftl_select_barrier(s);
  for (int32_t slab = 0; slab < num_slabs; slab++)
    ftl_select_read_parts(s, op, ftl_select_fragment(s, op->dst, slab, 0), threads / FTL_WARP_LANES);
}

int32_t ftl_select_reduce_bytes(const ftl_tile_program *tile) {
  int32_t most = 0;
  for (int32_t i = 0; i < tile->num_ops; i++) {
    int32_t bytes = ftl_select_top_bytes(tile, &tile->ops[i]);
    if (bytes > most) most = bytes;
    if (tile->ops[i].kind != FTL_TILE_REDUCE_LANES) continue;
    const ftl_value *value = &tile->values[tile->ops[i].dst];
    int32_t threads = value->layout.threads_per_row;
    if (threads > FTL_WARP_LANES && value->rows * threads / FTL_WARP_LANES * SUM_BYTES > most)
      most = value->rows * threads / FTL_WARP_LANES * SUM_BYTES;
  }
  return most;
}

// ---- conversion ----
// To 16 bits two elements an instruction; from 16 bits one an element: HADD2.F32 of fp16, a shift or mask of bf16.
void ftl_select_convert_by_rows(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *from = &s->tile->values[op->a.value], *to = &s->tile->values[op->dst];
  ftl_opcode opcode = to->dtype != FTL_FP32 ? FTL_OP_CVT : from->dtype == FTL_FP16 ? FTL_OP_HFMA2 : FTL_OP_PRMT;
  if (from->dtype == to->dtype) opcode = FTL_OP_MOV;
  int32_t columns = to->layout.vector_columns, count = opcode == FTL_OP_CVT ? (columns + 1) / 2 : columns;
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++)
    for (int32_t i = 0; i < s->values[op->dst].map.per_slab; i++)
      ftl_select_add(s, opcode, count, ftl_select_fragment(s, op->dst, slab, i),
                     ftl_select_fragment(s, op->a.value, slab, i), NONE, NONE);
}
