// What a workload allows for a parameter and what it takes by default, in words.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads/spec.h"

ftl_cluster_shape ftl_cluster_of_value(int64_t value) {
  ftl_cluster_shape shape = {1, 1};
  const char *word = ftl_param_get(FTL_PARAM_cluster)->allowed;
  for (; value > 0; value--) word = strchr(word, '|') + 1;
  (void)sscanf(word, "%dx%d", &shape.m, &shape.n);
  return shape;
}

// Steps of one workload: lists of blocks, and code of their own for the last tiles.
static bool knows_steps(const ftl_workload *workload, int value) {
  bool is_flash2 = (workload->schedules >> FTL_SCHEDULE_INTERLEAVED & 1) != 0;
  return is_flash2 || (value != FTL_MASK_STEPS_BLOCKS && value != FTL_MASK_STEPS_UNROLLED);
}

// Softmaxes of rows alone scale by log2(e) only: in the exponential's multiply-add, or apart.
static bool knows_scaling(const ftl_workload *workload, int value) {
  bool is_of_rows = !ftl_workload_takes(workload, FTL_PARAM_code);
  return !is_of_rows || value == FTL_SCALING_AUTO || value == FTL_SCALING_EXPONENT || value == FTL_SCALING_APART;
}

static bool knows(const ftl_workload *workload, ftl_param param, int value) {
  const uint32_t dtypes = workload->dtypes ? workload->dtypes : 1 << FTL_SPEC_FP16 | 1 << FTL_SPEC_BF16;
  if (param == FTL_PARAM_schedule) return (workload->schedules >> value & 1) != 0;
  if (param == FTL_PARAM_dtype) return (dtypes >> value & 1) != 0;
  if (param == FTL_PARAM_mask_steps) return knows_steps(workload, value);
  if (param == FTL_PARAM_scaling) return knows_scaling(workload, value);
  if (param == FTL_PARAM_cluster)
    return ftl_cluster_of_value(value).n == 1 || ftl_workload_takes(workload, FTL_PARAM_n);
  if (param != FTL_PARAM_tile_order || value == FTL_ORDER_M_FIRST) return true;
  ftl_param second = value == FTL_ORDER_N_FIRST ? FTL_PARAM_n : FTL_PARAM_heads;
  return ftl_workload_takes(workload, second);
}

// Of "a|b|c" those that the workload knows.
static void list_known(const ftl_workload *workload, ftl_param param, const char *words, char *buffer) {
  size_t used = 0;
  buffer[0] = '\0';
  for (int value = 0;; value++) {
    size_t size = strcspn(words, "|");
    if (knows(workload, param, value) && used < FTL_PARAM_TEXT_BYTES)
      used += (size_t)snprintf(buffer + used, FTL_PARAM_TEXT_BYTES - used, "%s%.*s", used ? "|" : "", (int)size, words);
    if (words[size] == '\0') return;
    words += size + 1;
  }
}

const char *ftl_workload_allowed(const ftl_workload *workload, ftl_param param, char buffer[FTL_PARAM_TEXT_BYTES]) {
  const ftl_param_info *info = ftl_param_get(param);
  if (info->allowed != NULL)
    list_known(workload, param, info->allowed, buffer);
  else if (strcmp(info->unit, "bool") == 0)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "true|false");
  else if (param == FTL_PARAM_clock_mhz)  // max is what no chip exceeds, not what any allows
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "0, or a clock of the GPU");
  else if (info->is_list)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "list of %" PRId64 " to %" PRId64, info->min, info->max);
  else if (info->is_real)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "%.12g to %.12g", (double)info->min / FTL_PARAM_UNITS_PER_ONE,
             (double)info->max / FTL_PARAM_UNITS_PER_ONE);
  else
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "%" PRId64 " to %" PRId64, info->min, info->max);
  return buffer;
}

// All defaults for a problem of which each required size is `size`.
static ftl_spec probe(const ftl_workload *workload, int64_t size) {
  ftl_spec spec = {.workload = workload};
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    int64_t value = ftl_param_get((ftl_param)i)->default_value;
    spec.value[i] = ftl_param_is_of_shape((ftl_param)i) ? size : value;
  }
  if (workload->set_defaults) workload->set_defaults(&spec);
  return spec;
}

const char *ftl_workload_default(const ftl_workload *workload, ftl_param param, char buffer[FTL_PARAM_TEXT_BYTES]) {
  int64_t general = ftl_param_get(param)->default_value;
  char text[32];
  ftl_spec one = probe(workload, 1), other = probe(workload, 256);
  if (param == FTL_PARAM_seqlen_q && workload->decodes)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "1");
  else if (general == FTL_PARAM_REQUIRED)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "required");
  else if (general == FTL_PARAM_SAME_AS_HEADS)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "as heads");
  else if (general == FTL_PARAM_SAME_AS_HEAD_DIM)
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "as head_dim");
  else if (one.value[param] != other.value[param])
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "by shape");
  else
    snprintf(buffer, FTL_PARAM_TEXT_BYTES, "%s", ftl_spec_text(&one, param, text));
  return buffer;
}
