#include "explain/launch_view.h"

#include <string.h>

#include "arch/tensor_rates.h"
#include "base/sectors.h"
#include "report/arch_report.h"

// --- the roofline ---

// Of the kernel's types; of fp16 where the chip's table has not these, or the kernel has no types.
static int64_t peak_fma_per_cycle(const ftl_arch *arch, const ftl_spec *spec) {
  char dtype[32], accumulator[32] = "fp32";
  if (!ftl_spec_takes(spec, FTL_PARAM_dtype)) return arch->tensor_peak_fma_per_cycle;
  const char *type = ftl_spec_text(spec, FTL_PARAM_dtype, dtype);  // "fp8_e4m3"
  const char *sum = accumulator;
  if (ftl_spec_takes(spec, FTL_PARAM_acc_dtype)) sum = ftl_spec_text(spec, FTL_PARAM_acc_dtype, accumulator);
  for (int i = 0; i < ftl_arch_num_tensor_rates(); i++) {
    ftl_tensor_rate rate = ftl_arch_tensor_rate(arch, i);
    bool is_same = strncmp(rate.operands, type, strlen(rate.operands)) == 0 && strcmp(rate.accumulator, sum) == 0;
    if (is_same && rate.dense_fma_per_cycle > 0) return rate.dense_fma_per_cycle;
  }
  return arch->tensor_peak_fma_per_cycle;
}

static double smaller(double a, double b) { return a < b ? a : b; }

static ftl_roofline roofline_of(const ftl_arch *arch, const ftl_spec *spec, const ftl_metrics *metrics) {
  const double *value = metrics->value;
  ftl_roofline r = {.flops = value[FTL_METRIC_model_flops]};
  // Less than the tensors may be read: SparQ reads a part of them.
  r.least_bytes =
      smaller(value[FTL_METRIC_compulsory_read], value[FTL_METRIC_dram_read]) + value[FTL_METRIC_compulsory_write];
  r.hbm_bytes = value[FTL_METRIC_dram_read] + value[FTL_METRIC_dram_write];
  r.l2_bytes = FTL_SECTOR_BYTES * value[FTL_METRIC_l2_sectors];
  r.peak_tflops = ftl_arch_tensor_tflops(arch, peak_fma_per_cycle(arch, spec), arch->clock_sm_max_khz);
  r.peak_hbm_gbps = ftl_arch_dram_gb_per_s(arch);
  r.peak_l2_gbps = (double)ftl_arch_l2_bytes_per_cycle(arch) * (double)arch->clock_l2_khz * 1e-6;
  double compute_ns = r.flops / r.peak_tflops * 1e-3, memory_ns = r.least_bytes / r.peak_hbm_gbps;
  r.is_compute_bound = compute_ns > memory_ns;
  r.least_time_ns = r.is_compute_bound ? compute_ns : memory_ns;
  return r;
}

// --- time and occupancy ---

static bool is_stream(const ftl_spec *spec) { return spec->value[FTL_PARAM_conditions] != 0; }

static const char *limit_of(const ftl_metrics *metrics) {
  static const struct {
    ftl_metric metric;
    const char *name;
  } limits[] = {{FTL_METRIC_limit_registers, "registers"},
                {FTL_METRIC_limit_shared, "shared memory"},
                {FTL_METRIC_limit_warps, "warps"},
                {FTL_METRIC_limit_barriers, "barriers"},
                {FTL_METRIC_limit_blocks, "CTA slots"}};
  size_t least = 0;
  if (metrics->value[FTL_METRIC_waves] < 1) return "grid";
  for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
    if (metrics->value[limits[i].metric] < metrics->value[limits[least].metric]) least = i;
  return limits[least].name;
}

// Under `stream` conditions the gap before a launch counts as overhead too.
static void set_time(const ftl_arch *arch, const ftl_spec *spec, ftl_launch_view *view) {
  const double *value = view->metrics->value;
  view->time_ns = value[is_stream(spec) ? FTL_METRIC_stream_time_ns : FTL_METRIC_time_ns];
  view->overhead_ns = (double)arch->launch_overhead_ns + view->time_ns - value[FTL_METRIC_time_ns];
  double clock_ghz = value[FTL_METRIC_sm_clock_mhz] * 1e-3, elapsed_ns = view->time_ns - view->overhead_ns;
  view->work_ns = smaller(value[FTL_METRIC_cycles_active] / clock_ghz, elapsed_ns);
  view->idle_ns = elapsed_ns - view->work_ns;
}

// Times are sums over launches, whatever the clock of each; shares of resources are weighed by them.
static void add_launches(const ftl_row *row, ftl_launch_view *sum) {
  const ftl_prediction *p = row->prediction;
  double usage_ns[FTL_RESOURCE_COUNT] = {0};
  for (int k = 0; k < p->num_kernels; k++) {
    ftl_launch_view launch = ftl_launch_view_of(row, k);
    sum->time_ns += launch.time_ns;
    sum->overhead_ns += launch.overhead_ns;
    sum->work_ns += launch.work_ns;
    sum->idle_ns += launch.idle_ns;
    for (int i = 0; i < FTL_RESOURCE_COUNT; i++) usage_ns[i] += launch.usage_pct[i] * launch.time_ns;
  }
  for (int i = 0; i < FTL_RESOURCE_COUNT; i++) sum->usage_pct[i] = (float)(usage_ns[i] / sum->time_ns);
}

ftl_launch_view ftl_launch_view_of(const ftl_row *row, int launch_idx) {
  const ftl_prediction *p = row->prediction;
  ftl_launch_view view = {.name = "sum", .bottleneck = p->bottleneck, .metrics = &p->metrics};
  if (launch_idx < 0) {
    add_launches(row, &view);
  } else {
    const ftl_kernel_answer *kernel = &p->kernels[launch_idx];
    view.name = kernel->name;
    view.bottleneck = ftl_bottleneck_name(kernel->bottleneck);
    view.metrics = &kernel->metrics;
    memcpy(view.usage_pct, kernel->usage_pct, sizeof view.usage_pct);
    view.limited_by = limit_of(view.metrics);
    set_time(row->arch, &p->spec, &view);
  }
  view.roofline = roofline_of(row->arch, &p->spec, view.metrics);
  return view;
}

int ftl_launch_view_stalls(const ftl_launch_view *view, ftl_metric out[FTL_NUM_STALLS]) {
  const double least = 0.005;  // warps an issue; less prints as 0.00
  int count = 0;
  for (int i = FTL_METRIC_stall_selected + 1; i <= FTL_METRIC_stall_sleeping; i++) {
    if (view->metrics->value[i] < least) continue;
    int at = count++;
    for (; at > 0 && view->metrics->value[out[at - 1]] < view->metrics->value[i]; at--) out[at] = out[at - 1];
    out[at] = (ftl_metric)i;
  }
  return count;
}
