// Roles whose warps are groups with copies of their own (sliced K): exchanging and merging the copies through shared
// memory. As kernels/attention/decode_mma.h: each warp writes its copy, row after row in fp32, a barrier, then every
// thread reads the copies of what it works on.
#include "base/integer.h"
#include "lower/select/select.h"

#include "base/sectors.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4, PAIR = 2 };

static void barrier_before_staging(ftl_select *s) {
  if (!s->orders || s->orders[s->op_idx].barrier_before) ftl_select_barrier(s);
}

// One lane of each row writes its number: eight words next to each other, no conflict; all lanes of a row read one.
// Where a lane's rows take turns it reads all numbers of one at once.
void ftl_select_reduce_groups(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_ring *ring = &s->rings[op->ring];
  int32_t rows = ftl_select_fragment(s, op->dst, 0, 0);
  if (!s->in_lane_turns || s->turn == 0) {
    barrier_before_staging(s);
    ftl_select_add_shared(s, FTL_OP_STS, 2, NONE, rows, ring->write_address, 1);
    ftl_select_barrier(s);
  }
  if (op->fn == FTL_ELEM_MAX) s->values[op->dst].put_ring = op->ring;  // the copies' largest is still that of them all
  if (s->in_lane_turns) {
    ftl_select_read_parts(s, op, rows, s->role->num_groups);
    return;
  }
  for (int32_t group = 0; group < s->role->num_groups; group++) {
    int32_t other = group == 0 ? rows : ftl_select_temp(s, 2);
    ftl_select_add_shared(s, FTL_OP_LDS, 2, other, ring->read_address, NONE, 1);
    if (group > 0) ftl_select_add(s, op->fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA, 2, rows, rows, other, NONE);
  }
}

// ---- gathering ----
// Gathers that follow each other share a barrier: all copies are written, then all are read, as
// kernels/attention/flash1_mma.h has it.
static const ftl_tile_op *gather_at(const ftl_select *s, int32_t op_idx) {
  if (op_idx < 0 || op_idx >= s->role->num_ops) return NULL;
  const ftl_tile_op *op = ftl_select_op_at(s, op_idx);
  return op->kind == FTL_TILE_GATHER ? op : NULL;
}

// Plain code swizzles a place at a time: of `num_places`, a number of each row's first lane (LOP3, LEA.HI, LEA), or a
// pair of a tile's (LOP3, LEA; SASS of flash1_mma.h). Lean code has immediates.
static int32_t copy_address(ftl_select *s, int32_t base, int32_t num_places, bool is_tile) {
  if (!s->plain_code) return base;
  int32_t address = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_LOP, num_places, address, base, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, is_tile ? num_places : 2 * num_places, address, address, NONE, NONE);
  return address;
}

ftl_draft_inst *ftl_select_put_rows(ftl_select *s, const ftl_tile_op *op) {
  int32_t rows = ftl_select_lane_rows(s);
  int32_t address = copy_address(s, s->rings[op->ring].write_address, rows, false);
  return ftl_select_add_shared(s, FTL_OP_STS, rows, NONE, ftl_select_fragment(s, op->a.value, 0, 0), address, 1);
}

// By 8-byte STS.
static void store_pairs(ftl_select *s, int32_t num_pairs, int32_t fragment, int32_t address,
                        ftl_wavefronts wavefronts) {
  ftl_draft_inst *store = ftl_select_add_shared(s, FTL_OP_STS, num_pairs, NONE, fragment, address, wavefronts.cycles);
  ftl_select_set_wavefronts(store, wavefronts);
}

// Two rows of a lane.
static void write_tile(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_value *a = &s->values[op->a.value];
  int32_t base = s->rings[op->ring].write_address, num_pairs = a->map.num_registers / PAIR;
  for (int32_t slab = 0; slab < a->map.num_slabs; slab++)
    for (int32_t i = 0; i < a->map.per_slab; i++) {
      ftl_wavefronts pairs =
          ftl_accumulator_wavefronts(&s->shape, &s->layouts[op->ring], ftl_select_slab_row(s, op->a.value, slab),
                                     i * s->shape.accumulator_columns);
      store_pairs(s, num_pairs, ftl_select_fragment(s, op->a.value, slab, i), copy_address(s, base, num_pairs, true),
                  pairs);
    }
}

static void write_copies(ftl_select *s, const ftl_tile_op *op) {
  if (s->values[op->a.value].put_ring == op->ring) return;
  ftl_select_settle_groups(s, op->a.value, false, NONE);
  ftl_select_settle_fill(s, op->a.value);
  if (s->tile->values[op->dst].kind == FTL_VALUE_ROWS)
    ftl_select_put_rows(s, op);
  else
    write_tile(s, op);
}

// Vectors of up to 16 bytes, one of each group. Plain code begins a sum at 0, which nvcc keeps: 0 + -0 is not -0.
static void read_tile(ftl_select *s, const ftl_tile_op *op, int32_t slab) {
  const ftl_select_value *dst = &s->values[op->dst];
  int32_t registers = dst->map.num_registers;
  int32_t num_lines = ftl_divide_up32(registers * WORD_BYTES * FTL_WARP_LANES, FTL_LINE_BYTES);
  ftl_opcode opcode = op->fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA;
  for (int32_t i = 0; i < dst->map.per_slab; i++)
    for (int32_t group = 0; group < s->role->num_groups; group++) {
      int32_t to = ftl_select_fragment(s, op->dst, slab, i), from = group == 0 ? to : ftl_select_temp(s, registers);
      ftl_select_add_shared(s, FTL_OP_LDS, 1, from, s->rings[op->ring].read_address, NONE, num_lines);
      if (group > 0 || (s->plain_code && op->fn == FTL_ELEM_ADD))
        ftl_select_add(s, opcode, registers, to, to, group > 0 ? from : NONE, NONE);
    }
}

void ftl_select_gather(ftl_select *s, const ftl_tile_op *op) {
  ftl_slab_span slabs = ftl_select_slabs(s, op->dst);
  if (!gather_at(s, s->op_idx - 1) && slabs.first == 0) {
    barrier_before_staging(s);
    for (int32_t i = s->op_idx; gather_at(s, i); i++) write_copies(s, gather_at(s, i));
    ftl_select_barrier(s);
  }
  for (int32_t slab = slabs.first; slab < slabs.end; slab++)
    if (s->tile->values[op->dst].kind == FTL_VALUE_ROWS)
      ftl_select_read_parts(s, op, ftl_select_fragment(s, op->dst, slab, 0), s->role->num_groups);
    else
      read_tile(s, op, slab);
}

// ---- merging ----
// One row is merged after another, each thread with columns of its own, in the order of the kernel's code. Counts
// beyond the arithmetic are nvcc 13's for sm_90a (kernels/measurements/opcodes_other.csv: 111 warp instructions a row
// with four groups and head_dim 128, which is what these come to): branches around rows without keys and around the
// slow path of the division, addresses by run-time strides.
enum { ROW_ADDRESS_IMADS = 8, ROW_ADDRESS_ADDS = 7, ROW_UNIFORMS = 6, ROW_BRANCHES = 8, BLOCK_BRANCHES = 12 };

static void write_states(ftl_select *s, const ftl_tile_op *op, const ftl_shared_layout *layout) {
  const ftl_select_value *a = &s->values[op->a.value];
  int32_t address = s->rings[op->ring].write_address, rows = s->rings[op->ring_a].write_address;
  ftl_select_add_shared(s, FTL_OP_STS, 2, NONE, ftl_select_fragment(s, op->b.value, 0, 0), rows, 1);
  ftl_select_add_shared(s, FTL_OP_STS, 2, NONE, ftl_select_fragment(s, op->c.value, 0, 0), rows, 1);
  for (int32_t i = 0; i < a->map.per_slab; i++) {
    ftl_wavefronts w = ftl_accumulator_wavefronts(&s->shape, layout, 0, i * s->shape.accumulator_columns);
    store_pairs(s, a->map.num_registers / PAIR, ftl_select_fragment(s, op->a.value, 0, i), address, w);
  }
}

static int32_t load_word(ftl_select *s, int32_t ring) {
  int32_t word = ftl_select_temp(s, 1);
  ftl_select_add_shared(s, FTL_OP_LDS, 1, word, s->rings[ring].read_address, NONE, 1);
  return word;
}

// total (+)= x * 2^((top of the group - top) * scale)
static void add_weighed(ftl_select *s, int32_t total, bool is_first, int32_t x, int32_t group_top, int32_t top) {
  int32_t weight = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_FFMA, 1, weight, group_top, top, NONE);
  ftl_select_add(s, FTL_OP_FFMA, 2, weight, weight, NONE, NONE);
  ftl_select_add(s, FTL_OP_MUFU, 1, weight, weight, NONE, NONE)->inst.arg = FTL_ELEM_EXP2;
  ftl_select_add(s, FTL_OP_FFMA, 1, total, x, weight, is_first ? NONE : total);
}

static void end_block(ftl_select *s, int32_t num_branches, int32_t depends_on) {
  int32_t condition = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 2, condition, depends_on, NONE, NONE);
  ftl_select_add(s, FTL_OP_NOP, num_branches - 1, NONE, NONE, NONE, NONE);
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, condition, NONE, NONE);
  branch->inst.flags = FTL_INST_GUARD;
  branch->effects = FTL_EFFECT_PINNED;
  ftl_select_add(s, FTL_OP_LABEL, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
}

// x / sum: a reciprocal, a Newton step, a check of the range.
static void divide(ftl_select *s, int32_t x, int32_t sum) {
  int32_t reciprocal = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_MUFU, 1, reciprocal, sum, NONE, NONE)->inst.arg = FTL_ELEM_RECIP;
  for (int i = 0; i < 2; i++) ftl_select_add(s, FTL_OP_FFMA, 1, reciprocal, reciprocal, sum, NONE);
  for (int i = 0; i < 3; i++) ftl_select_add(s, FTL_OP_FFMA, 1, x, x, reciprocal, sum);
}

static void merge_row(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t row) {
  int32_t groups = s->role->num_groups, warps = s->role->num_warps, tops[FTL_SELECT_MAX_FRAGMENTS];
  int32_t address = ftl_draft_value_add(&s->draft, 2, true), block_bytes = warps * FTL_LINE_BYTES;
  ftl_select_add(s, FTL_OP_UNIFORM, ROW_UNIFORMS, NONE, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, ROW_ADDRESS_IMADS, address, s->tensor_pointer[op->ref.tensor], NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, ROW_ADDRESS_ADDS, address, address, NONE, NONE);
  int32_t top = ftl_select_temp(s, 1), sum = ftl_select_temp(s, 1);
  for (int32_t g = 0; g < groups; g++) tops[g] = load_word(s, op->ring_a);
  for (int32_t g = 0; g < groups; g++) ftl_select_add(s, FTL_OP_FMNMX, 1, top, g ? top : NONE, tops[g], NONE);
  end_block(s, ROW_BRANCHES, top);
  for (int32_t g = 0; g < groups; g++) add_weighed(s, sum, g == 0, load_word(s, op->ring_a), tops[g], top);
  for (int32_t byte = 0; byte < op->ref.columns * ftl_dtype_bytes(FTL_FP32); byte += block_bytes) {
    int32_t output = ftl_select_temp(s, 1);
    end_block(s, BLOCK_BRANCHES, sum);
    for (int32_t g = 0; g < groups; g++) add_weighed(s, output, g == 0, load_word(s, op->ring), tops[g], top);
    divide(s, output, sum);
    ftl_access access = {.ref = ref,
                         .num_rows = 1,
                         .row = row,
                         .row_step = 1,
                         .row_warps = warps,
                         .column_byte = byte,
                         .bytes = FTL_LINE_BYTES,
                         .warp_column_bytes = FTL_LINE_BYTES};
    ftl_select_add_stg(s, access, address, output, ftl_select_row_predicate(s, &op->ref));
  }
}

void ftl_select_store_merged(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *value = &s->tile->values[op->a.value];
  ftl_shared_layout layout =
      ftl_shared_layout_of(value->rows, value->columns, ftl_dtype_bytes(FTL_FP32), FTL_SHARED_PLAIN);
  barrier_before_staging(s);
  write_states(s, op, &layout);
  ftl_select_barrier(s);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  for (int32_t row = 0; row < op->ref.rows; row++) merge_row(s, op, ref, row);
}
