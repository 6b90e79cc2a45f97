// Steps of FlashAttention-2's forward kernel over a tile of keys and values, by how copies and math overlap.
#include "workloads/flash2.h"

ftl_expr ftl_flash2_key(const ftl_flash2 *f, ftl_expr j) {
  return ftl_tile_lists_token(f->b, &f->lists, f->listed, j, f->a.block_n);
}

// FlexAttention's template steps from tile to tile by the difference of a list's entry and the next, both loaded in
// each step when its scores are known: beside the address, the load and its guard that are another load, the tile's
// number in its block, the step's, the choice between the step within a block and that to the next, and the moves
// between uniform and other registers. Source: SASS of the kernel (PyTorch 2.11, Triton 3.6), 26 to 29 instructions in
// all.
enum { LIST_STEP_INSTS = 25 };

static void look_ahead(const ftl_flash2 *f, ftl_expr j, ftl_expr present) {
  if (f->lists.by_blocks) ftl_look_up(f->b, ftl_lookup(f->b, f->listed, j), present, LIST_STEP_INSTS);
}

// ---- loads ----

static ftl_tile_ref in_sequence(const ftl_flash2 *f, ftl_tile_ref ref) {
  return ftl_packed_ref(f->b, f->origin, f->row_end, ref);
}

ftl_tile_ref ftl_flash2_query_ref(const ftl_flash2 *f, int32_t tensor, int32_t columns) {
  return in_sequence(f, ftl_attention_query_ref(&f->tile, tensor, f->tile.row, f->a.block_m, columns));
}

ftl_tile_ref ftl_flash2_key_ref(const ftl_flash2 *f, int32_t tensor, int32_t columns, ftl_expr j) {
  ftl_expr key = ftl_flash2_key(f, j);
  return in_sequence(f, ftl_attention_key_ref(&f->tile, tensor, key, f->a.block_n, columns));
}

static void load_tile(const ftl_flash2 *f, int32_t ring, int32_t tensor, int32_t columns, ftl_expr j,
                      ftl_expr present) {
  ftl_tile_ref ref = ftl_flash2_key_ref(f, tensor, columns, j);
  ref.present = present;
  ftl_fill_stage(f->b, ring, ref);
}

void ftl_flash2_load_keys(const ftl_flash2 *f, ftl_expr j, ftl_expr present) {
  load_tile(f, f->ring_k, f->k, f->a.head_dim, j, present);
}

void ftl_flash2_load_values(const ftl_flash2 *f, ftl_expr j, ftl_expr present) {
  load_tile(f, f->ring_v, f->v, f->a.head_dim_v, j, present);
}

// ---- a step ----

static void issue_scores(const ftl_flash2 *f) {
  ftl_fill(f->b, f->scores, 0.0f);
  if (f->q_in_registers)
    ftl_mma_value(f->b, f->scores, f->q_tile, f->ring_k, true);
  else
    ftl_mma_shared(f->b, f->scores, f->ring_q, f->ring_k, true);
}

static void multiply_scores(const ftl_flash2 *f) {
  issue_scores(f);
  ftl_release(f->b, f->ring_k);
}

void ftl_flash2_mask_scores(const ftl_flash2 *f, ftl_expr j) {
  ftl_attention_mask_lengths(f->b, &f->a, f->lengths, f->scores, f->tile.row, ftl_flash2_key(f, j), 0);
}

static void softmax(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_online_softmax_step(f->b, &f->softmax, f->scores, masked);
  ftl_convert(f->b, f->probs, f->scores);
  ftl_attention_dropout(f->b, &f->a, &f->tile, f->probs, f->tile.row, ftl_flash2_key(f, j));
  ftl_elem(f->b, FTL_ELEM_MUL, f->output, ftl_value_operand(f->output), ftl_value_operand(f->softmax.correction),
           ftl_immediate(0));
}

static void multiply_probs(const ftl_flash2 *f) {
  if (f->exchanges)
    ftl_online_softmax_multiply_exchanged(f->b, &f->softmax, f->output, f->probs, f->ring_p, f->ring_v);
  else
    ftl_mma_value(f->b, f->output, f->probs, f->ring_v, false);
}

static void multiply_values(const ftl_flash2 *f) {
  multiply_probs(f);
  ftl_release(f->b, f->ring_v);
}

// Whether tile j of the loop at hand exists, as the source asks where the answer is always yes.
static ftl_expr exists(const ftl_flash2 *f, ftl_expr j, bool compares) {
  return compares ? ftl_sub(f->b, f->keys.end, j) : FTL_ALWAYS;
}

// One buffer for both: V follows as soon as K was read, and nothing overlaps. Of two rings that lie over each other the
// program says when all warps have left the other.
static void leave_buffer(const ftl_flash2 *f) {
  if (f->ring_k != f->ring_v) ftl_barrier(f->b);
}

void ftl_flash2_step_single_buffer(const ftl_flash2 *f, ftl_expr j, bool masked) {
  leave_buffer(f);
  ftl_flash2_load_keys(f, j, exists(f, j, f->compares_k));
  ftl_wait(f->b, f->ring_k);
  multiply_scores(f);
  if (masked) ftl_flash2_mask_scores(f, j);
  leave_buffer(f);
  ftl_flash2_load_values(f, j, exists(f, j, f->compares_v));
  ftl_wait(f->b, f->ring_v);
  softmax(f, j, masked);
  multiply_values(f);
}

// `num_stages` buffers each: the tile num_stages - 1 ahead is asked for when the oldest buffer is known to be free.
void ftl_flash2_step_stages(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_expr ahead_exists = ftl_sub(f->b, f->keys.end, ahead);
  ftl_wait(f->b, f->ring_k);
  ftl_flash2_load_keys(f, ahead, ahead_exists);
  multiply_scores(f);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  ftl_flash2_load_values(f, ahead, ahead_exists);
  multiply_values(f);
}

// The same with all K buffers full and all V buffers but one: what a step's wait shows to be free, the V tile before
// this one and then K, is asked for half a step sooner (kernels/attention/flash2_mma.h and flash2_wgmma.h, which have
// the last V tile in flight before the first step too).
void ftl_flash2_step_when_free(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_expr next_k = ftl_add(f->b, j, ftl_const(f->b, f->num_stages));
  ftl_expr next_v = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_wait_first_apart(f->b, f->ring_k);
  ftl_flash2_load_values(f, next_v, ftl_sub(f->b, f->keys.end, next_v));
  multiply_scores(f);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  ftl_flash2_load_keys(f, next_k, ftl_sub(f->b, f->keys.end, next_k));
  multiply_values(f);
}

// The same with K and V of a tile in one group: a step waits for both at its begin, and no barrier stands between its
// products.
void ftl_flash2_step_joint(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_expr ahead_exists = ftl_sub(f->b, f->keys.end, ahead);
  ftl_wait(f->b, f->ring_k);
  ftl_wait(f->b, f->ring_v);
  ftl_flash2_load_keys(f, ahead, ahead_exists);
  ftl_flash2_load_values(f, ahead, ahead_exists);
  multiply_scores(f);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  multiply_values(f);
}

// The same where the tiles are asked for when the first product runs: with TMA the thread that copies waits for the
// buffers of the step before at their mbarriers, and warpgroups that are ahead of it do not wait for others.
void ftl_flash2_step_amid(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_stages - 1));
  ftl_expr ahead_exists = ftl_sub(f->b, f->keys.end, ahead);
  ftl_wait(f->b, f->ring_k);
  issue_scores(f);
  ftl_flash2_load_keys(f, ahead, ahead_exists);
  ftl_flash2_load_values(f, ahead, ahead_exists);
  ftl_release(f->b, f->ring_k);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  multiply_values(f);
}

// The same as Triton's software pipeliner compiles it: a step waits for K and V at once, and asks for the tiles ahead
// when its second product runs. With wgmma, which still reads V then, those are of buffers that the step has not read,
// behind a barrier, since it does not tell buffers apart; with mma.sync of its own. `end`: of the loop, which asks for
// nothing of the next one.
void ftl_flash2_step_late(const ftl_flash2 *f, ftl_expr j, ftl_expr end, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_k_ahead)), ahead_exists = ftl_sub(f->b, end, ahead);
  ftl_wait(f->b, f->ring_k);
  ftl_wait(f->b, f->ring_v);
  multiply_scores(f);
  look_ahead(f, ahead, ahead_exists);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  multiply_probs(f);
  if (f->refills_behind)
    ftl_release(f->b, f->ring_v);
  else
    ftl_sync(f->b, f->refill_barrier);
  ftl_flash2_load_keys(f, ahead, ahead_exists);
  ftl_flash2_load_values(f, ahead, ahead_exists);
  if (!f->refills_behind) ftl_release(f->b, f->ring_v);
}

// The same with tensor descriptors, whose tiles have barriers of their own: V is waited for behind the softmax. All
// warps have left the tiles of the step before where they meet behind the first product; lowering has them meet once
// more before each copy (select/load_tma.c).
void ftl_flash2_step_late_apart(const ftl_flash2 *f, ftl_expr j, ftl_expr end, bool masked) {
  ftl_expr ahead = ftl_add(f->b, j, ftl_const(f->b, f->num_k_ahead)), ahead_exists = ftl_sub(f->b, end, ahead);
  ftl_wait(f->b, f->ring_k);
  multiply_scores(f);
  ftl_sync(f->b, f->refill_barrier);
  if (masked) ftl_flash2_mask_scores(f, j);
  softmax(f, j, masked);
  ftl_wait(f->b, f->ring_v);
  multiply_probs(f);
  ftl_flash2_load_keys(f, ahead, ahead_exists);
  ftl_flash2_load_values(f, ahead, ahead_exists);
  ftl_release(f->b, f->ring_v);
}

// One buffer each, from the last tile to the first: V is fetched during QK^T, the next K during softmax and PV.
void ftl_flash2_step_interleaved(const ftl_flash2 *f, ftl_expr j, bool masked) {
  ftl_wait(f->b, f->ring_k);
  ftl_flash2_load_values(f, j, exists(f, j, f->compares_v));
  multiply_scores(f);
  if (masked) ftl_flash2_mask_scores(f, j);
  ftl_wait(f->b, f->ring_v);
  ftl_flash2_load_keys(f, ftl_sub(f->b, j, ftl_const(f->b, 1)), ftl_sub(f->b, j, f->keys.first));
  softmax(f, j, masked);
  multiply_values(f);
}
