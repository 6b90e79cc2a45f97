// LOAD: tiles from global to shared memory, by cp.async or through registers. By TMA: load_tma.c.
#include "base/integer.h"
#include "base/sectors.h"
#include "lower/select/shared_stages.h"
#include "lower/select/strides.h"

#define NONE FTL_NO_VALUE

enum {
  PLAIN_ADDRESS_ADDS = 3,
  LEAN_ADDRESS_ADDS = 2,
  PLACE_INSTS = 2,
  NEW_PLACE_INSTS = 3,
  SHARED_OFFSET_ADDS = 2,
  BLOCK_EXTENT_INSTS = 2,
  BLOCK_ROW_ADDS = 2,
  BLOCK_ROW_LOGIC = 3,
  PAGE_TOKEN_INSTS = 6,
  PAGE_STRIDE_INSTS = 9,
  TILE_ADDS = 3,
  NULL_LOADS = 3
};

// What a group's offset is added to: the tile's address. Rows in several pages: that of the group's page, in 64 bits
// from the lane that has it.
static int32_t page_address(ftl_select *s, const ftl_tile_ref *ref) {
  int32_t pointer = s->tensor_pointer[ref->tensor], pages = ftl_select_pages_of(s, ref);
  if (pages == NONE) return pointer;
  int32_t address = ftl_select_temp(s, 2);
  if (ref->pages.num_entries > 1) {
    ftl_draft_inst *shuffle = ftl_select_add(s, FTL_OP_SHFL, 2, address, pages, NONE, NONE);
    shuffle->inst.wavefronts = 1;
    pages = address;
  }
  ftl_select_add(s, FTL_OP_IADD, 2, address, pointer, pages, NONE);
  return address;
}

// Whether the copy next to this one, before (-1) or after (1), with no more than the ring protocol between them, takes
// the same rows for an alike ring. nvcc then makes the addresses of both from one place: the offset of both tensors is
// scaled once and added to each, the other buffer lies an immediate away (SASS of kernels/attention/decode_mma.h and
// kernels/products).
static bool shares_addresses(const ftl_select *s, const ftl_tile_op *op, int32_t side) {
  for (int32_t i = s->op_idx + side; i >= 0 && i < s->role->num_ops; i += side) {
    const ftl_tile_op *other = ftl_select_op_at(s, i);
    if (other->kind == FTL_TILE_ACQUIRE || other->kind == FTL_TILE_COMMIT) continue;
    return other->kind == FTL_TILE_LOAD && other->ring != op->ring && other->ref.row == op->ref.row &&
           ftl_select_rings_share_offsets(s, op->ring, other->ring);
  }
  return false;
}

// Plain code works out where a row group lies in its page from the token, once for K and V: the token and its page's
// place in the table (6 integer instructions), the page's number from the lane that has it, the row in the page by
// page's and row's strides in 64 bits (5 and 4), the head's start, the scaling. Source: SASS of
// kernels/attention/paged_mma.h.
static int32_t paged_address(ftl_select *s, const ftl_tile_op *op, int32_t group, int32_t *predicate) {
  if (!shares_addresses(s, op, -1)) {
    int32_t slot = ftl_select_temp(s, 1), page = ftl_select_pages_of(s, &op->ref), number = page;
    ftl_select_add(s, FTL_OP_IADD, PAGE_TOKEN_INSTS, slot, s->thread, NONE, NONE);
    if (op->ref.pages.num_entries > 1) {
      number = ftl_select_temp(s, 1);
      ftl_select_add(s, FTL_OP_SHFL, 1, number, page, slot, NONE)->inst.wavefronts = 1;
    }
    int32_t offset = s->page_offsets[group] = ftl_select_temp(s, 2);
    ftl_select_add(s, FTL_OP_LOP, 1, offset, slot, NONE, NONE);
    ftl_select_add(s, FTL_OP_IMAD, PAGE_STRIDE_INSTS, offset, offset, number, NONE);
    ftl_select_add(s, FTL_OP_IADD, LEAN_ADDRESS_ADDS + SHARED_OFFSET_ADDS, offset, offset, NONE, NONE);
    s->page_predicates[group] = NONE;
    if (ftl_select_is_ragged(s, &op->ref)) {
      s->page_predicates[group] = ftl_select_temp(s, 0);
      ftl_select_add(s, FTL_OP_ISETP, 1, s->page_predicates[group], slot, NONE, NONE);
    }
  }
  *predicate = s->page_predicates[group];
  int32_t address = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_select_add(s, FTL_OP_IADD, LEAN_ADDRESS_ADDS, address, s->tensor_pointer[op->ref.tensor], s->page_offsets[group],
                 NONE);
  return address;
}

// Plain code of attention copies a tile that may end inside it by one of two blocks, one that compares rows and one
// that does not, and either finds the places of all row groups but the first anew: the number of its chunk, its row
// (SHF) and three LOP3 for the swizzle. Source: SASS of kernels/attention/flash2_mma.h with `ragged` (sm_90a, 64 x 64
// tiles at head_dim 128: ten instructions a row group for five). The block of whole tiles is the one that stands here:
// a CTA runs the other for its last tile alone.
static bool is_copied_by_blocks(const ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan) {
  return s->plain_code && s->copy == FTL_COPY_CP_ASYNC && plan->num_groups * plan->num_blocks > 1 &&
         ftl_select_is_ragged(s, &op->ref) && ftl_select_pages_of(s, &op->ref) == NONE && s->role->num_groups == 1 &&
         !ftl_select_recomputes_places(s, op->ring);
}

// The number of a row group's chunk, its row and its swizzled place.
static void find_row_anew(ftl_select *s, int32_t from, int32_t row) {
  ftl_select_add(s, FTL_OP_IADD, BLOCK_ROW_ADDS, row, from, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, BLOCK_ROW_LOGIC, row, row, NONE, NONE);
}

// Lean code of two tensors' tiles that are copied side by side, as Triton's pipeliner puts them: an index of each row
// group serves both (an add; rows that a table names are scaled too, SHF), which each tensor scales and adds to its
// base (IMAD.WIDE), no tile's address is stepped, and copies are predicated, not branched around. Source: SASS of
// Triton 3.6, its own attention and FlexAttention's.
static bool is_copied_beside(const ftl_select *s, const ftl_tile_op *op, int32_t side) {
  return !s->is_cuda && !s->buffered_code && s->copy == FTL_COPY_CP_ASYNC && ftl_select_pages_of(s, &op->ref) == NONE &&
         s->rings[op->ring].num_row_groups <= FTL_SELECT_MAX_HELD && shares_addresses(s, op, side);
}

static bool is_copied_in_pair(const ftl_select *s, const ftl_tile_op *op) {
  return is_copied_beside(s, op, -1) || is_copied_beside(s, op, 1);
}

// Rows beyond the tensor are predicated off; else *predicate is left as it is.
static void check_rows(ftl_select *s, const ftl_tile_op *op, int32_t *predicate) {
  if (!ftl_select_is_ragged(s, &op->ref)) return;
  *predicate = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, *predicate, s->thread, NONE, NONE);
}

static int32_t address_beside(ftl_select *s, const ftl_tile_op *op, int32_t group) {
  int32_t *index = &s->row_indices[group];
  if (!is_copied_beside(s, op, -1)) {
    bool is_named = ftl_select_entry_of_ref(s, &op->ref) != NONE;
    *index = ftl_draft_value_add(&s->draft, 1, 1);
    ftl_select_add(s, FTL_OP_IADD, 1 + is_named, *index, s->tensor_pointer[op->ref.tensor],
                   ftl_select_tensor_offset(s, op->ring, group), NONE);
  }
  int32_t address = ftl_draft_value_add(&s->draft, 2, 1);
  ftl_select_add(s, FTL_OP_IMAD_WIDE, 1, address, *index, NONE, NONE);
  return address;
}

// Whether the rows of a tile, not its columns, go on with the loop that it is copied in.
static bool steps_by_rows(const ftl_select *s, const ftl_tile_ref *ref) {
  const ftl_tile_op *op = ftl_select_op_at(s, s->op_idx);
  while (op->kind != FTL_TILE_LOOP && op > ftl_select_op_at(s, 0)) op--;
  return op->kind == FTL_TILE_LOOP && ftl_expr_uses(s->tile, ref->row, op->loop_var);
}

// The rows of a step, times their stride, added to a carried pointer.
static void add_rows(ftl_select *s, const ftl_tile_op *op, int32_t pointer) {
  enum { FEW_STAGES = 3, MANY_ROWS = 64, MOVES = 2 };
  if (s->tile->rings[op->ring].num_stages <= FEW_STAGES && op->ref.rows >= MANY_ROWS) {
    ftl_select_add(s, FTL_OP_MOV, MOVES, pointer, pointer, NONE, NONE);
    ftl_select_add(s, FTL_OP_IMAD_WIDE, 1, pointer, pointer, NONE, NONE);
  } else {
    ftl_select_add(s, FTL_OP_IMAD, 1, pointer, pointer, NONE, NONE);
  }
}

// Whether the tile is one of several that fill a stage, as CUTLASS's multistage mainloop spreads a stage's copies over
// the products of a step. Each copy has a bit of a mask for its predicate, which is cleared behind the last tile, and
// the pointer goes on from the share before.
bool ftl_select_is_share(const ftl_select *s, const ftl_tile_op *op) {
  if (s->plain_code || s->copy != FTL_COPY_CP_ASYNC || op->ref.rows == s->tile->rings[op->ring].rows) return false;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *other = ftl_select_op_at(s, i);
    if (other->kind == FTL_TILE_LOAD && other->ring == op->ring && other->ring_row > 0) return true;
  }
  return false;
}

static void begin_shares(ftl_select *s, int32_t ring) {
  int32_t mask = s->rings[ring].copy_mask = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_SEL, 1, mask, s->rings[ring].write_index, NONE, NONE);
}

static int32_t bit_of_copy(ftl_select *s, int32_t ring) {
  int32_t bit = ftl_select_temp(s, 1), predicate = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_LOP, 1, bit, s->rings[ring].copy_mask, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, 1, predicate, bit, NONE, NONE);
  return predicate;
}

// Strides are run-time numbers: each row group has a 64-bit address of its own, its offset added to the tile's; plain
// code adds elements, then scales and adds to the tensor's base (IADD3, LEA, LEA.HI.X), and a move pairs the registers.
// Column blocks are immediates. Rows beyond the tensor are predicated off. Where places are computed anew, ptxas has
// two sets of registers for all addresses, and writes a copy's over that of the last but one once that has been read.
// In code of unknown authors it is written over that of the last one (SASS of kernels/independent/forward_a, _b and
// _c). Triton's products carry a pointer for each copy over the loop: two add the columns to it, three where the tile
// steps by rows, whose stride is a run-time number (`b += BLOCK_K * n`). Steps of 64 rows and more that are copied one
// or two ahead have the rows between scaled and added too, from two moved registers (IMAD.WIDE). Source: SASS of 10
// kernels of kernels/foreign/triton_product.py, and the instructions a step of 6 more.
static int32_t group_address(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan, int32_t group,
                             bool by_blocks, int32_t *predicate) {
  bool is_paged = ftl_select_pages_of(s, &op->ref) != NONE && group < FTL_SELECT_MAX_HELD;
  if (s->plain_code && is_paged) return paged_address(s, op, group, predicate);
  if (is_paged && ftl_select_looks_up_rows(s))
    return ftl_select_looked_up_address(s, op, plan, group, shares_addresses(s, op, -1), predicate);
  if (is_copied_in_pair(s, op)) {
    check_rows(s, op, predicate);
    return address_beside(s, op, group);
  }
  if (ftl_select_finds_offsets_anew(s, op->ring)) {
    check_rows(s, op, predicate);
    return ftl_select_address_found_anew(s, op, group, shares_addresses(s, op, -1));
  }
  int32_t base = page_address(s, &op->ref);
  int32_t offset = ftl_select_tensor_offset(s, op->ring, group);
  int32_t address = ftl_draft_value_add(&s->draft, 2, 1);
  bool plain = s->plain_code && !shares_addresses(s, op, -1), is_shared = shares_addresses(s, op, 1);
  int32_t before = ftl_select_recomputes_places(s, op->ring) ? s->copied[1] : NONE;
  if (!s->plain_code && ftl_select_writes_over_addresses(s)) before = s->copied[0];
  ftl_select_add(s, FTL_OP_IADD, plain ? PLAIN_ADDRESS_ADDS : LEAN_ADDRESS_ADDS, address, base, offset, before);
  if (ftl_select_carries_pointers(s) && steps_by_rows(s, &op->ref)) add_rows(s, op, address);
  if (plain && is_shared) ftl_select_add(s, FTL_OP_IADD, SHARED_OFFSET_ADDS, address, address, NONE, NONE);
  if (plain) ftl_select_add(s, FTL_OP_MOV, 1, address, address, NONE, NONE);
  if (by_blocks) {
    if (group > 0) find_row_anew(s, address, address);
  } else if (!ftl_select_is_share(s, op)) {
    check_rows(s, op, predicate);
  }
  return address;
}

// The next row group's, or the tile's first one's.
static ftl_strided strided_address(ftl_select *s, const ftl_tile_op *op, int32_t group, ftl_strided previous,
                                   bool by_blocks, int32_t *predicate) {
  ftl_strided next = group == 0 ? ftl_select_strided_tile(s, op) : ftl_select_strided_group(s, previous);
  if (!by_blocks)
    check_rows(s, op, predicate);
  else if (group > 0)
    find_row_anew(s, next.address, next.address);
  return next;
}

static ftl_access group_access(const ftl_select *s, const ftl_copy_plan *plan, uint16_t ref, int32_t group,
                               int32_t block) {
  return (ftl_access){
      .ref = ref,
      .num_rows = (uint16_t)plan->rows,
      .row = group * plan->rows * s->role->num_warps,
      .warp_row_step = plan->rows,
      .row_step = 1,
      .column_byte = block * plan->block_bytes,
      .bytes = ftl_copy_plan_bytes(plan, block),
  };
}

uint8_t ftl_select_present_flag(const ftl_tile_ref *ref) {
  return ref->present == FTL_ALWAYS ? 0 : FTL_INST_IF_PRESENT;
}

// The LOAD next to this one, before (-1) or after (1), whose tile exists when this one's does; NULL: there is none.
static const ftl_tile_op *load_beside(const ftl_select *s, const ftl_tile_op *op, int32_t side) {
  int32_t at = s->op_idx + side;
  if (s->copy != FTL_COPY_CP_ASYNC || at < 0 || at >= s->role->num_ops) return NULL;
  return op[side].kind == FTL_TILE_LOAD && op[side].ref.present == op->ref.present ? &op[side] : NULL;
}

// Plain code of products computes the places of a tile's row groups in its stage anew each time (row and swizzled
// chunk: two LOP3, scaled and added to the stage's base by IMAD), but those of a tile of rows as wide that is copied
// beside it once: the other stage is an immediate away. Source: SASS of kernels/products. Where groups of warps share
// tiles it is three LOP3, and only the IMAD where the places are kept (SASS of decode_mma.h).
static void find_places(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan) {
  ftl_select_ring *ring = &s->rings[op->ring];
  const ftl_tile_op *before = load_beside(s, op, -1);
  const ftl_select_ring *other = before ? &s->rings[before->ring] : ring;
  const ftl_ring *tile_ring = &s->tile->rings[op->ring];
  bool shares = before && s->tile->rings[before->ring].columns == tile_ring->columns;
  bool is_anew = ftl_select_finds_offsets_anew(s, op->ring), are_kept = ftl_select_keeps_places(s, op->ring);
  int32_t num_insts = are_kept ? 0 : is_anew ? NEW_PLACE_INSTS : PLACE_INSTS;
  int32_t num_shared = are_kept ? 0 : ftl_select_shared_places(s, op->ring);
  for (int32_t group = 0; group < plan->num_groups; group++) {
    if (shares && group < other->num_places) {
      ring->places[group] = other->places[group];
      continue;
    }
    int32_t place = ring->places[group] = ftl_draft_value_add(&s->draft, 1, 1), row = group - num_shared;
    bool is_kept = ring->first_shared_offset != NONE && group < ring->num_row_groups && row >= 0;
    int32_t from = is_kept ? ring->first_shared_offset + row : is_anew ? s->thread : ring->write_offset;
    if (num_insts > 0) ftl_select_add(s, FTL_OP_LOP, num_insts, place, from, NONE, NONE);
    ftl_select_add(s, FTL_OP_IMAD, 1, place, num_insts > 0 ? place : from, ring->write_address, NONE);
  }
  ring->num_places = plan->num_groups;
}

// The shared address of one cp.async. Plain code: the group's offset, kept or found anew, scaled and added to the
// stage's base; with column blocks two parts are added. Lean code: an immediate from the stage's.
static int32_t shared_address(ftl_select *s, const ftl_tile_op *op, int32_t group) {
  int32_t ring_idx = op->ring;
  const ftl_select_ring *ring = &s->rings[ring_idx];
  if (group < ring->num_places) return ring->places[group];
  if (!s->plain_code || ftl_select_copies_bytes(s, ring_idx) || shares_addresses(s, op, -1)) return ring->write_address;
  bool is_known = group < ring->num_row_groups;
  int32_t offset = is_known ? ring->first_shared_offset + group : ring->write_offset;
  if (!is_known && ring->num_row_groups > 0) {
    offset = ftl_draft_value_add(&s->draft, 1, 1);
    find_row_anew(s, s->thread, offset);
  }
  if (s->tile->rings[ring_idx].num_stages == 1) return offset;
  int32_t address = ftl_draft_value_add(&s->draft, 1, 1);
  ftl_select_add(s, FTL_OP_IMAD, 1, address, ring->write_address, offset, NONE);
  if (s->plain_code && s->layouts[ring_idx].order == FTL_SHARED_SWIZZLED_BLOCKS)
    ftl_select_add(s, FTL_OP_IADD, 1, address, address, NONE, NONE);
  return address;
}

static void add_cp_async(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan, ftl_access access,
                         int32_t group, int32_t block, int32_t address, int32_t predicate) {
  int32_t to = shared_address(s, op, group);
  s->copied[1] = s->copied[0];
  s->copied[0] = ftl_select_writes_over_addresses(s) || is_copied_in_pair(s, op) ? ftl_select_temp(s, 0) : NONE;
  ftl_draft_inst *copy = ftl_select_add(s, FTL_OP_CP_ASYNC, 1, s->copied[0], address, to, predicate);
  copy->inst.access = ftl_select_access(s, access);
  copy->inst.ring_a = (uint8_t)op->ring;
  copy->inst.flags = FTL_INST_BYPASS_L1 | ftl_select_present_flag(&op->ref);
  copy->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN | (ftl_select_is_share(s, op) ? FTL_EFFECT_AMID : 0);
  ftl_select_set_wavefronts(copy, ftl_copy_plan_wavefronts(plan, &s->layouts[op->ring], block));
}

static void add_held_ldg(ftl_select *s, const ftl_tile_op *op, const ftl_copy_plan *plan, ftl_access access,
                         int32_t block, int32_t address, int32_t predicate) {
  ftl_select_ring *ring = &s->rings[op->ring];
  if (ring->num_held == FTL_SELECT_MAX_HELD) {
    ftl_select_fail(s, "ring %s needs more than %d loads a thread in registers", s->tile->rings[op->ring].name,
                    FTL_SELECT_MAX_HELD);
    return;
  }
  if (ring->num_held == ring->num_held_values) ring->held[ring->num_held_values++] = ftl_select_temp(s, 4);
  ring->held_wavefronts[ring->num_held] = ftl_copy_plan_wavefronts(plan, &s->layouts[op->ring], block);
  ftl_draft_inst *load = ftl_select_add(s, FTL_OP_LDG, 1, ring->held[ring->num_held++], address, predicate, NONE);
  load->inst.access = ftl_select_access(s, access);
  load->inst.ring_a = (uint8_t)op->ring;
  load->inst.flags = ftl_select_present_flag(&op->ref);
  load->inst.wavefronts = (uint16_t)(plan->rows * ftl_divide_up32(access.bytes, FTL_LINE_BYTES));
  load->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// A compiler predicates one guarded copy but branches around several, and moves nothing across: the block's ends are
// ends of a stretch. (nvcc 13 for sm_80 and sm_90a: one cp.async a thread is predicated, two or more stand in a block
// of their own, the copies of several tiles under one condition too.)
void ftl_select_begin_guarded_block(ftl_select *s, int32_t ring) {
  int32_t absent = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, absent, s->rings[ring].write_index, NONE, NONE);
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, absent, NONE, NONE);
  branch->inst.flags = FTL_INST_GUARD;
  branch->effects = FTL_EFFECT_PINNED;
}

void ftl_select_end_guarded_block(ftl_select *s) {
  ftl_select_add(s, FTL_OP_LABEL, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
}

// The rows that the tensor has left (two instructions), and a branch to the block that compares them.
static void begin_whole_block(ftl_select *s, int32_t ring) {
  int32_t rows = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_IADD, BLOCK_EXTENT_INSTS, rows, s->rings[ring].write_index, NONE, NONE);
  ftl_select_begin_guarded_block(s, ring);
}

// A branch, which is taken, over that block.
static void end_whole_block(ftl_select *s) {
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, NONE, NONE, NONE);
  branch->inst.flags = FTL_INST_GUARD | FTL_INST_SKIPS;
  branch->effects = FTL_EFFECT_PINNED;
  ftl_select_end_guarded_block(s);
}

void ftl_select_store_held(ftl_select *s, int32_t ring_idx) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  for (int32_t i = 0; i < ring->num_held; i++) {
    ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STS, 1, NONE, ring->held[i], ring->write_address, NONE);
    store->inst.ring_a = (uint8_t)ring_idx;
    store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
    ftl_select_set_wavefronts(store, ring->held_wavefronts[i]);
  }
  ftl_draft_inst *advance = ftl_select_add(s, FTL_OP_MBAR_ADVANCE, 1, NONE, NONE, NONE, NONE);
  advance->inst.arg = (uint16_t)ring_idx;
  advance->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// Integers of a tile's iterator, which its first address needs.
static void begin_iterator(ftl_select *s, const ftl_tile_ref *ref, int32_t pointer) {
  int32_t num_uniform = ref->index_insts / 6, num_imad = ref->index_insts / 4;
  if (ref->index_insts == 0) return;
  int32_t place = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_UNIFORM, num_uniform, NONE, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, num_imad, place, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, ref->index_insts - num_uniform - num_imad, place, place, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, 1, pointer, pointer, place, NONE);
}

static void load_by_lanes(ftl_select *s, const ftl_tile_op *op) {
  ftl_copy_plan plan = ftl_select_copy_plan(s, op);
  ftl_select_ring *ring = &s->rings[op->ring];
  bool by_registers = s->copy == FTL_COPY_LDG || ftl_select_is_through_registers(s, op->ring);
  if (by_registers && !ring->stage_begun) {
    if (s->orders[s->op_idx].store_pending) ftl_select_store_held(s, op->ring);
    ring->num_held = 0;
  }
  ring->stage_begun = true;
  bool is_second = is_copied_beside(s, op, -1), is_pair = is_copied_in_pair(s, op);
  bool shared = ftl_select_is_share(s, op);
  bool continues = is_second || load_beside(s, op, -1), goes_on = load_beside(s, op, 1);
  bool guarded = op->ref.present != FTL_ALWAYS && !is_pair && !shared &&
                 (continues || goes_on || plan.num_groups * plan.num_blocks > 1);
  if (guarded && !continues) ftl_select_begin_guarded_block(s, op->ring);
  bool by_blocks = is_copied_by_blocks(s, op, &plan);
  if (by_blocks) begin_whole_block(s, op->ring);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  int32_t pointer = s->tensor_pointer[op->ref.tensor], present = NONE;
  bool has_offset = ftl_select_finds_offsets_anew(s, op->ring) && shares_addresses(s, op, -1);
  bool by_strides = ftl_select_steps_by_strides(s) && ftl_select_pages_of(s, &op->ref) == NONE;
  begin_iterator(s, &op->ref, pointer);
  if (shared && op->ring_row == 0) begin_shares(s, op->ring);
  if (!by_strides && !is_second && !has_offset && op->ring_row == 0)
    ftl_select_add(s, FTL_OP_IADD, is_pair ? 1 : TILE_ADDS, pointer, pointer, ftl_select_entry_of_ref(s, &op->ref),
                   NONE);
  if (is_pair && op->ref.present != FTL_ALWAYS) {
    present = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_ISETP, 1, present, s->rings[op->ring].write_index, NONE, NONE);
  }
  // ptxas puts null loads (@!PT LDS RZ) before a run of LDGSTS, on sm_80 and sm_90 alike
  if (!by_registers && !continues) ftl_select_idle(s, NULL_LOADS, 0);
  if (ftl_select_finds_offsets_anew(s, op->ring) && !continues)
    ftl_select_add(s, FTL_OP_S2R, 1, s->thread, NONE, NONE, NONE);
  if (ftl_select_recomputes_places(s, op->ring)) find_places(s, op, &plan);
  bool carries = ftl_select_carries_pointers(s);
  ftl_strided strided = {NONE, NONE};
  for (int32_t group = 0; group < plan.num_groups; group++) {
    int32_t predicate = present, address = NONE, first = carries ? group * plan.num_blocks : group;
    for (int32_t block = 0; block < plan.num_blocks; block++) {
      if (by_strides && block == 0) {
        strided = strided_address(s, op, group, strided, by_blocks, &predicate);
        address = strided.address;
      } else if (block == 0 || carries) {
        address = group_address(s, op, &plan, first + block, by_blocks, &predicate);
      }
      ftl_access access = group_access(s, &plan, ref, group, block);
      if (access.bytes == 0) continue;
      if (shared) predicate = bit_of_copy(s, op->ring);
      if (by_registers)
        add_held_ldg(s, op, &plan, access, block, address, predicate);
      else
        add_cp_async(s, op, &plan, access, group, block, address, predicate);
    }
  }
  if (by_blocks) end_whole_block(s);
  if (guarded && !goes_on) ftl_select_end_guarded_block(s);
}

void ftl_select_load(ftl_select *s, const ftl_tile_op *op) {
  if (s->copy == FTL_COPY_CP_ASYNC && ftl_ring_holds_columns(&s->tile->rings[op->ring]))
    ftl_select_copy_columns(s, op);
  else if (s->copy == FTL_COPY_TMA)
    ftl_select_load_by_tma(s, op);
  else
    load_by_lanes(s, op);
}
