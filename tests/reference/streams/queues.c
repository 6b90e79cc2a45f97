// Bursts of memory instructions on one SM against kernels/measurements/micro_ldmatrix_queue.csv (H200): until a warp
// has issued so many of them, each with registers of its own, of the warp that takes longest.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../timing/sm/rig.h"
#include "script/arch_loader.h"

enum { CLOCK_CYCLES = 3 };  // between two reads of the clock with one instruction between them
static ftl_arch *arch;

static void set_up(void) {
  ftl_error error;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
}

// By `warps` warps of each sub-core.
static int64_t issued(ftl_opcode opcode, int wavefronts, int warps, int count) {
  rig *r = rig_create(warps * 4);
  r->arch = *arch;
  r->arch.sm_code_cache_bytes = 0;  // the burst ran before
  for (int i = 0; i < count; i++) rig_add(r, opcode, i, -1)->wavefronts = (uint16_t)wavefronts;
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  int64_t last = 0;
  for (int w = 0; w < warps * 4; w++) {
    int64_t cycle = rig_cycle(r, w, count - 1, 0);
    if (cycle > last) last = cycle;
  }
  rig_destroy(r);
  return last + CLOCK_CYCLES;
}

// The mean distance in cycles from the bursts of a kind that all sub-cores issue.
static double mean_distance(const char *kind, ftl_opcode opcode, int wavefronts) {
  FILE *file = fopen(FTL_SOURCE_DIR "/kernels/measurements/micro_ldmatrix_queue.csv", "r");
  cr_assert_not_null(file);
  char line[256], format[96];
  snprintf(format, sizeof format, "ldmatrix_queue,%s_4x%%d,count,%%d,issued,%%lf", kind);
  double sum = 0, cycles;
  int rows = 0, warps, count;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, format, &warps, &count, &cycles) != 3) continue;
    sum += fabs((double)issued(opcode, wavefronts, warps, count) - cycles);
    rows++;
  }
  fclose(file);
  cr_assert_eq(rows, 3 * 15, "%s", kind);
  return sum / rows;
}

Test(reference_queues, what_waits_for_data_is_held_by_the_lsu_too, .init = set_up) {
  cr_expect_lt(mean_distance("LDS.128", FTL_OP_LDS, 4), 3.0);
  cr_expect_lt(mean_distance("LDSM.x4", FTL_OP_LDSM, 4), 3.0);
}

// As many as the data pipe takes: the LSU holds none of them for long.
Test(reference_queues, other_bursts_are_held_by_the_queues_of_the_subcores, .init = set_up) {
  cr_expect_lt(mean_distance("LDSM.x1", FTL_OP_LDSM, 1), 2.0);
  cr_expect_lt(mean_distance("SHFL", FTL_OP_SHFL, 0), 2.0);
}
