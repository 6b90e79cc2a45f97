// What a warp waits for shared memory beside others, against kernels/measurements/micro_shared_latency.csv (H200).
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../timing/sm/rig.h"
#include "script/arch_loader.h"

// As in the microbenchmark, but for the length of its run.
enum { PROBES = 64, DELAY_FMAS = 256, SHORTEST_CYCLES = 8000, NUM_MEASURED = 120 };

typedef struct waits {
  double latency;  // cycles of an instruction of the probe, each of which needs the one before it
  double period;   // cycles of a round of the others
} waits;

typedef struct setting {
  char probe[16], other[16];
  int fmas, warps;
} setting;

static ftl_arch *arch;

static void set_up(void) {
  ftl_error error;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
}

// Its lanes read 16 bytes from each other, so that an LDS too has four wavefronts.
static void add_other(rig *r, const char *kind) {
  if (strcmp(kind, "SHFL") == 0)
    rig_add(r, FTL_OP_SHFL, 1, 0);
  else
    rig_add(r, strcmp(kind, "LDS") == 0 ? FTL_OP_LDS : FTL_OP_LDSM, 1, 0)->wavefronts = 4;
}

static void add_probe(rig *r, const char *kind) {
  for (int i = 0; i < DELAY_FMAS; i++) rig_add(r, FTL_OP_FFMA, 0, 0);
  for (int i = 0; i < PROBES; i++) {
    if (strcmp(kind, "SHFL") == 0)
      rig_add(r, FTL_OP_SHFL, 0, 0);
    else
      rig_add(r, FTL_OP_LDS, 0, 0)->wavefronts = 1;
  }
  rig_add(r, FTL_OP_FFMA, 0, 0);
  rig_add(r, FTL_OP_EXIT, -1, -1);
}

static waits simulated(const setting *s) {
  rig *r = rig_create(1);
  r->arch = *arch;
  add_probe(r, s->probe);
  rig_role(r, s->warps);
  int unrolled = s->fmas > 50 ? 4 : 8;
  int rounds = SHORTEST_CYCLES / (40 + 4 * s->fmas) / unrolled + 1;
  int32_t loop = rig_loop(r, 0, 0, rounds);
  for (int j = 0; j < unrolled; j++) {
    add_other(r, s->other);
    for (int i = 0; i < s->fmas; i++) rig_add(r, FTL_OP_FFMA, 1, 1);
    rig_add(r, FTL_OP_LOP, 0, 1);
  }
  rig_end_loop(r, loop);
  int exit = r->program.roles[1].num_insts;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  waits w = {
      .latency = (double)(rig_cycle(r, 0, DELAY_FMAS + PROBES, 0) - rig_cycle(r, 0, DELAY_FMAS, 0)) / PROBES,
  };
  for (int i = 1; i <= s->warps; i++)
    w.period += (double)(rig_cycle(r, i, exit, 0) - rig_cycle(r, i, 1, 0)) / (rounds * unrolled * s->warps);
  rig_destroy(r);
  return w;
}

static bool read_next(FILE *file, setting *s, waits *measured) {
  char line[256];
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "shared_latency,%15[^_]_beside_%15[^_]_fma%d,warps,%d,latency,%lf", s->probe, s->other, &s->fmas,
               &s->warps, &measured->latency) != 5)
      continue;
    const char *period = fgets(line, sizeof line, file) ? strstr(line, ",period,") : NULL;
    cr_assert(period && sscanf(period, ",period,%lf", &measured->period) == 1, "%s", line);
    return true;
  }
  return false;
}

// Up to two other warps a sub-core cost a warp two cycles at most. Where the pipe is full (LDS and LDSM every four
// cycles of four warps a sub-core and more) all wait for it. In between, where four and six warps a sub-core leave few
// issue slots free, the H200 makes them wait for each other twice as long as here (docs/model_sm.md).
Test(reference_loaded, shared_memory_beside_other_warps, .init = set_up) {
  FILE *file = fopen(FTL_SOURCE_DIR "/kernels/measurements/micro_shared_latency.csv", "r");
  cr_assert_not_null(file);
  setting s;
  waits measured;
  int count = 0;
  double latency_error = 0, period_error = 0;
  for (; read_next(file, &s, &measured); count++) {
    waits w = simulated(&s);
    double latency = fabs(w.latency - measured.latency), period = fabs(w.period / measured.period - 1);
    latency_error += latency / measured.latency, period_error += period;
    if (s.warps <= 8)
      cr_expect_lt(latency, 2.1, "%s beside %d warps of %s: %.1f", s.probe, s.warps, s.other, w.latency);
    if (s.warps >= 16 && s.fmas == 1 && strcmp(s.other, "SHFL") != 0)
      cr_expect_lt(period, 0.01, "%d warps of %s: %.1f", s.warps, s.other, w.period);
  }
  fclose(file);
  cr_assert_eq(count, NUM_MEASURED);
  cr_expect_lt(latency_error / count, 0.053, "%.4f", latency_error / count);
  cr_expect_lt(period_error / count, 0.048, "%.4f", period_error / count);
}
