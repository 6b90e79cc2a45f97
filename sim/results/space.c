#include "results/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

typedef struct ftl_dimension {
  char *name;
  char **values;
  int num_values;
  int32_t *slots;  // 1 + the value's number, by its hash (open addressing); 0: free
  uint64_t num_slots;
} ftl_dimension;

ftl_status ftl_space_init(ftl_space *space, const char *workload, ftl_error *error) {
  *space = (ftl_space){0};
  ftl_spec spec;
  ftl_status status = ftl_spec_init(&spec, workload, error);
  if (status == FTL_OK) snprintf(space->workload, sizeof space->workload, "%s", workload);
  return status;
}

void ftl_space_fini(ftl_space *space) {
  for (int i = 0; i < space->num_dimensions; i++) {
    ftl_dimension *dimension = &space->dimensions[i];
    for (int j = 0; j < dimension->num_values; j++) free(dimension->values[j]);
    free(dimension->values);
    free(dimension->slots);
    free(dimension->name);
  }
  free(space->dimensions);
  *space = (ftl_space){0};
}

int64_t ftl_space_num_points(const ftl_space *space) {
  int64_t num_points = 1;
  for (int i = 0; i < space->num_dimensions; i++) num_points *= space->dimensions[i].num_values;
  return num_points;
}

// NULL when memory is out.
static ftl_dimension *dimension_of(ftl_space *space, const char *name) {
  for (int i = 0; i < space->num_dimensions; i++) {
    if (strcmp(space->dimensions[i].name, name) == 0) return &space->dimensions[i];
  }
  size_t size = sizeof *space->dimensions * (size_t)(space->num_dimensions + 1);
  ftl_dimension *dimensions = realloc(space->dimensions, size);
  if (dimensions == NULL) return NULL;
  space->dimensions = dimensions;
  char *copy = strdup(name);
  if (copy == NULL) return NULL;
  dimensions[space->num_dimensions] = (ftl_dimension){.name = copy};
  return &dimensions[space->num_dimensions++];
}

// That of a value, or a free one. The table has room.
static int32_t *slot_of(const ftl_dimension *dimension, const char *value) {
  uint64_t last = dimension->num_slots - 1, at = XXH3_64bits(value, strlen(value)) & last;
  for (;; at = (at + 1) & last) {
    int32_t *slot = &dimension->slots[at];
    if (*slot == 0 || strcmp(dimension->values[*slot - 1], value) == 0) return slot;
  }
}

// Room for one value more in a table that is half full at most. False when memory is out.
static bool try_grow(ftl_dimension *dimension) {
  if (2 * (uint64_t)(dimension->num_values + 1) <= dimension->num_slots) return true;
  uint64_t num_slots = dimension->num_slots > 0 ? 2 * dimension->num_slots : 16;
  int32_t *slots = calloc(num_slots, sizeof *slots);
  char **values = realloc(dimension->values, sizeof *values * num_slots / 2);
  if (values != NULL) dimension->values = values;
  if (slots == NULL || values == NULL) {
    free(slots);
    return false;
  }
  free(dimension->slots);
  dimension->slots = slots;
  dimension->num_slots = num_slots;
  for (int i = 0; i < dimension->num_values; i++) *slot_of(dimension, dimension->values[i]) = i + 1;
  return true;
}

static ftl_status too_many(const char *name, ftl_error *error) {
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: more than %d combinations; split the exploration", name,
                       FTL_SPACE_MAX_POINTS);
}

ftl_status ftl_space_check_room(const ftl_space *space, const char *name, int64_t num_values, ftl_error *error) {
  bool fits = num_values <= FTL_SPACE_MAX_POINTS / ftl_space_num_points(space);
  return fits ? FTL_OK : too_many(name, error);
}

ftl_status ftl_space_add(ftl_space *space, const char *name, const char *value, ftl_error *error) {
  ftl_spec scratch;
  ftl_status status = ftl_spec_init(&scratch, space->workload, error);
  if (status == FTL_OK) status = ftl_spec_set_text(&scratch, name, value, error);
  if (status != FTL_OK) return status;
  ftl_dimension *dimension = dimension_of(space, name);
  bool has_room = dimension != NULL && try_grow(dimension);
  int32_t *slot = has_room ? slot_of(dimension, value) : NULL;
  if (slot != NULL && *slot != 0) return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.64s is given twice", name, value);
  char *copy = strdup(value);
  if (copy == NULL || slot == NULL) {
    free(copy);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the values of %s", name);
  }
  dimension->values[dimension->num_values++] = copy;
  *slot = dimension->num_values;
  return ftl_space_num_points(space) > FTL_SPACE_MAX_POINTS ? too_many(name, error) : FTL_OK;
}

ftl_status ftl_space_point(const ftl_space *space, int64_t point_idx, ftl_spec *out, ftl_error *error) {
  ftl_status status = ftl_spec_init(out, space->workload, error);
  int64_t stride = ftl_space_num_points(space);
  for (int i = 0; status == FTL_OK && i < space->num_dimensions; i++) {
    const ftl_dimension *dimension = &space->dimensions[i];
    stride /= dimension->num_values;
    status =
        ftl_spec_set_text(out, dimension->name, dimension->values[point_idx / stride % dimension->num_values], error);
  }
  return status != FTL_OK ? status : ftl_spec_complete(out, error);
}
