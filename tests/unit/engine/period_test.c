#include "engine/sampled/period.h"
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
