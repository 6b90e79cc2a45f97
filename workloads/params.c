// The list of parameters: information and names.
#include <string.h>

#include "workloads/spec.h"

static const ftl_param_info infos[FTL_PARAM_COUNT] = {
#define FTL_PARAM_INT(name_, unit_, min_, max_, default_, doc_) \
  [FTL_PARAM_##                                                 \
      name_] = {.name = #name_, .unit = unit_, .doc = doc_, .min = min_, .max = max_, .default_value = default_},
#define FTL_PARAM_ENUM(name_, allowed_, default_, doc_) \
  [FTL_PARAM_##name_] = {.name = #name_, .unit = "", .doc = doc_, .allowed = allowed_, .default_value = default_},
#define FTL_PARAM_REAL(name_, unit_, min_, max_, default_, doc_)                     \
  [FTL_PARAM_##name_] = {.name = #name_,                                             \
                         .unit = unit_,                                              \
                         .doc = doc_,                                                \
                         .is_real = true,                                            \
                         .min = (int64_t)((min_) * (double)FTL_PARAM_UNITS_PER_ONE), \
                         .max = (int64_t)((max_) * (double)FTL_PARAM_UNITS_PER_ONE), \
                         .default_value = (int64_t)((default_) * (double)FTL_PARAM_UNITS_PER_ONE)},
#define FTL_PARAM_LIST(name_, unit_, min_, max_, doc_) \
  [FTL_PARAM_##name_] = {.name = #name_, .unit = unit_, .doc = doc_, .is_list = true, .min = min_, .max = max_},
#include "workloads/params.def"
#undef FTL_PARAM_INT
#undef FTL_PARAM_ENUM
#undef FTL_PARAM_REAL
#undef FTL_PARAM_LIST
};

const ftl_param_info *ftl_param_get(ftl_param param) { return &infos[param]; }

bool ftl_param_is_text(ftl_param param) { return infos[param].allowed != NULL || infos[param].is_list; }

bool ftl_param_is_of_shape(ftl_param param) {
  int64_t value = infos[param].default_value;
  return value == FTL_PARAM_REQUIRED || value == FTL_PARAM_SAME_AS_HEADS || value == FTL_PARAM_SAME_AS_HEAD_DIM;
}

int ftl_param_find(const char *name) {
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    if (strcmp(infos[i].name, name) == 0) return i;
  return -1;
}

const char *ftl_param_nearest(const char *name) {
  const char *nearest = "seqlen";  // the shorthand, which is not in the list
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    if (ftl_edit_distance(infos[i].name, name) < ftl_edit_distance(nearest, name)) nearest = infos[i].name;
  return nearest;
}

const char *ftl_workload_param_nearest(const ftl_workload *workload, const char *name) {
  const char *nearest = ftl_workload_takes(workload, FTL_PARAM_seqlen_q) ? "seqlen" : NULL;
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_workload_takes(workload, (ftl_param)i)) continue;
    if (nearest == NULL || ftl_edit_distance(infos[i].name, name) < ftl_edit_distance(nearest, name))
      nearest = infos[i].name;
  }
  return nearest != NULL && 2 * ftl_edit_distance(nearest, name) <= (int)strlen(name) ? nearest : NULL;
}
