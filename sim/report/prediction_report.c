#include "report/prediction_report.h"

#include <string.h>

#include "report/json.h"
#include "report/table.h"

// --- JSON ---

static void add_string_field(ftl_text *out, const char *key, const char *value) {
  ftl_json_add_key(out, key);
  ftl_json_add_string(out, value);
  ftl_text_add(out, ", ");
}

static void add_params(const ftl_spec *spec, ftl_text *out) {
  char buffer[32];
  const char *separator = "";
  ftl_json_add_key(out, "params");
  ftl_text_add(out, "{");
  for (int i = 0; spec->workload->user_kernel && i < spec->workload->user_kernel->num_params; i++) {
    const ftl_own_param *own = &spec->workload->user_kernel->params[i];
    ftl_text_add(out, "%s", separator);
    ftl_json_add_key(out, own->name);
    if (own->kind == FTL_OWN_NAME) {
      ftl_json_add_string(out, own->text);
    } else {
      ftl_text_add(out, "%s", own->text);
    }
    separator = ", ";
  }
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i)) continue;
    const ftl_param_info *info = ftl_param_get((ftl_param)i);
    ftl_text_add(out, "%s", separator);
    ftl_json_add_key(out, info->name);
    if (ftl_param_is_text((ftl_param)i)) {
      ftl_json_add_string(out, ftl_spec_text(spec, (ftl_param)i, buffer));
    } else {
      ftl_text_add(out, "%s", ftl_spec_text(spec, (ftl_param)i, buffer));
    }
    separator = ", ";
  }
  ftl_text_add(out, "}, ");
}

static void add_metrics(const ftl_metrics *metrics, ftl_text *out) {
  ftl_json_add_key(out, "metrics");
  ftl_text_add(out, "{");
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    ftl_text_add(out, i == 0 ? "" : ", ");
    ftl_json_add_key(out, ftl_metric_get((ftl_metric)i)->name);
    ftl_json_add_number(out, metrics->value[i]);
  }
  ftl_text_add(out, "}");
}

static void add_kernels(const ftl_prediction *prediction, ftl_text *out) {
  ftl_json_add_key(out, "kernels");
  ftl_text_add(out, "[");
  for (int i = 0; i < prediction->num_kernels; i++) {
    ftl_text_add(out, i == 0 ? "{" : ", {");
    add_string_field(out, "name", prediction->kernels[i].name);
    add_metrics(&prediction->kernels[i].metrics, out);
    ftl_text_add(out, "}");
  }
  ftl_text_add(out, "], ");
}

static void add_numbers(const ftl_prediction *prediction, ftl_text *out) {
  add_kernels(prediction, out);
  add_metrics(&prediction->metrics, out);
  ftl_text_add(out, ", ");
  add_string_field(out, "bottleneck", prediction->bottleneck);
  ftl_json_add_key(out, "error_bound_pct");
  ftl_text_add(out, "{");
  ftl_json_add_key(out, "cycles");
  ftl_json_add_number(out, prediction->error_bound_cycles_pct);
  ftl_text_add(out, ", ");
  ftl_json_add_key(out, "hbm_bytes");
  ftl_json_add_number(out, prediction->error_bound_hbm_bytes_pct);
  ftl_text_add(out, "}, ");
}

void ftl_prediction_json_members(const ftl_row *row, ftl_text *out) {
  const ftl_prediction *prediction = row->prediction;
  const ftl_spec *spec = &prediction->spec;
  char buffer[32];
  add_string_field(out, "arch", row->arch->name);
  add_string_field(out, "workload", spec->workload->name);
  add_params(spec, out);
  if (ftl_spec_takes(spec, FTL_PARAM_detail))
    add_string_field(out, "detail", ftl_spec_text(spec, FTL_PARAM_detail, buffer));
  ftl_json_add_key(out, "feasible");
  ftl_text_add(out, prediction->feasible ? "true, " : "false, ");
  if (prediction->feasible) {
    add_numbers(prediction, out);
  } else {
    add_string_field(out, "reason", prediction->reason);
  }
  ftl_json_add_key(out, "wall_s");
  ftl_json_add_number(out, prediction->wall_s);
}

void ftl_prediction_json(const ftl_row *row, ftl_text *out) {
  ftl_text_add(out, "{");
  ftl_prediction_json_members(row, out);
  ftl_text_add(out, "}");
}

void ftl_error_json(const char *message, ftl_text *out) {
  ftl_text_add(out, "{");
  ftl_json_add_key(out, "error");
  ftl_json_add_string(out, message);
  ftl_text_add(out, "}");
}

// --- text ---

static const struct {
  const char *label, *column;
} text_rows[] = {
    {"time", "time_us"},
    {"speed", "tflops"},
    {"SM cycles", "cycles"},
    {"SM clock", "sm_clock"},
    {"HBM read", "hbm_read"},
    {"HBM write", "hbm_write"},
    {"inputs, each byte once", "least_read"},
    {"outputs, each byte once", "least_write"},
    {"HBM bandwidth in use", "dram_pct"},
    {"L2 hit rate", "l2_hit"},
    {"tensor pipe active", "tensor_pct"},
    {"issue slots in use", "issue_pct"},
    {"warp instructions", "insts"},
    {"achieved occupancy", "occupancy"},
    {"CTAs per SM", "ctas_per_sm"},
    {"waves", "waves"},
    {"registers a thread", "registers"},
    {"of them spilled", "spills"},
    {"shared memory a CTA", "shared_bytes"},
    {"bank conflicts", "bank_conflicts"},
    {"pages of the KV cache", "kv_cache"},
    {"without a token", "kv_waste"},
    {"one buffer a sequence", "kv_contiguous"},
    {"without a token", "kv_contiguous_waste"},
};

static void add_params_line(const ftl_spec *spec, const char *label, bool given, ftl_text *out) {
  char buffer[32];
  const char *separator = label;
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i) || (spec->given >> i & 1) != given) continue;
    ftl_text_add(out, "%s%s=%s", separator, ftl_param_get((ftl_param)i)->name,
                 ftl_spec_text(spec, (ftl_param)i, buffer));
    separator = " ";
  }
  if (separator != label) ftl_text_add(out, "\n");
}

// `seqlen`, which means the keys to who thinks of one token, asks a decoding workload for as many queries.
static void add_remark(const ftl_spec *spec, ftl_text *out) {
  const ftl_param_set lengths = FTL_TAKES(seqlen_q) | FTL_TAKES(seqlen_kv);
  int64_t queries = spec->value[FTL_PARAM_seqlen_q];
  bool is_prefill = spec->workload->decodes && (spec->given & lengths) == lengths && queries > 1 &&
                    queries == spec->value[FTL_PARAM_seqlen_kv];
  if (!is_prefill) return;
  ftl_text_add(out,
               "  remark: %lld queries against as many keys, a prefill; decoding one token is seqlen_kv=%lld alone\n",
               (long long)queries, (long long)queries);
}

static void add_stalls(const ftl_prediction *prediction, ftl_text *out) {
  enum { NUM_SHOWN = 3 };
  bool used[FTL_METRIC_COUNT] = {false};
  const char *separator = "  stalled warps per issue: ";
  for (int n = 0; n < NUM_SHOWN; n++) {
    int largest = -1;
    for (int i = FTL_METRIC_stall_not_selected; i <= FTL_METRIC_stall_sleeping; i++) {
      bool is_larger = largest < 0 || prediction->metrics.value[i] > prediction->metrics.value[largest];
      if (!used[i] && prediction->metrics.value[i] >= 0.005 && is_larger) largest = i;
    }
    if (largest < 0) break;
    used[largest] = true;
    char name[32];
    ftl_text_add(out, "%s%s %.2f", separator, ftl_stall_name((ftl_metric)largest, name),
                 prediction->metrics.value[largest]);
    separator = ", ";
  }
  if (separator[0] == ',') ftl_text_add(out, "\n");
}

static bool is_cache_row(ftl_column column) { return strstr(ftl_column_metric_name(column), "kv_cache") != NULL; }

static ftl_status add_main_metrics(const ftl_row *row, ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, 4);
  ftl_table_align_right(&table, 1);
  ftl_status status = FTL_OK;
  for (size_t i = 0; status == FTL_OK && i < sizeof text_rows / sizeof *text_rows; i++) {
    ftl_column column;
    status = ftl_column_find(text_rows[i].column, &column, error);
    if (status != FTL_OK) break;
    if (is_cache_row(column) && row->prediction->metrics.value[FTL_METRIC_cache_bytes] == 0) continue;
    ftl_text value = {0};
    ftl_column_text(column, row, &value);
    ftl_table_add(&table, "%s", text_rows[i].label);
    ftl_table_add(&table, "%s", ftl_text_get(&value));
    ftl_table_add(&table, "%s", ftl_column_shown_unit(column));
    ftl_table_add(&table, "%s", ftl_column_metric_name(column));
    ftl_text_fini(&value);
  }
  if (status == FTL_OK) status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

// A line a launch, under a header.
static ftl_status add_launches(const ftl_row *row, ftl_text *out, ftl_error *error) {
  static const char *const names[] = {"time_us", "hbm_read", "hbm_write", "ctas_per_sm", "registers", "shared_bytes"};
  enum { NUM_NAMES = sizeof names / sizeof *names };
  ftl_column columns[NUM_NAMES];
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < NUM_NAMES; i++) status = ftl_column_find(names[i], &columns[i], error);
  if (status != FTL_OK) return status;
  ftl_table table;
  ftl_table_init(&table, 1 + NUM_NAMES);
  ftl_table_add(&table, "launch");
  for (int i = 0; i < NUM_NAMES; i++) {
    ftl_table_align_right(&table, 1 + i);
    ftl_table_add(&table, "%s", names[i]);
  }
  ftl_prediction launch = *row->prediction;
  for (int k = 0; k < row->prediction->num_kernels; k++) {
    launch.metrics = row->prediction->kernels[k].metrics;
    ftl_table_add(&table, "%s", row->prediction->kernels[k].name);
    for (int i = 0; i < NUM_NAMES; i++) {
      ftl_text value = {0};
      ftl_column_text(columns[i], &(ftl_row){row->arch, &launch}, &value);
      ftl_table_add(&table, "%s %s", ftl_text_get(&value), ftl_column_shown_unit(columns[i]));
      ftl_text_fini(&value);
    }
  }
  status = ftl_table_write(&table, 2, out, error);
  ftl_table_fini(&table);
  return status;
}

ftl_status ftl_prediction_text(const ftl_row *row, ftl_text *out, ftl_error *error) {
  const ftl_prediction *prediction = row->prediction;
  const ftl_spec *spec = &prediction->spec;
  ftl_text_add(out, "%s on %s\n", spec->workload->name, row->arch->name);
  if (spec->workload->user_kernel) {
    ftl_text_add(out, "  its own: ");
    ftl_user_kernel_write_params(spec->workload->user_kernel, out);
    ftl_text_add(out, "\n");
  }
  add_params_line(spec, "  given: ", true, out);
  add_params_line(spec, "  defaults used: ", false, out);
  add_remark(spec, out);
  if (!prediction->feasible) {
    ftl_text_add(out, "  infeasible: %s\n", prediction->reason);
    return FTL_OK;
  }
  ftl_text_add(out, "  bottleneck: %s\n", prediction->bottleneck);
  ftl_status status = add_main_metrics(row, out, error);
  if (status == FTL_OK && prediction->num_kernels > 1) status = add_launches(row, out, error);
  if (status != FTL_OK) return status;
  add_stalls(prediction, out);
  ftl_text_add(out, "  relative to full detail: cycles within %.1f %%, HBM bytes within %.1f %%; took %.2f s\n",
               prediction->error_bound_cycles_pct, prediction->error_bound_hbm_bytes_pct, prediction->wall_s);
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answer") : FTL_OK;
}
