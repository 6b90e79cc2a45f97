#include "engine/sampled/cursor.h"
#include "fixture.h"

// Every access of every CTA and iteration: the stepped place against the one from the expressions.
static int64_t count_places(const char *parameters, int64_t *num_steady) {
  lowered l = lower_flash2("a100_80", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  int64_t num_places = 0;
  for (int32_t s = 0; s < 2 * segments.num_loops + 1; s++)
    for (int32_t i = 0; i < segments.segments[s].num_refs; i++)
      for (int64_t cta = 0; cta < l.tile->num_ctas; cta++) {
        const ftl_segment_ref *ref = &segments.segments[s].refs[i];
        ftl_ref_step step = ftl_ref_step_of(l.tile, ref);
        ftl_ref_cursor cursor = step.is_steady ? ftl_ref_cursor_at(l.tile, ref, cta) : (ftl_ref_cursor){0};
        int64_t lo = 0, trips = s % 2 == 1 ? ftl_segments_trips(&segments, l.warps, s / 2, cta, &lo) : 1;
        for (int64_t k = 0; k < trips; k++, num_places++) {
          ftl_expr_point point = {.cta = cta};
          if (ref->loop_var >= 0) point.loop[ref->loop_var] = lo + k;
          ftl_tile_place expected = ftl_tile_place_of(l.tile, ref->ref, &point);
          ftl_tile_place place = ftl_ref_place(l.tile, ref, &step, &cursor, cta, k);
          cr_assert_eq(place.num_rows, expected.num_rows, "segment %d, access %d, CTA %d, iteration %d", s, i, (int)cta,
                       (int)k);
          if (place.num_rows > 0) cr_assert_eq(place.address_bytes, expected.address_bytes);
          cr_assert_eq(place.row_stride_bytes, expected.row_stride_bytes);
          cr_assert_eq(place.row_bytes, expected.row_bytes);
          *num_steady += step.is_steady;
        }
      }
  release_lowered(&l);
  return num_places;
}

#define TILES "batch=2 heads=4 kv_heads=2 head_dim=64 block_m=64 block_n=64 num_warps=4 "

Test(unit_engine_cursor, a_stepped_place_is_the_place_of_the_expressions) {
  static const char *const cases[] = {TILES "seqlen=500", TILES "seqlen=500 causal=1",
                                      TILES "seqlen=512 causal=1 layout=bshd num_stages=3",
                                      TILES "seqlen_q=256 seqlen_kv=700 tile_order=head_first"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t num_steady = 0, num_places = count_places(cases[i], &num_steady);
    cr_expect_gt(num_places, 100);
    cr_expect_eq(num_steady, num_places, "%s: some of %d places are not steady", cases[i], (int)num_places);
  }
}
