// LOAD by TMA: one thread of a warp asks for boxes of a tile.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE

enum { ELECT_COMPARES = 3, BOX_UNIFORM_INSTS = 6, MAP_MOVES = 2, COORDINATE_MOVES = 5, EXPECT_UNIFORM_INSTS = 10 };

// Whether the tile is there at all: a compare and a branch around what one thread does.
static void check_present(ftl_select *s, const ftl_tile_ref *ref, uint8_t flags) {
  if (ref->present == FTL_ALWAYS) return;
  int32_t predicate = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, predicate, NONE, NONE, NONE)->inst.flags = flags;
  ftl_select_idle(s, 1, flags);
}

// One elected thread: ELECT in a loop of its own around each copy (PLOP3, BRA), coordinates and addresses in uniform
// registers. Where the thread has found them in registers of its own they are moved there in the loop, behind a move of
// the tensor map's address and ELECT, which takes as long, and not before the copy ahead has read its own: the loop's
// branch waits for that. Returns what the copy waits for.
// Source: control fields of product_wgmma.h and kernels/micro/tma_issue.cu.
static int32_t elect(ftl_select *s, int32_t stage_index, int32_t copied) {
  int32_t elected = ftl_select_temp(s, 0), coordinates = NONE;
  ftl_select_add(s, FTL_OP_ISETP, ELECT_COMPARES, elected, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  if (ftl_select_moves_coordinates(s)) {
    int32_t map = ftl_select_temp(s, 0), chosen = ftl_select_temp(s, 0);
    coordinates = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_R2UR, MAP_MOVES, map, stage_index, copied, NONE)->inst.flags = FTL_INST_WARP0;
    ftl_select_add(s, FTL_OP_R2UR, 1, chosen, map, NONE, NONE)->inst.flags = FTL_INST_WARP0;
    ftl_select_add(s, FTL_OP_R2UR, COORDINATE_MOVES, coordinates, chosen, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  } else {
    ftl_select_add(s, FTL_OP_UNIFORM, BOX_UNIFORM_INSTS, NONE, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  }
  ftl_select_idle(s, 1, FTL_INST_WARP0);
  return coordinates;
}

// Rows that one bulk copy brings: all, or those of a page. Copies of parts of a stage keep its swizzle if they begin at
// a multiple of its 8 rows. 0: a page is not a bulk copy's box.
static int32_t box_rows(ftl_select *s, const ftl_tile_ref *ref) {
  enum { SWIZZLE_ROWS = 8 };
  int32_t page_rows = ref->pages.page_rows;
  if (page_rows == 0 || ref->pages.num_entries == 1) return ref->rows;
  if (ref->pages.num_entries * page_rows == ref->rows && page_rows % SWIZZLE_ROWS == 0) return page_rows;
  ftl_select_fail(s,
                  "pages of %d rows in tiles of %d: copy=tma brings whole tiles of a page, or whole pages of a tile in "
                  "multiples of %d rows; use copy=cp_async",
                  page_rows, ref->rows, SWIZZLE_ROWS);
  return ref->rows;
}

// The elected thread has the page's number in a uniform register, as a coordinate.
static int32_t page_coordinate(ftl_select *s, const ftl_tile_ref *ref) {
  int32_t pages = ftl_select_pages_of(s, ref);
  if (pages == NONE) return NONE;
  int32_t coordinate = ftl_select_temp(s, 1);
  if (ref->pages.num_entries > 1) {
    ftl_draft_inst *shuffle = ftl_select_add(s, FTL_OP_SHFL, 1, coordinate, pages, NONE, NONE);
    shuffle->inst.wavefronts = 1;
    shuffle->inst.flags = FTL_INST_WARP0;
    pages = coordinate;
  }
  ftl_select_add(s, FTL_OP_R2UR, 1, coordinate, pages, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  return coordinate;
}

static void copy_box(ftl_select *s, const ftl_tile_op *op, ftl_access access, int32_t page) {
  bool together = ftl_select_copies_together(s);
  int32_t coordinates = together ? s->copied[0] : elect(s, s->rings[op->ring].write_index, s->copied[0]);
  bool are_moved = coordinates != NONE && !together;
  if (!together) s->copied[0] = are_moved ? ftl_select_temp(s, 0) : NONE;
  ftl_draft_inst *load =
      ftl_select_add(s, FTL_OP_TMA_LOAD, 1, are_moved ? s->copied[0] : NONE, s->tensor_pointer[op->ref.tensor],
                     ftl_select_entry_of_ref(s, &op->ref), coordinates != NONE ? coordinates : page);
  load->inst.access = ftl_select_access(s, access);
  load->inst.arg = (uint16_t)op->ring;
  load->inst.ring_a = (uint8_t)op->ring;
  load->inst.flags = FTL_INST_WARP0 | FTL_INST_BYPASS_L1 | ftl_select_present_flag(&op->ref);
  load->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// All warps find the coordinates, and meet between the expectation and the copy; the thread of warp i that asks for box
// i is predicated. Here warp 0 asks for all. Source: SASS of kernels/foreign/triton_descriptors.py (Triton 3.6,
// sm_90a), of either of a step's two copies: ELECT and two ISETP, IADD3 and IADD3.X, three MOV, four R2UR, two VOTEU
// and seven uniform ones; an ISETP and a MOV for the expectation.
static void find_coordinates(ftl_select *s, const ftl_tile_op *op) {
  enum { COMPARES = 3, ADDS = 2, MOVES = 3, UNIFORM_MOVES = 4, UNIFORM_INSTS = 9 };
  int32_t elected = ftl_select_temp(s, 0), address = ftl_select_temp(s, 2), moved = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, COMPARES, elected, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, ADDS, address, s->tensor_pointer[op->ref.tensor], NONE, NONE);
  ftl_select_add(s, FTL_OP_MOV, MOVES, address, address, NONE, NONE);
  ftl_select_add(s, FTL_OP_R2UR, UNIFORM_MOVES, moved, address, elected, NONE);
  ftl_select_add(s, FTL_OP_UNIFORM, UNIFORM_INSTS, NONE, NONE, NONE, NONE);
  s->copied[0] = moved;
}

static void expect_together(ftl_select *s, const ftl_tile_op *op) {
  int32_t is_first = ftl_select_temp(s, 0), bytes = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_ISETP, 1, is_first, s->rings[op->ring].write_index, NONE, NONE);
  ftl_select_add(s, FTL_OP_MOV, 1, bytes, NONE, NONE, NONE);
  find_coordinates(s, op);
  ftl_draft_inst *expect = ftl_select_add(s, FTL_OP_MBAR_EXPECT, 1, NONE, is_first, bytes, NONE);
  expect->inst.arg = (uint16_t)op->ring;
  expect->inst.flags = FTL_INST_WARP0;
  expect->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  ftl_select_barrier(s);
}

// A box is as wide as the swizzle allows.
void ftl_select_load_by_tma(ftl_select *s, const ftl_tile_op *op) {
  const ftl_shared_layout *layout = &s->layouts[op->ring];
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  const uint8_t in_order = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  ftl_select_ring *ring = &s->rings[op->ring];
  bool together = ftl_select_copies_together(s);
  // A branch for the other threads; a producer role has it in its loop.
  bool elected = !together && !ftl_select_producer_flags(s);
  if (elected && !ring->stage_begun) ftl_select_begin_guarded_block(s, op->ring);
  if (!ring->stage_begun && together) {
    expect_together(s, op);
  } else if (!ring->stage_begun) {
    ftl_draft_inst *expect = ftl_select_add(s, FTL_OP_MBAR_EXPECT, 1, NONE, ring->write_index, NONE, NONE);
    expect->inst.arg = (uint16_t)op->ring;
    expect->inst.flags = FTL_INST_WARP0;
    expect->effects = in_order;
    ftl_select_add(s, FTL_OP_UNIFORM, EXPECT_UNIFORM_INSTS, NONE, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
    check_present(s, &op->ref, ftl_select_producer_flags(s));
  }
  ring->stage_begun = true;
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, FTL_INST_WARP0);
  int32_t row_bytes = op->ref.columns * element_bytes, box_bytes = layout->block_columns * layout->element_bytes;
  int32_t rows = box_rows(s, &op->ref);
  for (int32_t row = 0; row < op->ref.rows; row += rows) {
    int32_t page = page_coordinate(s, &op->ref);
    for (int32_t byte = 0; byte < row_bytes; byte += box_bytes) {
      ftl_access access = {.ref = ref,
                           .num_rows = (uint16_t)rows,
                           .row = row,
                           .row_step = 1,
                           .column_byte = byte,
                           .bytes = row_bytes - byte < box_bytes ? row_bytes - byte : box_bytes};
      copy_box(s, op, access, page);
    }
  }
  if (elected) ftl_select_end_guarded_block(s);
}
