// A roofline a GPU model: TFLOP/s of the algorithm over its FLOPs per byte of HBM traffic.
#include <stdio.h>
#include <string.h>

#include "arch/tensor_rates.h"
#include "report/arch_report.h"
#include "report/page_internal.h"
#include "report/plot.h"

typedef struct roof {
  double tflops, gb_per_s;
} roof;

// False: the model lacks a key, as one stored by another version may.
static bool make_roof(const ftl_arch *arch, roof *out) {
  static const char *const keys[] = {
      "tensor.peak_fma_per_cycle", "chip.num_sms",      "clock.sm_max_khz", "dram.num_channels",
      "dram.burst_bytes",          "dram.burst_cycles", "clock.dram_khz"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (!ftl_arch_is_set(arch, ftl_arch_key_find(keys[i]))) return false;
  }
  out->tflops = ftl_arch_tensor_tflops(arch, arch->tensor_peak_fma_per_cycle, arch->clock_sm_max_khz);
  out->gb_per_s = ftl_arch_dram_gb_per_s(arch);
  return true;
}

static bool point_of(const ftl_page_row *row, double *flops_per_byte, double *tflops) {
  const double *value = row->prediction->metrics.value;
  if (!row->prediction->feasible || row->hbm_bytes <= 0 || value[FTL_METRIC_tflops] <= 0) return false;
  *flops_per_byte = value[FTL_METRIC_model_flops] / row->hbm_bytes;
  *tflops = value[FTL_METRIC_tflops];
  return *flops_per_byte > 0;  // false for NaN too
}

static void add_series(const ftl_page *page, const ftl_stored_arch *arch, const ftl_plot *plot) {
  double x = 0, y = 0;
  int64_t num_rows = page->contents->num_predictions;
  for (int64_t first = 0, end = 0; first < num_rows; first = end) {  // rows are by workload
    char style[8];
    const char *workload = page->rows[first].prediction->workload;
    snprintf(style, sizeof style, "c%d", ftl_page_colour(page, workload));
    bool is_open = false;
    for (; end < num_rows && strcmp(page->rows[end].prediction->workload, workload) == 0; end++) {
      if (page->rows[end].arch != arch || !point_of(&page->rows[end], &x, &y)) continue;
      if (!is_open) ftl_plot_points_begin(plot, style);
      is_open = true;
      ftl_plot_point(plot, x, y);
    }
    if (is_open) ftl_plot_points_end(plot);
  }
}

// Gives whether there was anything to draw.
static bool add_roofline(const ftl_page *page, const ftl_stored_arch *arch, const char *gpu) {
  roof r;
  char title[64], description[160];
  double x = 0, y = 0;
  int64_t count = 0;
  if (!make_roof(arch->model, &r)) return false;
  double ridge = r.tflops * 1e3 / r.gb_per_s;  // FLOP per byte at which both bind
  ftl_plot plot = {
      .x = {.label = "FLOP per byte of HBM"}, .y = {.label = "TFLOP/s of the algorithm"}, .out = page->out};
  for (int64_t i = 0; i < page->contents->num_predictions; i++) {
    if (page->rows[i].arch != arch || !point_of(&page->rows[i], &x, &y)) continue;
    ftl_plot_axis_hold(&plot.x, x);
    ftl_plot_axis_hold(&plot.y, y);
    count++;
  }
  if (count == 0) return false;
  ftl_plot_axis_hold(&plot.x, ridge);
  ftl_plot_axis_hold(&plot.y, r.tflops);
  snprintf(title, sizeof title, "Roofline of %s", gpu);
  snprintf(description, sizeof description,
           "%lld predictions under a roof of %.0f TFLOP/s and %.0f GB/s, which meet at "
           "%.0f FLOP per byte",
           (long long)count, r.tflops, r.gb_per_s, ridge);
  ftl_text_add(page->out, "<figure><figcaption>");
  ftl_markup_add(page->out, gpu);
  ftl_text_add(page->out, ": %.0f TFLOP/s, %.0f GB/s</figcaption>", r.tflops, r.gb_per_s);
  ftl_plot_begin(&plot, title, description);
  ftl_plot_line(&plot, ridge * 1e-9, r.tflops * 1e-9, ridge, r.tflops, "roof");
  ftl_plot_line(&plot, ridge, r.tflops, plot.x.most > ridge ? plot.x.most : ridge, r.tflops, "roof");
  add_series(page, arch, &plot);
  ftl_plot_end(&plot);
  ftl_text_add(page->out, "</figure>\n");
  return true;
}

void ftl_page_add_rooflines(ftl_page *page) {
  bool any = false;
  if (page->contents->num_predictions == 0) return;
  ftl_page_section(page, "rooflines", "Rooflines");
  ftl_text_add(page->out,
               "<p>FLOPs of the algorithm (unmasked pairs only) against bytes that HBM carried. The roof is the tensor "
               "cores' dense fp16 rate at the highest clock, and what the DRAM bus carries at most; tf32, fp8 and "
               "integers have other roofs.\n<div class=charts>\n");
  for (int i = 0; i < page->contents->num_archs; i++) {
    if (add_roofline(page, &page->contents->archs[i], page->gpus[i])) any = true;
  }
  ftl_text_add(page->out, "</div>\n");
  if (any) {
    ftl_page_legend(page);
  } else {
    ftl_text_add(page->out, "<p>No prediction here multiplies matrices, or the GPU models lack the keys of a roof.\n");
  }
  ftl_text_add(page->out, "</section>\n");
}
