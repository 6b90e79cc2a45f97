// Addresses that a loop's copies and ldmatrix use: which of them stay in registers from one iteration to the next.
//
// Plain code computes each from row and column. A copy adds its row group's offset, the same in every iteration, to the
// tile's; K and V, alike in shape, share the offsets. An ldmatrix has an address of its own, since the compiler turns
// the sum of row and swizzled chunk into an OR and can fold no immediate into it. With a single buffer these addresses
// do not change either: ptxas for sm_90 keeps as many whole sets (one a product and operand) as registers allow, ptxas
// for sm_80 to sm_89 none. Where some tiles are masked in a loop of their own, it works the addresses out before that
// loop and keeps them over it, but over the loop without a mask none, or those of Q and K alone where K and V take
// turns in one buffer; with several buffers only V's (of products with [k][n]) relative to the stage, where a row is a
// single swizzle block, but all where there are few: in matrix products and where groups of warps share a key tile.
// There the places that copies write to are computed anew instead. Source: SASS of kernels/attention and
// kernels/products (docs/model_lowering.md).
//
// Lean code steps from shared bases: one swizzled address for each column position serves all rows by immediates, those
// that copies write too, whose row groups lie whole swizzle periods apart. It is kept where registers last, for sm_90
// with several stages too, whose base is then a uniform register of the ldmatrix (SASS of
// kernels/foreign/triton_attention.py); other SASS of several stages was not read.
#include "lower/select/shared_stages.h"

#define NONE FTL_NO_VALUE
// Of a thread beside its tiles: fragments in flight, loop state, pointers.
enum { OTHER_REGISTERS = 40, ADDRESS_INSTS = 2 };

static bool is_at_most(const ftl_tile_program *tile, ftl_expr expr, int64_t limit) {
  const ftl_expr_node *node = &tile->exprs[expr];
  if (node->kind == FTL_EXPR_MIN) return is_at_most(tile, node->a, limit) || is_at_most(tile, node->b, limit);
  return node->kind == FTL_EXPR_CONST && node->value <= limit;
}

// Loops that stand for a condition run once at most: nothing is kept over them.
static bool repeats(const ftl_select *s, const ftl_tile_op *loop) {
  const ftl_expr_node *lo = &s->tile->exprs[loop->lo];
  return lo->kind != FTL_EXPR_CONST || !is_at_most(s->tile, loop->hi, lo->value + 1);
}

// How many repeating loops the operations up to this one have entered and not left; `depth`: before it.
static int32_t depth_after(const ftl_select *s, const ftl_tile_op *op, int32_t depth) {
  if (op->kind != FTL_TILE_LOOP && op->kind != FTL_TILE_END_LOOP) return depth;
  const ftl_tile_op *loop = op;
  while (loop->kind != FTL_TILE_LOOP || loop->loop_var != op->loop_var) loop--;
  if (!repeats(s, loop)) return depth;
  return op->kind == FTL_TILE_LOOP ? depth + 1 : depth - 1;
}

// ---- copies ----
static const ftl_tile_op *load_in_loop(const ftl_select *s, int32_t ring) {
  int32_t depth = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = depth_after(s, op, depth);
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
static int32_t add_kept(ftl_select *s, int32_t num_registers) {
  int32_t value = ftl_draft_value_add(&s->draft, num_registers, 0);
  s->draft.values[value].is_kept = true;
  return value;
}

static bool multiplies(const ftl_select *s, int32_t ring) {
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
static bool has_few_addresses(const ftl_select *s) {
  return ftl_select_multiplies_one_a(s) || (s->role->num_groups > 1 && !loads_pages(s));
}

bool ftl_select_carries_pointers(const ftl_select *s) {
  bool is_lean = !s->plain_code && !s->buffered_code;
  return is_lean && s->mma == FTL_MMA_WGMMA && s->copy == FTL_COPY_CP_ASYNC && ftl_select_multiplies_one_a(s);
}

// Of the tiles that products read as they came: where they are dequantised first the places are kept.
bool ftl_select_recomputes_places(const ftl_select *s, int32_t ring) {
  bool few = multiplies(s, ring) && (ftl_select_multiplies_one_a(s) || s->role->num_groups > 1);
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
// CUTLASS, whose strides are 64-bit numbers at run time; others scale 32 of them anew.
static int32_t tensor_offset_registers(const ftl_select *s) {
  bool carries = ftl_select_carries_pointers(s) || (s->plain_code && ftl_select_multiplies_one_a(s));
  return s->buffered_code || carries ? 2 : 1;
}

// CUTLASS's first row group lies at the tile's address.
static int32_t num_tensor_offsets(const ftl_select *s, int32_t ring) {
  int32_t groups = s->rings[ring].num_row_groups;
  if (ftl_select_finds_offsets_anew(s, ring)) return 0;
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

static int32_t num_offset_registers(const ftl_select *s, int32_t ring) {
  return num_tensor_offsets(s, ring) * tensor_offset_registers(s) + num_place_registers(s, ring);
}

// Gives the first of `count` values that follow each other.
static int32_t keep_offsets(ftl_select *s, const ftl_select_ring *ring, int32_t count, int32_t num_registers) {
  int32_t first = NONE;
  for (int32_t i = 0; i < count; i++) {
    int32_t offset = add_kept(s, num_registers);
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
    depth = depth_after(s, op, depth);
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
  const ftl_tile_op *load = load_in_loop(s, ring_idx);
  if (!load) return;
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
  for (int32_t i = 0; i < num_tensor_offsets(s, ring_idx); i++)
    s->draft.values[ring->first_tensor_offset + i].is_offset = true;
  ring->first_shared_offset = keep_offsets(s, ring, num_place_registers(s, ring_idx), 1);
}

// ---- ldmatrix ----
static int32_t tiles_of(int32_t extent, int32_t tile) { return (extent + tile - 1) / tile; }

// Columns over which the positions of lean code differ: a column block lies an immediate from the one before it.
static int32_t num_position_columns(const ftl_select *s, int32_t ring) {
  const ftl_shared_layout *layout = &s->layouts[ring];
  return layout->order == FTL_SHARED_SWIZZLED_BLOCKS ? layout->block_columns : s->tile->rings[ring].columns;
}

int32_t ftl_select_position(const ftl_select *s, int32_t ring, int32_t column) {
  return column % num_position_columns(s, ring) / s->product->operand_columns;
}

// Addresses that a product needs for its B operand, or for A from shared memory.
static int32_t num_addresses(const ftl_select *s, const ftl_tile_op *op, bool is_a) {
  const ftl_ring *b = &s->tile->rings[op->ring];
  int32_t depth = s->product->operand_columns;
  if (!s->plain_code) return tiles_of(num_position_columns(s, is_a ? op->ring_a : op->ring), depth);
  int32_t share = b->rows / s->role->num_groups;
  int32_t steps = tiles_of(op->transpose_b ? b->columns : share, depth);
  if (is_a) return steps * s->values[op->dst].map.num_slabs;
  return steps * tiles_of(ftl_select_warp_columns(s, op->dst), FTL_OPERAND_COLUMNS);
}

// Of the rings that products read: what is dequantised arrives in several buffers, and is multiplied from one.
static bool has_single_buffers(const ftl_select *s) {
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    if (s->tile->rings[r].num_stages > 1 && multiplies(s, r) && load_in_loop(s, r)) return false;
  return true;
}

bool ftl_select_has_step_ahead(const ftl_select *s) {
  if (!s->plain_code || s->mma != FTL_MMA_MMA || s->role->num_groups > 1) return false;
  return ftl_select_multiplies_one_a(s) ? ftl_select_counts_stages(s) : !has_single_buffers(s);
}

static int32_t num_loops_with_products(const ftl_select *s) {
  int32_t count = 0;
  bool seen = false;
  for (int32_t i = s->role->num_ops - 1; i >= 0; i--) {
    if (ftl_select_op_at(s, i)->kind == FTL_TILE_END_LOOP) seen = false;
    if (ftl_select_op_at(s, i)->kind == FTL_TILE_MMA) seen = true;
    if (ftl_select_op_at(s, i)->kind != FTL_TILE_LOOP) continue;
    count += seen;
    seen = false;
  }
  return count;
}

// Alike rings have one set of offsets.
static bool has_own_offsets(const ftl_select *s, int32_t ring) {
  for (int32_t r = 0; r < ring; r++)
    if (ftl_select_rings_share_offsets(s, r, ring)) return false;
  return true;
}

static bool is_used_in_loop(const ftl_select *s, int32_t value) {
  int32_t depth = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = depth_after(s, op, depth);
    bool uses = op->dst == value || op->a.value == value || op->b.value == value || op->c.value == value;
    if (uses && depth > 0) return true;
  }
  return false;
}

static int32_t tile_registers(const ftl_select *s) {
  int32_t registers = OTHER_REGISTERS;
  for (int32_t v = 0; v < s->tile->num_values; v++) {
    const ftl_fragment_map *map = &s->values[v].map;
    if (s->tile->values[v].role == s->role_idx && s->tile->values[v].kind != FTL_VALUE_ROWS && is_used_in_loop(s, v))
      registers += map->num_slabs * map->per_slab * map->num_registers;
  }
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    if (has_own_offsets(s, r)) registers += num_offset_registers(s, r);
  return registers;
}

static void keep_set(ftl_select *s, int32_t ring_idx, ftl_operand_kind kind, int32_t num_loads) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  int32_t registers = s->shape.quad_pairs ? 2 : 1;
  ring->num_kept[kind] = num_loads;
  for (int32_t i = 0; i < num_loads; i++) {
    int32_t address = add_kept(s, registers);
    if (i == 0) ring->first_kept[kind] = address;
    ftl_select_add(s, FTL_OP_LOP, ADDRESS_INSTS * registers, address, ring->read_offset, NONE, NONE);
  }
}

// Whether an operand's addresses can be kept over the loops of a kernel that has one: relative to the stage where the
// ring has several.
static bool may_keep(const ftl_select *s, int32_t ring, ftl_operand_kind kind, bool single_buffers) {
  const ftl_shared_layout *layout = &s->layouts[ring];
  if (!s->plain_code) return single_buffers || s->arch->sm_has_wgmma;
  bool is_staying_b = kind != FTL_OPERAND_A && s->tile->rings[ring].num_stages == 1;
  if (!single_buffers && has_few_addresses(s) && !is_staying_b) return true;
  if (!single_buffers) return kind == FTL_OPERAND_B_KN && layout->block_columns == layout->columns;
  return s->arch->sm_has_wgmma;
}

// The products from operation `first` up to `end`; `values`: V's too, not only those of scores.
static void keep_addresses_of(ftl_select *s, int32_t first, int32_t end, bool values) {
  bool single_buffers = has_single_buffers(s);
  int32_t registers = tile_registers(s), depth = 0;
  for (int32_t i = first; i < end; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = depth_after(s, op, depth);
    if (op->kind != FTL_TILE_MMA || depth == 0) continue;
    // of an alike B beside it: an immediate away
    if (i > 0 && ftl_select_shares_a(op - 1, op) && ftl_select_rings_are_alike(s, op[-1].ring, op->ring)) continue;
    for (int is_a = 1; is_a >= 0; is_a--) {
      if (is_a && (op->ring_a < 0 || op->transpose_a)) continue;
      int32_t ring = is_a ? op->ring_a : op->ring, num_loads = num_addresses(s, op, is_a);
      ftl_operand_kind kind = is_a ? FTL_OPERAND_A : op->transpose_b ? FTL_OPERAND_B_NK : FTL_OPERAND_B_KN;
      if (s->rings[ring].first_kept[kind] != NONE || registers + num_loads > s->register_cap) continue;
      if (!may_keep(s, ring, kind, single_buffers) || (kind == FTL_OPERAND_B_KN && !values)) continue;
      registers += num_loads;
      keep_set(s, ring, kind, num_loads);
    }
  }
}

// ---- several loops with the same products, of which some mask ----
static bool keeps_by_loop(const ftl_select *s) {
  return s->plain_code && s->arch->sm_has_wgmma && has_single_buffers(s) && num_loops_with_products(s) > 1;
}

void ftl_select_keep_addresses(ftl_select *s) {
  if (s->mma != FTL_MMA_WGMMA && !keeps_by_loop(s)) keep_addresses_of(s, 0, s->role->num_ops, true);
}

// The end of the loop that begins at operation `loop`; -1: it does not repeat, or holds a loop that does.
static int32_t end_of_innermost(const ftl_select *s, int32_t loop) {
  int32_t i = loop, depth = depth_after(s, ftl_select_op_at(s, i), 0);
  if (depth == 0) return -1;
  while (depth == 1) depth = depth_after(s, ftl_select_op_at(s, ++i), depth);
  return depth == 0 ? i : -1;
}

static bool has_op(const ftl_select *s, int32_t first, int32_t end, ftl_tile_op_kind kind) {
  for (int32_t i = first; i < end; i++)
    if (ftl_select_op_at(s, i)->kind == kind) return true;
  return false;
}

// A ring whose stage is K of one product and V of another.
static bool takes_turns(const ftl_select *s) {
  bool as_keys[FTL_TILE_MAX_RINGS] = {false}, as_values[FTL_TILE_MAX_RINGS] = {false};
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA) (op->transpose_b ? as_keys : as_values)[op->ring] = true;
  }
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    if (as_keys[r] && as_values[r]) return true;
  return false;
}

static void forget_addresses(ftl_select *s) {
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    for (int k = 0; k < FTL_OPERAND_KIND_COUNT; k++) {
      s->rings[r].first_kept[k] = NONE;
      s->rings[r].num_kept[k] = 0;
    }
}

void ftl_select_keep_addresses_of_loop(ftl_select *s) {
  int32_t end = end_of_innermost(s, s->op_idx);
  if (s->mma == FTL_MMA_WGMMA || end < 0 || !keeps_by_loop(s)) return;
  forget_addresses(s);
  bool masks = has_op(s, s->op_idx, end, FTL_TILE_MASK);
  if (masks || takes_turns(s)) keep_addresses_of(s, s->op_idx, end, masks);
}
