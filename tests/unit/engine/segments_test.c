// Programs cut at their loops: several roles, and a loop around others.
#include "engine/sampled/segments.h"

#include "engine/sampled/measured_ctas.h"
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

// Rows of 192 bytes: in three blocks of 64, of which one begins within a line, or whole; rows of 256 in two of 128.
Test(unit_engine_segments, copies_of_narrow_blocks_split_lines) {
  static const struct {
    const char *kernel;
    bool splits_lines;
  } cases[] = {
      {"head_dim=96 code=buffered", true}, {"head_dim=96 code=plain", false}, {"head_dim=128 code=buffered", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[256];
    snprintf(text, sizeof text,
             "flash2_fwd heads=2 seqlen=1024 block_m=128 block_n=64 num_warps=4 num_stages=1 mma=mma copy=cp_async %s",
             cases[i].kernel);
    lowered l = lower_flash2("h200", text);
    ftl_segments segments;
    cr_assert(ftl_segments_try_init(&segments, l.warps));
    const ftl_segment *loop = &segments.segments[1];
    cr_assert_geq(loop->num_refs, 2);
    for (int r = 0; r < loop->num_refs; r++)
      cr_expect_eq(loop->refs[r].splits_lines, cases[i].splits_lines, "%s: access %d", cases[i].kernel, r);
    release_lowered(&l);
  }
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
  cr_assert_eq(ftl_segments_trips_in(&segments, l.warps, 2, &(ftl_cta_at){.outer = 3}, &first), 36 - 12);
  cr_assert_eq(first, 12);
  release_lowered(&l);
}

// A row of 65536 columns in steps of 128 threads of 8: loops of four steps, and before each one of single steps.
Test(unit_engine_segments, pieces_of_a_row_that_an_unrolled_loop_takes_are_one_tile) {
  lowered l = lower_flash2("h200", "softmax_safe heads=2 seqlen_q=64 seqlen_kv=65536");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(segments.num_loops, 6);
  // The maximum, the sum and the result of single steps, then of four; the result is stored too.
  static const int32_t num_refs[] = {1, 1, 1, 1, 2, 2};
  for (int k = 0; k < 6; k++) {
    const ftl_segment *loop = &segments.segments[2 * k + 1];
    cr_assert_eq(loop->num_refs, num_refs[k], "loop %d: %d", k, loop->num_refs);
    for (int i = 0; i < loop->num_refs; i++) {
      cr_expect_eq(loop->refs[i].piece_columns, 1024);
      cr_expect_eq(loop->refs[i].ref.columns, k % 2 == 0 ? 1024 : 4096);
      cr_expect_eq(loop->refs[i].is_store, i == 1);
    }
  }
  release_lowered(&l);
}

// The maximum of a row of 2048 fp16 is found in rounds of 4 steps of 1024 columns or in single ones, the sum and the
// result in rounds of 2: what the first pass loads the later ones find in L1, whatever their rounds. 128 rows of 4096
// bytes, one an SM, are 16384 sectors, read once and written once, and 128 of the sums.
Test(unit_engine_segments, pieces_are_found_in_l1_by_loops_that_are_unrolled_otherwise) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(
      arch, "standard_attention heads=2 seqlen_q=64 seqlen_kv=2048 head_dim=64 elementwise=epilogue", NULL);
  cr_assert_str_eq(p.kernels[1].name, "softmax_rows");
  cr_expect_eq((int64_t)p.kernels[1].metrics.value[FTL_METRIC_l2_sectors], 2 * 16384 + 128);
  ftl_arch_destroy(arch);
}

// 4096 causal heads of 32 tiles: every 32nd CTA, as many as are looked at, is a head's first, which sees 2 tiles of
// keys. The one that stands for all is a head's last, which sees all 64.
Test(unit_engine_segments, the_cta_that_is_measured_is_the_longest_where_heads_lie_as_far_apart_as_the_looks) {
  lowered l = lower_flash2("h200", "batch=128 heads=32 seqlen=4096 head_dim=128 block_n=64 causal=true");
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(l.tile->num_ctas, 4096 * 32);
  int64_t ctas[FTL_MAX_REPRESENTATIVES], first, trips = 0;
  cr_assert_eq(ftl_measured_ctas_representatives(&segments, l.warps, ctas), 1, "it runs all loops");
  for (int32_t k = 0; k < segments.num_loops; k++) trips += ftl_segments_trips(&segments, l.warps, k, ctas[0], &first);
  cr_expect_eq(ctas[0] % 32, 31);
  cr_expect_geq(trips, 63);
  release_lowered(&l);
}
