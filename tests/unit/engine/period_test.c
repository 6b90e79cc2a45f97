#include "engine/sampled/period.h"
#include "engine/sampled/period_runs.h"
#include "fixture.h"

static int64_t period_of(const char *parameters) {
  lowered l = lower_flash2("a100_80", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  int64_t period = ftl_period_find(&segments, l.warps);
  release_lowered(&l);
  return period;
}

#define TILES "head_dim=64 block_m=64 block_n=64 num_warps=4 "

Test(unit_engine_period, the_period_of_mha_is_one_head) {
  cr_assert_eq(period_of(TILES "heads=8 seqlen=512"), 8);  // 512 / 64 tiles
}

Test(unit_engine_period, the_period_of_gqa_is_the_heads_that_share_keys) {
  cr_assert_eq(period_of(TILES "heads=8 kv_heads=2 seqlen=512"), 4 * 8);
}

// The query heads of a KV head come one by one, each in all sequences: 4 heads of 3 sequences of 8 tiles.
Test(unit_engine_period, the_period_of_gqa_has_all_sequences_where_they_come_before_heads) {
  cr_assert_eq(period_of(TILES "batch=3 heads=8 kv_heads=2 seqlen=512 head_order=sequences_first"), 4 * 3 * 8);
}

// Heads that share no keys are taken as they lie in memory.
Test(unit_engine_period, the_period_of_mha_is_one_head_in_any_order_of_heads) {
  cr_assert_eq(period_of(TILES "batch=3 heads=8 seqlen=512 head_order=sequences_first"), 8);
}

Test(unit_engine_period, causal_tiles_differ_within_a_head_but_heads_are_alike) {
  cr_assert_eq(period_of(TILES "heads=4 seqlen=512 causal=1"), 8);
}

Test(unit_engine_period, heads_interleaved_in_memory_repeat_within_a_sequence) {
  // bshd: heads are 64 elements apart, sequences 512 * 4 * 64: heads of one sequence repeat, those of the next do not
  // continue them at the same distance, so a period is a whole sequence.
  cr_assert_eq(period_of(TILES "batch=4 heads=4 seqlen=512 layout=bshd"), 4 * 8);
}

Test(unit_engine_period, one_head_has_no_period) { cr_assert_eq(period_of(TILES "heads=1 seqlen=512 causal=1"), 0); }

static int64_t period_of_runs(const char *parameters, int64_t l2_bytes) {
  lowered l = lower_flash2("a100_80", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  int64_t period = ftl_period_of_runs(&segments, l.warps, l2_bytes, l.tile->num_ctas);
  release_lowered(&l);
  return period;
}

#define SEQUENCES_FIRST TILES "seqlen=512 heads=8 head_order=sequences_first "

// A sequence of a head has 512 rows of Q, K, V and O of 128 bytes, and of 4 of LSE: 258 KiB. A run has 16 of them. They
// flush an L2 twice as large as 15 of them: what a run begins with is one before that.
Test(unit_engine_period, a_head_of_a_sequence_repeats_where_l2_forgets_the_head_before) {
  int64_t most = 15 * (512 * 4 * 128 + 512 * 4) / 2;
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=2 batch=16", most), 8);
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=2 batch=16", most + 1), 0);
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=2 batch=17", most + 1), 8);
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=2 batch=16 causal=1", most), 8);
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=1 batch=16 causal=1", most), 8);
}

// Heads of a sequence side by side read its keys again at once: 0 apart, and then further on. The four that do so
// together are a period.
Test(unit_engine_period, heads_that_share_keys_do_not_come_in_runs) {
  cr_expect_eq(period_of_runs(TILES "batch=16 seqlen=512 heads=8 kv_heads=2", 1), 4 * 8);
}

// Heads that lie 128 bytes apart in memory: sequences of one head follow each other as before. Heads of a sequence have
// their rows among each other's, of which so little is taken to be new from one to the next that no run flushes L2.
Test(unit_engine_period, runs_in_interleaved_heads) {
  cr_expect_eq(period_of_runs(SEQUENCES_FIRST "kv_heads=2 batch=64 layout=bshd", 1 << 20), 8);
  cr_expect_eq(period_of_runs(TILES "batch=16 seqlen=512 heads=8 layout=bshd", 1 << 20), 8 * 8);
}

Test(unit_engine_segments, the_two_loops_of_flash2_are_found_with_their_trip_counts) {
  lowered l = lower_flash2("a100_80", TILES "heads=1 seqlen=512 causal=1");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(segments.num_loops, 2);
  for (int64_t cta = 0; cta < 8; cta++) {
    // Query tile m sees m key tiles whole and one masked.
    int64_t first;
    cr_assert_eq(ftl_segments_trips(&segments, l.warps, 0, cta, &first), cta);
    cr_assert_eq(ftl_segments_trips(&segments, l.warps, 1, cta, &first), 1);
  }
  release_lowered(&l);
}
