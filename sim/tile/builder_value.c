// Values: tiles, rows and columns in registers, of the role begun last.
#include "tile/builder_internal.h"

static int32_t value_add(ftl_builder *builder, const char *name, ftl_value value) {
  ftl_tile_program *program = builder->program;
  if (!ftl_builder_is_ok(builder)) return 0;
  if (program->num_values == FTL_TILE_MAX_VALUES || program->num_roles == 0) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "value %s: allowed are %d values, each declared after its role began",
                     name, FTL_TILE_MAX_VALUES);
    return 0;
  }
  value.role = program->num_roles - 1;
  value.warps_per_row = 1;
  ftl_builder_copy_name(value.name, name);
  program->values[program->num_values] = value;
  return program->num_values++;
}

int32_t ftl_builder_tile(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns) {
  return value_add(builder, name,
                   (ftl_value){.kind = FTL_VALUE_TILE, .dtype = dtype, .rows = rows, .columns = columns});
}

int32_t ftl_builder_rows(ftl_builder *builder, const char *name, int32_t rows) {
  return value_add(builder, name, (ftl_value){.kind = FTL_VALUE_ROWS, .dtype = FTL_FP32, .rows = rows, .columns = 1});
}

int32_t ftl_builder_columns(ftl_builder *builder, const char *name, int32_t columns) {
  return value_add(builder, name,
                   (ftl_value){.kind = FTL_VALUE_COLUMNS, .dtype = FTL_FP32, .rows = 1, .columns = columns});
}

void ftl_builder_side_by_side(ftl_builder *builder, int32_t warps_per_row) {
  ftl_tile_program *program = builder->program;
  if (program->num_values == 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "warps side by side come after a value");
  if (ftl_builder_is_ok(builder)) program->values[program->num_values - 1].warps_per_row = warps_per_row;
}

void ftl_builder_repeat(ftl_builder *builder, int32_t warps_per_row) {
  ftl_builder_side_by_side(builder, warps_per_row);
  if (ftl_builder_is_ok(builder)) builder->program->values[builder->program->num_values - 1].is_repeated = true;
}

int32_t ftl_builder_tile_by_rows(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                                 ftl_value_layout layout) {
  return value_add(
      builder, name,
      (ftl_value){.kind = FTL_VALUE_TILE, .dtype = dtype, .rows = rows, .columns = columns, .layout = layout});
}

int32_t ftl_builder_rows_by_rows(ftl_builder *builder, const char *name, int32_t rows, ftl_value_layout layout) {
  return value_add(builder, name,
                   (ftl_value){.kind = FTL_VALUE_ROWS,
                               .dtype = FTL_FP32,
                               .rows = rows,
                               .columns = 1,
                               .layout.threads_per_row = layout.threads_per_row});
}
