#include "report/workload_report.h"

#include "report/json.h"
#include "report/table.h"

static ftl_status check_text(const ftl_text *out, ftl_error *error) {
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory") : FTL_OK;
}

ftl_status ftl_workload_report_list(bool json, ftl_text *out, ftl_error *error) {
  ftl_table table;
  ftl_table_init(&table, 2);
  for (int i = 0; i < ftl_workload_count(); i++) {
    const ftl_workload *workload = ftl_workload_get(i);
    ftl_table_add(&table, "%s", workload->name);
    ftl_table_add(&table, "%s", workload->doc);
    if (!json) continue;
    ftl_text_add(out, i == 0 ? "[{" : ", {");
    ftl_json_add_key(out, "workload");
    ftl_json_add_string(out, workload->name);
    ftl_text_add(out, ", ");
    ftl_json_add_key(out, "doc");
    ftl_json_add_string(out, workload->doc);
    ftl_text_add(out, "}");
  }
  ftl_status status = FTL_OK;
  if (json) {
    ftl_text_add(out, "]\n");
  } else {
    status = ftl_table_write(&table, 0, out, error);
  }
  ftl_table_fini(&table);
  return status != FTL_OK ? status : check_text(out, error);
}

// --- show ---

static void add_json_param(const ftl_param_info *info, const char *allowed, const char *default_value, ftl_text *out) {
  const char *const fields[][2] = {
      {"name", info->name}, {"unit", info->unit}, {"allowed", allowed}, {"default", default_value}, {"doc", info->doc}};
  ftl_text_add(out, "{");
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    ftl_text_add(out, i == 0 ? "" : ", ");
    ftl_json_add_key(out, fields[i][0]);
    ftl_json_add_string(out, fields[i][1]);
  }
  ftl_text_add(out, "}");
}

static void add_json_start(const ftl_workload *workload, ftl_text *out) {
  ftl_text_add(out, "{");
  ftl_json_add_key(out, "workload");
  ftl_json_add_string(out, workload->name);
  ftl_text_add(out, ", ");
  ftl_json_add_key(out, "doc");
  ftl_json_add_string(out, workload->doc);
  ftl_text_add(out, ", ");
  ftl_json_add_key(out, "params");
  ftl_text_add(out, "[");
}

ftl_status ftl_workload_report_show(const ftl_workload *workload, bool json, ftl_text *out, ftl_error *error) {
  char allowed[FTL_PARAM_TEXT_BYTES], default_value[FTL_PARAM_TEXT_BYTES];
  const char *separator = "";
  ftl_table table;
  ftl_table_init(&table, 5);
  const char *const header[] = {"parameter", "unit", "allowed", "default", "meaning"};
  for (int i = 0; i < 5; i++) ftl_table_add(&table, "%s", header[i]);
  if (json) {
    add_json_start(workload, out);
  } else {
    ftl_text_add(out, "%s: %s\n\n", workload->name, workload->doc);
  }
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_workload_takes(workload, (ftl_param)i)) continue;
    const ftl_param_info *info = ftl_param_get((ftl_param)i);
    ftl_workload_allowed(workload, (ftl_param)i, allowed);
    ftl_workload_default(workload, (ftl_param)i, default_value);
    const char *const cells[] = {info->name, info->unit, allowed, default_value, info->doc};
    for (int c = 0; c < 5; c++) ftl_table_add(&table, "%s", cells[c]);
    if (json) {
      ftl_text_add(out, "%s", separator);
      add_json_param(info, allowed, default_value, out);
      separator = ", ";
    }
  }
  ftl_status status = FTL_OK;
  if (json) {
    ftl_text_add(out, "]}\n");
  } else {
    status = ftl_table_write(&table, 0, out, error);
    if (ftl_workload_takes(workload, FTL_PARAM_seqlen_q)) ftl_text_add(out, "seqlen=N sets seqlen_q and seqlen_kv");
    if (workload->decodes) {
      ftl_text_add(out, ": N queries, a prefill. One token against N keys is seqlen_kv=N alone");
    }
    if (ftl_workload_takes(workload, FTL_PARAM_seqlen_q)) ftl_text_add(out, ".\n");
  }
  ftl_table_fini(&table);
  return status != FTL_OK ? status : check_text(out, error);
}
