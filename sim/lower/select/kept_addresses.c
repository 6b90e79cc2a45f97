// Addresses of ldmatrix: which of them stay in registers from one iteration to the next.
//
// An ldmatrix has an address of its own, since the compiler turns the sum of row and swizzled chunk into an OR and can
// fold no immediate into it. What plain code keeps over a loop (SASS of kernels/attention and kernels/products for
// sm_90a, docs/model_lowering.md; of the first rule for sm_80 to sm_89 too, whose code has no other):
// - matrix products, and attention in which groups of warps share a key tile: all, while registers last;
// - a loop that masks, beside one that does not, of single buffers: all, while registers last;
// - another loop in which K and V take turns in one buffer: Q's and K's, while registers last;
// - other loops: V's alone (of products with [k][n]), where a row is a single swizzle block, and of those as many as
//   leave as many warps a sub-core as there would be without.
// What is not kept is worked out in each step. Where nothing is, so are rows and columns of the lane, but for single
// buffers whose rows are a single swizzle block.
//
// Lean code steps from shared bases: one swizzled address for each column position serves all rows by immediates, those
// that copies write too, whose row groups lie whole swizzle periods apart. It is kept where registers last, for sm_90
// with several stages too, whose base is then a uniform register of the ldmatrix (SASS of
// kernels/foreign/triton_attention.py); other SASS of several stages was not read.
#include "base/integer.h"
#include "lower/occupancy_steps.h"
#include "lower/select/addresses.h"

#define NONE FTL_NO_VALUE
// Of a thread beside its tiles: fragments in flight, loop state, pointers. Chosen by how many addresses nvcc 12 keeps
// in kernels/attention and kernels/products (docs/model_lowering.md).
enum { OTHER_REGISTERS = 40, ADDRESS_INSTS = 2 };
// Where addresses are worked out: rows and columns of the lane, and with several buffers bases of stages. Chosen by
// which of 27 loops of flash2_mma.h in SASS keep V's addresses, and how many (docs/model_lowering.md).
enum { LANE_REGISTERS = 4, STAGE_REGISTERS = 8 };
enum { FEWEST_WARPS = 3 };    // that ptxas would have in a sub-core
enum { MOST_GIVEN_UP = 10 };  // addresses for a warp more

static int32_t tiles_of(int32_t extent, int32_t tile) { return ftl_divide_up32(extent, tile); }

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
    if (s->tile->rings[r].num_stages > 1 && ftl_select_multiplies(s, r) && ftl_select_load_in_loop(s, r)) return false;
  return true;
}

bool ftl_select_has_step_ahead(const ftl_select *s) {
  if (!s->is_cuda || s->mma != FTL_MMA_MMA || s->role->num_groups > 1) return false;
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
    depth = ftl_select_depth_after(op, depth);
    bool uses = op->dst == value || op->a.value == value || op->b.value == value || op->c.value == value;
    if (uses && depth > 0) return true;
  }
  return false;
}

static int32_t fragment_registers(const ftl_select *s, int32_t value) {
  const ftl_fragment_map *map = &s->values[value].map;
  return map->num_slabs * map->per_slab * map->num_registers;
}

static int32_t tile_registers(const ftl_select *s) {
  int32_t registers = OTHER_REGISTERS;
  for (int32_t v = 0; v < s->tile->num_values; v++)
    if (s->tile->values[v].role == s->role_idx && s->tile->values[v].kind != FTL_VALUE_ROWS && is_used_in_loop(s, v))
      registers += fragment_registers(s, v);
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    if (has_own_offsets(s, r)) registers += ftl_select_num_offset_registers(s, r);
  return registers;
}

static void keep_set(ftl_select *s, int32_t ring_idx, ftl_operand_kind kind, int32_t num_kept, bool is_all) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  int32_t registers = s->shape.quad_pairs ? 2 : 1;
  ring->num_kept[kind] = num_kept;
  ring->keeps_all[kind] = is_all;
  for (int32_t i = 0; i < num_kept; i++) {
    int32_t address = ftl_select_add_kept(s, registers);
    if (i == 0) ring->first_kept[kind] = address;
    ftl_select_add(s, FTL_OP_LOP, ADDRESS_INSTS * registers, address, ring->read_offset, NONE, NONE);
  }
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

// A row of the ring's tiles is a single swizzle block.
static bool is_in_one_block(const ftl_select *s, int32_t ring) {
  return s->layouts[ring].block_columns == s->layouts[ring].columns;
}

typedef enum kept_set { NOTHING, WHAT_FITS, ALL } kept_set;

// What of an operand's addresses is kept over a loop: relative to the stage where the ring has several. `masks`: some
// of its tiles are masked, or it is not one of those whose loops are told apart.
static kept_set kept_of(const ftl_select *s, int32_t ring, ftl_operand_kind kind, bool masks) {
  bool single_buffers = has_single_buffers(s), is_values = kind == FTL_OPERAND_B_KN;
  bool moves_base = s->finds_positions && s->tile->rings[ring].num_stages > 1;
  if (!s->plain_code) return single_buffers || (s->arch->sm_has_wgmma && !moves_base) ? ALL : NOTHING;
  bool is_staying_b = kind != FTL_OPERAND_A && s->tile->rings[ring].num_stages == 1;
  if (!single_buffers && ftl_select_has_few_addresses(s) && !is_staying_b) return ALL;
  if (!s->arch->sm_has_wgmma) return NOTHING;
  if (single_buffers && (masks || (takes_turns(s) && !is_values))) return ALL;
  return is_values && is_in_one_block(s, ring) && !takes_turns(s) ? WHAT_FITS : NOTHING;
}

// The most registers of a thread with which `warps` fit a sub-core.
static int32_t registers_for(const ftl_select *s, int32_t warps) {
  return ftl_registers_for_ctas(s->arch, (int32_t)s->arch->sm_num_subcores, warps);
}

// What conversions write may lie where their sources did.
static int32_t converted_registers(const ftl_select *s) {
  int32_t registers = 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_CONVERT && is_used_in_loop(s, op->dst)) registers += fragment_registers(s, op->dst);
  }
  return registers;
}

static bool has_op(const ftl_select *s, int32_t first, int32_t end, ftl_tile_op_kind kind) {
  for (int32_t i = first; i < end; i++)
    if (ftl_select_op_at(s, i)->kind == kind) return true;
  return false;
}

// Rather than have fewer warps fit, ptxas works addresses out anew, unless three do not fit anyway. With several
// buffers it does not for a loop that masks, nor, in a CTA of a warp a sub-core, where many of `num_loads` would have
// to go.
static int32_t limit_of(const ftl_select *s, int32_t registers, int32_t num_loads) {
  int32_t warps = FEWEST_WARPS;
  if (registers - converted_registers(s) > registers_for(s, warps)) return s->register_cap;
  while (registers_for(s, warps + 1) >= registers) warps++;
  int32_t limit = registers_for(s, warps);
  if (has_single_buffers(s)) return limit;
  bool gives_up_many = s->role->num_warps <= s->arch->sm_num_subcores && registers + num_loads - limit > MOST_GIVEN_UP;
  return gives_up_many || has_op(s, 0, s->role->num_ops, FTL_TILE_MASK) ? s->register_cap : limit;
}

// Of an operand's addresses, beside `registers` that are taken.
static int32_t num_that_fit(const ftl_select *s, kept_set kept, int32_t registers, int32_t num_loads) {
  if (kept == ALL) return s->buffered_code || registers + num_loads <= s->register_cap ? num_loads : 0;
  registers += LANE_REGISTERS + (has_single_buffers(s) ? 0 : STAGE_REGISTERS);
  int32_t limit = limit_of(s, registers, num_loads);
  if (limit > s->register_cap) limit = s->register_cap;
  int32_t room = limit > registers ? limit - registers : 0;
  return room < num_loads ? room : num_loads;
}

// The products from operation `first` up to `end`.
static void keep_addresses_of(ftl_select *s, int32_t first, int32_t end, bool masks) {
  int32_t registers = tile_registers(s), depth = 0;
  for (int32_t i = first; i < end; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    depth = ftl_select_depth_after(op, depth);
    if (op->kind != FTL_TILE_MMA || depth == 0) continue;
    // of an alike B beside it: an immediate away
    if (i > 0 && ftl_select_shares_a(op - 1, op) && ftl_select_rings_are_alike(s, op[-1].ring, op->ring)) continue;
    for (int is_a = 1; is_a >= 0; is_a--) {
      if (is_a && (op->ring_a < 0 || op->transpose_a)) continue;
      if (!is_a && op->b.value >= 0) continue;
      int32_t ring = is_a ? op->ring_a : op->ring, num_loads = num_addresses(s, op, is_a);
      ftl_operand_kind kind = is_a ? FTL_OPERAND_A : op->transpose_b ? FTL_OPERAND_B_NK : FTL_OPERAND_B_KN;
      kept_set kept = kept_of(s, ring, kind, masks);
      if (kept == NOTHING || s->rings[ring].first_kept[kind] != NONE) continue;
      int32_t num_kept = num_that_fit(s, kept, registers, num_loads);
      registers += num_kept;
      if (num_kept > 0) keep_set(s, ring, kind, num_kept, num_kept == num_loads);
    }
  }
}

bool ftl_select_finds_rows_anew(const ftl_select *s, const ftl_tile_op *product) {
  if (!s->plain_code || ftl_select_has_few_addresses(s)) return false;
  if (has_single_buffers(s) && is_in_one_block(s, product->ring)) return false;
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    for (int k = 0; k < FTL_OPERAND_KIND_COUNT; k++)
      if (s->rings[r].num_kept[k] > 0) return false;
  return true;
}

// ---- loops of single buffers ----
// Each tile that a product reads is copied in the loop of the product.
static bool copies_what_it_multiplies(const ftl_select *s) {
  for (int32_t i = 0; i < s->role->num_ops; i++)
    if (ftl_select_op_at(s, i)->kind == FTL_TILE_MMA && !ftl_select_load_in_loop(s, ftl_select_op_at(s, i)->ring))
      return false;
  return true;
}

static bool keeps_by_loop(const ftl_select *s) {
  if (!s->plain_code || !s->arch->sm_has_wgmma || !has_single_buffers(s)) return false;
  return num_loops_with_products(s) > 1 || (!ftl_select_has_few_addresses(s) && copies_what_it_multiplies(s));
}

void ftl_select_keep_addresses(ftl_select *s) {
  s->finds_positions = s->is_cuda && !s->plain_code && s->arch->sm_has_wgmma && s->role->num_groups == 1;
  s->recomputes_positions = s->finds_positions && tile_registers(s) > s->register_cap;
  if (s->mma != FTL_MMA_WGMMA && !keeps_by_loop(s)) keep_addresses_of(s, 0, s->role->num_ops, true);
}

// The end of the loop that begins at operation `loop`; -1: it does not repeat, or holds a loop that does.
static int32_t end_of_innermost(const ftl_select *s, int32_t loop) {
  int32_t i = loop, depth = ftl_select_depth_after(ftl_select_op_at(s, i), 0);
  if (depth == 0) return -1;
  while (depth == 1) depth = ftl_select_depth_after(ftl_select_op_at(s, ++i), depth);
  return depth == 0 ? i : -1;
}

static void forget_addresses(ftl_select *s) {
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    for (int k = 0; k < FTL_OPERAND_KIND_COUNT; k++) {
      s->rings[r].first_kept[k] = NONE;
      s->rings[r].num_kept[k] = 0;
      s->rings[r].keeps_all[k] = false;
    }
}

void ftl_select_keep_addresses_of_loop(ftl_select *s) {
  int32_t end = end_of_innermost(s, s->op_idx);
  if (s->mma == FTL_MMA_WGMMA || end < 0 || !keeps_by_loop(s)) return;
  forget_addresses(s);
  keep_addresses_of(s, s->op_idx, end, has_op(s, s->op_idx, end, FTL_TILE_MASK));
}
