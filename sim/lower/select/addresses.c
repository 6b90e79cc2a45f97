// Addresses that a loop's copies use: which of them stay in registers from one iteration to the next.
//
// Plain code computes each from row and column. A copy adds its row group's offset, the same in every iteration, to the
// tile's; K and V, alike in shape, share the offsets. Source: SASS of kernels/attention and kernels/products
// (docs/model_lowering.md).
#include "lower/select/addresses.h"

#include "lower/select/strides.h"

#define NONE FTL_NO_VALUE
enum { ADDRESS_INSTS = 2 };

// Conditions run once at most: nothing is kept over them. A loop that has one iteration in this launch is a loop to the
// compiler, which does not know the launch.
bool ftl_select_repeats(const ftl_tile_op *loop) { return !loop->is_condition && !loop->part.once; }

int32_t ftl_select_depth_after(const ftl_tile_op *op, int32_t depth) {
  if (op->kind != FTL_TILE_LOOP && op->kind != FTL_TILE_END_LOOP) return depth;
  const ftl_tile_op *loop = op;
  while (loop->kind != FTL_TILE_LOOP || loop->loop_var != op->loop_var) loop--;
  if (!ftl_select_repeats(loop)) return depth;
  return op->kind == FTL_TILE_LOOP ? depth + 1 : depth - 1;
}

// ---- copies ----
const ftl_tile_op *ftl_select_load_in_loop(const ftl_select *s, int32_t ring) {
  int32_t depth = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = ftl_select_depth_after(op, depth);
    if (op->kind == FTL_TILE_LOAD && op->ring == ring && depth > 0) return op;
  }
  return NULL;
}

ftl_copy_plan ftl_select_copy_plan(const ftl_select *s, const ftl_tile_op *load) {
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[load->ref.tensor].dtype);
  ftl_copied_rows rows = s->plain_code      ? FTL_COPIED_WHOLE
                         : s->buffered_code ? FTL_COPIED_BY_BLOCKS
                                            : FTL_COPIED_WHOLE_IF_WIDE;
  return ftl_copy_plan_of(&load->ref, element_bytes, &s->layouts[load->ring], s->role->num_warps, rows);
}

// Row groups, or copies of a thread where each has a pointer of its own.
static int32_t num_row_groups(const ftl_select *s, const ftl_tile_op *load) {
  ftl_copy_plan plan = ftl_select_copy_plan(s, load);
  return ftl_select_carries_pointers(s) ? plan.num_groups * plan.num_blocks : plan.num_groups;
}

bool ftl_select_rings_are_alike(const ftl_select *s, int32_t ring, int32_t other) {
  const ftl_ring *a = &s->tile->rings[ring], *b = &s->tile->rings[other];
  return a->rows == b->rows && a->columns == b->columns && a->dtype == b->dtype && a->num_stages == b->num_stages;
}

// What is worked out once before the loop. ptxas does not compute it again where registers are short: it stores it once
// and loads it at each use (SASS of kernels/attention/flash2_mma.h, 128 x 128 tiles of 4 warps: of 130 LDL a step 30
// feed the LEA of a copy; of 40 with one buffer and head_dim 64, 37 an LDSM).
int32_t ftl_select_add_kept(ftl_select *s, int32_t num_registers) {
  int32_t value = ftl_draft_value_add(&s->draft, num_registers, 0);
  s->draft.values[value].is_kept = true;
  return value;
}

bool ftl_select_multiplies(const ftl_select *s, int32_t ring) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA && (op->ring == ring || op->ring_a == ring)) return true;
  }
  return false;
}

bool ftl_select_ops_multiply_one_a(const ftl_tile_op *ops, int32_t num_ops) {
  int32_t ring_a = -1;
  for (const ftl_tile_op *op = ops; op < ops + num_ops; op++) {
    if (op->kind != FTL_TILE_MMA) continue;
    if (op->ring_a < 0 || (ring_a >= 0 && op->ring_a != ring_a)) return false;
    ring_a = op->ring_a;
  }
  return ring_a >= 0;
}

bool ftl_select_multiplies_one_a(const ftl_select *s) {
  return ftl_select_ops_multiply_one_a(ftl_select_op_at(s, 0), s->role->num_ops);
}

static bool loads_pages(const ftl_select *s) {
  for (int32_t i = 0; i < s->role->num_ops; i++)
    if (ftl_select_op_at(s, i)->kind == FTL_TILE_LOAD && ftl_select_op_at(s, i)->ref.pages.page_rows > 0) return true;
  return false;
}

// Loops whose products need few addresses: matrix products, and attention in which groups of warps share a key tile.
// Where the tiles lie in pages ptxas keeps none all the same (64 registers of paged decoding, 80 of decoding), and of a
// B that stays while the loop goes by (K and V of FlashAttention-1) one instance keeps all and its neighbour none.
bool ftl_select_has_few_addresses(const ftl_select *s) {
  return ftl_select_multiplies_one_a(s) || (s->role->num_groups > 1 && !loads_pages(s));
}

bool ftl_select_carries_pointers(const ftl_select *s) {
  bool is_lean = !s->plain_code && !s->buffered_code;
  return is_lean && s->mma == FTL_MMA_WGMMA && s->copy == FTL_COPY_CP_ASYNC && ftl_select_multiplies_one_a(s);
}

// Of the tiles that products read as they came: where they are dequantised first the places are kept.
bool ftl_select_recomputes_places(const ftl_select *s, int32_t ring) {
  bool few = ftl_select_multiplies(s, ring) && (ftl_select_multiplies_one_a(s) || s->role->num_groups > 1);
  return s->plain_code && s->copy == FTL_COPY_CP_ASYNC && s->tile->rings[ring].num_stages > 1 && few;
}

// Where places are computed anew: row groups whose places a ring before has, whose rows are as wide.
int32_t ftl_select_shared_places(const ftl_select *s, int32_t ring) {
  int32_t groups = s->rings[ring].num_row_groups;
  for (int32_t r = 0; r < ring; r++)
    if (s->tile->rings[r].columns == s->tile->rings[ring].columns && ftl_select_recomputes_places(s, r))
      return s->rings[r].num_row_groups < groups ? s->rings[r].num_row_groups : groups;
  return 0;
}

// Matrix products keep 64 bits of each row group's offset in the tensor, Triton's a pointer for each copy, and so does
// CUTLASS; others scale 32 of them anew.
static int32_t tensor_offset_registers(const ftl_select *s) {
  bool carries = ftl_select_carries_pointers(s) || (s->plain_code && ftl_select_multiplies_one_a(s));
  return s->buffered_code || carries ? 2 : 1;
}

// CUTLASS's first row group lies at the tile's address.
static int32_t num_tensor_offsets(const ftl_select *s, int32_t ring) {
  int32_t groups = s->rings[ring].num_row_groups;
  if (ftl_select_finds_offsets_anew(s, ring) || ftl_select_steps_by_strides(s)) return 0;
  return s->buffered_code && groups > 0 ? groups - 1 : groups;
}

int32_t ftl_select_tensor_offset(const ftl_select *s, int32_t ring, int32_t group) {
  int32_t index = group - (s->rings[ring].num_row_groups - num_tensor_offsets(s, ring));
  return index >= 0 && index < num_tensor_offsets(s, ring) ? s->rings[ring].first_tensor_offset + index : NONE;
}

// Registers kept for the row groups in a stage: their places in plain code or, in products, the rows of those that are
// computed anew.
static int32_t num_place_registers(const ftl_select *s, int32_t ring) {
  if (!s->plain_code || ftl_select_copies_bytes(s, ring)) return 0;
  if (ftl_select_keeps_places(s, ring) || !ftl_select_recomputes_places(s, ring)) return s->rings[ring].num_row_groups;
  return ftl_select_multiplies_one_a(s) ? s->rings[ring].num_row_groups - ftl_select_shared_places(s, ring) : 0;
}

int32_t ftl_select_num_offset_registers(const ftl_select *s, int32_t ring) {
  return num_tensor_offsets(s, ring) * tensor_offset_registers(s) + num_place_registers(s, ring);
}

// Gives the first of `count` values that follow each other.
static int32_t keep_offsets(ftl_select *s, const ftl_select_ring *ring, int32_t count, int32_t num_registers) {
  int32_t first = NONE;
  for (int32_t i = 0; i < count; i++) {
    int32_t offset = ftl_select_add_kept(s, num_registers);
    if (i == 0) first = offset;
    ftl_select_add(s, FTL_OP_LOP, ADDRESS_INSTS, offset, ring->write_offset, NONE, NONE);
  }
  return first;
}

// Row groups whose offsets are kept over the loop. Plain code finds a group's where a copy first needs it. Found in
// code that always runs, as the copy of Q or a copy of the loop that no branch is around (one buffer for K and V), it
// is kept; found in a copy that is branched around, it is known in that block alone, and each block finds it anew.
// Decoding, whose groups of warps share a tile of keys, keeps all. Source: SASS of flash2_mma.h and flash2_wgmma.h,
// 64 x 128 tiles: groups 4 to 7 of 8 at head_dim 64, 8 to 15 at 128 are found anew.
static int32_t num_kept_groups(const ftl_select *s, const ftl_tile_op *load, int32_t num_groups) {
  int32_t ring = load->ring;
  if (!s->plain_code || s->copy != FTL_COPY_CP_ASYNC || s->role->num_groups > 1) return num_groups;
  if (ftl_select_recomputes_places(s, ring)) return num_groups;
  if (ftl_select_is_ragged(s, &load->ref)) return num_groups;  // load.c, is_copied_by_blocks
  int32_t depth = 0, num_found = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = ftl_select_depth_after(op, depth);
    if (op->kind != FTL_TILE_LOAD || op->ref.present != FTL_ALWAYS) continue;
    if (depth > 0 && ftl_select_rings_are_alike(s, ring, op->ring)) return num_groups;
    if (depth == 0 && s->tile->rings[op->ring].columns == s->tile->rings[ring].columns) {
      int32_t found = num_row_groups(s, op);
      num_found = found > num_found ? found : num_found;
    }
  }
  return num_found > 0 && num_found < num_groups ? num_found : num_groups;
}

void ftl_select_copy_offsets(ftl_select *s, int32_t ring_idx) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  const ftl_tile_op *load = ftl_select_load_in_loop(s, ring_idx);
  if (!load || ftl_ring_holds_columns(&s->tile->rings[ring_idx])) return;
  for (int32_t r = 0; r < ring_idx; r++) {
    // CUTLASS's tensors have strides of their own, Triton's copies their pointers
    if (s->buffered_code || ftl_select_carries_pointers(s) || s->rings[r].num_row_groups == 0 ||
        !ftl_select_rings_are_alike(s, r, ring_idx))
      continue;
    ring->num_row_groups = s->rings[r].num_row_groups;
    ring->first_tensor_offset = s->rings[r].first_tensor_offset;
    ring->first_shared_offset = s->rings[r].first_shared_offset;
    return;
  }
  ring->num_row_groups = num_kept_groups(s, load, num_row_groups(s, load));
  ring->first_tensor_offset = keep_offsets(s, ring, num_tensor_offsets(s, ring_idx), tensor_offset_registers(s));
  ring->first_shared_offset = keep_offsets(s, ring, num_place_registers(s, ring_idx), 1);
}
