// How much of each resource a launch uses: from what its programs amount to, and what its run counted.
#include <string.h>

#include "base/sectors.h"
#include "engine/answer.h"

static const ftl_resource_info infos[FTL_RESOURCE_COUNT] = {
#define FTL_RESOURCE(id_, name_, full_) [FTL_RESOURCE_##id_] = {.id = #id_, .name = name_, .full = full_},
#include "engine/resources.def"
#undef FTL_RESOURCE
};

const ftl_resource_info *ftl_resource_get(ftl_resource resource) { return &infos[resource]; }

ftl_resource ftl_resource_most_used(const float *usage_pct) {
  int top = 0;
  for (int i = 1; i < FTL_RESOURCE_COUNT; i++)
    if (usage_pct[i] > usage_pct[top]) top = i;
  return (ftl_resource)top;
}

static float percent(double part, double whole) { return whole > 0 ? (float)(100 * part / whole) : 0; }
static float larger(float a, float b) { return a > b ? a : b; }

// Sub-core cycles of the pipe called `pipe`: `own_cycles`, and those of the classes that the chip sends to it.
static double pipe_cycles(const ftl_arch *arch, const ftl_static_work *work, const char *pipe, double own_cycles) {
  if (strcmp(arch->imad_pipe, pipe) == 0)
    own_cycles += (double)(work->insts[FTL_WORK_IMAD] * arch->imad_interval_cycles);
  if (strcmp(arch->cvt_pipe, pipe) == 0) own_cycles += (double)(work->insts[FTL_WORK_CVT] * arch->cvt_interval_cycles);
  return own_cycles;
}

static void set_pipes(const ftl_arch *arch, const ftl_totals *totals, const ftl_static_work *work, float *pct) {
  double active = (double)totals->sm.active_cycles, subcores = active * (double)arch->sm_num_subcores;
  double fp32 = (double)(work->insts[FTL_WORK_FP32] * arch->fp32_interval_cycles);
  double alu = (double)(work->insts[FTL_WORK_ALU] * arch->alu_interval_cycles);
  double half = (double)(work->insts[FTL_WORK_HALF] * arch->half_interval_cycles);
  double sfu = (double)(work->insts[FTL_WORK_SFU] * arch->sfu_interval_cycles);
  double mio = (double)work->insts[FTL_WORK_MIO];
  pct[FTL_RESOURCE_tensor] = percent((double)totals->sm.tensor_busy_cycles, subcores);
  pct[FTL_RESOURCE_issue] = percent((double)totals->sm.issue_active_cycles, subcores);
  pct[FTL_RESOURCE_fp32] = percent(pipe_cycles(arch, work, "fp32", fp32), subcores);
  pct[FTL_RESOURCE_alu] = percent(pipe_cycles(arch, work, "alu", alu), subcores);
  pct[FTL_RESOURCE_half] = percent(pipe_cycles(arch, work, "half", half), subcores);
  pct[FTL_RESOURCE_sfu] = percent(pipe_cycles(arch, work, "sfu", sfu), subcores);
  // Each sub-core sends them at its own interval, and the SM takes them one by one.
  pct[FTL_RESOURCE_mio] = larger(percent(mio * (double)arch->mio_issue_interval_cycles, subcores),
                                 percent(mio * (double)arch->mio_lsu_interval_cycles, active));
  pct[FTL_RESOURCE_shared] = percent((double)totals->sm.shared_wavefronts, active);
}

static void set_memory(const ftl_arch *arch, const ftl_totals *totals, float *pct) {
  enum { DIRECTIONS = 2 };
  const ftl_memory_counters *memory = &totals->memory;
  double elapsed_ns = (double)totals->cycles * 1e6 / (double)totals->sm_khz;
  double l2_cycles = elapsed_ns * (double)arch->clock_l2_khz * 1e-6;
  double dram_cycles = elapsed_ns * (double)arch->clock_dram_khz * 1e-6;
  double dram_peak =
      dram_cycles * (double)(arch->dram_num_channels * arch->dram_burst_bytes) / (double)arch->dram_burst_cycles;
  double read = FTL_SECTOR_BYTES * (double)(memory->l2_read_sectors + memory->coalesced_sectors);
  double written = FTL_SECTOR_BYTES * (double)memory->l2_write_sectors;
  float sm_ports = percent(read, l2_cycles * (double)(arch->chip_num_sms * arch->noc_sm_read_bytes_per_cycle));
  float gpc_ports = percent(read, l2_cycles * (double)(arch->chip_num_gpcs * arch->noc_gpc_read_bytes_per_cycle));
  float out_ports = percent(written, l2_cycles * (double)(arch->chip_num_sms * arch->noc_sm_write_bytes_per_cycle));
  pct[FTL_RESOURCE_ports] = larger(larger(sm_ports, gpc_ports), out_ports);
  pct[FTL_RESOURCE_far] = percent(FTL_SECTOR_BYTES * (double)memory->l2_fabric_sectors,
                                  l2_cycles * (double)(DIRECTIONS * arch->noc_far_bytes_per_cycle));
  double from_l2 = FTL_SECTOR_BYTES * (double)memory->l2_read_sectors;
  double to_l2 = written + (double)(memory->l2_read_sectors * arch->l2_read_request_bytes) / FTL_LINE_SECTORS;
  double slice_cycles = l2_cycles * (double)arch->l2_num_slices;
  float slices_out = percent(from_l2, l2_cycles * (double)ftl_arch_l2_bytes_per_cycle(arch));
  if (slices_out > 100) slices_out = 100;  // in `full` a launch whose lines lie well gets more than others sustain
  pct[FTL_RESOURCE_l2] =
      larger(slices_out, percent(to_l2, slice_cycles * (double)arch->l2_slice_intake_bytes_per_cycle));
  pct[FTL_RESOURCE_hbm] = percent((double)(memory->dram_read_bytes + memory->dram_write_bytes), dram_peak);
}

void ftl_answer_usage(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work,
                      float *usage_pct) {
  set_pipes(launch->arch, totals, work, usage_pct);
  set_memory(launch->arch, totals, usage_pct);
}
