// Which memory latencies an SM is run with, and that what it answers does not hang on the order of the questions.
#include "engine/sampled/step_times.h"

#include "engine/sampled/traffic.h"
#include "timed.h"

enum { SM_KHZ = 1200000, NUM_LATENCIES = FTL_NUM_STEP_LATENCIES };

static const int64_t LATENCIES[NUM_LATENCIES] = {300, 1000, 1300, 2000, 6000};

static void start_at(timed *t, const char *arch, const char *parameters, bool no_bulk,
                     const int64_t latencies[NUM_LATENCIES]) {
  start_timed(t, arch, parameters, no_bulk, SM_KHZ, latencies);
}

static void start_on(timed *t, const char *arch, const char *parameters, bool no_bulk) {
  start_at(t, arch, parameters, no_bulk, LATENCIES);
}

static void start_of(timed *t, const char *parameters, bool no_bulk) { start_on(t, "a100_80", parameters, no_bulk); }

static void start(timed *t, bool no_bulk) {
  start_of(t,
           "heads=8 seqlen=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 code=lean scaling=exponent row_sums=end "
           "q_operand=registers",
           no_bulk);
}

static void expect_measured(const timed *t, const bool expected[NUM_LATENCIES]) {
  for (int32_t i = 0; i < NUM_LATENCIES; i++)
    cr_expect_eq(t->times.is_measured[i], expected[i], "latency %lld", (long long)LATENCIES[i]);
}

// An answer lies between the two latencies around the one that is asked for. The first two are always known: whether an
// iteration hides DRAM's latency decides what both take.
Test(unit_engine_step_times, only_latencies_that_are_asked_for_are_measured) {
  timed t;
  start(&t, false);
  expect_measured(&t, (bool[]){true, true, false, false, false});
  (void)ftl_step_times_get(&t.times, 1, 1, LATENCIES[1]);
  expect_measured(&t, (bool[]){true, true, false, false, false});
  (void)ftl_step_times_get(&t.times, 1, 1, LATENCIES[1] + 1);
  expect_measured(&t, (bool[]){true, true, true, false, false});
  (void)ftl_step_times_get_later(&t.times, 1, 1, LATENCIES[4]);
  expect_measured(&t, (bool[]){true, true, true, true, true});
  stop(&t);
}

// Nor on whether the SM is observed at each instruction or, its runs being one event, at branches alone.
Test(unit_engine_step_times, answers_do_not_hang_on_the_order_of_the_questions) {
  timed up, down;
  start(&up, false);
  start(&down, true);
  int32_t most = up.times.most_ctas;
  cr_assert_gt(most, 1);
  int64_t upward[NUM_LATENCIES], downward[NUM_LATENCIES];
  for (int32_t i = 0; i < NUM_LATENCIES; i++) upward[i] = ftl_step_times_get(&up.times, 1, most, LATENCIES[i]);
  for (int32_t i = NUM_LATENCIES; i-- > 0;) downward[i] = ftl_step_times_get(&down.times, 1, most, LATENCIES[i]);
  for (int32_t i = 0; i < NUM_LATENCIES; i++) cr_expect_eq(upward[i], downward[i]);
  cr_expect_lt(upward[0], upward[4]);
  for (int32_t i = 1; i < NUM_LATENCIES; i++) cr_expect_leq(upward[i - 1], upward[i]);
  stop(&up);
  stop(&down);
}

// Rows of one step: each pass is a loop that runs once and has the time of the code before it. That code takes none.
Test(unit_engine_step_times, code_whose_time_a_loop_has_takes_none) {
  timed t;
  start_of(&t, "softmax_safe heads=1 seqlen_q=4096 seqlen_kv=1024 block_m=1 num_warps=4 schedule=reread", false);
  int32_t most = t.times.most_ctas;
  int64_t num_loops = 0;
  for (int32_t s = 0; s < t.times.num_segments; s++) {
    int64_t time = ftl_step_times_point(&t.times, 1, 0)->time_sixteenths[s];
    num_loops += time > 0 && s % 2 == 1;
    if (time == 0 && s % 2 == 0) cr_expect_eq(ftl_step_times_get(&t.times, s, most, LATENCIES[0]), 0, "segment %d", s);
  }
  cr_expect_eq(num_loops, 3);
  stop(&t);
}

// What a CTA takes, by the times of its segments.
static int64_t whole_cta(timed *t, int32_t resident) {
  int64_t sum = 0;
  for (int32_t s = 0; s < t->times.num_segments; s++)
    sum += t->times.times_run[s] * ftl_step_times_get(&t->times, s, resident, LATENCIES[0]);
  return sum;
}

// While some of 16 CTAs wait in one pass over their rows others compute in theirs: a pass may take less than the issue
// slots of all of them in it, as the last does here, but not all passes together. What was measured is less than that
// and is stretched, all segments alike; were there little to issue, it would be the times themselves.
Test(unit_engine_step_times, all_segments_together_take_no_less_than_they_issue) {
  timed t;
  start_on(&t, "h200", "softmax_safe heads=1 seqlen_q=4096 seqlen_kv=4096 block_m=1 num_warps=4 schedule=reread",
           false);
  int32_t most = t.times.most_ctas, last_pass = t.times.num_segments - 2;
  const int64_t *measured = ftl_step_times_point(&t.times, 1, 0)->time_sixteenths;
  int64_t least = most * t.times.least_of_cta_sixteenths, whole = 0;
  for (int32_t s = 0; s < t.times.num_segments; s++) whole += t.times.times_run[s] * measured[s];
  cr_assert_lt(whole, least);
  cr_expect_float_eq((double)whole_cta(&t, most) / (double)least, 1, 0.001);
  cr_expect_eq(ftl_step_times_get(&t.times, last_pass, most, LATENCIES[0]), measured[last_pass] * least / whole);
  cr_expect_lt(ftl_step_times_get(&t.times, last_pass, most, LATENCIES[0]), most * t.times.least_sixteenths[last_pass]);
  t.times.least_of_cta_sixteenths = 1;
  cr_expect_eq(ftl_step_times_get(&t.times, last_pass, most, LATENCIES[0]), measured[last_pass]);
  stop(&t);
}

// CTAs without loops begin one behind the other too, within a lone CTA's time, from four beginnings: all at once they
// would meet at each pipe, by which they took 1.12 times what `full` has for these rows.
Test(unit_engine_step_times, ctas_of_straight_code_begin_one_behind_the_other) {
  timed t;
  start_of(&t,
           "softmax_online heads=1 seqlen_q=4096 seqlen_kv=1000 block_m=4 block_n=4096 num_warps=4 schedule=registers",
           false);
  cr_assert_eq(t.times.num_segments, 1);
  cr_expect_eq(ftl_step_times_point(&t.times, 1, 0)->counters.warp_insts,
               4 * t.times.most_ctas * ftl_step_times_point(&t.times, 0, 0)->counters.warp_insts);
  stop(&t);
}

static void start_shared(timed *t, const char *chip, const char *blocks) {
  char parameters[256];
  snprintf(parameters, sizeof parameters,
           "heads=64 seqlen=2048 head_dim=64 num_warps=4 num_stages=2 mma=mma copy=cp_async code=plain guard=masked "
           "refill=early q_operand=registers %s",
           blocks);
  start_on(t, chip, parameters, false);
}

// What runs of all CTAs that share an SM issued, of which a lone CTA issues a part.
static int64_t num_beginnings(timed *t) {
  const ftl_step_point *alone = ftl_step_times_point(&t->times, 0, 0),
                       *shared = ftl_step_times_point(&t->times, t->times.most_ctas - 1, 0);
  int64_t of_one_run = t->times.most_ctas * alone->counters.warp_insts;
  cr_expect_eq(shared->counters.warp_insts % of_one_run, 0);
  return shared->counters.warp_insts / of_one_run;
}

// On the H200 the older of two CTAs of 128 x 64 tiles issues first, and an iteration of both takes 1.50 times as long
// as one CTA's alone however far apart they begin: two beginnings are run. On the A100 one of two CTAs of 64 x 128
// tiles takes as long as how they begin makes it, and four are run.
Test(unit_engine_step_times, ctas_that_share_an_sm_are_run_from_several_beginnings) {
  timed t;
  start_shared(&t, "h200", "block_m=128 block_n=64");
  cr_assert_eq(t.times.most_ctas, 2);
  cr_expect_eq(num_beginnings(&t), 2);
  const ftl_step_point *alone = ftl_step_times_point(&t.times, 0, 0), *shared = ftl_step_times_point(&t.times, 1, 0);
  double longer = (double)shared->time_sixteenths[1] / (double)alone->time_sixteenths[1];
  cr_expect(longer > 1.45 && longer < 1.55, "%.2f", longer);
  stop(&t);
  start_shared(&t, "a100_80", "block_m=64 block_n=128");
  cr_expect_eq(num_beginnings(&t), 4);
  stop(&t);
}

// With seven tiles of queries a head a CTA and the one 132 before it are six tiles apart: one has 24 iterations without
// a mask, the other none. With eight they are four apart. What an iteration takes two CTAs that run it is the same.
// At a latency below L2's all lines come alike: which come from the near side hangs on their addresses.
Test(unit_engine_step_times, ctas_that_share_an_sm_run_the_same_loops) {
  static const int32_t seqlens[] = {896, 1024};
  static const int64_t latencies[NUM_LATENCIES] = {150, 1000, 1300, 2000, 6000};
  int64_t times[2];
  for (int32_t i = 0; i < 2; i++) {
    timed t;
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "batch=100 heads=3 seqlen=%d causal=true head_dim=64 block_m=128 block_n=32 num_warps=8 num_stages=1 "
             "mma=mma copy=cp_async schedule=interleaved code=plain",
             seqlens[i]);
    start_at(&t, "h200", parameters, false, latencies);
    cr_assert_eq(t.times.most_ctas, 2);
    times[i] = ftl_step_times_get(&t.times, 2 * t.segments.num_loops - 1, 2, latencies[0]);
    stop(&t);
  }
  cr_expect_eq(times[0], times[1], "%lld and %lld", (long long)times[0], (long long)times[1]);
}

// The first of five CTAs of 64 x 32 tiles has ended twelve iterations of the loop without a mask before the last has
// begun its first, and its pace is nearer to that of one CTA. Of 48 all run enough together: five end an iteration in
// 1.79 times what one takes alone, and 1.78 in loops of 128 iterations on average.
Test(unit_engine_step_times, loops_that_ctas_run_one_after_the_other_are_made_longer) {
  timed t;
  start_on(&t, "h200",
           "batch=4 heads=14 seqlen=2560 head_dim=64 causal=true block_m=64 block_n=32 num_warps=4 num_stages=2 "
           "mma=wgmma copy=cp_async code=lean scaling=twice row_sums=behind mask_steps=blocks",
           false);
  cr_assert_eq(t.times.most_ctas, 5);
  const ftl_step_point *alone = ftl_step_times_point(&t.times, 0, 0), *shared = ftl_step_times_point(&t.times, 1, 0);
  double longer = (double)shared->time_sixteenths[3] / (double)alone->time_sixteenths[3];
  cr_expect(longer > 1.74 && longer < 1.84, "%.2f", longer);
  stop(&t);
}

// Each iteration waits for loads of its own. With K and V in a buffer each, a product lies between asking and waiting,
// which hides DRAM's latency and most of twice that: an iteration takes the same whether L2 or DRAM answers. With one
// buffer for both, the iteration has every cycle of latency, twice.
Test(unit_engine_step_times, a_loop_may_hide_the_latency_of_the_loads_that_it_waits_for) {
  static const char *const schedules[] = {"interleaved", "stages"};
  for (int32_t i = 0; i < 2; i++) {
    timed t;
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=8 seqlen=2048 head_dim=128 block_m=128 block_n=128 num_warps=8 num_stages=1 mma=mma copy=cp_async "
             "code=plain schedule=%s",
             schedules[i]);
    start_on(&t, "h200", parameters, false);
    int64_t hit = ftl_step_times_get(&t.times, 1, 1, LATENCIES[0]),
            dram = ftl_step_times_get(&t.times, 1, 1, LATENCIES[1]);
    if (i == 0)
      cr_expect_eq(dram, hit);
    else
      cr_expect_geq(dram - hit, 2 * (LATENCIES[1] - LATENCIES[0]) * FTL_SIXTEENTHS_PER_CYCLE);
    stop(&t);
  }
}

// What Triton makes of two stages: the next tiles are asked for behind the second product and awaited where the next
// step begins, so that L2 answers too late though they are a step ahead. Asked for early, or two steps ahead, even DRAM
// answers in time.
Test(unit_engine_step_times, a_loop_that_asks_late_shows_the_latency_of_what_it_asks_for_ahead) {
  static const struct {
    const char *stages;
    bool shows;
  } cases[] = {
      {"num_stages=2 refill=late", true}, {"num_stages=2 refill=early", false}, {"num_stages=3 refill=late", false}};
  for (int32_t i = 0; i < 3; i++) {
    timed t;
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=8 seqlen=2048 head_dim=128 block_m=64 block_n=64 num_warps=4 mma=wgmma copy=cp_async %s",
             cases[i].stages);
    start_on(&t, "h200", parameters, false);
    cr_expect_eq(ftl_step_times_show_latency(&t.times, 1), cases[i].shows, "%s", cases[i].stages);
    stop(&t);
  }
}

// On the H200 a channel refreshes for 180 of 3900 ns: it holds up one in 21 chunks of four lines. A row of 2 KB is four
// chunks, none of which is late; one of 16 KB is 32, and waits for its late ones as long as they are late, at least
// once.
Test(unit_engine_step_times, a_refresh_holds_up_one_chunk_in_as_many_as_lie_between_two) {
  static const int32_t columns[] = {1024, 8192};
  ftl_arch *arch = shipped_arch("h200");
  int64_t hit, far, miss, refreshing = ftl_traffic_refreshing_latency(arch, SM_KHZ);
  ftl_traffic_latencies(arch, SM_KHZ, &hit, &far, &miss);
  const int64_t latencies[NUM_LATENCIES] = {hit, hit + far + miss, refreshing, 4 * refreshing, 8 * refreshing};
  for (int32_t i = 0; i < 2; i++) {
    timed t;
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "softmax_online heads=1 seqlen_q=4096 seqlen_kv=%d block_m=1 block_n=%d num_warps=4 schedule=registers",
             columns[i], columns[i]);
    start_at(&t, "h200", parameters, false, latencies);
    cr_assert_eq(t.times.num_segments, 1);
    int64_t unloaded = ftl_step_times_get(&t.times, 0, 1, latencies[1]),
            late = ftl_step_times_get(&t.times, 0, 1, latencies[2]);
    bool is_right = i == 0 ? late == unloaded : late - unloaded >= refreshing - latencies[1];
    cr_expect(is_right, "%d columns: %lld, %lld", columns[i], (long long)unloaded, (long long)late);
    stop(&t);
  }
  ftl_arch_destroy(arch);
}

// Four CTAs fit an SM of the A100, which has 108.
Test(unit_engine_step_times, no_more_ctas_are_measured_than_the_grid_has_for_an_sm) {
  static const struct {
    int heads;
    int32_t most_ctas;
  } grids[] = {{1, 1}, {108, 1}, {109, 2}, {216, 2}, {324, 3}, {432, 4}, {433, 4}, {2000, 4}};
  for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters,
             "heads=%d seqlen_q=64 seqlen_kv=1024 head_dim=64 block_m=64 block_n=64 num_warps=4 code=lean",
             grids[i].heads);
    timed t;
    start_of(&t, parameters, false);
    cr_expect_eq(t.launch.occupancy.ctas_per_sm, 4);
    cr_expect_eq(t.times.most_ctas, grids[i].most_ctas, "%d heads: %d", grids[i].heads, t.times.most_ctas);
    stop(&t);
  }
}
