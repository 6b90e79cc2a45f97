// A program of several roles cut at its loops.
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
