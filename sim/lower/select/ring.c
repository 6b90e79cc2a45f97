// The ring protocol: when a stage may be filled, when it is full, when it was read.
#include "lower/select/shared_stages.h"

#define NONE FTL_NO_VALUE
enum { BARRIER_UNIFORM_INSTS = 3, BARRIER_ALU_INSTS = 2, PROXY_FENCE_INSTS = 5 };
// Waiting for an mbarrier is a loop of tries: nothing moves across it.
enum { SPIN = FTL_EFFECT_FENCE | FTL_EFFECT_PINNED };

static ftl_draft_inst *add_ring_inst(ftl_select *s, ftl_opcode opcode, int32_t ring, uint8_t effects) {
  ftl_draft_inst *inst = ftl_select_add(s, opcode, 1, NONE, NONE, NONE, NONE);
  inst->inst.arg = (uint16_t)ring;
  inst->effects = effects;
  return inst;
}

// The counter of the innermost loop around this operation; NONE: there is none.
static int32_t counter_here(const ftl_select *s) {
  int32_t closed = 0;
  for (int32_t i = s->op_idx - 1; i >= 0; i--) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_END_LOOP) closed++;
    if (op->kind == FTL_TILE_LOOP && closed-- == 0) return s->loop_counter[op->loop_var];
  }
  return NONE;
}

// index = index + 1 == num_stages ? 0 : index + 1, or the tile's number modulo num_stages in as many instructions.
static void next_stage(ftl_select *s, int32_t index, uint8_t flags) {
  int32_t wraps = ftl_select_temp(s, 0), counter = ftl_select_counts_stages(s) ? counter_here(s) : NONE;
  ftl_select_add(s, FTL_OP_IADD, 1, index, counter == NONE ? index : counter, NONE, NONE)->inst.flags = flags;
  ftl_select_add(s, FTL_OP_ISETP, 1, wraps, index, NONE, NONE)->inst.flags = flags;
  ftl_select_add(s, FTL_OP_SEL, 1, index, index, wraps, NONE)->inst.flags = flags;
}

// The address of the stage that a ring has come to. Counted stages: the same for all lanes, whose places are added to
// it, and one for rings an immediate apart.
static void stage_address(ftl_select *s, int32_t address, int32_t address_beside, int32_t offset, int32_t index) {
  if (address == NONE || address == address_beside) return;
  ftl_select_add(s, FTL_OP_IMAD, 1, address, index, offset, NONE);
}

// The ring before this one that has its addresses, of those that have its index; NULL: it has its own.
static const ftl_select_ring *ring_beside(const ftl_select *s, int32_t ring, int32_t index_ring) {
  int32_t first = ftl_select_address_ring(s, ring, index_ring);
  return first == ring ? NULL : &s->rings[first];
}

void ftl_select_barrier_address(ftl_select *s, int32_t ring, uint8_t flags) {
  int32_t index = s->rings[ring].write_index, address = ftl_select_temp(s, 1);
  ftl_select_add(s, FTL_OP_UNIFORM, BARRIER_UNIFORM_INSTS, NONE, NONE, NONE, NONE)->inst.flags = flags;
  ftl_select_add(s, FTL_OP_LOP, BARRIER_ALU_INSTS, address, index, NONE, NONE)->inst.flags = flags;
}

// Outside of a loop, where Triton makes a loop's mbarriers before it and takes them back behind it, each behind a
// meeting of all warps (SASS of kernels/foreign/triton_descriptors.py): one for each stage that is filled ahead.
static void make_mbarrier(ftl_select *s) {
  enum { UNIFORM_INSTS = 8 };
  if (!ftl_select_copies_together(s) || counter_here(s) != NONE) return;
  ftl_select_add(s, FTL_OP_UNIFORM, UNIFORM_INSTS, NONE, NONE, NONE, NONE);
  ftl_draft_inst *init = ftl_select_add(s, FTL_OP_STS, 1, NONE, NONE, NONE, NONE);
  init->inst.flags = FTL_INST_WARP0;
  init->inst.wavefronts = 1;
  init->effects = FTL_EFFECT_MEMORY;
  ftl_select_barrier(s);
}

void ftl_select_acquire(ftl_select *s, const ftl_tile_op *op) {
  ftl_select_ring *ring = &s->rings[op->ring];
  make_mbarrier(s);
  if (s->copy == FTL_COPY_TMA) s->copied[0] = NONE;  // read long ago, when the stage before was filled
  if (ftl_select_counts_releases(s, op->ring))
    add_ring_inst(s, FTL_OP_MBAR_ACQUIRE, op->ring, SPIN)->inst.flags =
        ftl_select_is_put_across(s->tile, op->ring) ? 0 : FTL_INST_WARP0;
  else if (s->orders[s->op_idx].barrier_before)
    ftl_select_barrier(s);
  if (ring->write_index == NONE) return;
  int32_t index_ring = ftl_select_write_index_ring(s, op->ring);
  if (index_ring == op->ring) next_stage(s, ring->write_index, ftl_select_producer_flags(s));
  const ftl_select_ring *beside = ring_beside(s, op->ring, index_ring);
  int32_t offset = ftl_select_counts_stages(s) ? NONE : ring->write_offset;
  stage_address(s, ring->write_address, beside ? beside->write_address : NONE, offset, ring->write_index);
}

// All warps of the role have written and made it visible to wgmma (fence.proxy.async); one arrives for them.
static void commit_put_across(ftl_select *s, int32_t ring) {
  add_ring_inst(s, FTL_OP_FENCE_PROXY, 0, FTL_EFFECT_FENCE);
  ftl_select_barrier(s);
  add_ring_inst(s, FTL_OP_MBAR_EXPECT, ring, FTL_EFFECT_FENCE)->inst.flags = FTL_INST_WARP0;
  add_ring_inst(s, FTL_OP_MBAR_ADVANCE, ring, FTL_EFFECT_FENCE);
}

// What follows a run of copies writes over their addresses, and waits until the last was read: in ptxas's plain code,
// whose copies stand in a block of their own, and in lean code where two tensors' tiles are copied side by side, whose
// loops end with that wait.
static bool has_shares(const ftl_select *s) {
  const ftl_tile_op *op = ftl_select_op_at(s, s->op_idx), *first = ftl_select_op_at(s, 0);
  while (op > first && op->kind != FTL_TILE_LOAD) op--;
  return op->kind == FTL_TILE_LOAD && ftl_select_is_share(s, op);
}

static void close_group(ftl_select *s, int32_t ring) {
  ftl_draft_inst *commit = ftl_select_add(s, FTL_OP_CP_COMMIT, 1, NONE, s->copied[0], NONE, NONE);
  commit->inst.arg = (uint16_t)ring;
  commit->effects = ftl_select_writes_over_addresses(s) ? FTL_EFFECT_PINNED : FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  if (has_shares(s)) commit->effects |= FTL_EFFECT_AMID;
  s->copied[0] = s->copied[1] = NONE;
}

void ftl_select_commit(ftl_select *s, const ftl_tile_op *op) {
  const uint8_t in_order = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  bool is_put = ftl_tile_ring_is_put(s->tile, op->ring);
  s->rings[op->ring].stage_begun = false;
  if (ftl_select_is_put_across(s->tile, op->ring)) {
    commit_put_across(s, op->ring);
    return;
  }
  if (ftl_select_is_through_registers(s, op->ring)) {
    ftl_select_store_held(s, op->ring);
    return;
  }
  if (s->copy == FTL_COPY_LDG && !is_put) return;
  if (s->copy == FTL_COPY_CP_ASYNC && !is_put && ftl_ring_order_closes_group(s->tile, s->role, s->op_idx))
    close_group(s, op->ring);
  ftl_draft_inst *advance = add_ring_inst(s, FTL_OP_MBAR_ADVANCE, op->ring, in_order);
  if (s->copy == FTL_COPY_TMA && !is_put) advance->inst.flags = FTL_INST_WARP0;
}

static void read_next_stage(ftl_select *s, int32_t ring_idx) {
  ftl_select_ring *ring = &s->rings[ring_idx];
  bool is_put = ftl_tile_ring_is_put(s->tile, ring_idx) && !ftl_select_is_put_across(s->tile, ring_idx);
  if (s->copy != FTL_COPY_TMA || is_put) add_ring_inst(s, FTL_OP_RING_READ, ring_idx, FTL_EFFECT_FENCE);
  if (ring->read_index == NONE) return;
  int32_t index_ring = ftl_select_read_index_ring(s, ring_idx);
  if (index_ring == ring_idx) next_stage(s, ring->read_index, 0);
  const ftl_select_ring *beside = ring_beside(s, ring_idx, index_ring);
  bool is_alike_for_warps = ftl_select_counts_stages(s) && !ftl_select_shares_stages(s);
  int32_t offset = is_alike_for_warps ? NONE : ring->read_offset;
  stage_address(s, ring->read_address, beside ? beside->read_address : NONE, offset, ring->read_index);
}

// The WAITs before this one that share its barrier.
static int32_t first_wait_of_run(const ftl_select *s) {
  int32_t first = s->op_idx;
  while (first > 0 && ftl_select_op_at(s, first - 1)->kind == FTL_TILE_WAIT) first--;
  return first;
}

static bool is_first_apart(const ftl_select *s, int32_t first) {
  for (int32_t i = first; i <= s->op_idx; i++)
    if (ftl_select_op_at(s, i)->first_apart) return true;
  return false;
}

static void branch_over(ftl_select *s, int32_t predicate, uint8_t flags) {
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_BRA, 1, NONE, predicate, NONE, NONE);
  branch->inst.flags = FTL_INST_GUARD | flags;
  branch->effects = FTL_EFFECT_PINNED;
}

// Before and after the wait that all steps but the first have: branches over either one (SASS of flash2_mma.h, whose
// copies stand between the branches, and of flash2_wgmma.h).
static void begin_later_wait(ftl_select *s) {
  int32_t is_first = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, is_first, counter_here(s), NONE, NONE);
  branch_over(s, is_first, 0);
}

static void end_later_wait(ftl_select *s) {
  branch_over(s, NONE, FTL_INST_SKIPS);
  ftl_select_add(s, FTL_OP_LABEL, 1, NONE, NONE, NONE, NONE)->effects = FTL_EFFECT_PINNED;
}

// What was put is there for the other warps after the barrier alone.
static void wait_together(ftl_select *s, int32_t first) {
  int32_t groups_left = INT32_MAX;
  for (int32_t i = first; i <= s->op_idx; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (ftl_tile_ring_is_put(s->tile, op->ring) || ftl_select_is_through_registers(s, op->ring)) continue;
    if (s->orders[i].groups_left < groups_left) groups_left = s->orders[i].groups_left;
    if (s->copy == FTL_COPY_LDG && s->orders[i].store_here) ftl_select_store_held(s, op->ring);
  }
  if (s->copy == FTL_COPY_CP_ASYNC && groups_left < INT32_MAX) {
    bool first_apart = is_first_apart(s, first);
    if (first_apart) begin_later_wait(s);
    ftl_draft_inst *wait = ftl_select_add(s, FTL_OP_CP_WAIT, 1, NONE, NONE, NONE, NONE);
    wait->inst.arg = (uint16_t)groups_left;
    wait->effects = FTL_EFFECT_FENCE;
    if (first_apart) end_later_wait(s);
  }
  // wgmma reads shared memory through the async proxy, which does not see generic writes before this fence. Lean code
  // does without where cp.async wrote (CUTLASS's multistage mainloop, Triton).
  if (s->mma == FTL_MMA_WGMMA && (s->plain_code || s->copy != FTL_COPY_CP_ASYNC)) {
    ftl_select_idle(s, PROXY_FENCE_INSTS, 0);  // MEMBAR.ALL.CTA, and four null loads of ptxas
    add_ring_inst(s, FTL_OP_FENCE_PROXY, 0, FTL_EFFECT_FENCE);
  }
  ftl_select_barrier(s);
  for (int32_t i = first; i <= s->op_idx; i++) read_next_stage(s, ftl_select_op_at(s, i)->ring);
  ftl_select_hold_first_part(s);
}

void ftl_select_wait(ftl_select *s, const ftl_tile_op *op) {
  s->rings[op->ring].num_waits++;
  bool is_put = ftl_tile_ring_is_put(s->tile, op->ring) && !ftl_select_is_put_across(s->tile, op->ring);
  if (s->copy == FTL_COPY_TMA && is_put) {
    wait_together(s, s->op_idx);
    return;
  }
  if (s->copy == FTL_COPY_TMA) {
    bool has_address = ftl_select_read_index_ring(s, op->ring) != op->ring;
    if (!has_address) ftl_select_barrier_address(s, op->ring, 0);
    // ptxas tries a wait whose address is there as soon as nothing stands between, and branches on the result here.
    add_ring_inst(s, FTL_OP_MBAR_WAIT, op->ring, SPIN)->inst.flags = has_address ? FTL_INST_TRIED : 0;
    read_next_stage(s, op->ring);
    if (ftl_select_copies_together(s) && counter_here(s) == NONE) ftl_select_barrier(s);
    return;
  }
  bool more = s->op_idx + 1 < s->role->num_ops && op[1].kind == FTL_TILE_WAIT;
  if (!more) wait_together(s, first_wait_of_run(s));
}

void ftl_select_release(ftl_select *s, const ftl_tile_op *op) {
  bool is_its_turn = op == ftl_select_op_at(s, s->op_idx);
  if (is_its_turn && s->num_released_amid > 0) {
    s->num_released_amid--;
    return;
  }
  bool runs_on = ftl_select_releases_for_next_step(s);
  if (!runs_on) ftl_select_settle_groups(s, NONE, false, op->ring);
  s->rings[op->ring].num_releases++;
  // Who waits for an emptied stage waits for this: it stays where the program has it.
  if (ftl_select_counts_releases(s, op->ring))
    add_ring_inst(s, FTL_OP_MBAR_RELEASE, op->ring, FTL_EFFECT_FENCE | FTL_EFFECT_PINNED);
  else
    add_ring_inst(s, FTL_OP_RING_FREE, op->ring, FTL_EFFECT_FENCE)->inst.flags = runs_on ? FTL_INST_RUNS_ON : 0;
}
