// Exact counters of one small `full` run on every chip: a change that moves one says by how much and why.
// heads=4 kv_heads=2, 200 queries, 333 keys, head_dim 64, causal, 64x32 tiles, 4 warps, one stage, 1200 MHz, fp16.
#include "../../unit/engine/fixture.h"

typedef struct golden {
  const char *arch;
  int64_t cycles, insts, tensor_insts, dram_read, dram_write, l2_sectors, registers;
} golden;

static const golden goldens[] = {
#include "goldens.inc"
};

Test(golden_small, counters_of_every_chip_are_what_they_were) {
  int moved = 0;
  for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
    const golden *g = &goldens[i];
    ftl_arch *arch = shipped_arch(g->arch);
    ftl_spec spec = spec_of(
        "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=32 num_warps=4 "
        "num_stages=1 clock_mhz=1200 detail=full");
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
    moved += !same;
    ftl_arch_destroy(arch);
  }
  cr_assert_eq(moved, 0, "the lines above are what the run gives now (tests/golden/small/goldens.inc)");
}
