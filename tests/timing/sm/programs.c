// flash2_fwd as it is lowered: every instruction of the checker's walk issues, and shortcuts change no counter.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "lower/lower.h"
#include "machine/sm/sm.h"
#include "script/arch_loader.h"
#include "tests/spec_words.h"
#include "workloads/spec.h"

enum { LATENCY_CYCLES = 300, MAX_FLIGHT = 1 << 14 };

typedef struct point {
  const char *arch;
  int head_dim, block_m, block_n, num_warps, num_stages, causal, seqlen;
} point;

static const point points[] = {
    {"v100", 64, 64, 64, 4, 1, 0, 192},     {"t4", 64, 64, 64, 4, 2, 1, 160},
    {"a100_80", 128, 64, 64, 4, 2, 1, 330}, {"rtx4090", 64, 128, 64, 4, 3, 0, 257},
    {"h200", 128, 128, 128, 8, 2, 1, 520},  {"h200", 64, 64, 64, 4, 3, 0, 300},
};

typedef struct built {
  ftl_arch *arch;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  ftl_warp_program *warps;
} built;

static built build(const point *p) {
  built b = {0};
  ftl_error error = {0};
  ftl_spec spec;
  int num_launches;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", p->arch, &b.arch, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  const struct {
    const char *name;
    int value;
  } values[] = {{"heads", 2},
                {"seqlen", p->seqlen},
                {"causal", p->causal},
                {"head_dim", p->head_dim},
                {"block_m", p->block_m},
                {"block_n", p->block_n},
                {"num_warps", p->num_warps},
                {"num_stages", p->num_stages}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    cr_assert_eq(ftl_spec_set_int(&spec, values[i].name, values[i].value, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  spec_use_bare_code(&spec);
  ftl_lower_options options = {.copy = FTL_COPY_AUTO};
  cr_assert_eq(ftl_lower_resolve(b.arch, &options, &error), FTL_OK, "%s", error.message);
  spec.value[FTL_PARAM_copy] = options.copy;
  spec.value[FTL_PARAM_mma] = options.mma;
  cr_assert_eq(spec.workload->build(&spec, b.launches, &num_launches, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_lower(b.launches[0], b.arch, options, &b.warps, &error), FTL_OK, "%s", error.message);
  return b;
}

static void destroy(built *b) {
  ftl_warp_program_destroy(b->warps);
  for (int i = 0; i < FTL_MAX_LAUNCHES; i++) ftl_tile_program_destroy(b->launches[i]);
  ftl_arch_destroy(b->arch);
}

typedef struct outcome {
  ftl_sm_counters counters;
  int64_t end;
  int32_t num_slots;
} outcome;

// One CTA in each slot, to the end.
static outcome run(const built *b, bool bulk, int64_t window) {
  static ftl_mem_reply flight[MAX_FLIGHT];
  int64_t head = 0, tail = 0;
  outcome o = {.num_slots = ftl_occupancy_of(b->warps, b->arch).ctas_per_sm};
  ftl_sm_config config = {.arch = b->arch, .program = b->warps, .num_slots = o.num_slots, .bulk = bulk};
  ftl_sm *sm;
  ftl_error error = {0};
  cr_assert_eq(ftl_sm_create(&sm, &config, &error), FTL_OK, "%s", error.message);
  for (int32_t i = 0; i < o.num_slots; i++) ftl_sm_launch(sm, i, i % b->launches[0]->num_ctas, 50 * i);
  for (int64_t now = 0; ftl_sm_is_busy(sm); now += window) {
    char text[4096];
    ftl_sm_describe(sm, text, sizeof text);
    cr_assert_lt(now, 10000000, "stuck:\n%s", text);
    for (; head < tail && flight[head % MAX_FLIGHT].time < now + window; head++)
      ftl_sm_deliver(sm, &flight[head % MAX_FLIGHT]);
    ftl_sm_advance(sm, now + window);
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(sm, &count);
    for (int32_t i = 0; i < count; i++)
      flight[tail++ % MAX_FLIGHT] =
          (ftl_mem_reply){.time = requests[i].time + LATENCY_CYCLES, .transaction = requests[i].transaction};
    const ftl_sm_finished *finished = ftl_sm_finished_ctas(sm, &count);
    for (int32_t i = 0; i < count; i++)
      if (finished[i].time > o.end) o.end = finished[i].time;
  }
  o.counters = *ftl_sm_counters_get(sm);
  ftl_sm_destroy(sm);
  return o;
}

static void expect_same(const point *p, const outcome *a, const outcome *b) {
  const int64_t *x = (const int64_t *)&a->counters, *y = (const int64_t *)&b->counters;
  cr_assert_eq(a->end, b->end, "%s: %lld, %lld", p->arch, (long long)a->end, (long long)b->end);
  for (size_t i = 0; i < sizeof a->counters / sizeof *x; i++)
    cr_assert_eq(x[i], y[i], "%s: counter %zu is %lld, %lld", p->arch, i, (long long)x[i], (long long)y[i]);
}

Test(timing_sm_programs, lowered_programs_run_whole_and_shortcuts_change_nothing) {
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    built b = build(&points[i]);
    outcome bulk = run(&b, true, 200), single = run(&b, false, 200), short_windows = run(&b, true, 31);
    expect_same(&points[i], &bulk, &single);
    expect_same(&points[i], &bulk, &short_windows);
    int64_t insts = 0;
    for (int32_t cta = 0; cta < bulk.num_slots; cta++) {
      ftl_work work;
      ftl_error error = {0};
      cr_assert_eq(ftl_work_of_warps(b.warps, cta % b.launches[0]->num_ctas, &work, &error), FTL_OK, "%s",
                   error.message);
      insts += work.warp_insts;
    }
    cr_assert_eq(bulk.counters.warp_insts, insts, "%s: %lld issued, %lld in the program", points[i].arch,
                 (long long)bulk.counters.warp_insts, (long long)insts);
    destroy(&b);
  }
}
