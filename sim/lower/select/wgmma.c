// Matrix products by wgmma: m64nN with 32 bytes of K a warpgroup, asynchronous, B always and A sometimes from shared
// memory. Source: PTX ISA, wgmma.mma_async. The groups in flight are waited for when something uses their accumulator,
// writes their A operand, gives back their ring, or a loop begins or ends.
#include "base/integer.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum {
  MAX_N = 256,
  TILE_COLUMNS = 8,
  WARPS_PER_GROUP = 4,
  B_UNIFORM_INSTS = 6,
  B_MOVES = 2,
  A_ALU_INSTS = 4,
  A_MOVES = 2,
  LEAN_STEP_INSTS = 1,
  LEAN_START_INSTS = 5,
  STREAMED_START_INSTS = 2,
  LEAN_GROUP_STEP_INSTS = 2,
  LEAN_GROUP_START_INSTS = 4,
  MAX_UNIFORM_DESCRIPTORS = 8
};

static void add_fence(ftl_select *s, ftl_opcode opcode, int32_t arg) {
  ftl_draft_inst *inst = ftl_select_add(s, opcode, 1, NONE, NONE, NONE, NONE);
  inst->inst.arg = (uint16_t)arg;
  inst->effects = FTL_EFFECT_FENCE;
}

static void drop_groups(ftl_select_groups *groups, int32_t count) {
  groups->count -= count;
  for (int32_t i = 0; i < groups->count; i++) groups->of[i] = groups->of[i + count];
}

static bool uses(const ftl_select *s, const ftl_select_group *group, int32_t value, bool writes, int32_t ring) {
  if (value == NONE && ring == NONE) return true;
  if (value != NONE && (group->dst == value || (writes && group->a == value))) return true;
  if (ring == NONE) return false;
  int32_t oldest = s->rings[ring].num_releases + 1;
  return (group->ring == ring && group->fill <= oldest) || (group->ring_a == ring && group->fill_a <= oldest);
}

void ftl_select_settle_groups(ftl_select *s, int32_t value, bool writes, int32_t ring) {
  int32_t youngest = s->groups.count - 1;
  while (youngest >= 0 && !uses(s, &s->groups.of[youngest], value, writes, ring)) youngest--;
  if (youngest < 0) return;
  add_fence(s, FTL_OP_WGMMA_WAIT, s->groups.count - 1 - youngest);
  drop_groups(&s->groups, youngest + 1);
  if (s->groups.count == 0 && s->first_settled == NONE) s->first_settled = s->op_idx;
}

// Whether each step of the loop waits for another fill of the ring before it gives one back, so that the role holds as
// many at its end as at its begin.
static bool goes_on_holding(const ftl_select *s, const ftl_tile_op *loop, int32_t ring) {
  if (ring < 0 || s->rings[ring].num_waits == s->rings[ring].num_releases) return false;
  int32_t depth = 0;
  for (const ftl_tile_op *op = loop; depth > 0 || op == loop; op++) {
    depth += (op->kind == FTL_TILE_LOOP) - (op->kind == FTL_TILE_END_LOOP);
    if (op->ring == ring && (op->kind == FTL_TILE_WAIT || op->kind == FTL_TILE_RELEASE))
      return depth == 1 && op->kind == FTL_TILE_WAIT;
  }
  return false;
}

void ftl_select_settle_groups_at_loop(ftl_select *s, const ftl_tile_op *loop) {
  bool all_go_on = true;
  for (int32_t i = 0; i < s->groups.count; i++) all_go_on &= goes_on_holding(s, loop, s->groups.of[i].ring);
  if (!all_go_on) ftl_select_settle_groups(s, NONE, false, NONE);
  s->groups_at_loop[loop->loop_var] = s->groups;
  s->first_settled = NONE;
}

static bool touches(const ftl_tile_op *op, const ftl_select_group *group) {
  const int32_t values[] = {op->dst, op->a.value, op->b.value, op->c.value};
  for (int i = 0; i < 4; i++)
    if (values[i] == group->dst) return true;
  return op->dst != NONE && op->dst == group->a;
}

static bool fills_stage(const ftl_tile_op *op, const ftl_select_group *group) {
  return op->kind == FTL_TILE_ACQUIRE && (op->ring == group->ring || op->ring == group->ring_a);
}

// Whether a group may be in flight when the next step of the loop that ends at `end` begins: the loop, which has no
// other in it, waits for all groups before it uses or writes what the group does, and then has all warps meet before
// any fills a stage that the group reads. So Triton leaves a dot "properly async" (WGMMAPipeline.cpp, rules 1 to 3):
// what is behind the first wait for all may use the result of the step before.
static bool runs_into_next_step(const ftl_select *s, const ftl_select_group *group, const ftl_tile_op *end) {
  if (s->plain_code || ftl_select_is_mbarrier_role(s) || s->serial_wgmma || s->first_settled == NONE) return false;
  const ftl_tile_op *settled = ftl_select_op_at(s, s->first_settled), *op = settled;
  for (; op->kind != FTL_TILE_LOOP; op--)
    if (op->kind == FTL_TILE_END_LOOP || fills_stage(op, group) || (op != settled && touches(op, group))) return false;
  if (op->loop_var != end->loop_var) return false;
  bool have_met = false;
  for (op = settled; op != end; op++) {
    have_met |= op->kind == FTL_TILE_BARRIER || op->kind == FTL_TILE_SYNC;
    if (op->kind == FTL_TILE_LOOP || (fills_stage(op, group) && !have_met)) return false;
  }
  return true;
}

// All that are in flight at the end of a step, none of which was when the loop began.
static bool all_run_into_next_step(const ftl_select *s, const ftl_tile_op *end) {
  bool all = s->groups.count > 0 && s->groups_at_loop[end->loop_var].count == 0;
  for (int32_t i = 0; i < s->groups.count; i++) all &= runs_into_next_step(s, &s->groups.of[i], end);
  return all;
}

// The end of the loop whose steps end with the RELEASEs that `op` is the first of; NULL: something else follows.
static const ftl_tile_op *end_behind(const ftl_select *s, const ftl_tile_op *op) {
  const ftl_tile_op *last = ftl_select_op_at(s, s->role->num_ops - 1);
  while (op < last && op->kind == FTL_TILE_RELEASE) op++;
  return op->kind == FTL_TILE_END_LOOP ? op : NULL;
}

bool ftl_select_releases_for_next_step(const ftl_select *s) {
  const ftl_tile_op *end = end_behind(s, ftl_select_op_at(s, s->op_idx));
  return end && all_run_into_next_step(s, end);
}

bool ftl_select_will_run_on(const ftl_select *s, const ftl_tile_op *product) {
  ftl_select_group group = {.dst = product->dst, .a = product->a.value, .ring = product->ring, .ring_a = NONE};
  const ftl_tile_op *last = ftl_select_op_at(s, s->role->num_ops - 1), *op = product + 1;
  for (; op < last && (op->kind != FTL_TILE_RELEASE || op->ring != group.ring); op++)
    if (op->kind == FTL_TILE_LOOP || op->kind == FTL_TILE_END_LOOP || touches(op, &group)) return false;
  const ftl_tile_op *end = end_behind(s, op);
  return end && s->groups_at_loop[end->loop_var].count == 0 && runs_into_next_step(s, &group, end);
}

// How many fills of a ring the role has waited for since the one that a group reads.
static int32_t fills_since(const ftl_select *s, int32_t ring, int32_t fill) {
  return ring < 0 ? 0 : s->rings[ring].num_waits - fill;
}

void ftl_select_settle_groups_at_end(ftl_select *s, const ftl_tile_op *end) {
  const ftl_select_groups *before = &s->groups_at_loop[end->loop_var];
  bool same = before->count == s->groups.count;
  for (int32_t i = 0; same && i < before->count; i++) {
    const ftl_select_group *was = &before->of[i], *is = &s->groups.of[i];
    same = was->dst == is->dst && was->a == is->a && was->ring == is->ring && was->ring_a == is->ring_a &&
           fills_since(s, is->ring, is->fill) == 0 && fills_since(s, is->ring_a, is->fill_a) == 0;
  }
  if (!same && !all_run_into_next_step(s, end)) ftl_select_settle_groups(s, NONE, false, NONE);
}

void ftl_select_settle_groups_behind_loop(ftl_select *s, const ftl_tile_op *end) {
  if (s->groups_at_loop[end->loop_var].count == 0) ftl_select_settle_groups(s, NONE, false, NONE);
}

// Lean code makes a descriptor at the begin of a product (USHF, USGXT, two UMOV, and an add with carry) and adds 64
// bits for each step (UIADD3.64). A's is another in each warpgroup: several make it anew in each product (USHF, two
// ULOP3, ULEA.HI, two UMOV) and add by UIADD3 and UIADD3.X. For one warpgroup those of a tile that stays in its only
// buffer do not change: they stay in uniform registers, beside B's (four of 63 a descriptor: for eight), and beyond in
// others, from which two R2UR bring them; B's are moved beside those of the second slab and on. Source: SASS of
// Triton 3.6 (head_dim 64 and 128; 64 and 128 rows on 4 warps, 128 on 8). Where A has several buffers, as in matrix
// products, no code was read: two moves and an add a step for either are the least that the instructions need.
static int32_t describe_lean(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t step, int32_t num_steps) {
  int32_t computed = s->descriptor[0], moved = s->descriptor[1];
  bool a_is_shared = op->ring_a >= 0, is_first = slab == 0 && step == 0;
  if (a_is_shared && s->tile->rings[op->ring_a].num_stages > 1) {
    int32_t num_insts = LEAN_STEP_INSTS + (is_first ? STREAMED_START_INSTS : 0);
    ftl_select_add(s, FTL_OP_UNIFORM, num_insts * 2, computed, NONE, NONE, NONE);
    return computed;
  }
  bool one_group = s->role->num_warps == WARPS_PER_GROUP && s->tile->num_roles == 1;
  bool a_stays = a_is_shared && one_group;
  int32_t num_insts = LEAN_STEP_INSTS + (is_first ? LEAN_START_INSTS : 0);
  if (slab > 0) num_insts = a_stays ? B_MOVES : 0;
  if (a_is_shared && !a_stays) num_insts += LEAN_GROUP_STEP_INSTS + (is_first ? LEAN_GROUP_START_INSTS : 0);
  if (num_insts > 0) ftl_select_add(s, FTL_OP_UNIFORM, num_insts, computed, NONE, NONE, NONE);
  if (!a_stays || slab * num_steps + step < MAX_UNIFORM_DESCRIPTORS) return computed;
  ftl_select_add(s, FTL_OP_R2UR, A_MOVES, moved, computed, NONE, NONE);
  return moved;
}

// Matrix descriptors: an address's bits 4 to 17 with the strides around them, in uniform registers. Plain code makes
// that of B for each k step (UIADD3, ULOP3, USHF, ULOP3, two UMOV); that of A is another in each warpgroup, which the
// compiler does not see to be uniform: it is made in vector registers, or kept there and moved, the constant high word
// by a move of its own, and read by two R2UR. A wgmma takes both from four registers in a row, so that B's is moved
// beside each A's. Source: SASS of the kernels in kernels/attention and of kernels/products/product_wgmma.h for sm_90a.
// Warps that only compute have registers to keep those of a tile that stays in its buffer, whole: 22 instances of
// kernels/attention/flash3.h have two R2UR for each of A's products and nothing else.
static int32_t describe_plain(ftl_select *s, bool b, bool a, bool keeps_a) {
  int32_t computed = s->descriptor[0], moved = s->descriptor[1];
  if (b) ftl_select_add(s, FTL_OP_UNIFORM, B_UNIFORM_INSTS, computed, NONE, NONE, NONE);
  if (!a) return computed;
  if (!b) ftl_select_add(s, FTL_OP_UNIFORM, B_MOVES, computed, computed, NONE, NONE);
  if (keeps_a) {
    ftl_select_add(s, FTL_OP_R2UR, A_MOVES, moved, computed, NONE, NONE);
    return moved;
  }
  ftl_select_add(s, FTL_OP_IADD, A_ALU_INSTS, moved, NONE, NONE, NONE);
  int32_t high_word = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_MOV, 1, high_word, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_R2UR, A_MOVES, moved, moved, computed, high_word);
  return moved;
}

static int32_t describe(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t step, int32_t num_steps) {
  if (s->plain_code) {
    bool a_is_shared = op->ring_a >= 0;
    bool keeps_a = a_is_shared && s->tile->num_roles > 1 && s->tile->rings[op->ring_a].num_stages == 1;
    return describe_plain(s, slab == 0, a_is_shared, keeps_a);
  }
  return describe_lean(s, op, slab, step, num_steps);
}

// Products of the same operands, parts of a wide N, take one pair of descriptors.
static void add_wgmma(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t step, int32_t descriptor,
                      int32_t first_tile, int32_t num_tiles, bool from_zero) {
  int32_t a = op->ring_a < 0 ? ftl_select_fragment(s, op->a.value, slab, step) : NONE;
  ftl_draft_inst *inst =
      ftl_select_add(s, FTL_OP_WGMMA, 1, ftl_select_fragment(s, op->dst, slab, first_tile), a, descriptor, NONE);
  inst->num_destinations = num_tiles;
  inst->inst.arg = (uint16_t)(num_tiles * TILE_COLUMNS);
  if (op->ring_a >= 0) inst->inst.ring_a = (uint8_t)op->ring_a;
  inst->inst.ring_b = (uint8_t)op->ring;
  inst->effects = FTL_EFFECT_MEMORY | (from_zero ? 0 : FTL_EFFECT_READS_DESTINATION);
}

static bool is_multiplied_by_constant(const ftl_tile_op *op, int32_t value) {
  return op->kind == FTL_TILE_ELEM && op->fn == FTL_ELEM_MUL && op->dst == value && op->a.value == value &&
         op->b.value == NONE;
}

static bool is_added_to(const ftl_tile_op *op, int32_t value) {
  bool is_sum = op->fn == FTL_ELEM_ADD || (op->fn == FTL_ELEM_FMA && op->b.value == NONE && op->b.immediate == 1);
  return op->kind == FTL_TILE_ELEM && is_sum && op->dst == value && op->a.value == value;
}

// Whether something reads what a product has left when something else has: exponentials behind a maximum do. Where all
// numbers are first multiplied by a constant the products are the maximum's, and a compiler contracts each with the
// addition that comes next, which then reads the accumulator; a second constant stands between them (SASS of Triton's
// attention, and of FlexAttention's template).
static bool is_read_late(const ftl_select *s, const ftl_tile_op *product) {
  int32_t value = product->dst, num_writes = 0;
  bool is_multiplied = false;
  const ftl_tile_op *end = ftl_select_op_at(s, s->role->num_ops - 1);
  for (const ftl_tile_op *op = product + 1; op < end; op++) {
    if (op->kind == FTL_TILE_LOOP || op->kind == FTL_TILE_END_LOOP) return false;
    bool reads = op->a.value == value || op->b.value == value || op->c.value == value;
    if (!reads && op->dst != value) continue;
    if (num_writes == 0 && op->dst != value) return true;
    if (op->dst != value) continue;
    if (num_writes > 0) return is_multiplied && is_added_to(op, value);
    num_writes++;
    is_multiplied = is_multiplied_by_constant(op, value);
  }
  return false;
}

static void mark_late_reads(ftl_select *s, const ftl_tile_op *product) {
  const ftl_fragment_map *map = &s->values[product->dst].map;
  for (int32_t slab = 0; slab < map->num_slabs; slab++)
    for (int32_t tile = 0; tile < map->per_slab; tile++)
      s->draft.values[ftl_select_fragment(s, product->dst, slab, tile)].is_read_late = true;
}

// The stages that the RELEASEs behind a product give back amid it.
static void release_amid(ftl_select *s, const ftl_tile_op *product) {
  const ftl_tile_op *last = ftl_select_op_at(s, s->role->num_ops - 1);
  for (const ftl_tile_op *op = product + 1; op <= last && op->kind == FTL_TILE_RELEASE && op->amid; op++) {
    ftl_select_release(s, op);
    s->num_released_amid++;
  }
}

static void end_serial(ftl_select *s) {
  add_fence(s, FTL_OP_WGMMA_COMMIT, 0);
  add_fence(s, FTL_OP_WGMMA_WAIT, 0);
}

void ftl_select_wgmma(ftl_select *s, const ftl_tile_op *op) {
  const ftl_ring *ring = &s->tile->rings[op->ring];
  ftl_select_value *dst = &s->values[op->dst];
  int32_t k = op->transpose_b ? ring->columns : ring->rows, tiles = dst->map.per_slab;
  if (s->role->num_warps % WARPS_PER_GROUP != 0 || k % s->product->operand_columns != 0) {
    ftl_select_fail(s, "role %s of %d warps multiplies over %d: wgmma needs warps in fours and a multiple of %d",
                    s->role->name, s->role->num_warps, k, s->product->operand_columns);
    return;
  }
  if (op->num_k > 0) {
    ftl_select_fail(s, "a sum over a part of k: wgmma multiplies whole stages here");
    return;
  }
  const ftl_value *sums = &s->tile->values[op->dst];
  if (s->role->num_warps / sums->warps_per_row % WARPS_PER_GROUP != 0) {
    ftl_select_fail(s, "%s is held by %d of %d warps side by side: wgmma has whole warpgroups side by side", sums->name,
                    sums->warps_per_row, s->role->num_warps);
    return;
  }
  if (s->groups.count == FTL_SELECT_MAX_GROUPS) ftl_select_settle_groups(s, s->groups.of[0].dst, false, NONE);
  // Of a product that warpgroups repeat, N is the share of one, as Triton's instruction shape takes it
  // (mmaVersionToInstrShape of AccelerateMatmul.cpp, and its HGMMAs: 20 a warp for 64 x 64 by 128 on two warpgroups).
  int32_t parts = (sums->is_repeated ? sums->warps_per_row : 1) * (int32_t)ftl_divide_up(tiles * TILE_COLUMNS, MAX_N);
  int32_t descriptor = NONE;
  if (is_read_late(s, op)) mark_late_reads(s, op);
  if (!s->serial_wgmma) add_fence(s, FTL_OP_WGMMA_ARRIVE, 0);
  for (int32_t slab = 0; slab < dst->map.num_slabs; slab++) {
    if (slab == 1 && !s->serial_wgmma) release_amid(s, op);
    for (int32_t step = 0; step * s->product->operand_columns < k; step++)
      for (int32_t part = 0; part < parts; part++) {
        int32_t first = tiles * part / parts, last = tiles * (part + 1) / parts;
        if (s->serial_wgmma) add_fence(s, FTL_OP_WGMMA_ARRIVE, 0);
        if (part == 0) descriptor = describe(s, op, slab, step, k / s->product->operand_columns);
        add_wgmma(s, op, slab, step, descriptor, first, last - first, dst->zero_pending && step == 0);
        if (s->serial_wgmma) end_serial(s);
      }
  }
  dst->zero_pending = false;
  if (s->serial_wgmma) return;
  add_fence(s, FTL_OP_WGMMA_COMMIT, 0);
  bool a_is_shared = op->ring_a >= 0;
  s->groups.of[s->groups.count++] = (ftl_select_group){.dst = op->dst,
                                                       .a = a_is_shared ? NONE : op->a.value,
                                                       .ring = op->ring,
                                                       .ring_a = a_is_shared ? op->ring_a : NONE,
                                                       .fill = s->rings[op->ring].num_waits,
                                                       .fill_a = a_is_shared ? s->rings[op->ring_a].num_waits : 0};
}
