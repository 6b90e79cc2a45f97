#include "engine/answer.h"

#include "base/sectors.h"
#include "engine/gpc_clock.h"
#include "engine/power.h"

static double ratio(int64_t part, int64_t whole) { return whole > 0 ? (double)part / (double)whole : 0.0; }
static double percent(int64_t part, int64_t whole) { return 100.0 * ratio(part, whole); }

// Bytes that the DRAM bus could carry in a nanosecond.
static double dram_peak_bytes_per_ns(const ftl_arch *arch) {
  double bytes_per_cycle = (double)(arch->dram_num_channels * arch->dram_burst_bytes) / (double)arch->dram_burst_cycles;
  return bytes_per_cycle * (double)arch->clock_dram_khz * 1e-6;
}

// Of the GPC whose clock is the fastest, launch overhead included.
static double most_cycles(const ftl_launch *launch, const ftl_totals *totals) {
  const ftl_arch *arch = launch->arch;
  int64_t overhead = arch->launch_overhead_ns * totals->sm_khz / 1000000;
  int64_t spread_ppm = ftl_gpc_clock_spread_ppm(arch, totals->sm_khz, launch->onset_khz);
  return (double)(totals->cycles + overhead) * ftl_gpc_clock_fastest(spread_ppm, (int32_t)arch->chip_num_gpcs);
}

static void set_time(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work,
                     ftl_metrics *out) {
  const ftl_arch *arch = launch->arch;
  double *value = out->value;
  double khz = (double)totals->sm_khz, overhead_ns = (double)arch->launch_overhead_ns;
  double time_ns = overhead_ns + (double)totals->cycles * 1e6 / khz;
  value[FTL_METRIC_time_ns] = time_ns;
  value[FTL_METRIC_stream_time_ns] = time_ns;
  value[FTL_METRIC_cycles] = most_cycles(launch, totals);
  value[FTL_METRIC_cycles_active] = ratio(totals->sm.active_cycles, arch->chip_num_sms);
  value[FTL_METRIC_sm_clock_mhz] = khz / 1000.0;
  value[FTL_METRIC_power_w] = (double)ftl_power_mw(arch, totals, work->tensor_fp16_macs, totals->sm_khz) / 1000.0;
  value[FTL_METRIC_model_flops] = (double)launch->tile->model_flops;
  value[FTL_METRIC_executed_flops] = 2.0 * (double)work->tensor_macs;
  value[FTL_METRIC_tflops] = (double)launch->tile->model_flops / time_ns / 1000.0;
  double dram_bytes = (double)(totals->memory.dram_read_bytes + totals->memory.dram_write_bytes);
  value[FTL_METRIC_dram_pct] = 100.0 * dram_bytes / (time_ns * dram_peak_bytes_per_ns(arch));
}

static void set_memory(const ftl_totals *totals, ftl_metrics *out) {
  const ftl_memory_counters *memory = &totals->memory;
  double *value = out->value;
  value[FTL_METRIC_dram_read] = (double)memory->dram_read_bytes;
  value[FTL_METRIC_dram_write] = (double)memory->dram_write_bytes;
  value[FTL_METRIC_l2_sectors] = (double)memory->l2_sectors_from_sms;
  // As Nsight Compute counts it: lookups of traffic between the sides included.
  int64_t lookups = memory->l2_hit_sectors + memory->l2_miss_sectors + memory->l2_fabric_sectors;
  value[FTL_METRIC_l2_hit_pct] = percent(memory->l2_hit_sectors + memory->l2_fabric_hit_sectors, lookups);
  // Stores are lookups too; what TMA moves is none.
  const ftl_sm_counters *sm = &totals->sm;
  value[FTL_METRIC_l1_hit_pct] =
      percent(sm->l1_load_hit_sectors + sm->l1_store_hit_sectors, sm->l1_load_sectors + sm->l1_store_sectors);
  value[FTL_METRIC_dirty_bytes] = (double)(FTL_SECTOR_BYTES * memory->dirty_sectors);
  value[FTL_METRIC_local_sectors] = (double)sm->local_sectors;
}

static void set_sm(const ftl_launch *launch, const ftl_totals *totals, ftl_metrics *out) {
  const ftl_arch *arch = launch->arch;
  const ftl_sm_counters *sm = &totals->sm;
  double *value = out->value;
  int64_t subcore_cycles = sm->active_cycles * arch->sm_num_subcores;
  value[FTL_METRIC_insts] = (double)sm->warp_insts;
  value[FTL_METRIC_tensor_insts] = (double)sm->tensor_insts;
  value[FTL_METRIC_tensor_pct] = percent(sm->tensor_busy_cycles, subcore_cycles);
  value[FTL_METRIC_issue_pct] = percent(sm->issue_active_cycles, subcore_cycles);
  value[FTL_METRIC_warps_pct] = percent(sm->resident_warp_cycles, sm->active_cycles * arch->sm_max_warps);
  value[FTL_METRIC_bank_conflicts] = (double)sm->bank_conflicts;
  // FTL_METRIC_stall_* stand in the order of ftl_stall.
  for (int i = 0; i < FTL_STALL_COUNT; i++)
    value[FTL_METRIC_stall_selected + i] = ratio(sm->stall_cycles[i], sm->issue_active_cycles);
}
_Static_assert(FTL_METRIC_stall_sleeping - FTL_METRIC_stall_selected == FTL_STALL_SLEEPING,
               "stall metrics follow ftl_stall");

static void set_shape(const ftl_launch *launch, ftl_metrics *out) {
  const ftl_arch *arch = launch->arch;
  const ftl_warp_program *warps = launch->warps;
  const ftl_occupancy *occupancy = &launch->occupancy;
  double *value = out->value;
  int64_t num_ctas = ftl_launch_num_ctas(launch);
  value[FTL_METRIC_registers] = warps->registers_per_thread;
  value[FTL_METRIC_spill_registers] = warps->spill_registers;
  value[FTL_METRIC_shared_bytes] = (double)(warps->shared_bytes + arch->shared_reserved_bytes_per_cta);
  value[FTL_METRIC_grid] = (double)num_ctas;
  value[FTL_METRIC_block] = (double)FTL_WARP_LANES * warps->num_warps;
  value[FTL_METRIC_limit_blocks] = occupancy->limits[FTL_LIMIT_CTAS];
  value[FTL_METRIC_limit_registers] = occupancy->limits[FTL_LIMIT_REGISTERS];
  value[FTL_METRIC_limit_shared] = occupancy->limits[FTL_LIMIT_SHARED];
  value[FTL_METRIC_limit_warps] = occupancy->limits[FTL_LIMIT_WARPS];
  value[FTL_METRIC_limit_barriers] = occupancy->limits[FTL_LIMIT_BARRIERS];
  value[FTL_METRIC_ctas_per_sm] = occupancy->ctas_per_sm;
  value[FTL_METRIC_waves] = ratio(num_ctas, arch->chip_num_sms * occupancy->ctas_per_sm);
}

static void set_cache(const ftl_cache_memory *cache, ftl_metrics *out) {
  double *value = out->value;
  value[FTL_METRIC_cache_bytes] = (double)cache->page_bytes;
  value[FTL_METRIC_cache_waste_pct] = percent(cache->page_bytes - cache->filled_bytes, cache->page_bytes);
  value[FTL_METRIC_contiguous_cache_bytes] = (double)cache->contiguous_bytes;
  value[FTL_METRIC_contiguous_cache_waste_pct] =
      percent(cache->contiguous_bytes - cache->contiguous_filled_bytes, cache->contiguous_bytes);
}

void ftl_answer_metrics(const ftl_launch *launch, const ftl_totals *totals, const ftl_static_work *work,
                        ftl_metrics *out) {
  *out = (ftl_metrics){0};
  set_time(launch, totals, work, out);
  set_memory(totals, out);
  set_sm(launch, totals, out);
  set_shape(launch, out);
  ftl_compulsory_bytes needed = ftl_compulsory_bytes_of(launch->tile);
  out->value[FTL_METRIC_compulsory_read] = (double)needed.read;
  out->value[FTL_METRIC_compulsory_write] = (double)needed.written;
  set_cache(&launch->tile->cache, out);
}

static double combine_mean(const ftl_kernel_answer *kernels, int num_kernels, int metric) {
  double sum = 0, time = 0;
  for (int i = 0; i < num_kernels; i++) {
    double weight = kernels[i].metrics.value[FTL_METRIC_time_ns];
    sum += weight * kernels[i].metrics.value[metric];
    time += weight;
  }
  return time > 0 ? sum / time : 0;
}

void ftl_answer_combine(const ftl_kernel_answer *kernels, int num_kernels, ftl_metrics *out) {
  if (num_kernels == 1) {
    *out = kernels[0].metrics;
    return;
  }
  for (int metric = 0; metric < FTL_METRIC_COUNT; metric++) {
    double sum = 0, max = 0;
    for (int i = 0; i < num_kernels; i++) {
      double value = kernels[i].metrics.value[metric];
      sum += value;
      if (value > max) max = value;
    }
    ftl_combine combine = ftl_metric_get((ftl_metric)metric)->combine;
    out->value[metric] = combine == FTL_COMBINE_SUM   ? sum
                         : combine == FTL_COMBINE_MAX ? max
                                                      : combine_mean(kernels, num_kernels, metric);
  }
}
