// Launches that run one after the other.
#include "engine/pipeline.h"

#include "engine/power.h"
#include "fixture.h"

typedef struct chain {
  lowered launches[FTL_MAX_LAUNCHES];
  ftl_pipeline pipeline;
} chain;

// The first launches of a workload.
static void run_launches(chain *c, const char *parameters, int num_launches) {
  c->pipeline.num_launches = num_launches;
  ftl_error error = {0};
  for (int i = 0; i < num_launches; i++) {
    lowered *l = &c->launches[i];
    *l = (lowered){.arch = shipped_arch("h200"), .spec = spec_of(parameters)};
    cr_assert_eq(ftl_predict_programs(&l->spec, l->arch, i, &l->tile, &l->warps, &error), FTL_OK, "%s", error.message);
    ftl_launch launch = {
        .arch = l->arch, .tile = l->tile, .warps = l->warps, .occupancy = ftl_occupancy_of(l->warps, l->arch)};
    c->pipeline.launches[i] =
        (ftl_pipeline_launch){.launch = launch, .work = ftl_static_work_of(l->warps, ftl_launch_num_ctas(&launch))};
  }
  cr_assert_eq(ftl_pipeline_run(&c->pipeline, &error), FTL_OK, "%s", error.message);
}

// Chained, at a clock that is held.
static void run_chain(chain *c, const char *parameters, int num_launches) {
  *c = (chain){.pipeline = {.caches = {.chain = true}, .held_khz = 1500000}};
  run_launches(c, parameters, num_launches);
}

static void release_chain(chain *c) {
  for (int i = 0; i < c->pipeline.num_launches; i++) release_lowered(&c->launches[i]);
}

// 4 heads of 2048 tokens: the product of 128 x 64 tiles asks for 64 lines of keys at least, the softmax after it for
// steps of a row of 1024 columns of 2 bytes, which are 16 lines.
Test(unit_engine_pipeline, chained_launches_sample_l2_as_the_busy_one_with_the_smallest_tiles_needs) {
  chain c;
  run_chain(&c, "standard_attention heads=4 seqlen=2048 head_dim=64 elementwise=epilogue", 2);
  cr_expect_eq(c.pipeline.launches[1].plan.tile_lines, 16);
  cr_expect_eq(c.pipeline.launches[0].plan.tile_lines, 16);
  release_chain(&c);
}

// A copy of the queries, 4 x 256 KiB, by 2 rows of 128 bytes; then the product writes 4 x 8 MiB, more than eight times
// what the copy reads and writes.
Test(unit_engine_pipeline, a_launch_that_moves_little_does_not_choose_the_sample) {
  chain c;
  run_chain(&c, "standard_attention heads=4 seqlen=2048 head_dim=64 elementwise=eager_baddbmm", 3);
  cr_assert_str_eq(c.pipeline.launches[0].launch.tile->name, "copy_queries");
  cr_expect_lt(8 * c.pipeline.launches[0].plan.moved_bytes, c.pipeline.launches[2].plan.moved_bytes);
  cr_expect_eq(c.pipeline.launches[0].plan.moved_bytes, 2 * 4 * 2048 * 64 * 2);
  cr_expect_eq(c.pipeline.launches[2].plan.tile_lines, 64);
  cr_expect_eq(c.pipeline.launches[0].plan.tile_lines, 64);
  release_chain(&c);
}

// 32 heads of 256 tiles, 62 waves, of which a probe of three finds a clock. The whole launch draws a little less, so
// that its power allows one step of 15 MHz more: it has that clock, and is not run again.
Test(unit_engine_pipeline, a_probed_launch_has_the_clock_that_its_own_power_allows) {
  chain c = {0};
  run_launches(&c, "flash3_fwd heads=32 seqlen=32768 head_dim=128 block_n=128", 1);
  const ftl_pipeline_launch *one = &c.pipeline.launches[0];
  const ftl_arch *arch = one->launch.arch;
  int64_t top_khz = ftl_power_top_khz(arch, one->work.tensor_fp16_macs);
  cr_expect_lt(one->totals.sm_khz, top_khz);
  cr_expect_eq(one->totals.sm_khz, ftl_power_clock_khz(arch, &one->totals, one->work.tensor_fp16_macs, 1, top_khz));
  release_chain(&c);
}
