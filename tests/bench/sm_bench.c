// Prints, for some bodies of flash2_fwd on one SM with a memory of fixed latency, simulated warp instructions and
// events a CPU second. sm_bench [NAME|all [full]]: one of them; `full`: without runs as one event. Host instructions:
// see tests/bench/run.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lower/lower.h"
#include "machine/sm/sm.h"
#include "script/arch_loader.h"
#include "tests/spec_words.h"
#include "workloads/spec.h"

enum { LATENCY_CYCLES = 400, WINDOW_CYCLES = 200, MAX_FLIGHT = 1 << 16 };

typedef struct point {
  const char *name, *arch, *copy, *mma;
  int head_dim, block_m, block_n, num_warps, num_stages;
} point;

static const point points[] = {
    {"v100", "v100", "ldg", "mma", 64, 64, 64, 4, 1},
    {"a100_4warps", "a100_80", "cp_async", "mma", 128, 64, 64, 4, 2},
    {"a100_8warps", "a100_80", "cp_async", "mma", 128, 128, 32, 8, 2},
    {"rtx4090", "rtx4090", "cp_async", "mma", 64, 128, 64, 4, 2},
    {"h200_wgmma", "h200", "tma", "wgmma", 128, 128, 128, 8, 2},
};

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static ftl_status make_spec(ftl_spec *spec, const point *p, ftl_error *error) {
  ftl_status status = ftl_spec_init(spec, "flash2_fwd", error);
  if (status == FTL_OK) status = ftl_spec_set_text(spec, "copy", p->copy, error);
  if (status == FTL_OK) status = ftl_spec_set_text(spec, "mma", p->mma, error);
  const struct {
    const char *name;
    int value;
  } values[] = {{"heads", 32},
                {"seqlen", 8192},
                {"causal", 0},
                {"head_dim", p->head_dim},
                {"block_m", p->block_m},
                {"block_n", p->block_n},
                {"num_warps", p->num_warps},
                {"num_stages", p->num_stages}};
  for (size_t i = 0; i < sizeof values / sizeof *values && status == FTL_OK; i++)
    status = ftl_spec_set_int(spec, values[i].name, values[i].value, error);
  if (status == FTL_OK) status = ftl_spec_complete(spec, error);
  if (status == FTL_OK) spec_use_bare_code(spec);
  return status;
}

// Runs one CTA in every slot to its end; gives the cycles.
static int64_t run_sm(ftl_sm *sm, int32_t num_slots) {
  static ftl_mem_reply flight[MAX_FLIGHT];
  int64_t head = 0, tail = 0, now = 0;
  for (int32_t i = 0; i < num_slots; i++) ftl_sm_launch(sm, i, i, 10 * i);
  for (; ftl_sm_is_busy(sm); now += WINDOW_CYCLES) {
    for (; head < tail && flight[head % MAX_FLIGHT].time < now + WINDOW_CYCLES; head++)
      ftl_sm_deliver(sm, &flight[head % MAX_FLIGHT]);
    ftl_sm_advance(sm, now + WINDOW_CYCLES);
    int32_t count;
    const ftl_mem_request *requests = ftl_sm_requests(sm, &count);
    for (int32_t i = 0; i < count; i++)
      flight[tail++ % MAX_FLIGHT] =
          (ftl_mem_reply){.time = requests[i].time + LATENCY_CYCLES, .transaction = requests[i].transaction};
  }
  return now;
}

static void print_row(const point *p, int32_t num_slots, int64_t cycles, double seconds, const ftl_sm *sm,
                      const ftl_arch *arch) {
  const ftl_sm_counters *c = ftl_sm_counters_get(sm);
  int64_t events = ftl_sm_num_events(sm);
  printf(
      "%-12s %2d CTAs: %10lld warp instructions, %8lld cycles, IPC %.2f, tensor %4.1f %%, %6.2f M warp "
      "instructions a CPU s, %10lld events, %6.2f M events a CPU s\n",
      p->name, num_slots, (long long)c->warp_insts, (long long)cycles, (double)c->warp_insts / (double)cycles,
      100.0 * (double)c->tensor_busy_cycles / (double)(cycles * arch->sm_num_subcores),
      (double)c->warp_insts / seconds / 1e6, (long long)events, (double)events / seconds / 1e6);
}

static ftl_status measure(const point *p, const ftl_arch *arch, bool bulk, ftl_error *error) {
  ftl_spec spec;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  ftl_warp_program *warps = NULL;
  int num_launches;
  ftl_sm *sm = NULL;
  ftl_status status = make_spec(&spec, p, error);
  ftl_lower_options options = {.copy = (ftl_copy)spec.value[FTL_PARAM_copy], .mma = (ftl_mma)spec.value[FTL_PARAM_mma]};
  if (status == FTL_OK) status = spec.workload->build(&spec, launches, &num_launches, error);
  if (status == FTL_OK) status = ftl_lower(launches[0], arch, options, &warps, error);
  ftl_sm_config config = {.arch = arch, .program = warps, .bulk = bulk};
  if (status == FTL_OK) {
    config.num_slots = ftl_occupancy_of(warps, arch).ctas_per_sm;
    status = ftl_sm_create(&sm, &config, error);
  }
  if (status == FTL_OK) {
    double start = cpu_s();
    int64_t cycles = run_sm(sm, config.num_slots);
    print_row(p, config.num_slots, cycles, cpu_s() - start, sm, arch);
  }
  ftl_sm_destroy(sm);
  ftl_warp_program_destroy(warps);
  for (int i = 0; i < FTL_MAX_LAUNCHES; i++) ftl_tile_program_destroy(launches[i]);
  return status;
}

int main(int argc, char **argv) {
  bool bulk = argc < 3 || strcmp(argv[2], "full") != 0;
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    if (argc > 1 && strcmp(argv[1], "all") != 0 && strcmp(argv[1], points[i].name) != 0) continue;
    ftl_error error = {0};
    ftl_arch *arch = NULL;
    ftl_status status = ftl_arch_load(FTL_SOURCE_DIR "/arch_models", points[i].arch, &arch, &error);
    if (status == FTL_OK) status = measure(&points[i], arch, bulk, &error);
    if (status != FTL_OK) fprintf(stderr, "%s: %s\n", points[i].name, error.message);
    ftl_arch_destroy(arch);
  }
  return 0;
}
