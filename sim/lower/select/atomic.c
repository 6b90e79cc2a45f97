// ATOMIC_ADD: reductions at L2 without a result, RED.ADD.F32; and LOAD_TILE of the sums.
//
// In lines: a word a lane and 32 adjacent words an instruction, the next row by the next warp: accumulators are not
// laid out like that in registers, so sums lie permuted within their tile, and are read back the same way. So
// FlashAttention-2's library adds dQ (csrc/flash_attn/src/kernel_traits.h, GmemTiledCopydQaccumAtomicAdd).
// In pairs and in words: where fragments have their elements, 8 rows of 32 bytes; in words two instructions touch each
// of these sectors.
#include "base/integer.h"
#include "lower/select/select.h"

#include "base/sectors.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4, HALF_ROWS = 8, TILE_COLUMNS = 8 };

// The words of a value, 128 bytes a warp at a time: passes over its rows, pieces of a row.
typedef struct pieces {
  int32_t num_warps, num_passes, num_pieces, row_bytes;
  uint16_t ref;
} pieces;

static bool try_cut(ftl_select *s, const ftl_tile_op *op, int32_t value_idx, pieces *out) {
  const ftl_value *value = &s->tile->values[value_idx];
  int32_t num_warps = s->role->num_warps, row_bytes = op->ref.columns * WORD_BYTES;
  *out = (pieces){.num_warps = num_warps,
                  .num_passes = value->rows / num_warps,
                  .num_pieces = ftl_divide_up32(row_bytes, FTL_LINE_BYTES),
                  .row_bytes = row_bytes};
  if (value->rows % num_warps != 0) {
    ftl_select_fail(s, "%s of %d rows is not moved by %d warps in turn", value->name, value->rows, num_warps);
    return false;
  }
  out->ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, out->ref, 0);
  return true;
}

static ftl_access access_of(const pieces *p, int32_t pass, int32_t piece) {
  int32_t left = p->row_bytes - piece * FTL_LINE_BYTES;
  return (ftl_access){.ref = p->ref,
                      .num_rows = 1,
                      .row = pass * p->num_warps,
                      .warp_row_step = 1,
                      .row_step = 1,
                      .column_byte = piece * FTL_LINE_BYTES,
                      .bytes = left < FTL_LINE_BYTES ? left : FTL_LINE_BYTES};
}

// The registers are dealt to the pieces in order.
static int32_t fragment_of(const ftl_select *s, const pieces *p, int32_t value, int32_t pass, int32_t piece) {
  ftl_fragment_map map = s->values[value].map;
  int32_t i = (pass * p->num_pieces + piece) * map.num_slabs * map.per_slab / (p->num_passes * p->num_pieces);
  return ftl_select_fragment(s, value, i / map.per_slab, i % map.per_slab);
}

static void add_red(ftl_select *s, ftl_access access, int32_t address, int32_t data) {
  int32_t repeat = access.in_words ? FTL_PAIR_WORDS : 1;
  ftl_draft_inst *red = ftl_select_add(s, FTL_OP_RED, repeat, NONE, address, data, NONE);
  red->inst.access = ftl_select_access(s, access);
  red->inst.wavefronts = 1;
  red->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// Half a slab's rows of 8 columns: two adjacent words of a lane.
static ftl_access fragment_access(const ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t slab, int32_t half,
                                  int32_t column) {
  int32_t value = op->a.value, across = s->tile->values[value].warps_per_row;
  ftl_access access = {.ref = ref,
                       .num_rows = HALF_ROWS,
                       .row = ftl_select_slab_row(s, value, slab) + half * HALF_ROWS,
                       .warp_row_step = FTL_SLAB_ROWS,
                       .row_step = 1,
                       .column_byte = column * WORD_BYTES,
                       .bytes = TILE_COLUMNS * WORD_BYTES,
                       .in_words = op->add_order == FTL_ADD_IN_WORDS};
  if (across == 1) return access;
  access.row_warps = across;
  access.warp_column_bytes = ftl_select_warp_columns(s, value) * WORD_BYTES;
  return access;
}

static void add_by_fragments(ftl_select *s, const ftl_tile_op *op) {
  int32_t value = op->a.value;
  int32_t held = ftl_smaller32(op->ref.columns, ftl_select_warp_columns(s, value));
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  for (int32_t slab = 0; slab < s->values[value].map.num_slabs; slab++) {
    int32_t addresses[2];
    for (int32_t half = 0; half < 2; half++) addresses[half] = ftl_select_row_address(s, &op->ref);
    for (int32_t column = 0; column < held; column += TILE_COLUMNS) {
      int32_t data = ftl_select_fragment(s, value, slab, column / s->shape.accumulator_columns);
      for (int32_t half = 0; half < 2; half++)
        add_red(s, fragment_access(s, op, ref, slab, half, column), addresses[half], data);
    }
  }
}

void ftl_select_atomic_add(ftl_select *s, const ftl_tile_op *op) {
  if (op->add_order != FTL_ADD_IN_LINES) {
    add_by_fragments(s, op);
    return;
  }
  pieces p;
  if (!try_cut(s, op, op->a.value, &p)) return;
  for (int32_t pass = 0; pass < p.num_passes; pass++) {
    int32_t address = ftl_select_row_address(s, &op->ref);
    for (int32_t piece = 0; piece < p.num_pieces; piece++)
      add_red(s, access_of(&p, pass, piece), address, fragment_of(s, &p, op->a.value, pass, piece));
  }
}

void ftl_select_load_sums(ftl_select *s, const ftl_tile_op *op) {
  pieces p;
  if (!try_cut(s, op, op->dst, &p)) return;
  for (int32_t pass = 0; pass < p.num_passes; pass++) {
    int32_t address = ftl_select_row_address(s, &op->ref);
    for (int32_t piece = 0; piece < p.num_pieces; piece++) {
      int32_t fragment = fragment_of(s, &p, op->dst, pass, piece);
      ftl_draft_inst *load = ftl_select_add(s, FTL_OP_LDG, 1, fragment, address, NONE, NONE);
      load->inst.access = ftl_select_access(s, access_of(&p, pass, piece));
      load->inst.wavefronts = 1;
      load->inst.flags = op->ref.present == FTL_ALWAYS ? 0 : FTL_INST_IF_PRESENT;
      load->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
    }
  }
}
