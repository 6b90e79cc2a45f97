// time = SM cycles / clock; SM cycles = active cycles / share of time in which SMs have work; active cycles =
// instructions / issue rate. So log(time ratio) is the sum of four logs, and each says how much it contributes.
#include "report/why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum factor { INSTRUCTIONS, ISSUE_RATE, IDLE_SMS, CLOCK, NUM_FACTORS } factor;

static double metric(const ftl_row *row, ftl_metric m) { return row->prediction->metrics.value[m]; }
static double time_ns(const ftl_row *row) { return ftl_prediction_time_ns(row->prediction); }

// log(rival / best) of a metric; 0 where it is not known.
static double log_ratio(const ftl_row *best, const ftl_row *rival, ftl_metric m) {
  double b = metric(best, m), r = metric(rival, m);
  return b > 0 && r > 0 ? log(r / b) : 0;
}

static void split(const ftl_row *best, const ftl_row *rival, double *shares) {
  double cycles = log_ratio(best, rival, FTL_METRIC_cycles);
  double active = log_ratio(best, rival, FTL_METRIC_cycles_active);
  double total = log(time_ns(rival) / time_ns(best));
  shares[INSTRUCTIONS] = log_ratio(best, rival, FTL_METRIC_insts);
  shares[ISSUE_RATE] = active - shares[INSTRUCTIONS];
  shares[IDLE_SMS] = cycles - active;
  shares[CLOCK] = total - cycles;
}

// --- what is behind a share ---

static void add_instructions(const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  ftl_text_add(out, "%.0f %% fewer warp instructions",
               100 * (1 - metric(best, FTL_METRIC_insts) / metric(rival, FTL_METRIC_insts)));
  double best_spills = metric(best, FTL_METRIC_spill_registers), spills = metric(rival, FTL_METRIC_spill_registers);
  double flops = log_ratio(best, rival, FTL_METRIC_executed_flops);
  if (spills > best_spills) {
    ftl_text_add(out, " (it spills %.0f registers a thread, this one %.0f)", spills, best_spills);
  } else if (flops > log(1.01)) {
    ftl_text_add(out, " (%.0f %% fewer executed FLOPs on masked and padded parts)", 100 * (1 - exp(-flops)));
  }
}

// The stall reason that the rival has most in excess, in cycles a warp waits per instruction that it issues.
static void add_stalls(const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  const double least_excess = 0.01;
  int largest = -1;
  for (int i = FTL_METRIC_stall_wait; i <= FTL_METRIC_stall_sleeping; i++) {
    double excess = metric(rival, (ftl_metric)i) - metric(best, (ftl_metric)i);
    if (excess < least_excess) continue;
    if (largest < 0 || excess > metric(rival, (ftl_metric)largest) - metric(best, (ftl_metric)largest)) {
      largest = i;
    }
  }
  if (largest < 0) return;
  char name[32];
  ftl_text_add(out, ", %.2f against %.2f warps stalled on %s", metric(best, (ftl_metric)largest),
               metric(rival, (ftl_metric)largest), ftl_stall_name((ftl_metric)largest, name));
}

static void add_pair(const ftl_row *best, const ftl_row *rival, ftl_metric m, const char *label, ftl_text *out) {
  const double least_difference_pct = 0.5;
  double b = metric(best, m), r = metric(rival, m);
  if (b - r >= least_difference_pct) ftl_text_add(out, ", %s %.1f %% against %.1f %%", label, b, r);
}

static void add_issue_rate(const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  ftl_text_add(out, "issues in %.1f %% of cycles against %.1f %%", metric(best, FTL_METRIC_issue_pct),
               metric(rival, FTL_METRIC_issue_pct));
  add_stalls(best, rival, out);
  add_pair(best, rival, FTL_METRIC_warps_pct, "occupancy", out);
  add_pair(best, rival, FTL_METRIC_tensor_pct, "tensor pipe", out);
  double bytes_best = metric(best, FTL_METRIC_dram_read) + metric(best, FTL_METRIC_dram_write);
  double bytes_rival = metric(rival, FTL_METRIC_dram_read) + metric(rival, FTL_METRIC_dram_write);
  if (bytes_rival > 1.05 * bytes_best) {
    ftl_text_add(out, ", HBM %.0f MB against %.0f MB", bytes_best / 1e6, bytes_rival / 1e6);
  }
}

static double idle_pct(const ftl_row *row) {
  return 100 * (1 - metric(row, FTL_METRIC_cycles_active) / metric(row, FTL_METRIC_cycles));
}

static void add_idle_sms(const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  ftl_text_add(out, "an SM is idle %.1f %% of the time against %.1f %% (%.2f waves against %.2f)", idle_pct(best),
               idle_pct(rival), metric(best, FTL_METRIC_waves), metric(rival, FTL_METRIC_waves));
}

static void add_clock(const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  ftl_text_add(out, "the SM clock holds %.0f MHz against %.0f", metric(best, FTL_METRIC_sm_clock_mhz),
               metric(rival, FTL_METRIC_sm_clock_mhz));
}

static void add_factor(factor f, const ftl_row *best, const ftl_row *rival, ftl_text *out) {
  switch (f) {
    case INSTRUCTIONS:
      add_instructions(best, rival, out);
      break;
    case ISSUE_RATE:
      add_issue_rate(best, rival, out);
      break;
    case IDLE_SMS:
      add_idle_sms(best, rival, out);
      break;
    case CLOCK:
      add_clock(best, rival, out);
      break;
    default:
      break;
  }
}

// The factors that help most, until they cover the gap or nothing that helps is left; two at most.
static void add_comparison(const ftl_row *best, const ftl_row *rival, const char *name, ftl_varying varying,
                           ftl_text *out) {
  enum { MAX_NAMED = 2 };
  const double least_share = 0.2, least_gap = 0.002;
  double shares[NUM_FACTORS], total = log(time_ns(rival) / time_ns(best));
  ftl_text_add(out, "; against the %s (", name);
  ftl_row_label(rival, varying, out);
  if (total < least_gap) {
    ftl_text_add(out, ") it is a tie");
    return;
  }
  ftl_text_add(out, ") %.2fx as fast", exp(total));
  split(best, rival, shares);
  const char *separator = ": ";
  for (int n = 0; n < MAX_NAMED; n++) {
    int largest = 0;
    for (int f = 1; f < NUM_FACTORS; f++) {
      if (shares[f] > shares[largest]) largest = f;
    }
    if (shares[largest] < least_share * total) break;
    ftl_text_add(out, "%s", separator);
    add_factor((factor)largest, best, rival, out);
    shares[largest] = 0;
    separator = "; and ";
  }
}

static ftl_status write_why(const ftl_row *ranked, int64_t num_feasible, ftl_varying varying, ftl_text *out,
                            ftl_error *error) {
  ftl_row_label(&ranked[0], varying, out);
  ftl_text_add(out, " wins (bottleneck: %s)", ranked[0].prediction->bottleneck);
  add_comparison(&ranked[0], &ranked[1], "runner-up", varying, out);
  if (num_feasible > 2) add_comparison(&ranked[0], &ranked[num_feasible - 1], "slowest", varying, out);
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory") : FTL_OK;
}

// Rows of one GPU, ranked by time.
static ftl_status add_why(const ftl_row *ranked, int64_t num_rows, ftl_text *out, ftl_error *error) {
  int64_t num_feasible = ftl_rows_num_feasible(ranked, num_rows);
  if (num_feasible < 2) {
    ftl_text_add(out, num_feasible == 0 ? "nothing is feasible" : "only one configuration is feasible");
    return FTL_OK;
  }
  return write_why(ranked, num_feasible, ftl_rows_varying(ranked, num_feasible), out, error);
}

// `rows` are ranked; `same` has room for as many.
static ftl_status why_each_arch(const ftl_row *rows, int64_t num_rows, ftl_row *same, ftl_text *out, ftl_error *error) {
  bool many = ftl_rows_varying(rows, num_rows).arch;
  ftl_status status = num_rows > 0 ? FTL_OK : add_why(rows, 0, out, error);
  for (int64_t i = 0; status == FTL_OK && i < num_rows; i++) {
    const ftl_arch *arch = rows[i].arch;
    int64_t num_same = 0;
    for (int64_t j = 0; j < num_rows; j++) {
      if (rows[j].arch == arch && j < i) break;  // done before
      if (rows[j].arch == arch) same[num_same++] = rows[j];
    }
    if (num_same == 0) continue;
    if (many) ftl_text_add(out, "%s%s: ", i > 0 ? "\n" : "", arch->name);
    status = add_why(same, num_same, out, error);
  }
  return status;
}

ftl_status ftl_rows_why(const ftl_row *rows, int64_t num_rows, ftl_text *out, ftl_error *error) {
  ftl_column by_time;
  size_t size = sizeof *rows * (size_t)(num_rows > 0 ? num_rows : 1);
  ftl_row *ranked = malloc(size), *same = malloc(size);
  ftl_status status = ranked != NULL && same != NULL ? ftl_rank_column_find("time", &by_time, error)
                                                     : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  if (status == FTL_OK) {
    memcpy(ranked, rows, sizeof *rows * (size_t)num_rows);
    status = ftl_rows_rank(ranked, num_rows, by_time, error);
  }
  if (status == FTL_OK) status = why_each_arch(ranked, num_rows, same, out, error);
  free(same);
  free(ranked);
  return status;
}
