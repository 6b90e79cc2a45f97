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
        ftl_ref_cursor cursor = step.is_steady ? ftl_ref_cursor_at(l.tile, ref, cta, 0) : (ftl_ref_cursor){0};
        int64_t lo = 0, trips = s % 2 == 1 ? ftl_segments_trips(&segments, l.warps, s / 2, cta, &lo) : 1;
        for (int64_t k = 0; k < trips; k++, num_places++) {
          ftl_expr_point point = {.cta = cta};
          if (ref->loop_var >= 0) point.loop[ref->loop_var] = lo + k;
          ftl_tile_place expected = ftl_tile_place_of(l.tile, &ref->ref, &point);
          ftl_tile_place place = ftl_ref_place(l.tile, ref, &step, &cursor, &(ftl_cta_at){.cta = cta}, k);
          cr_assert_eq(place.num_rows, expected.num_rows, "segment %d, access %d, CTA %d, iteration %d", s, i, (int)cta,
                       (int)k);
          if (place.num_rows > 0) cr_assert_eq(place.address_bytes, expected.address_bytes);
          cr_assert_eq(place.row_stride_bytes, expected.row_stride_bytes);
          cr_assert_eq(place.row_bytes, expected.row_bytes);
          cr_assert_eq(place.pages, expected.pages);
          cr_assert_eq(place.page_row, expected.page_row);
          *num_steady += step.is_steady;
        }
      }
  release_lowered(&l);
  return num_places;
}

#define TILES "batch=2 heads=4 kv_heads=2 head_dim=64 block_m=64 block_n=64 num_warps=4 "

Test(unit_engine_cursor, a_stepped_place_is_the_place_of_the_expressions) {
  static const char *const cases[] = {TILES "seqlen=500",
                                      TILES "seqlen=500 causal=1",
                                      TILES "seqlen=512 causal=1 layout=bshd num_stages=3",
                                      TILES "seqlen_q=256 seqlen_kv=700 tile_order=head_first",
                                      "matmul_tiled m=200 n=136 k=1000 block_n=64",
                                      "softmax_safe heads=2 seqlen_q=64 seqlen_kv=1000 block_n=128"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t num_steady = 0, num_places = count_places(cases[i], &num_steady);
    cr_expect_gt(num_places, 100);
    cr_expect_eq(num_steady, num_places, "%s: some of %d places are not steady", cases[i], (int)num_places);
  }
}

#define PAGED \
  "paged_decode batch=3 lengths=1000:300:70 heads=8 kv_heads=2 head_dim=64 block_n=64 page_layout=scattered splits=1 "

// Tiles of 64 keys are 4 pages of 16, so that the first page's entry moves by 4 an iteration; of 256 they are a part.
Test(unit_engine_cursor, a_stepped_place_of_whole_pages_has_the_pages_of_the_expressions) {
  int64_t num_steady = 0, num_places = count_places(PAGED "page_size=16", &num_steady);
  cr_expect_gt(num_places, 100);
  cr_expect_eq(num_steady, num_places, "%d of %d places are steady", (int)num_steady, (int)num_places);
  num_steady = 0;
  num_places = count_places(PAGED "page_size=256", &num_steady);
  cr_expect_lt(num_steady, num_places, "an entry that stays for 4 iterations does not move steadily");
}

// Rows of a tile that an iteration touches, as bytes of device memory.
typedef struct byte_range {
  int64_t from, to;
} byte_range;

static void widen(byte_range *range, int64_t from, int64_t to) {
  if (range->from == range->to) *range = (byte_range){from, to};
  if (from < range->from) range->from = from;
  if (to > range->to) range->to = to;
}

// In groups of four iterations, aligned to the loop variable: the run against the tiles one by one.
static void check_runs(const lowered *l, const ftl_segments *segments, int32_t loop, const ftl_segment_ref *ref,
                       int64_t cta) {
  enum { GROUP = 4 };
  int64_t lo, trips = ftl_segments_trips(segments, l->warps, loop, cta, &lo);
  ftl_ref_step step = ftl_ref_step_of(l->tile, ref);
  ftl_ref_cursor cursor = ftl_ref_cursor_at(l->tile, ref, cta, 0);
  if (step.rows == 0 && step.columns == 0) return;  // the same tile each time
  for (int64_t first = 0, count; first < trips; first += count) {
    int64_t group_first = first - (lo + first) % GROUP;
    count = group_first + GROUP < trips ? group_first + GROUP - first : trips - first;
    ftl_tile_run run;
    cr_assert(ftl_ref_try_run(l->tile, ref, &step, &cursor, group_first, GROUP, first, count, &run));
    byte_range tiles = {0, 0};
    int64_t num_tiles = 0, row_bytes = 0;
    for (int64_t k = first; k < first + count; k++) {
      ftl_tile_place place = ftl_ref_place(l->tile, ref, &step, &cursor, &(ftl_cta_at){.cta = cta}, k);
      if (place.num_rows == 0) continue;
      widen(&tiles, place.address_bytes, place.address_bytes + place.num_rows * place.row_stride_bytes);
      row_bytes = run.tile_row_bytes > 0 ? row_bytes + place.row_bytes : place.row_bytes;
      num_tiles++;
    }
    cr_assert_eq(run.num_tiles, num_tiles);
    if (num_tiles == 0) continue;
    int64_t from = run.place.address_bytes + run.first_row * run.place.row_stride_bytes, beside = 0;
    // Of tiles side by side the last begins that much beyond the first.
    if (run.tile_row_bytes > 0) beside = (num_tiles - 1) * run.tile_row_bytes;
    cr_assert_eq(from, tiles.from);
    cr_assert_eq(from + run.num_rows * run.place.row_stride_bytes + beside, tiles.to);
    cr_assert_eq(run.place.row_bytes, row_bytes);
    cr_assert_leq(run.first_row + run.num_rows, run.place.num_rows);
  }
}

static void check_all_runs(const char *parameters) {
  lowered l = lower_flash2("a100_80", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  for (int32_t k = 0; k < segments.num_loops; k++)
    for (int32_t i = 0; i < segments.segments[2 * k + 1].num_refs; i++)
      for (int64_t cta = 0; cta < l.tile->num_ctas; cta++)
        check_runs(&l, &segments, k, &segments.segments[2 * k + 1].refs[i], cta);
  release_lowered(&l);
}

Test(unit_engine_cursor, a_run_holds_the_tiles_of_its_iterations) {
  check_all_runs(TILES "seqlen=1000 causal=1 num_stages=3");
}

// A's tiles lie side by side, B's one below the other, and with transpose_b side by side too: 1008 columns of k are 15
// tiles and a part of one.
Test(unit_engine_cursor, a_run_holds_tiles_that_lie_side_by_side) {
  check_all_runs("matmul_tiled m=200 n=136 k=1008 block_n=64");
  check_all_runs("matmul_tiled m=200 n=136 k=1008 block_n=64 transpose_b=1");
}

// Rows of 1000 numbers of two bytes begin in the middle of a sector every other time: there tiles of 64 columns share
// those at their edges.
Test(unit_engine_cursor, tiles_that_share_sectors_make_no_run) {
  lowered l = lower_flash2("a100_80", "matmul_tiled m=200 n=136 k=1000 block_n=64");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  int32_t num_wide = 0;
  for (int32_t k = 0; k < segments.num_loops; k++)
    for (int32_t i = 0; i < segments.segments[2 * k + 1].num_refs; i++) {
      const ftl_segment_ref *ref = &segments.segments[2 * k + 1].refs[i];
      ftl_ref_step step = ftl_ref_step_of(l.tile, ref);
      ftl_ref_cursor cursor = ftl_ref_cursor_at(l.tile, ref, 0, 0);
      ftl_tile_run run;
      if (step.columns != 64) continue;
      num_wide++;
      cr_expect_not(ftl_ref_try_run(l.tile, ref, &step, &cursor, 0, 4, 0, 4, &run));
    }
  cr_expect_gt(num_wide, 0);
  release_lowered(&l);
}

// Accesses of a segment begin at one point, whose expressions are worked out for all of them together.
Test(unit_engine_cursor, cursors_of_a_segment_are_those_of_its_accesses) {
  static const char *const cases[] = {
      TILES "seqlen=500 causal=1", "flash2_bwd batch=2 heads=4 kv_heads=2 head_dim=64 seqlen=200 causal=1",
      "flash3_fwd heads=2 seqlen=1024 head_dim=64 causal=1 block_n=128", "flash1_fwd heads=2 seqlen=256 head_dim=64"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered l = lower_flash2(i == 2 ? "h200" : "a100_80", cases[i]);
    ftl_segments segments;
    cr_assert(ftl_segments_try_init(&segments, l.warps));
    for (int32_t s = 0; s < 2 * segments.num_loops + 1; s++)
      for (int64_t cta = 0; cta < l.tile->num_ctas; cta++) {
        const ftl_segment *segment = &segments.segments[s];
        ftl_ref_step steps[FTL_MAX_SEGMENT_REFS];
        ftl_ref_cursor cursors[FTL_MAX_SEGMENT_REFS];
        for (int32_t r = 0; r < segment->num_refs; r++) steps[r] = ftl_ref_step_of(l.tile, &segment->refs[r]);
        ftl_ref_cursors_at(l.tile, segment, steps, &(ftl_cta_at){.cta = cta, .outer = 1}, cursors);
        for (int32_t r = 0; r < segment->num_refs; r++) {
          if (!steps[r].is_steady) continue;
          ftl_ref_cursor expected = ftl_ref_cursor_at(l.tile, &segment->refs[r], cta, 1);
          cr_expect_eq(cursors[r].base_bytes, expected.base_bytes);
          cr_expect_eq(cursors[r].first_row, expected.first_row);
          cr_expect_eq(cursors[r].end_row, expected.end_row);
          cr_expect_eq(cursors[r].num_columns, expected.num_columns);
          cr_expect_eq(cursors[r].first_presence, expected.first_presence);
        }
      }
    release_lowered(&l);
  }
}
