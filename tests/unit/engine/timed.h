// A program whose segments are timed on an SM that is run in detail.
#ifndef FTL_TESTS_UNIT_ENGINE_TIMED_H
#define FTL_TESTS_UNIT_ENGINE_TIMED_H

#include "engine/sampled/step_times.h"
#include "fixture.h"

typedef struct timed {
  lowered l;
  ftl_launch launch;
  ftl_segments segments;
  ftl_step_times times;
} timed;

static inline void start_timed(timed *t, const char *arch, const char *parameters, bool no_bulk, int64_t sm_khz,
                               const int64_t latencies[FTL_NUM_STEP_LATENCIES]) {
  t->l = lower_flash2(arch, parameters);
  t->launch = (ftl_launch){.arch = t->l.arch,
                           .tile = t->l.tile,
                           .warps = t->l.warps,
                           .occupancy = ftl_occupancy_of(t->l.warps, t->l.arch),
                           .no_bulk = no_bulk};
  cr_assert(ftl_segments_try_init(&t->segments, t->l.warps));
  cr_assert_eq(ftl_step_times_init(&t->times, &t->launch, &t->segments, sm_khz, latencies, NULL), FTL_OK);
}

static inline void stop(timed *t) {
  cr_expect_eq(ftl_step_times_status(&t->times, NULL), FTL_OK);
  ftl_step_times_fini(&t->times);
  release_lowered(&t->l);
}

#endif
