// Loops, and what a kernel does before its first and after its last operation.
#include "lower/select/addresses.h"
#include "lower/select/shared_stages.h"

#define NONE FTL_NO_VALUE

// A role that only issues TMA copies has one working warp; the others leave its loops at once.
uint8_t ftl_select_producer_flags(const ftl_select *s) {
  if (!ftl_select_is_mbarrier_role(s)) return 0;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    switch (ftl_select_op_at(s, i)->kind) {
      case FTL_TILE_LOOP:
      case FTL_TILE_END_LOOP:
      case FTL_TILE_ACQUIRE:
      case FTL_TILE_LOOKUP:
      case FTL_TILE_LOAD:
      case FTL_TILE_COMMIT:
        continue;
      default:
        return 0;
    }
  }
  return FTL_INST_WARP0;
}

static void settle_fills(ftl_select *s) {
  for (int32_t v = 0; v < s->tile->num_values; v++)
    if (s->tile->values[v].role == s->role_idx) ftl_select_settle_fill(s, v);
}

static int32_t add_loop(ftl_select *s, const ftl_tile_op *op) {
  ftl_select_lists *lists = s->lists;
  if (!ftl_select_lists_grow_loops(lists)) return 0;
  lists->loops[lists->num_loops] = (ftl_warp_loop){.loop_var = op->loop_var, .lo = op->lo, .hi = op->hi};
  return lists->num_loops++;
}

// 64-bit addresses of the thread's first columns: conversions, a product with the row's length, the tensor's base. A
// loop that steps adds to them in each step, which is counted there.
static void add_row_address(ftl_select *s) {
  int32_t offset = ftl_select_temp(s, 2);
  ftl_select_add(s, FTL_OP_LOP, 3, offset, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, 3, offset, offset, NONE, NONE);
  ftl_select_idle(s, 2, 0);
}

static bool is_empty(const ftl_select *s, const ftl_tile_op *op) {
  const ftl_expr_point point = {0};
  return !ftl_expr_uses_cta(s->tile, op->hi) && !ftl_expr_uses_warp(s->tile, op->hi) &&
         ftl_expr_eval(s->tile, op->lo, &point) >= ftl_expr_eval(s->tile, op->hi, &point);
}

// What stands before a loop that threads leave one by one: whether the thread has any columns, and a branch around the
// loop (SHF, ISETP, BSSY, BRA, BSYNC); of one that is unrolled how many steps it has in rounds and how many before
// (LOP3, IADD3), and branches around either; and addresses, behind the branch of the part that needs them: what no warp
// of the launch runs has none. SASS of kernels/attention/standard_mma.h: 24 instructions where only single steps or
// only rounds run, 34 where both do; here 21 and 29, and what steps addresses. Gives the column that the parts count.
static int32_t enter_by_threads(ftl_select *s, const ftl_tile_op *op) {
  bool in_rounds = op->part.steps == FTL_LOOP_IN_ROUNDS;
  if (op->part.steps == FTL_LOOP_BEGINS) {
    s->has_row_address = false;
    s->row_column = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_IADD, 1, s->row_column, s->thread, NONE, NONE);
    ftl_select_add(s, FTL_OP_ISETP, 1, ftl_select_temp(s, 0), s->row_column, NONE, NONE);
    ftl_select_idle(s, 3, 0);
  }
  if (in_rounds) {
    int32_t left = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_IADD, 1, left, s->row_column, NONE, NONE);
    ftl_select_add(s, FTL_OP_LOP, 3, left, left, NONE, NONE);
    ftl_select_idle(s, 4, 0);
  }
  if (is_empty(s, op)) return s->row_column;
  if (in_rounds || !s->has_row_address) add_row_address(s);
  if (!in_rounds) s->has_row_address = true;
  return s->row_column;
}

void ftl_select_loop(ftl_select *s, const ftl_tile_op *op) {
  settle_fills(s);
  ftl_select_settle_groups_at_loop(s, op);
  ftl_select_keep_addresses_of_loop(s);
  uint8_t flags = ftl_select_producer_flags(s);
  int32_t counter = op->by_threads ? enter_by_threads(s, op) : ftl_select_temp(s, 1);
  if (!op->by_threads) {
    // the trip count: a bound from the CTA's place, clamped, and the first value
    ftl_select_add(s, FTL_OP_IADD, 2, counter, ftl_select_entry_of(s, op->lo), ftl_select_entry_of(s, op->hi), NONE)
        ->inst.flags = flags;
    ftl_select_add(s, FTL_OP_FMNMX, 1, counter, counter, NONE, NONE)->inst.flags = flags;
  }
  int32_t index = add_loop(s, op);
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_LOOP, 1, NONE, NONE, NONE, NONE);
  inst->inst.arg = (uint16_t)index;
  inst->effects = FTL_EFFECT_PINNED;
  if (!ftl_select_repeats(op)) inst->effects |= FTL_EFFECT_ONCE;
  s->loop_counter[op->loop_var] = counter;
  s->loop_index[op->loop_var] = index;
  s->by_threads = op->by_threads;
  s->once = op->part.once;
}

void ftl_select_end_loop(ftl_select *s, const ftl_tile_op *op) {
  settle_fills(s);
  ftl_select_settle_groups_at_end(s, op);
  uint8_t flags = ftl_select_producer_flags(s);
  int32_t counter = s->loop_counter[op->loop_var], more = s->once ? NONE : ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_IADD, 1, counter, counter, NONE, NONE)->inst.flags = flags;
  if (!s->once) ftl_select_add(s, FTL_OP_ISETP, 1, more, counter, NONE, NONE)->inst.flags = flags;
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, more, NONE, NONE);
  branch->inst.flags = flags | FTL_INST_LOOP_BRANCH;
  branch->effects = FTL_EFFECT_PINNED;
  ftl_draft_inst *end = ftl_select_add(s, FTL_OP_END_LOOP, 1, NONE, NONE, NONE, NONE);
  end->inst.arg = (uint16_t)s->loop_index[op->loop_var];
  s->by_threads = s->once = false;
  end->effects = FTL_EFFECT_PINNED;
  ftl_select_settle_groups_behind_loop(s, op);
  ftl_select_find_results(s);
}

// ---- prologue ----
typedef struct ring_use {
  bool reads, writes;  // with addresses of this thread: ldmatrix, LDS, STS, cp.async
} ring_use;

static ring_use ring_use_of(const ftl_select *s, int32_t ring) {
  ring_use use = {false, false};
  bool wgmma = s->mma == FTL_MMA_WGMMA;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_LOAD && op->ring == ring && s->copy != FTL_COPY_TMA) use.writes = true;
    bool stages = op->kind == FTL_TILE_STORE_MERGED || op->kind == FTL_TILE_REDUCE_WARPS ||
                  op->kind == FTL_TILE_REDUCE_GROUPS || op->kind == FTL_TILE_GATHER;
    if (stages && (op->ring == ring || op->ring_a == ring)) use.reads = use.writes = true;
    bool rewrites = op->kind == FTL_TILE_DEQUANTIZE || op->kind == FTL_TILE_TRANSPOSE;
    if ((op->kind == FTL_TILE_PUT || rewrites) && op->ring == ring) use.writes = true;
    if (rewrites && (op->ring_a == ring || op->ring_scales == ring)) use.reads = true;
    if (op->kind == FTL_TILE_FETCH && op->ring == ring) use.reads = true;
    bool is_b = op->ring == ring && op->b.value < 0;
    if (op->kind == FTL_TILE_MMA && !wgmma && (is_b || (op->ring_a == ring && op->a.value < 0))) use.reads = true;
  }
  return use;
}

static void find_lane_offset(ftl_select *s, int32_t offset, int32_t thread) {
  ftl_select_add(s, FTL_OP_LOP, 2, offset, thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, 1, offset, offset, NONE, NONE);
}

static int32_t lane_offset(ftl_select *s, int32_t thread) {
  int32_t offset = ftl_draft_value_add(&s->draft, 1, true);
  find_lane_offset(s, offset, thread);
  return offset;
}

void ftl_select_staging_offsets(ftl_select *s, int32_t ring_idx) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  if (ring->read_offset == NONE) ring->read_offset = ring->read_address = lane_offset(s, s->thread);
  if (ring->write_offset == NONE) ring->write_offset = ring->write_address = lane_offset(s, s->thread);
}

static int32_t stage_index(ftl_select *s) {
  int32_t index = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_MOV, 1, index, NONE, NONE, NONE);
  return index;
}

static void ring_offsets(ftl_select *s, int32_t ring_idx, int32_t thread) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  bool single = s->tile->rings[ring_idx].num_stages == 1;
  ring_use use = ring_use_of(s, ring_idx);
  if (use.reads) {
    ring->read_offset = lane_offset(s, thread);
    ring->read_address = single ? ring->read_offset : ftl_draft_value_add(&s->draft, 1, true);
  }
  if (use.writes) {
    ring->write_offset = lane_offset(s, thread);
    ring->write_address = single ? ring->write_offset : ftl_draft_value_add(&s->draft, 1, true);
    ftl_select_copy_offsets(s, ring_idx);
  }
  if (single) return;
  int32_t read_with = ftl_select_read_index_ring(s, ring_idx), written_with = ftl_select_write_index_ring(s, ring_idx);
  int32_t read_address = s->rings[ftl_select_address_ring(s, ring_idx, read_with)].read_address;
  int32_t write_address = s->rings[ftl_select_address_ring(s, ring_idx, written_with)].write_address;
  if (use.reads && read_address != NONE) ring->read_address = read_address;
  if (use.writes && write_address != NONE) ring->write_address = write_address;
  if (use.reads || s->mma == FTL_MMA_WGMMA)
    ring->read_index = read_with == ring_idx ? stage_index(s) : s->rings[read_with].read_index;
  if (use.writes || s->copy == FTL_COPY_TMA)
    ring->write_index = written_with == ring_idx ? stage_index(s) : s->rings[written_with].write_index;
}

// The ring that the role's loops copy a tensor's tiles to; -1: none.
static int32_t ring_of_tensor(const ftl_select *s, int32_t tensor) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_LOAD && op->ref.tensor == tensor && s->rings[op->ring].num_row_groups > 0) return op->ring;
  }
  return -1;
}

// The first tensor whose tiles lie where this one's do, from a base of its own (V's as K's): where stages are counted
// one 64-bit offset serves both, and their bases are in uniform registers.
static int32_t tensor_beside(const ftl_select *s, int32_t tensor) {
  int32_t ring = ring_of_tensor(s, tensor);
  if (!ftl_select_counts_stages(s) || ring < 0) return tensor;
  for (int32_t t = 0; t < tensor; t++) {
    int32_t other = ring_of_tensor(s, t);
    if (other >= 0 && ftl_select_rings_share_offsets(s, other, ring)) return t;
  }
  return tensor;
}

// Where a CTA has one row what finds it is the same for all threads: uniform registers hold it (SASS of softmaxes in
// Triton: UIMAD.WIDE of the CTA's number and the row's length, UIADD3 of the tensor's address). On sm_75 a row a CTA
// takes as many registers as a row a warp (kernels/attention/softmax_rows.h).
static bool has_uniform_rows(const ftl_select *s) {
  enum { FIRST_UNIFORM_COMPUTE_CAPABILITY = 80 };
  if (s->arch->chip_compute_capability < FIRST_UNIFORM_COMPUTE_CAPABILITY) return false;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    bool loads = ftl_tile_op_loads(op->kind), is_direct = ftl_tile_op_loads_direct(op->kind);
    if (!loads && !ftl_tile_op_stores(op->kind)) continue;
    int32_t value = loads ? op->dst : op->a.value;
    if ((loads && !is_direct) || value < 0 ||
        s->tile->values[value].layout.threads_per_row != s->role->num_warps * FTL_WARP_LANES)
      return false;
  }
  return true;
}

typedef struct tensor_use {
  bool is_loaded, is_stored, by_lanes;
} tensor_use;

static tensor_use tensor_use_of(const ftl_select *s, int32_t tensor) {
  tensor_use use = {false, false, false};
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    bool loads = ftl_tile_op_loads(op->kind), stores = ftl_tile_op_stores(op->kind);
    if ((!loads && !stores) || op->ref.tensor != tensor) continue;
    use.is_loaded |= loads;
    use.is_stored |= stores;
    use.by_lanes |= ftl_tile_op_loads_direct(op->kind) || (s->plain_code && stores);
  }
  return use;
}

// base + (batch * stride + head * stride + row * stride + column) * element size, in 64 bits; the KV head of a query
// head and the batch of a CTA cost two divisions by run-time numbers.
static void tensor_pointer(ftl_select *s, int32_t tensor, bool by_lanes, bool is_uniform) {
  int32_t *pointer = &s->tensor_pointer[tensor];
  int32_t beside = tensor_beside(s, tensor), num_registers = s->copy == FTL_COPY_TMA && !by_lanes ? 1 : 2;
  if (is_uniform) num_registers = 0;
  *pointer = beside < tensor ? s->tensor_pointer[beside] : ftl_draft_value_add(&s->draft, num_registers, true);
  ftl_select_add(s, FTL_OP_LDC, 4, *pointer, beside < tensor ? *pointer : NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, 6, *pointer, *pointer, s->thread, s->block);
}

// Those of what is only stored are found behind the loops where little is kept over them.
static void tensor_pointers(ftl_select *s, bool behind_loops) {
  bool is_uniform = has_uniform_rows(s), results_apart = ftl_select_shares_stages(s);
  for (int32_t t = 0; t < s->tile->num_tensors; t++) {
    tensor_use use = tensor_use_of(s, t);
    bool is_late = results_apart && !use.is_loaded;
    if ((use.is_loaded || use.is_stored) && is_late == behind_loops) tensor_pointer(s, t, use.by_lanes, is_uniform);
  }
}

static bool loops_later(const ftl_select *s) {
  for (int32_t i = s->op_idx + 1; i < s->role->num_ops; i++)
    if (ftl_select_op_at(s, i)->kind == FTL_TILE_LOOP) return true;
  return false;
}

void ftl_select_find_results(ftl_select *s) {
  if (!ftl_select_shares_stages(s) || loops_later(s)) return;
  ftl_select_add(s, FTL_OP_S2R, 1, s->thread, NONE, NONE, NONE);
  for (int32_t r = 0; r < s->tile->num_rings; r++) {
    ftl_select_ring *ring = &s->rings[r];
    if (s->tile->rings[r].num_stages > 1) continue;
    if (ring->read_offset != NONE) find_lane_offset(s, ring->read_offset, s->thread);
    if (ring->write_offset != NONE) find_lane_offset(s, ring->write_offset, s->thread);
  }
  tensor_pointers(s, true);
}

// Whether the place is worked out in each role's own code, behind the barrier at which the roles meet: ptxas moves
// nothing over the branch between them (SASS of product_wgmma.h).
static bool finds_place_in_role(const ftl_select *s) {
  return !s->tile->persistent && ftl_select_moves_coordinates(s) && ftl_select_is_mbarrier_role(s);
}

static void init_mbarriers(ftl_select *s) {
  int32_t barriers = 0;
  if (ftl_select_copies_together(s)) return;  // as their stages are first filled (ring.c)
  for (int32_t r = 0; r < s->tile->num_rings; r++)
    if (ftl_select_is_loaded(s->tile, r))
      barriers += s->tile->rings[r].num_stages * (ftl_select_counts_releases(s, r) ? 2 : 1);
  if (barriers == 0) return;
  if (s->role_idx == 0) {
    ftl_draft_inst *init = ftl_select_add(s, FTL_OP_STS, barriers, NONE, NONE, NONE, NONE);
    init->inst.flags = FTL_INST_WARP0;
    init->inst.wavefronts = 1;
    init->effects = FTL_EFFECT_MEMORY;
  }
  if (!ftl_select_is_mbarrier_role(s)) {
    ftl_select_barrier(s);
    return;
  }
  ftl_draft_inst *meet = ftl_select_add(s, FTL_OP_BAR_SYNC, 1, NONE, NONE, NONE, NONE);
  // barrier 0: no role may use an mbarrier before it is initialised
  meet->effects = FTL_EFFECT_FENCE | (finds_place_in_role(s) ? FTL_EFFECT_PINNED : 0);
}

// From the block, or the tile that a persistent CTA has come to, to batch, head and row.
static void tile_coordinates(ftl_select *s) {
  ftl_select_add(s, FTL_OP_LDC, 4, s->block, s->block, NONE, NONE);
  ftl_select_place place = ftl_select_place_of(s);
  if (place.num_insts > 0)
    ftl_select_add(s, FTL_OP_IMAD, place.num_insts, s->block, s->block, NONE, NONE)->inst.flags = place.flags;
  for (int32_t i = 0; i < place.num_signed_divisions; i++) ftl_select_signed_division(s, s->block, place.flags);
}

// The CTA's first warp asks for the tile after this one.
static void ask_for_tile(ftl_select *s) {
  if (s->role_idx != 0) return;
  ftl_draft_inst *ask = ftl_select_add(s, FTL_OP_TILE_ASK, 1, NONE, NONE, NONE, NONE);
  ask->inst.flags = FTL_INST_WARP0;
  ask->effects = FTL_EFFECT_PINNED;
}

void ftl_select_tile_begin(ftl_select *s) {
  if (!s->tile->persistent) return;
  ftl_select_add(s, FTL_OP_NEXT_TILE, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
  ftl_select_add(s, FTL_OP_IADD, 1, s->block, s->block, NONE, NONE);
  tile_coordinates(s);
  tensor_pointers(s, false);
  if (s->tile->handout == FTL_TILES_ASKED_AHEAD) ask_for_tile(s);
}

// Of CUTLASS's code, what is worked out before the loops comes of 64-bit layouts, and is not computed again: where it
// has to leave registers it is stored.
static void store_rather_than_compute(ftl_select *s) {
  for (int32_t v = 0; v < s->draft.num_values; v++) s->draft.values[v].recompute_insts = 0;
}

// Triton's products clear the sums before their loop twice, two registers at once, ahead of the test whether there is a
// step and behind it: a CS2R a register in all. Source: SASS of 10 kernels of kernels/foreign/triton_product.py.
static void clear_carried_sums(ftl_select *s) {
  if (!ftl_select_carries_pointers(s)) return;
  for (int32_t v = 0; v < s->tile->num_values; v++) {
    const ftl_fragment_map *map = &s->values[v].map;
    if (s->tile->values[v].role != s->role_idx || !s->tile->values[v].accumulates) continue;
    ftl_select_add(s, FTL_OP_MOV, map->num_slabs * map->per_slab * map->num_registers, ftl_select_temp(s, 2), NONE,
                   NONE, NONE);
  }
}

void ftl_select_prologue(ftl_select *s) {
  if (s->role->num_registers > 0) {
    ftl_draft_inst *set = ftl_select_add(s, FTL_OP_SETMAXREG, 1, NONE, NONE, NONE, NONE);
    set->effects = FTL_EFFECT_PINNED;
  }
  s->thread = ftl_draft_value_add(&s->draft, 1, true);
  for (int i = 0; i < 2; i++) s->descriptor[i] = ftl_select_temp(s, 0);
  s->block = ftl_draft_value_add(&s->draft, 2, true);
  ftl_select_add(s, FTL_OP_S2R, 1, s->thread, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_S2R, 2, s->block, NONE, NONE, NONE);
  bool in_role = finds_place_in_role(s);
  if (!s->tile->persistent && !in_role) tile_coordinates(s);
  for (int32_t r = 0; r < s->tile->num_rings; r++) ring_offsets(s, r, s->thread);
  ftl_select_keep_addresses(s);
  ftl_select_dequantize_offsets(s);
  ftl_select_bit_rows(s);
  if (!s->tile->persistent && !in_role) tensor_pointers(s, false);
  if (s->copy == FTL_COPY_TMA) init_mbarriers(s);
  if (in_role) {
    tile_coordinates(s);
    tensor_pointers(s, false);
  }
  clear_carried_sums(s);
  if (s->buffered_code) store_rather_than_compute(s);
}

void ftl_select_epilogue(ftl_select *s) {
  settle_fills(s);
  ftl_select_settle_groups(s, NONE, false, NONE);
  if (s->tile->handout == FTL_TILES_ASKED_LATE) ask_for_tile(s);
  if (s->tile->handout != FTL_TILES_BY_STRIDE)
    ftl_select_add(s, FTL_OP_TILE_WAIT, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE | FTL_EFFECT_PINNED;
  ftl_draft_inst *exit = ftl_select_add(s, FTL_OP_EXIT, 1, NONE, NONE, NONE, NONE);
  exit->effects = FTL_EFFECT_PINNED;
}
