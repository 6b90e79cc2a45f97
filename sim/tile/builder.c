// The builder itself: its errors (after the first every call does nothing), and what holds for the whole program.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tile/builder_internal.h"
#include "tile/check_internal.h"

void ftl_builder_copy_name(char out[FTL_TILE_NAME_BYTES], const char *name) {
  snprintf(out, FTL_TILE_NAME_BYTES, "%s", name);
}

bool ftl_builder_is_ok(const ftl_builder *builder) { return builder->error.status == FTL_OK; }

void ftl_builder_fail(ftl_builder *builder, ftl_status status, const char *format, ...) {
  if (!ftl_builder_is_ok(builder)) return;
  char text[FTL_ERROR_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const ftl_tile_program *program = builder->program;
  if (program->source)
    ftl_error_set(&builder->error, status, "%s:%d: %s", program->source, builder->source_line, text);
  else
    ftl_error_set(&builder->error, status, "%s: op %d: %s", program->name, program->num_ops, text);
}

ftl_status ftl_builder_create(ftl_builder **out, const char *kernel_name, ftl_error *error) {
  *out = NULL;
  ftl_builder *builder = calloc(1, sizeof *builder);
  if (!builder) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory building %s", kernel_name);
  builder->program = calloc(1, sizeof *builder->program);
  builder->expr_sizes = calloc(FTL_TILE_MAX_EXPRS, sizeof *builder->expr_sizes);
  if (builder->program) builder->program->exprs = calloc(FTL_TILE_MAX_EXPRS, sizeof *builder->program->exprs);
  if (!builder->program || !builder->program->exprs || !builder->expr_sizes) {
    ftl_builder_destroy(builder);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory building %s", kernel_name);
  }
  ftl_builder_copy_name(builder->program->name, kernel_name);
  builder->program->num_ctas = builder->program->cluster_ctas = 1;
  builder->next_base_bytes = FTL_TILE_BASE_ALIGNMENT_BYTES;  // address 0 stays unused
  ftl_const(builder, 0);                                     // what a failed expression call gives
  *out = builder;
  return FTL_OK;
}

void ftl_builder_destroy(ftl_builder *builder) {
  if (!builder) return;
  ftl_tile_program_destroy(builder->program);
  free(builder->expr_sizes);
  free(builder);
}

ftl_status ftl_builder_finish(ftl_builder *builder, ftl_tile_program **out, ftl_error *error) {
  *out = NULL;
  if (builder->num_open_loops > 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "a loop is not ended");
  if (!ftl_builder_is_ok(builder)) return ftl_error_set(error, builder->error.status, "%s", builder->error.message);
  ftl_status status = ftl_tile_program_check(builder->program, error);
  if (status != FTL_OK) return status;
  *out = builder->program;
  builder->program = NULL;
  return FTL_OK;
}

void ftl_builder_source(ftl_builder *builder, const char *source, int32_t line) {
  builder->program->source = source;
  builder->source_line = line;
}

const ftl_tile_program *ftl_builder_program(const ftl_builder *builder) { return builder->program; }

void ftl_builder_grid(ftl_builder *builder, int64_t num_ctas, bool persistent, ftl_tile_handout handout) {
  builder->program->num_ctas = num_ctas;
  builder->program->persistent = persistent;
  builder->program->handout = handout;
}

void ftl_builder_cluster(ftl_builder *builder, int32_t num_ctas) { builder->program->cluster_ctas = num_ctas; }

// Loops of the role begun last that are open: their variables are in scope.
static uint32_t live_loops(const ftl_builder *builder) {
  uint32_t live = 0;
  for (int32_t i = 0; i < builder->num_open_loops; i++) live |= 1u << builder->open_loops[i];
  return live;
}

ftl_status ftl_builder_check_latest(const ftl_builder *builder, ftl_error *error) {
  const ftl_tile_program *program = builder->program;
  if (!ftl_builder_is_ok(builder)) return ftl_error_set(error, builder->error.status, "%s", builder->error.message);
  ftl_status status = FTL_OK;
  if (program->num_values > 0) status = ftl_check_value(program, program->num_values - 1, error);
  if (status == FTL_OK && program->num_rings > 0) status = ftl_check_ring(program, program->num_rings - 1, error);
  if (status != FTL_OK || program->num_roles == 0 || program->roles[program->num_roles - 1].num_ops == 0) return status;
  ftl_check check = {.program = program,
                     .role_idx = program->num_roles - 1,
                     .op_idx = program->num_ops - 1,
                     .live_loops = live_loops(builder),
                     .error = error};
  status = ftl_check_op(&check);
  return status == FTL_OK ? ftl_check_written(&check) : status;
}

void ftl_builder_cache_memory(ftl_builder *builder, ftl_cache_memory memory) { builder->program->cache = memory; }

void ftl_builder_half_products(ftl_builder *builder) { builder->program->half_products = true; }

void ftl_builder_flops(ftl_builder *builder, int64_t model_flops) { builder->program->model_flops = model_flops; }
