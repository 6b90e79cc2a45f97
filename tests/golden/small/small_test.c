// Exact counters of small `full` runs: a change that moves one says by how much and why.
#include "../../unit/engine/fixture.h"

typedef struct golden {
  const char *arch;
  int64_t cycles, insts, tensor_insts, dram_read, dram_write, l2_sectors, registers;
} golden;

// On every chip.
static const golden goldens[] = {
#include "goldens.inc"
};

// The sum of both launches.
static const golden decode_goldens[] = {
#include "decode_goldens.inc"
};

// Prints the line as it is now, and gives true, if it moved.
static bool moved(const golden *g, const char *parameters) {
  ftl_arch *arch = shipped_arch(g->arch);
  ftl_spec spec = spec_of(parameters);
  ftl_prediction p;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, &error), FTL_OK, "%s", error.message);
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

Test(golden_small, counters_of_flash2_fwd_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
    num_moved += moved(&goldens[i],
                       "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=32 "
                       "num_warps=4 num_stages=1 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/goldens.inc)");
}

Test(golden_small, counters_of_flash_decode_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof decode_goldens / sizeof *decode_goldens; i++)
    num_moved += moved(&decode_goldens[i],
                       "flash_decode batch=2 heads=8 kv_heads=2 seqlen_q=2 seqlen_kv=777 head_dim=128 causal=1 "
                       "block_m=16 block_n=64 num_warps=4 num_stages=2 splits=5 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/decode_goldens.inc)");
}
