// A number a column of products, LSE and delta of transposed scores: straight into registers (LOAD_COLUMNS), or by
// cp.async through a ring of one column (LOAD, FETCH). Every warp takes all columns, the adjacent ones of a fragment,
// which its lanes hold in as many groups, at once: a load of 8 bytes a lane, of which eight lanes each have the same.
// Source: SASS of kernels/foreign/triton_backward.py, four LDGSTS.E.64 and four LDS.64 a warp for 32 columns. Written
// by hand, the first threads of the CTA copy 16 bytes each (kernels/independent/{mixed_b,mixed_c}/bwd.h,
// backward_a/main_kernels.h).
#include "base/integer.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

static ftl_access columns_access(const ftl_select *s, const ftl_tile_ref *from, uint16_t ref, int32_t fragment) {
  int32_t columns = s->shape.accumulator_columns;
  return (ftl_access){.ref = ref,
                      .num_rows = (uint16_t)columns,
                      .row = fragment * columns,
                      .row_step = 1,
                      .bytes = ftl_dtype_bytes(s->tile->tensors[from->tensor].dtype),
                      .row_warps = s->role->num_warps};
}

void ftl_select_load_columns(ftl_select *s, const ftl_tile_op *op) {
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  int32_t address = ftl_select_row_address(s, &op->ref);
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t fragment = ftl_select_fragment(s, op->dst, 0, i);
    if (ftl_select_is_ragged(s, &op->ref))
      ftl_select_add(s, FTL_OP_MOV, (map.num_registers + 1) / 2, fragment, NONE, NONE, NONE);
    ftl_select_add_ldg(s, &op->ref, columns_access(s, &op->ref, ref, i), fragment, address,
                       ftl_select_row_predicate(s, &op->ref));
  }
}

static ftl_access copied_columns(const ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t first,
                                 int32_t count) {
  return (ftl_access){.ref = ref,
                      .num_rows = (uint16_t)count,
                      .row = first,
                      .row_step = 1,
                      .bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype),
                      .row_warps = s->role->num_warps};
}

void ftl_select_copy_columns(ftl_select *s, const ftl_tile_op *op) {
  enum { BY_A_WARP = FTL_WARP_LANES * FTL_LANE_WORDS };
  const ftl_ring *ring = &s->tile->rings[op->ring];
  uint16_t ref = ftl_select_ref(s, &op->ref);
  uint8_t first_warp = s->is_cuda ? FTL_INST_WARP0 : 0;
  ftl_select_add_tile(s, ref, 0);
  int32_t address = ftl_select_row_address(s, &op->ref), predicate = ftl_select_row_predicate(s, &op->ref);
  int32_t at_once = s->is_cuda ? BY_A_WARP : s->shape.accumulator_columns;
  for (int32_t row = 0; row < ring->rows; row += at_once) {
    int32_t count = ftl_smaller32(at_once, ring->rows - row);
    ftl_draft_inst *copy =
        ftl_select_add(s, FTL_OP_CP_ASYNC, 1, NONE, address, s->rings[op->ring].write_address, predicate);
    copy->inst.access = ftl_select_access(s, copied_columns(s, op, ref, row, count));
    copy->inst.ring_a = (uint8_t)op->ring;
    copy->inst.flags = ftl_select_present_flag(&op->ref) | first_warp;
    copy->inst.wavefronts = 1;
    copy->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  }
}

void ftl_select_fetch_columns(ftl_select *s, const ftl_tile_op *op) {
  for (int32_t i = 0; i < s->values[op->dst].map.per_slab; i++) {
    ftl_draft_inst *load = ftl_select_add_shared(s, FTL_OP_LDS, 1, ftl_select_fragment(s, op->dst, 0, i),
                                                 s->rings[op->ring].read_address, NONE, 1);
    load->inst.ring_a = (uint8_t)op->ring;
  }
}
