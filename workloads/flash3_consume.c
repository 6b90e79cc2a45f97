// What computes in flash3_fwd: a consumer warpgroup, or all warps as one role.
#include "workloads/flash3.h"
#include "workloads/online_softmax.h"

enum { LOG2_LARGEST_P = 8 };

typedef struct consumer {
  const ftl_flash3 *f;
  int32_t group;
  ftl_expr row;  // its first query
  int32_t scores, probs, output;
  int32_t ring_o;  // where O is staged, from row_o on: Q's rows, or its own where those are fp8, too short, or fetched
                   // ahead
  int32_t row_o;
  ftl_online_softmax softmax;
} consumer;

// ---- turns ----

// Group 0 has the first turn: the others arrive at its barrier before anything else, and at those of groups before
// them.
static void line_up(const consumer *c) {
  if (!c->f->takes_turns) return;
  for (int32_t g = 0; g < c->group; g++) ftl_arrive(c->f->b, c->f->turns[g]);
}

static void take_turn(const consumer *c) {
  if (c->f->takes_turns) ftl_sync(c->f->b, c->f->turns[c->group]);
}

static void pass_turn(const consumer *c) {
  if (!c->f->takes_turns) return;
  for (int32_t i = 1; i < c->f->num_groups; i++) ftl_arrive(c->f->b, c->f->turns[(c->group + i) % c->f->num_groups]);
}

// ---- products ----

static void issue_scores(const consumer *c) {
  ftl_fill(c->f->b, c->scores, 0.0f);
  ftl_mma_shared(c->f->b, c->scores, c->f->ring_q, c->f->ring_k, true);
  ftl_at_ring_row(c->f->b, c->group * c->f->group_rows);
}

static void issue_output(const consumer *c) {
  ftl_mma_value(c->f->b, c->output, c->probs, c->f->ring_vt, c->f->is_fp8);
}

// ---- softmax ----

static void mask(const consumer *c, ftl_expr j) {
  ftl_attention_mask_lengths(c->f->b, &c->f->a, c->f->tile.lengths, c->scores, c->row, ftl_flash3_key(c->f, j), 0);
}

// The first tile needs the mask if no tile is seen whole; with a window, as its left edge, always.
static void mask_first(const consumer *c) {
  ftl_builder *b = c->f->b;
  ftl_expr zero = ftl_const(b, 0), one = ftl_const(b, 1);
  const ftl_key_range *keys = &c->f->keys;
  if (keys->whole != keys->first) {
    mask(c, keys->first);
    return;
  }
  ftl_expr first_masked = ftl_min(b, one, ftl_sub(b, keys->unmasked, keys->first));
  if (first_masked == one) return;
  if (first_masked != zero) ftl_loop_once(b, first_masked, one);
  mask(c, keys->first);
  if (first_masked != zero) ftl_end_loop(b);
}

static void rescale_output(const consumer *c) {
  ftl_elem(c->f->b, FTL_ELEM_MUL, c->output, ftl_value_operand(c->output), ftl_value_operand(c->softmax.correction),
           ftl_immediate(0));
}

// ---- steps ----

static void first_step(const consumer *c) {
  const ftl_flash3 *f = c->f;
  bool may_be_masked = f->masks_all || f->a.causal || f->a.window > 0 || f->packed || f->a.seqlen_kv < f->a.block_n;
  ftl_wait(f->b, f->ring_k);
  take_turn(c);
  issue_scores(c);
  pass_turn(c);
  ftl_release(f->b, f->ring_k);
  mask_first(c);
  ftl_online_softmax_step(f->b, &c->softmax, c->scores, may_be_masked);
  ftl_convert(f->b, c->probs, c->scores);
}

// Scores of tile j and the output of tile j - 1 are issued together; the softmax of tile j then runs beside the latter.
static void overlapped_step(const consumer *c, ftl_expr j, bool masked) {
  const ftl_flash3 *f = c->f;
  ftl_wait(f->b, f->ring_k);
  take_turn(c);
  issue_scores(c);
  ftl_wait(f->b, f->ring_vt);
  issue_output(c);
  pass_turn(c);
  ftl_release(f->b, f->ring_k);
  if (masked) mask(c, j);
  ftl_online_softmax_step(f->b, &c->softmax, c->scores, masked);
  ftl_release(f->b, f->ring_vt);
  rescale_output(c);
  ftl_convert(f->b, c->probs, c->scores);
}

// One after the other: the output of tile j - 1, the scores of tile j, the softmax. A turn is both products (hopper's
// mainloop with IntraWGOverlap = false).
static void serial_step(const consumer *c, ftl_expr j, bool masked) {
  const ftl_flash3 *f = c->f;
  ftl_wait(f->b, f->ring_vt);
  take_turn(c);
  issue_output(c);
  ftl_release(f->b, f->ring_vt);
  ftl_wait(f->b, f->ring_k);
  issue_scores(c);
  pass_turn(c);
  ftl_release(f->b, f->ring_k);
  if (masked) mask(c, j);
  ftl_online_softmax_step(f->b, &c->softmax, c->scores, masked);
  rescale_output(c);
  ftl_convert(f->b, c->probs, c->scores);
}

// Each product is waited for; exponentials have the turn.
static void softmax_turn_step(const void *role, ftl_expr j, bool masked) {
  const consumer *c = role;
  const ftl_flash3 *f = c->f;
  ftl_wait(f->b, f->ring_k);
  issue_scores(c);
  ftl_release(f->b, f->ring_k);
  if (masked) mask(c, j);
  ftl_online_softmax_maximum(f->b, &c->softmax, c->scores, masked);
  take_turn(c);
  ftl_online_softmax_exponentials(f->b, &c->softmax, c->scores, masked);
  rescale_output(c);
  ftl_convert(f->b, c->probs, c->scores);
  pass_turn(c);
  ftl_wait(f->b, f->ring_vt);
  issue_output(c);
  ftl_release(f->b, f->ring_vt);
}

static void next_step(const void *role, ftl_expr j, bool masked) {
  const consumer *c = role;
  if (!c->f->has_producer) ftl_flash3_copy_ahead(c->f, j);
  if (c->f->overlaps)
    overlapped_step(c, j, masked);
  else
    serial_step(c, j, masked);
}

static void last_step(const consumer *c) {
  const ftl_flash3 *f = c->f;
  ftl_wait(f->b, f->ring_vt);
  if (!f->overlaps) take_turn(c);
  issue_output(c);
  ftl_release(f->b, f->ring_vt);
  if (!f->overlaps) pass_turn(c);
}

// ---- the role ----

// O leaves through the group's own rows of Q's buffer, which the producer may fill only then, or through a buffer of
// its own. Who fills Q's itself gives it back first: all warps have then read theirs.
static void finish(const consumer *c) {
  const ftl_flash3 *f = c->f;
  bool keeps_queries = f->has_producer && c->ring_o == f->ring_q;
  if (!keeps_queries) ftl_release(f->b, f->ring_q);
  ftl_online_softmax_finish(f->b, &c->softmax, c->output);
  ftl_store(f->b, ftl_flash3_query_ref(f, f->t.o, c->row, f->group_rows, f->a.head_dim_v), c->output, c->ring_o);
  ftl_at_ring_row(f->b, c->row_o);
  ftl_store_rows(f->b, ftl_flash3_query_ref(f, f->t.lse, c->row, f->group_rows, 1), c->softmax.max);
  if (keeps_queries) ftl_release(f->b, f->ring_q);
}

static void stage_output(consumer *c) {
  static const char *const names[FTL_FLASH3_MAX_GROUPS] = {"o 0", "o 1", "o 2"};
  int32_t role = c->f->has_producer ? 1 + c->group : 0;
  c->ring_o = ftl_builder_ring(c->f->b, names[c->group], ftl_attention_out_dtype(&c->f->a), c->f->group_rows,
                               c->f->a.padded_head_dim_v, 1, role, 1 << role);
  c->row_o = 0;
}

static consumer consumer_of(const ftl_flash3 *f, int32_t group) {
  ftl_builder *b = f->b;
  consumer c = {.f = f,
                .group = group,
                .row = ftl_add(b, f->tile.tile.row, ftl_const(b, group * f->group_rows)),
                .scores = ftl_builder_tile(b, "s", FTL_FP32, f->group_rows, f->a.block_n),
                .probs = ftl_builder_tile(b, "p", f->a.dtype, f->group_rows, f->a.block_n),
                .output = ftl_builder_tile(b, "o", FTL_FP32, f->group_rows, f->a.padded_head_dim_v),
                .ring_o = f->ring_q,
                .row_o = group * f->group_rows,
                .softmax = ftl_online_softmax_declare(b, f->group_rows, &f->a)};
  bool is_wider = f->a.padded_head_dim_v > f->a.padded_head_dim;
  if (f->is_fp8 || f->q_stages > 1 || is_wider) stage_output(&c);
  if (f->is_fp8) c.softmax.log2_largest = LOG2_LARGEST_P;
  return c;
}

void ftl_flash3_consume(const ftl_flash3 *f, int32_t group) {
  ftl_builder *b = f->b;
  consumer c = consumer_of(f, group);
  line_up(&c);
  if (f->has_producer)
    ftl_builder_tile_begins(b);
  else
    ftl_flash3_prefetch(f);
  ftl_fill(b, c.output, 0.0f);
  ftl_online_softmax_start(b, &c.softmax);
  ftl_wait(b, f->ring_q);
  if (f->softmax_takes_turns) {
    ftl_sync(b, f->begins);
    ftl_flash3_walk_all(f, softmax_turn_step, &c);
  } else {
    first_step(&c);
    ftl_flash3_walk_rest(f, next_step, &c);
    last_step(&c);
  }
  if (!f->has_producer && f->is_persistent) ftl_flash3_drain(f);
  finish(&c);
}
