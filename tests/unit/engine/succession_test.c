// CTAs that share an SM: how unequally it serves them by their age, and what it costs them to follow each other.
#include <math.h>

#include "engine/sampled/begin_marks.h"
#include "engine/sampled/lone_sm.h"
#include "engine/sampled/loop_marks.h"
#include "timed.h"

enum { SM_KHZ = 1800000, NUM_LATENCIES = FTL_NUM_STEP_LATENCIES };

static const int64_t LATENCIES[NUM_LATENCIES] = {300, 1000, 1300, 2000, 6000};

static void start(timed *t, const char *parameters) { start_timed(t, "h200", parameters, false, SM_KHZ, LATENCIES); }

// Of an iteration in which both CTAs run the loop, by how much the younger one's takes longer.
static double age_share(timed *t) {
  const ftl_step_point *shared = ftl_step_times_point(&t->times, 1, 0);
  int32_t loop = 2 * t->segments.num_loops - 1;
  while (loop > 1 && t->times.times_run[loop] < 4) loop -= 2;
  return shared->age_cycles[loop] * FTL_SIXTEENTHS_PER_CYCLE / (double)shared->time_sixteenths[loop];
}

#define TWO_AN_SM "heads=264 seqlen_q=128 seqlen_kv=4096 head_dim=128 block_m=128 "

// Two CTAs of 128 x 64 tiles with mma.sync issue by age: on the H200 the later is slower by up to 16.6 % (cta_age.csv).
// Those of lean code whose wgmmas wait for tiles that were asked for three steps ahead take turns at the tensor cores,
// and neither gets ahead of the other: the last ones of a launch come in pairs to their SMs on the H200.
Test(unit_engine_succession, older_ctas_get_ahead_where_they_issue_first) {
  timed t;
  start(&t, TWO_AN_SM "block_n=64 num_warps=4 num_stages=2 mma=mma copy=cp_async code=plain");
  cr_assert_eq(t.times.most_ctas, 2);
  double unequal = age_share(&t);
  cr_expect(unequal > 0.05 && unequal < 0.25, "%.3f", unequal);
  stop(&t);
  start(&t, TWO_AN_SM "block_n=32 num_warps=4 num_stages=3 mma=wgmma copy=cp_async code=lean refill=behind");
  cr_assert_eq(t.times.most_ctas, 2);
  double equal = age_share(&t);
  cr_expect_float_eq(equal, 0, 0.004, "%.4f", equal);
  stop(&t);
  // These settle half an iteration apart where every latency is the same, and hardware has them apart by the mean.
  start(&t,
        "heads=264 seqlen_q=64 seqlen_kv=4096 head_dim=128 block_m=64 block_n=64 num_warps=4 num_stages=2 mma=mma "
        "copy=cp_async code=plain");
  cr_assert_eq(t.times.most_ctas, 2);
  cr_expect_float_eq(age_share(&t), (double)t.l.arch->sm_age_spread_permille / 1000, 1e-3, "%.4f", age_share(&t));
  stop(&t);
}

// Three CTAs, the second of which started last. Iterations of 100, 120 and 110 cycles: 20 more from the first to the
// last. They begin them 50, 90 and 60 after they started, and end 30, 10 and 20 behind them.
Test(unit_engine_succession, age_is_the_growth_of_times_over_the_order_of_starts) {
  ftl_segments segments = {.num_loops = 1, .outer.loop = -1};
  ftl_loop_marks *marks = calloc(1, sizeof *marks);
  cr_assert(marks);
  marks->segments = &segments;
  const int64_t starts[] = {0, 10, 5}, iteration[] = {100, 120, 110}, before[] = {50, 90, 60}, behind[] = {30, 10, 20};
  int64_t ends[3];
  for (int32_t slot = 0; slot < 3; slot++) {
    for (int32_t i = 0; i < 12; i++)
      marks->cycle[slot][0][marks->count[slot][0]++] = starts[slot] + before[slot] + (i + 1) * iteration[slot];
    ends[slot] = marks->cycle[slot][0][11] + behind[slot];
  }
  double cycles[3];
  ftl_loop_marks_age_cycles(marks, 3, starts, ends, cycles);
  cr_expect_float_eq(cycles[0], 40, 1e-9, "%f", cycles[0]);
  cr_expect_float_eq(cycles[1], 20, 1e-9, "%f", cycles[1]);
  cr_expect_float_eq(cycles[2], -20, 1e-9, "%f", cycles[2]);
  ftl_loop_marks_age_cycles(marks, 1, starts, ends, cycles);
  cr_expect_eq(cycles[1], 0, "one CTA has no other before it");
  marks->count[2][0] = 3;
  ftl_loop_marks_age_cycles(marks, 3, starts, ends, cycles);
  cr_expect_eq(cycles[1], 0, "three iterations do not tell");
  free(marks);
}

static void hear_nothing(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                         const ftl_warp_inst *inst) {
  (void)context, (void)cycle, (void)slot, (void)warp, (void)cta, (void)inst;
}

static int64_t run_slots(const lowered *l, ftl_lone_ctas ctas, ftl_sm_counters *counters) {
  ftl_sm_config config = {
      .arch = l->arch, .program = l->warps, .num_slots = ctas.num_slots, .is_warm = true, .bulk = true};
  ftl_lone_latency latency = {300, 300, 300, 300};
  cr_assert_eq(ftl_lone_sm_run(&config, SM_KHZ, latency, &ctas, hear_nothing, NULL, counters, NULL), FTL_OK);
  return counters->warp_insts;
}

// Of one slot a CTA takes as long behind itself as alone, and begins when the slot is filled again. Of two slots none
// is quicker than alone.
Test(unit_engine_succession, a_slots_ctas_run_one_behind_the_other) {
  lowered l = lower_flash2("h200", "heads=8 seqlen_q=64 seqlen_kv=256 head_dim=64 block_m=64 block_n=64 num_warps=4");
  int64_t refill = l.arch->launch_cta_start_cycles, starts[] = {0, 0}, same[] = {3, 3, 3}, ends[6];
  ftl_sm_counters counters;
  int64_t insts = run_slots(&l, (ftl_lone_ctas){1, 3, same, starts, ends}, &counters), alone = ends[0];
  for (int32_t i = 1; i < 3; i++)  // a few cycles of it are the port's and the tensor core's of before
    cr_expect_float_eq((double)(ends[i] - ends[i - 1]), (double)(refill + alone), 8, "%lld, %lld",
                       (long long)(ends[i] - ends[i - 1]), (long long)alone);
  int64_t ctas[] = {0, 1, 2, 3, 4, 5};
  cr_expect_eq(run_slots(&l, (ftl_lone_ctas){2, 3, ctas, starts, ends}, &counters), 2 * insts);
  for (int32_t i = 2; i < 6; i++) cr_expect_geq(ends[i] - ends[i - 2], refill + alone - 8, "%d", (int)i);
  release_lowered(&l);
}

// A CTA that starts while another computes waits longer for its first iterations than two that start together. Code
// that does not fit the instruction cache is driven out by the other CTA meanwhile, which costs more.
Test(unit_engine_succession, following_each_other_costs_time_and_code) {
  timed t;
  start(&t,
        "heads=264 seqlen=640 causal=true head_dim=64 block_m=128 block_n=80 num_warps=4 num_stages=1 mma=mma "
        "copy=cp_async code=plain");
  cr_assert_eq(t.times.most_ctas, 2);
  int64_t fits = t.times.succession.extra_sixteenths, whole = t.times.whole_cta_sixteenths[1][0];
  cr_expect(fits > 0 && 5 * fits < whole, "%lld of %lld", (long long)fits, (long long)whole);
  t.l.arch->sm_code_cache_bytes = 8192;
  ftl_step_times_fini(&t.times);
  cr_assert_eq(ftl_step_times_init(&t.times, &t.launch, &t.segments, SM_KHZ, LATENCIES, NULL), FTL_OK);
  cr_expect_gt(t.times.succession.extra_sixteenths, fits);
  stop(&t);
  start(&t, "heads=132 seqlen=2048 head_dim=128 block_m=128 block_n=128 num_warps=8 mma=wgmma copy=tma");
  cr_assert_eq(t.times.most_ctas, 1);
  cr_expect_eq(t.times.succession.extra_sixteenths, 0, "alone on its SM");
  stop(&t);
}

// Of two slots the CTAs behind the first ones ask 500 and 700, 600 and 600 cycles after those have ended, in the mean
// of their warps' loads: their deviation from 600 is the root of (100^2 + 100^2) / 4.
Test(unit_engine_succession, ctas_ask_apart_by_what_they_take_to_their_loads) {
  ftl_begin_marks marks = {.sum = {{0, 2 * 1500, 3200}, {0, 1600, 4 * 3100}}, .count = {{0, 2, 1}, {0, 1, 4}}};
  const int64_t ends[] = {1000, 1000, 2500, 2500, 4000, 4000};
  cr_expect_float_eq(ftl_begin_marks_spread(&marks, 2, 3, ends), sqrt(2 * 100.0 * 100.0 / 4), 1e-9);
  marks.count[1][2] = 0;
  cr_expect_eq(ftl_begin_marks_spread(&marks, 2, 3, ends), 0, "one loads nothing ahead of its loops");
}

// A CTA of three an SM comes to its loads while the other two compute: in `full` 155 to 200 cycles of L2 apart, those
// of a wave (64 x 64 tiles of 512 keys).
Test(unit_engine_succession, ctas_that_begin_beside_others_ask_at_different_times) {
  timed t;
  start(&t,
        "heads=256 seqlen_q=1024 seqlen_kv=512 head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 mma=mma "
        "copy=cp_async code=plain");
  cr_assert_eq(t.times.most_ctas, 3);
  double spread = t.times.succession.asks_spread_cycles;
  cr_expect(spread > 120 && spread < 280, "%f", spread);
  stop(&t);
}

static double active_share(const char *parameters) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(arch, parameters, NULL);
  ftl_arch_destroy(arch);
  return p.metrics.value[FTL_METRIC_cycles_active] / p.metrics.value[FTL_METRIC_cycles];
}

// 650 CTAs, two an SM: 122 are left for the third wave. Those that end together leave their SM two places at once, and
// 61 SMs get two: (2 * 132 + 61) / (3 * 132) = 0.82 (measured: 0.82). Those that end one after the other leave one on
// nearly every SM, which runs alone in less time.
Test(unit_engine_succession, the_last_ctas_come_in_pairs_where_none_gets_ahead) {
  double pairs = active_share(
      "batch=5 heads=10 seqlen=1664 head_dim=128 block_m=128 block_n=32 num_warps=4 num_stages=4 "
      "mma=wgmma copy=cp_async code=lean refill=behind");
  cr_expect(pairs > 0.80 && pairs < 0.86, "%.3f", pairs);
  double singles = active_share(
      "batch=5 heads=10 seqlen=1664 head_dim=128 block_m=128 block_n=64 num_warps=4 "
      "num_stages=2 mma=mma copy=cp_async code=plain");
  cr_expect_gt(singles, 0.9, "%.3f", singles);
}

// Of `sampled` against `full`. *longer_pct: how much longer it takes.
static double sectors_off_pct(const char *parameters, double *longer_pct) {
  char of[2][512];
  const char *details[] = {"sampled", "full"};
  ftl_prediction p[2];
  ftl_arch *arch = shipped_arch("h200");
  for (int i = 0; i < 2; i++) {
    snprintf(of[i], sizeof of[i], "%s clock_mhz=1755 conditions=ncu detail=%s", parameters, details[i]);
    p[i] = prediction_of(arch, of[i], NULL);
  }
  ftl_arch_destroy(arch);
  *longer_pct = 100 * (p[0].metrics.value[FTL_METRIC_cycles] / p[1].metrics.value[FTL_METRIC_cycles] - 1);
  return 100 * fabs(p[0].metrics.value[FTL_METRIC_l2_sectors] / p[1].metrics.value[FTL_METRIC_l2_sectors] - 1);
}

// CTAs of a head merge what they ask for as far apart as they come to it, in loops that wait for nothing: by what holds
// up those that begin beside others (without it 15 % fewer sectors than in `full`, of many waves of three CTAs an SM),
// and by how long each waits for its queries from DRAM (8 % fewer, of one CTA an SM).
Test(unit_engine_succession, ctas_merge_as_far_apart_as_they_begin) {
  double longer_pct, unused;
  double beside_others = sectors_off_pct(
      "heads=64 seqlen_q=2048 seqlen_kv=128 head_dim=64 block_m=64 block_n=64 num_warps=4 num_stages=2 mma=mma "
      "copy=cp_async code=plain",
      &longer_pct);
  cr_expect_leq(beside_others, 5, "%f", beside_others);
  cr_expect_leq(longer_pct, 2.5, "what holds a CTA up is part of its first segment's time: %f", longer_pct);
  double alone = sectors_off_pct(
      "heads=33 seqlen_q=512 seqlen_kv=1024 head_dim=128 block_m=128 block_n=64 num_warps=8 num_stages=2 mma=mma "
      "copy=cp_async code=plain",
      &unused);
  cr_expect_leq(alone, 6, "%f", alone);
  // of four stages the first tile alone is waited for (were all of them, 14 % fewer)
  double ahead = sectors_off_pct(
      "heads=33 seqlen=512 head_dim=128 block_m=128 block_n=64 num_warps=4 num_stages=4 mma=wgmma copy=cp_async "
      "code=lean",
      &unused);
  cr_expect_leq(ahead, 6, "%f", ahead);
}

// Where a loop waits for what it asks, CTAs of a head are pulled together on the chips, and begin together here: of the
// requests of four in a GPC a little more than one in four passes the coalescer, 0.275 if each waited for its queries.
Test(unit_engine_succession, ctas_whose_loop_waits_begin_together) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(arch,
                                   "heads=33 seqlen_q=512 seqlen_kv=1024 head_dim=128 block_m=128 block_n=128 "
                                   "num_warps=8 num_stages=1 schedule=interleaved mma=mma copy=cp_async code=plain "
                                   "clock_mhz=1755 conditions=ncu",
                                   NULL);
  ftl_arch_destroy(arch);
  double once = 2 * 33 * 512 * 128 * 2 / 32, asked = 132 * 2.0 * 1024 * 128 * 2 / 32;  // Q and O; K and V
  double share = (p.metrics.value[FTL_METRIC_l2_sectors] - once) / asked;
  cr_expect(share > 0.25 && share < 0.265, "%f", share);
}

// CTAs of decoding share nothing, so that how far apart they begin is no matter: `full` takes 133 thousand cycles, with
// waits of first tiles at their channels it would be 151 here.
Test(unit_engine_succession, ctas_that_share_nothing_do_not_wait_apart) {
  ftl_arch *arch = shipped_arch("h200");
  ftl_prediction p = prediction_of(
      arch,
      "paged_decode batch=16 heads=40 kv_heads=40 seqlen_q=1 lengths=37:1290:412:2005:188:733:96:1544:301:64:878:1170:"
      "523:240:1821:660 page_size=16 page_layout=scattered head_dim=128 block_m=16 block_n=64 num_warps=4 "
      "num_stages=3 splits=4 mma=mma copy=cp_async code=plain layout=bshd conditions=ncu",
      NULL);
  ftl_arch_destroy(arch);
  double cycles = p.metrics.value[FTL_METRIC_cycles];
  cr_expect(cycles > 120e3 && cycles < 145e3, "%f", cycles);
}
