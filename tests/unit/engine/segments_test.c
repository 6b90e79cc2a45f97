// Programs cut at their loops: several roles, and a loop around others.
#include "engine/sampled/segments.h"
#include "fixture.h"

// Causal flash3_fwd: consumers have a loop around the mask of the first tile (0), the tiles seen whole (1) and those
// that need the mask (2); the producer has the last two. The tiles that it loads belong to the consumers' iterations.
Test(unit_engine_segments, loops_of_other_roles_stand_for_those_with_their_bounds) {
  lowered l = lower_flash2("h200", "flash3_fwd heads=2 seqlen=1024 head_dim=64 causal=1 block_n=128");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(segments.num_loops, 3);
  static const int32_t places[] = {1, 2, 0, 1, 2, 0, 1, 2};  // producer, two consumers
  cr_assert_eq(l.warps->num_loops, 8);
  for (int i = 0; i < 8; i++) cr_assert_eq(segments.place_of_loop[i], places[i], "loop %d", i);
  // Q, K and V of the first tile; nothing; K and V a tile; O and LSE of two consumers.
  static const int32_t num_refs[] = {3, 0, 0, 2, 0, 2, 4};
  for (int s = 0; s < 7; s++) cr_assert_eq(segments.segments[s].num_refs, num_refs[s], "segment %d", s);
  release_lowered(&l);
}

// flash1_fwd with 9 blocks of keys: the first one's loop (0), then a loop around that of the others (2), between two
// that never run (1, 3). K, V and, ahead of the loop, Q of a block belong to the outer loop's body.
Test(unit_engine_segments, a_loop_around_others_is_cut_like_the_program) {
  lowered l = lower_flash2("a100_80", "flash1_fwd heads=2 seqlen=576 head_dim=64 causal=1 block_n=64 num_warps=4");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(segments.num_loops, 4);
  cr_assert_eq(segments.loops[1], -1);
  cr_assert_eq(segments.loops[3], -1);
  cr_assert_eq(segments.outer.first, 4);
  cr_assert_eq(segments.outer.last, 6);
  static const int32_t places[] = {0, -1, 2};
  for (int i = 0; i < 3; i++) cr_assert_eq(segments.place_of_loop[i], places[i], "loop %d", i);
  static const int32_t num_refs[] = {3, 5, 0, 0, 3, 7, 0, 0, 0};  // a step: Q, O', LSE' read; O, LSE to either place
  for (int s = 0; s < 9; s++) {
    cr_assert_eq(segments.segments[s].num_refs, num_refs[s], "segment %d: %d", s, segments.segments[s].num_refs);
    for (int i = 0; i < num_refs[s]; i++) cr_assert_eq(segments.segments[s].refs[i].outer_var >= 0, s == 4 || s == 5);
  }
  int64_t first;
  cr_assert_eq(ftl_segments_outer_trips(&segments, l.warps, 0, &first), 8);
  cr_assert_eq(first, 1);
  cr_assert_eq(ftl_segments_visits(&segments, l.warps, 5, 0), 8);
  cr_assert_eq(ftl_segments_visits(&segments, l.warps, 1, 0), 1);
  // Of 36 tiles of 16 queries those before block 3 see none of its keys.
  cr_assert_eq(ftl_segments_trips_in(&segments, l.warps, 2, 0, 3, &first), 36 - 12);
  cr_assert_eq(first, 12);
  release_lowered(&l);
}
