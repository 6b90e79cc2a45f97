// ATOMIC_ADD: reductions at L2 without a result, RED.ADD.F32; and LOAD_TILE of the sums.
//
// A word a lane and 32 adjacent words an instruction, the next row by the next warp: accumulators are not laid out like
// that in registers, so sums lie permuted within their tile, and are read back the same way. So FlashAttention-2's
// library adds dQ (csrc/flash_attn/src/kernel_traits.h, GmemTiledCopydQaccumAtomicAdd).
#include "base/integer.h"
#include "lower/select/select.h"

#include "base/sectors.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4 };

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

static uint16_t access_of(ftl_select *s, const pieces *p, int32_t pass, int32_t piece) {
  int32_t left = p->row_bytes - piece * FTL_LINE_BYTES;
  return ftl_select_access(s, (ftl_access){.ref = p->ref,
                                           .num_rows = 1,
                                           .row = pass * p->num_warps,
                                           .warp_row_step = 1,
                                           .row_step = 1,
                                           .column_byte = piece * FTL_LINE_BYTES,
                                           .bytes = left < FTL_LINE_BYTES ? left : FTL_LINE_BYTES});
}

// The registers are dealt to the pieces in order.
static int32_t fragment_of(const ftl_select *s, const pieces *p, int32_t value, int32_t pass, int32_t piece) {
  ftl_fragment_map map = s->values[value].map;
  int32_t i = (pass * p->num_pieces + piece) * map.num_slabs * map.per_slab / (p->num_passes * p->num_pieces);
  return ftl_select_fragment(s, value, i / map.per_slab, i % map.per_slab);
}

void ftl_select_atomic_add(ftl_select *s, const ftl_tile_op *op) {
  pieces p;
  if (!try_cut(s, op, op->a.value, &p)) return;
  for (int32_t pass = 0; pass < p.num_passes; pass++) {
    int32_t address = ftl_select_row_address(s, &op->ref);
    for (int32_t piece = 0; piece < p.num_pieces; piece++) {
      ftl_draft_inst *red =
          ftl_select_add(s, FTL_OP_RED, 1, NONE, address, fragment_of(s, &p, op->a.value, pass, piece), NONE);
      red->inst.access = access_of(s, &p, pass, piece);
      red->inst.wavefronts = 1;
      red->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
    }
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
      load->inst.access = access_of(s, &p, pass, piece);
      load->inst.wavefronts = 1;
      load->inst.flags = op->ref.present == FTL_ALWAYS ? 0 : FTL_INST_IF_PRESENT;
      load->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
    }
  }
}
