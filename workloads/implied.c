#include "workloads/implied.h"

#include <stdlib.h>
#include <string.h>

static const char *direction_of(const ftl_workload *workload) {
  size_t size = strlen(workload->name);
  return size > 4 && strcmp(workload->name + size - 4, "_bwd") == 0 ? "bwd" : "fwd";
}

const char *ftl_workload_implied(const ftl_workload *workload, ftl_param param) {
  static const struct {
    ftl_param param;
    const char *text;
  } implied[] = {
      {FTL_PARAM_acc_dtype, "fp32"},     {FTL_PARAM_schedule, "stages"}, {FTL_PARAM_persistent, "false"},
      {FTL_PARAM_splits, "1"},           {FTL_PARAM_causal, "false"},    {FTL_PARAM_window, "0"},
      {FTL_PARAM_mask, "none"},          {FTL_PARAM_dropout_p, "0"},     {FTL_PARAM_lengths, "none"},
      {FTL_PARAM_tree, "none"},          {FTL_PARAM_layout, "bhsd"},     {FTL_PARAM_tile_order, "m_first"},
      {FTL_PARAM_tile_reverse, "false"}, {FTL_PARAM_copy, "auto"},       {FTL_PARAM_mma, "auto"},
      {FTL_PARAM_max_registers, "0"},    {FTL_PARAM_heads, "1"},         {FTL_PARAM_kv_heads, "1"},
      {FTL_PARAM_num_stages, "1"},       {FTL_PARAM_min_ctas, "0"},
  };
  if (ftl_workload_takes(workload, param)) return NULL;
  if (param == FTL_PARAM_pass) return direction_of(workload);
  for (size_t i = 0; i < sizeof implied / sizeof *implied; i++)
    if (implied[i].param == param) return implied[i].text;
  return NULL;
}

// 0, 0.0, false; 1.
static bool is_same_number(const char *implied, const char *text) {
  bool is_switch = strcmp(implied, "false") == 0;
  if (is_switch) return strcmp(text, "0") == 0;
  char *end;
  bool is_number =
      implied[strspn(implied, "0123456789")] == '\0' && text[0] != '\0' && text[strspn(text, "0123456789.")] == '\0';
  return is_number && strtod(text, &end) == strtod(implied, NULL) && *end == '\0';
}

// Rows of a softmax have heads, and no keys that these might share.
static bool has_no_keys(const ftl_workload *workload) {
  return ftl_workload_takes(workload, FTL_PARAM_heads) && !ftl_workload_takes(workload, FTL_PARAM_kv_heads);
}

static bool is_count(const char *text) { return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0'; }

// Backward passes refill one buffer each as it falls free.
static bool is_schedule_of_backward(const ftl_workload *workload, const char *text) {
  return ftl_workload_takes(workload, FTL_PARAM_dq) && strcmp(text, "interleaved") == 0;
}

bool ftl_workload_implies(const ftl_workload *workload, ftl_param param, const char *text) {
  const char *implied = ftl_workload_implied(workload, param);
  if (implied != NULL && param == FTL_PARAM_kv_heads && has_no_keys(workload)) return is_count(text);
  if (implied != NULL && param == FTL_PARAM_copy && strcmp(text, "ldg") == 0) return true;  // rows come to registers
  if (implied != NULL && param == FTL_PARAM_schedule && is_schedule_of_backward(workload, text)) return true;
  return implied != NULL && (strcmp(implied, text) == 0 || is_same_number(implied, text));
}
