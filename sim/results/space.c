#include "results/space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ftl_dimension {
  char *name;
  char **values;
  int num_values;
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

static bool has_value(const ftl_dimension *dimension, const char *value) {
  for (int i = 0; i < dimension->num_values; i++)
    if (strcmp(dimension->values[i], value) == 0) return true;
  return false;
}

ftl_status ftl_space_add(ftl_space *space, const char *name, const char *value, ftl_error *error) {
  ftl_spec scratch;
  ftl_status status = ftl_spec_init(&scratch, space->workload, error);
  if (status == FTL_OK) status = ftl_spec_set_text(&scratch, name, value, error);
  if (status != FTL_OK) return status;
  ftl_dimension *dimension = dimension_of(space, name);
  if (dimension != NULL && has_value(dimension, value))
    return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.64s is given twice", name, value);
  char *copy = strdup(value);
  char **values = NULL;
  if (dimension != NULL) {
    values = realloc(dimension->values, sizeof *values * (size_t)(dimension->num_values + 1));
  }
  if (copy == NULL || values == NULL) {
    free(copy);
    if (values != NULL) dimension->values = values;
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the values of %s", name);
  }
  dimension->values = values;
  values[dimension->num_values++] = copy;
  if (ftl_space_num_points(space) > FTL_SPACE_MAX_POINTS) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: more than %d combinations; split the exploration", name,
                         FTL_SPACE_MAX_POINTS);
  }
  return FTL_OK;
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
