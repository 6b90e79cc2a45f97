// When CTAs of an SM drive each other's code out of its instruction cache.
#include "engine/sampled/segment_code.h"

#include "engine/sampled/step_times.h"
#include "fixture.h"

enum { BEFORE, LOOP, BEHIND };

static const ftl_segment_code of_40_kib = {.bytes = {[BEFORE] = 20480, [LOOP] = 16384, [BEHIND] = 4096},
                                           .cache_bytes = 32768};

static uint64_t in(int32_t segment) { return UINT64_C(1) << segment; }

// 20 and 16 KiB do not fit into 32, 16 and 4 do. What runs once is fetched anew, but by a CTA that has the SM for
// itself, which was timed so; a loop in its first iteration, but for a CTA that follows another.
Test(unit_engine_segment_code, what_does_not_fit_together_is_fetched_anew) {
  cr_expect_not(ftl_segment_code_is_refetched(&of_40_kib, BEFORE, 1, 0, 0));
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, BEFORE, 1, 0, in(LOOP)));
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, BEHIND, 1, 0, in(LOOP)));
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, BEFORE, 1, 0, in(BEFORE)), "somewhere else in it");
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 0, in(BEHIND)));
  cr_expect_not(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 0, in(LOOP)));
  cr_expect_not(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 1, in(LOOP)));
  cr_expect_not(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 1, in(BEHIND)));
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 1, in(BEFORE)));
  cr_expect(ftl_segment_code_is_refetched(&of_40_kib, LOOP, 9, 1, in(LOOP) | in(BEFORE)));
}

Test(unit_engine_segment_code, code_that_fits_stays) {
  ftl_segment_code code = of_40_kib;
  code.stays = true;
  cr_expect_not(ftl_segment_code_is_refetched(&code, BEFORE, 1, 0, in(LOOP)));
}

// All that the warps issue of a program without loops in loops, 16 bytes each; of several roles it is not told apart.
Test(unit_engine_segment_code, segments_have_the_code_between_their_loops) {
  lowered l =
      lower_flash2("h200", "flash2_fwd heads=2 seqlen=1024 head_dim=64 num_warps=4 mma=mma copy=cp_async causal=true");
  ftl_segments segments;
  ftl_segment_code code;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_segment_code_init(&code, &segments, l.warps, 1);
  const ftl_warp_loop *loop = &l.warps->loops[segments.loops[0]];
  int64_t in_loop = 0;
  for (int32_t i = loop->begin + 1; i < loop->end; i++) {
    const ftl_warp_inst *inst = &l.warps->insts[l.warps->roles[0].first_inst + i];
    bool issues = inst->opcode != FTL_OP_TILE && inst->opcode != FTL_OP_RING_READ && inst->opcode != FTL_OP_RING_FREE &&
                  inst->opcode != FTL_OP_MBAR_ADVANCE && inst->opcode != FTL_OP_LABEL;
    if (issues) in_loop += 16 * inst->repeat;
  }
  cr_expect_eq(code.bytes[1], in_loop);
  cr_expect_gt(code.bytes[0], 0);
  cr_expect_gt(code.bytes[2], 0);
  cr_expect_not(code.stays);
  release_lowered(&l);
  l = lower_flash2("h200", "flash2_fwd heads=2 seqlen=1024 head_dim=64 num_warps=4 mma=mma copy=cp_async");
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_segment_code_init(&code, &segments, l.warps, 1);
  cr_expect(code.stays, "without a mask all CTAs go the same way");
  release_lowered(&l);
  l = lower_flash2("h200", "flash3_fwd heads=2 seqlen=1024 head_dim=64 block_n=128");
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  ftl_segment_code_init(&code, &segments, l.warps, 1);
  cr_expect(code.stays);
  release_lowered(&l);
}

// 100 lines that two CTAs fetch each, 2000 cycles where nothing holds them up: a line in 10. At 40 cycles a line a
// quarter of the CTAs gets what it asks for; half of them ask for twice what is given and get a line in 20 cycles,
// 4000, as all do.
Test(unit_engine_segment_code, fetching_is_slowed_by_how_many_do) {
  ftl_step_times *times = calloc(1, sizeof *times);
  cr_assert(times);
  times->most_ctas = 2;
  times->code.bytes[LOOP] = 12800;
  times->code_share_cycles = 40;
  times->code_convoy_cycles = 20;
  times->refetching[0].time[LOOP] = 2000 * FTL_STEP_UNIT;
  times->refetching[1].time[LOOP] = 4000 * FTL_STEP_UNIT;
  cr_expect_eq(ftl_step_times_refetch(times, LOOP, 250), 2000 * FTL_STEP_UNIT);
  cr_expect_eq(ftl_step_times_refetch(times, LOOP, 375), 3000 * FTL_STEP_UNIT);
  cr_expect_eq(ftl_step_times_refetch(times, LOOP, 500), 4000 * FTL_STEP_UNIT);
  cr_expect_eq(ftl_step_times_refetch(times, LOOP, 1000), 4000 * FTL_STEP_UNIT);
  cr_expect_eq(ftl_step_times_refetch(times, BEHIND, 1000), 0);  // no code
  times->code_convoy_cycles = 0;
  cr_expect_eq(ftl_step_times_refetch(times, LOOP, 1000), 2000 * FTL_STEP_UNIT, "a model without convoys");
  free(times);
}
