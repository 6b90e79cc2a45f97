// Which CTAs are run in detail where CTAs of a grid differ.
#include "engine/sampled/measured_ctas.h"

#include "fixture.h"

typedef struct grid_case {
  const char *arch, *parameters;
  int launch;
  int64_t num_ctas;
  int32_t num_representatives;
  int64_t representatives[2];
} grid_case;

static void expect_representatives(const grid_case *c) {
  lowered l = lower_launch(c->arch, c->parameters, c->launch);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  cr_assert_eq(l.tile->num_ctas, c->num_ctas, "%s: %d CTAs", c->parameters, (int)l.tile->num_ctas);
  int64_t ctas[FTL_MAX_REPRESENTATIVES];
  int32_t count = ftl_measured_ctas_representatives(&segments, l.warps, ctas);
  cr_assert_eq(count, c->num_representatives, "%s: %d of them", c->parameters, count);
  for (int32_t i = 0; i < count; i++)
    cr_expect_eq(ctas[i], c->representatives[i], "%s: %d", c->parameters, (int)ctas[i]);
  release_lowered(&l);
}

// flash2_bwd, 16 heads, a CTA for 128 keys: 8 a head, heads one behind the other. Of 1000 keys the last CTA of a head
// has 104 and the only loop with a mask, the other seven have only the one without; the last of either kind. Of 1024
// all have the same.
Test(unit_engine_measured_ctas, loops_that_no_cta_has_all_of_have_a_cta_each) {
  static const grid_case cases[] = {
      {"h200", "flash2_bwd heads=16 head_dim=64 seqlen=1000", 1, 128, 2, {126, 127}},
      {"h200", "flash2_bwd heads=16 head_dim=64 seqlen=1024", 1, 128, 1, {127}},
      {"h200", "flash2_bwd heads=2 head_dim=64 seqlen=1000", 1, 16, 2, {14, 15}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_representatives(&cases[i]);
}

// Tiles of 128 x 128, 8 x 8 of them. Of 1000 x 1000 the last row and the last column of tiles are cut: the last whole
// one is in row 6, column 6.
Test(unit_engine_measured_ctas, of_the_same_loops_a_whole_tile_stands_for_the_grid) {
  static const grid_case cases[] = {
      {"h200", "matmul_tiled m=1000 n=1000 k=512 block_m=128 block_n=128 block_k=64", 0, 64, 1, {6 * 8 + 6}},
      {"h200", "matmul_tiled m=1024 n=1024 k=512 block_m=128 block_n=128 block_k=64", 0, 64, 1, {63}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_representatives(&cases[i]);
}

// Two CTAs of the grid of 128 share the SM, half the grid apart, of heads 15 and 7: both whole, or both the last of
// their head.
Test(unit_engine_measured_ctas, who_shares_the_sm_has_the_same_loops) {
  lowered l = lower_launch("h200", "flash2_bwd heads=16 head_dim=64 seqlen=1000", 1);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_launch launch = {.arch = l.arch, .tile = l.tile, .warps = l.warps};
  int64_t ctas[2];
  for (int64_t representative = 126; representative < 128; representative++) {
    ftl_measured_ctas_sharing(&launch, &segments, representative, 2, ctas);
    cr_expect_eq(ctas[0], representative);
    cr_expect_eq(ctas[1], representative - 64, "%d", (int)ctas[1]);
  }
  // A third of the grid apart, 42, lies 84: whole; 42 less is 42 whole. From the cut 127: 85 is whole, the cut one
  // before it is 79, and of 43 it is 39.
  int64_t three[3];
  ftl_measured_ctas_sharing(&launch, &segments, 126, 3, three);
  cr_expect(three[1] == 84 && three[2] == 42, "%d %d", (int)three[1], (int)three[2]);
  ftl_measured_ctas_sharing(&launch, &segments, 127, 3, three);
  cr_expect(three[1] == 79 && three[2] == 39, "%d %d", (int)three[1], (int)three[2]);
  release_lowered(&l);
}

// 64 keys in four splits: the first has them. In one split, and of a grid whose CTAs are alike, none has none.
Test(unit_engine_measured_ctas, a_cta_that_runs_no_loop_is_found_where_others_do) {
  static const struct {
    const char *parameters;
    int64_t bare;
  } cases[] = {{"flash_decode heads=1 seqlen_kv=64 head_dim=128 splits=4", 1},
               {"flash_decode heads=1 seqlen_kv=64 head_dim=128 splits=1", -1},
               {"flash2_fwd heads=1 seqlen=512 head_dim=64", -1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered l = lower_launch("h200", cases[i].parameters, 0);
    ftl_segments segments;
    cr_assert(ftl_segments_try_init(&segments, l.warps));
    int64_t ctas[FTL_MAX_REPRESENTATIVES];
    (void)ftl_measured_ctas_representatives(&segments, l.warps, ctas);
    cr_expect_eq(ftl_measured_ctas_bare(&segments, l.warps, ctas[0]), cases[i].bare, "%s", cases[i].parameters);
    release_lowered(&l);
  }
}
