// Exact counters of small `full` runs, one test a kernel of goldens.def.
#include "../../thinned.h"
#include "../../unit/engine/fixture.h"

typedef struct golden {
  const char *arch;
  int64_t cycles, insts, tensor_insts, dram_read, dram_write, l2_sectors, registers;
} golden;

// Prints the line as it is now, and gives true, if it moved.
static bool moved(const golden *g, const char *parameters) {
  ftl_arch *arch = shipped_arch(g->arch);
  ftl_spec spec = spec_of(parameters);
  ftl_prediction p;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, &error), FTL_OK, "%s", error.message);
  cr_assert(p.feasible, "%s: %s", g->arch, p.reason);
  golden now = {.arch = g->arch,
                .cycles = (int64_t)p.metrics.value[FTL_METRIC_cycles],
                .insts = (int64_t)p.metrics.value[FTL_METRIC_insts],
                .tensor_insts = (int64_t)p.metrics.value[FTL_METRIC_tensor_insts],
                .dram_read = (int64_t)p.metrics.value[FTL_METRIC_dram_read],
                .dram_write = (int64_t)p.metrics.value[FTL_METRIC_dram_write],
                .l2_sectors = (int64_t)p.metrics.value[FTL_METRIC_l2_sectors],
                .registers = (int64_t)p.metrics.value[FTL_METRIC_registers]};
  bool same = now.cycles == g->cycles && now.insts == g->insts && now.tensor_insts == g->tensor_insts &&
              now.dram_read == g->dram_read && now.dram_write == g->dram_write && now.l2_sectors == g->l2_sectors &&
              now.registers == g->registers;
  if (!same)
    fprintf(stderr, "    {\"%s\", %lld, %lld, %lld, %lld, %lld, %lld, %lld},\n", now.arch, (long long)now.cycles,
            (long long)now.insts, (long long)now.tensor_insts, (long long)now.dram_read, (long long)now.dram_write,
            (long long)now.l2_sectors, (long long)now.registers);
  ftl_arch_destroy(arch);
  return !same;
}

static void hold(const golden *lines, size_t num_lines, const char *parameters) {
  int num_moved = 0, count = 0;
  for (size_t i = 0; i < num_lines; i++)
    if (thinned_runs(&count)) num_moved += moved(&lines[i], parameters);
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/goldens.def)");
}

#define KERNEL(name, parameters, ...)                      \
  Test(golden_small, name) {                               \
    static const golden lines[] = {__VA_ARGS__};           \
    hold(lines, sizeof lines / sizeof *lines, parameters); \
  }
#include "goldens.def"
