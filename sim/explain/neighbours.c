#include "explain/neighbours.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "workloads/open_tiles.h"

typedef enum step_kind {
  TWICE_AND_HALF,
  ONE_MORE_AND_LESS,
  WARPGROUP_MORE_AND_LESS,
  OTHER_VALUES,  // of a name, or true and false
} step_kind;

static const struct {
  ftl_param param;
  step_kind kind;
} steps[] = {
    {FTL_PARAM_block_m, TWICE_AND_HALF},       {FTL_PARAM_block_n, TWICE_AND_HALF},
    {FTL_PARAM_block_k, TWICE_AND_HALF},       {FTL_PARAM_num_warps, TWICE_AND_HALF},
    {FTL_PARAM_num_stages, ONE_MORE_AND_LESS}, {FTL_PARAM_splits, TWICE_AND_HALF},
    {FTL_PARAM_schedule, OTHER_VALUES},        {FTL_PARAM_persistent, OTHER_VALUES},
    {FTL_PARAM_tile_order, OTHER_VALUES},      {FTL_PARAM_tile_reverse, OTHER_VALUES},
    {FTL_PARAM_head_order, OTHER_VALUES},
};

typedef struct list {
  const ftl_spec *spec;
  ftl_neighbour *neighbours;
  int size;
} list;

// One that breaks a rule between parameters is a neighbour too, and says which.
static void add(list *l, ftl_param param, const char *value) {
  if (l->size == FTL_MAX_NEIGHBOURS) return;
  ftl_neighbour *n = &l->neighbours[l->size];
  *n = (ftl_neighbour){.param = param, .spec = *l->spec};
  snprintf(n->value, sizeof n->value, "%s", value);
  ftl_error error;
  ftl_status status = ftl_spec_set_text(&n->spec, ftl_param_get(param)->name, value, &error);
  if (status == FTL_OK) status = ftl_spec_complete(&n->spec, &error);
  n->is_complete = status == FTL_OK;
  if (!n->is_complete) snprintf(n->reason, sizeof n->reason, "%s", error.message);
  l->size++;
}

static void add_number(list *l, ftl_param param, int64_t value) {
  char text[32];
  const ftl_param_info *info = ftl_param_get(param);
  if (value < info->min || value > info->max || value <= 0) return;
  snprintf(text, sizeof text, "%" PRId64, value);
  add(l, param, text);
}

// CUTLASS's attention has warps by a rule of its own: no step from another kernel leads to it.
static bool is_a_step(ftl_param param, const char *name) {
  return param != FTL_PARAM_schedule || strcmp(name, "back_to_back") != 0;
}

// Those that the workload knows.
static void add_other_names(list *l, ftl_param param, const ftl_spec *resolved) {
  char all[FTL_PARAM_TEXT_BYTES], current[32];
  const char *allowed = ftl_workload_allowed(l->spec->workload, param, all);
  const char *own = ftl_spec_text(resolved, param, current);
  while (allowed != NULL) {
    char name[32];
    size_t size = strcspn(allowed, "|");
    snprintf(name, sizeof name, "%.*s", (int)size, allowed);
    if (strcmp(name, own) != 0 && is_a_step(param, name)) add(l, param, name);
    allowed = allowed[size] == '|' ? allowed + size + 1 : NULL;
  }
}

static void add_steps(list *l, ftl_param param, step_kind kind, const ftl_spec *resolved) {
  enum { WARPGROUP = 4 };
  int64_t value = resolved->value[param];
  switch (kind) {
    case TWICE_AND_HALF:
      add_number(l, param, 2 * value);
      if (value % 2 == 0) add_number(l, param, value / 2);
      break;
    case ONE_MORE_AND_LESS:
      add_number(l, param, value + 1);
      add_number(l, param, value - 1);
      break;
    case WARPGROUP_MORE_AND_LESS:
      add_number(l, param, value + WARPGROUP);
      add_number(l, param, value - WARPGROUP);
      break;
    case OTHER_VALUES:
      add_other_names(l, param, resolved);
      break;
  }
}

// In which order heads follow each other matters where several read the same keys.
static bool reads_keys_again(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_kv_heads] < spec->value[FTL_PARAM_heads] && spec->value[FTL_PARAM_batch] > 1;
}

int ftl_neighbours_make(const ftl_spec *spec, const ftl_spec *resolved, ftl_neighbour out[FTL_MAX_NEIGHBOURS]) {
  ftl_spec settled = *spec;
  ftl_spec_take_tiles(&settled, resolved);
  list l = {.spec = &settled, .neighbours = out};
  bool takes_mma = ftl_spec_takes(spec, FTL_PARAM_mma);
  bool is_wgmma = takes_mma && resolved->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    ftl_param param = steps[i].param;
    if (!ftl_spec_takes(spec, param)) continue;
    if (param == FTL_PARAM_head_order && !reads_keys_again(spec)) continue;
    step_kind kind = param == FTL_PARAM_num_warps && is_wgmma ? WARPGROUP_MORE_AND_LESS : steps[i].kind;
    add_steps(&l, param, kind, resolved);
  }
  return l.size;
}
