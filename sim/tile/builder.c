// Declarations and operations. After the first error every call does nothing.
#include "tile/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tile/builder_internal.h"
#include "tile/check_internal.h"

static const int64_t base_alignment_bytes = INT64_C(2) << 20;  // large pages of the GPU: every tensor starts one
static const int64_t max_tensor_bytes = INT64_C(1) << 46;

static void copy_name(char out[FTL_TILE_NAME_BYTES], const char *name) {
  snprintf(out, FTL_TILE_NAME_BYTES, "%s", name);
}

bool ftl_builder_is_ok(const ftl_builder *builder) { return builder->error.status == FTL_OK; }

static bool ok(const ftl_builder *builder) { return ftl_builder_is_ok(builder); }

void ftl_builder_fail(ftl_builder *builder, ftl_status status, const char *format, ...) {
  if (!ok(builder)) return;
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
  copy_name(builder->program->name, kernel_name);
  builder->program->num_ctas = builder->program->cluster_ctas = 1;
  builder->next_base_bytes = base_alignment_bytes;  // address 0 stays unused
  ftl_const(builder, 0);                            // what a failed expression call gives
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
  if (!ok(builder)) return ftl_error_set(error, builder->error.status, "%s", builder->error.message);
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

void ftl_builder_grid(ftl_builder *builder, int64_t num_ctas, bool persistent, bool dynamic_tiles) {
  builder->program->num_ctas = num_ctas;
  builder->program->persistent = persistent;
  builder->program->dynamic_tiles = dynamic_tiles;
}

void ftl_builder_cluster(ftl_builder *builder, int32_t num_ctas) { builder->program->cluster_ctas = num_ctas; }

void ftl_builder_multicast(ftl_builder *builder, int32_t ring, ftl_multicast multicast) {
  if (ok(builder)) builder->program->rings[ring].multicast = multicast;
}

// Loops of the role begun last that are open: their variables are in scope.
static uint32_t live_loops(const ftl_builder *builder) {
  uint32_t live = 0;
  for (int32_t i = 0; i < builder->num_open_loops; i++) live |= 1u << builder->open_loops[i];
  return live;
}

ftl_status ftl_builder_check_latest(const ftl_builder *builder, ftl_error *error) {
  const ftl_tile_program *program = builder->program;
  if (!ok(builder)) return ftl_error_set(error, builder->error.status, "%s", builder->error.message);
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

void ftl_builder_flops(ftl_builder *builder, int64_t model_flops) { builder->program->model_flops = model_flops; }

// ---- declarations ----

// Adds (count - 1) * stride to *elements; false when the sum leaves the range of int64.
static bool extend(int64_t *elements, int64_t count, int64_t stride) {
  int64_t span;
  return count >= 1 && stride >= 0 && !__builtin_mul_overflow(count - 1, stride, &span) &&
         !__builtin_add_overflow(*elements, span, elements);
}

static bool tensor_size(ftl_dtype dtype, const ftl_tensor_shape *shape, int64_t *size_bytes) {
  int64_t elements = shape->num_columns;
  return elements >= 1 && extend(&elements, shape->num_batches, shape->batch_stride) &&
         extend(&elements, shape->num_heads, shape->head_stride) &&
         extend(&elements, shape->num_rows, shape->row_stride) &&
         !__builtin_mul_overflow(elements, (int64_t)ftl_dtype_bytes(dtype), size_bytes) &&
         *size_bytes <= max_tensor_bytes;
}

ftl_tensor_shape ftl_contiguous(int64_t num_batches, int64_t num_heads, int64_t num_rows, int64_t num_columns) {
  return (ftl_tensor_shape){.num_batches = num_batches,
                            .num_heads = num_heads,
                            .num_rows = num_rows,
                            .num_columns = num_columns,
                            .batch_stride = num_heads * num_rows * num_columns,
                            .head_stride = num_rows * num_columns,
                            .row_stride = num_columns};
}

int32_t ftl_builder_tensor(ftl_builder *builder, const char *name, ftl_dtype dtype, ftl_tensor_use use,
                           ftl_tensor_shape shape) {
  ftl_tile_program *program = builder->program;
  if (!ok(builder)) return 0;
  int64_t size_bytes;
  if (program->num_tensors == FTL_TILE_MAX_TENSORS || !tensor_size(dtype, &shape, &size_bytes)) {
    ftl_builder_fail(builder, FTL_BAD_INPUT,
                     "tensor %s: allowed are %d tensors of at least one element and at most 2^46 bytes", name,
                     FTL_TILE_MAX_TENSORS);
    return 0;
  }
  ftl_tensor *tensor = &program->tensors[program->num_tensors];
  *tensor = (ftl_tensor){
      .dtype = dtype,
      .use = use,
      .num_batches = shape.num_batches,
      .num_heads = shape.num_heads,
      .num_rows = shape.num_rows,
      .num_columns = shape.num_columns,
      .batch_stride = shape.batch_stride,
      .head_stride = shape.head_stride,
      .row_stride = shape.row_stride,
      .base_bytes = builder->next_base_bytes,
      .size_bytes = size_bytes,
  };
  copy_name(tensor->name, name);
  builder->next_base_bytes += (size_bytes + base_alignment_bytes - 1) / base_alignment_bytes * base_alignment_bytes;
  return program->num_tensors++;
}

void ftl_builder_l2_priority(ftl_builder *builder, int32_t tensor, ftl_l2_priority priority) {
  if (ok(builder)) builder->program->tensors[tensor].l2_priority = priority;
}

int32_t ftl_builder_ring(ftl_builder *builder, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                         int32_t num_stages, int32_t producer_role, int32_t consumers_mask) {
  ftl_tile_program *program = builder->program;
  if (!ok(builder)) return 0;
  if (program->num_rings == FTL_TILE_MAX_RINGS) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "ring %s: allowed are %d rings", name, FTL_TILE_MAX_RINGS);
    return 0;
  }
  ftl_ring *ring = &program->rings[program->num_rings];
  *ring = (ftl_ring){.dtype = dtype,
                     .rows = rows,
                     .columns = columns,
                     .num_stages = num_stages,
                     .producer = producer_role,
                     .consumers_mask = consumers_mask};
  copy_name(ring->name, name);
  return program->num_rings++;
}

void ftl_builder_ring_filled_by(ftl_builder *builder, int32_t ring, int32_t role) {
  if (ok(builder)) builder->program->rings[ring].producer = role;
}

void ftl_builder_ring_read_by(ftl_builder *builder, int32_t ring, int32_t role) {
  if (ok(builder)) builder->program->rings[ring].consumers_mask |= 1 << role;
}

void ftl_builder_barrier_joined_by(ftl_builder *builder, int32_t barrier, int32_t role) {
  if (ok(builder)) builder->program->barriers[barrier].roles_mask |= 1 << role;
}

int32_t ftl_builder_role(ftl_builder *builder, const char *name, int32_t num_warps, int32_t num_registers) {
  ftl_tile_program *program = builder->program;
  if (builder->num_open_loops > 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "role %s begins inside a loop", name);
  if (program->num_roles == FTL_TILE_MAX_ROLES)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "role %s: allowed are %d roles", name, FTL_TILE_MAX_ROLES);
  if (!ok(builder)) return 0;
  ftl_role *role = &program->roles[program->num_roles];
  *role = (ftl_role){.num_warps = num_warps,
                     .first_warp = ftl_tile_num_warps(program),
                     .num_registers = num_registers,
                     .num_groups = 1,
                     .first_op = program->num_ops};
  copy_name(role->name, name);
  builder->num_role_loops = 0;
  ftl_builder_drop_lookups(builder, 0);
  return program->num_roles++;
}

void ftl_builder_groups(ftl_builder *builder, int32_t num_groups) {
  if (!ok(builder) || builder->program->num_roles == 0) return;
  builder->program->roles[builder->program->num_roles - 1].num_groups = num_groups;
}

void ftl_builder_tile_begins(ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  if (program->num_roles == 0 || builder->num_open_loops > 0)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "a tile begins outside a role, or inside a loop");
  if (!ok(builder)) return;
  ftl_role *role = &program->roles[program->num_roles - 1];
  role->num_setup_ops = role->num_ops;
  ftl_builder_drop_lookups(builder, 0);
}

int32_t ftl_builder_named_barrier(ftl_builder *builder, const char *name, int32_t roles_mask) {
  ftl_tile_program *program = builder->program;
  if (program->num_barriers == FTL_TILE_MAX_BARRIERS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "barrier %s: allowed are %d named barriers", name, FTL_TILE_MAX_BARRIERS);
  if (!ok(builder)) return 0;
  ftl_named_barrier *barrier = &program->barriers[program->num_barriers];
  *barrier = (ftl_named_barrier){.roles_mask = roles_mask};
  copy_name(barrier->name, name);
  return program->num_barriers++;
}

static int32_t value_add(ftl_builder *builder, const char *name, ftl_value value) {
  ftl_tile_program *program = builder->program;
  if (!ok(builder)) return 0;
  if (program->num_values == FTL_TILE_MAX_VALUES || program->num_roles == 0) {
    ftl_builder_fail(builder, FTL_BAD_INPUT, "value %s: allowed are %d values, each declared after its role began",
                     name, FTL_TILE_MAX_VALUES);
    return 0;
  }
  value.role = program->num_roles - 1;
  value.warps_per_row = 1;
  copy_name(value.name, name);
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
  if (ok(builder)) program->values[program->num_values - 1].warps_per_row = warps_per_row;
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

// ---- operations ----

static bool ops_reserve(ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  if (program->num_ops < builder->capacity_ops) return true;
  int32_t capacity = builder->capacity_ops ? 2 * builder->capacity_ops : 128;
  ftl_tile_op *ops = realloc(program->ops, sizeof *ops * (size_t)capacity);
  if (!ops) {
    ftl_builder_fail(builder, FTL_NO_MEMORY, "out of memory");
    return false;
  }
  program->ops = ops;
  builder->capacity_ops = capacity;
  return true;
}

void ftl_builder_insert_op(ftl_builder *builder, int32_t at, const ftl_tile_op *op) {
  ftl_tile_program *program = builder->program;
  if (program->num_roles == 0 || program->num_ops == FTL_TILE_MAX_OPS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "%s: ops come after a role began, at most %d", ftl_tile_op_name(op->kind),
                     FTL_TILE_MAX_OPS);
  if (!ok(builder) || !ops_reserve(builder)) return;
  memmove(&program->ops[at + 1], &program->ops[at], sizeof *op * (size_t)(program->num_ops - at));
  program->ops[at] = *op;
  program->ops[at].source_line = builder->source_line;
  program->num_ops++;
  program->roles[program->num_roles - 1].num_ops++;
  for (int32_t i = 0; i < builder->num_open_loops; i++)
    if (builder->open_loop_ops[i] >= at) builder->open_loop_ops[i]++;
}

static void op_add(ftl_builder *builder, ftl_tile_op op) {
  ftl_builder_add_lookups(builder, &op);
  ftl_builder_insert_op(builder, builder->program->num_ops, &op);
}

ftl_tile_op ftl_builder_op_of(ftl_tile_op_kind kind) {
  ftl_operand none = {.value = -1};
  return (ftl_tile_op){.kind = kind,
                       .dst = -1,
                       .a = none,
                       .b = none,
                       .c = none,
                       .ring = -1,
                       .ring_a = -1,
                       .ring_scales = -1,
                       .barrier = -1,
                       .loop_var = -1,
                       .ref = {.tensor = -1, .present = FTL_ALWAYS},
                       .diagonal = FTL_ALWAYS,
                       .left = FTL_ALWAYS};
}

int32_t ftl_loop(ftl_builder *builder, ftl_expr lo, ftl_expr hi) {
  ftl_tile_program *program = builder->program;
  if (builder->num_role_loops == FTL_TILE_MAX_LOOP_VARS)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "allowed are %d loops a role", FTL_TILE_MAX_LOOP_VARS);
  if (!ok(builder)) return 0;
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOOP);
  op.loop_var = builder->num_role_loops++;
  if (builder->num_role_loops > program->num_loop_vars) program->num_loop_vars = builder->num_role_loops;
  op.lo = lo;
  op.hi = hi;
  op_add(builder, op);
  builder->open_loop_ops[builder->num_open_loops] = program->num_ops - 1;
  builder->open_loops[builder->num_open_loops++] = op.loop_var;
  return op.loop_var;
}

void ftl_end_loop(ftl_builder *builder) {
  if (builder->num_open_loops == 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "end_loop without a loop");
  if (!ok(builder)) return;
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_END_LOOP);
  ftl_builder_drop_lookups(builder, builder->num_open_loops);
  op.loop_var = builder->open_loops[--builder->num_open_loops];
  op_add(builder, op);
}

static void ring_op(ftl_builder *builder, ftl_tile_op_kind kind, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.ring = ring;
  op_add(builder, op);
}

void ftl_acquire(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_ACQUIRE, ring); }
void ftl_commit(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_COMMIT, ring); }
void ftl_fill_stage(ftl_builder *builder, int32_t ring, ftl_tile_ref ref) {
  ftl_acquire(builder, ring);
  ftl_load(builder, ring, ref);
  ftl_commit(builder, ring);
}

void ftl_wait(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_WAIT, ring); }
void ftl_release(ftl_builder *builder, int32_t ring) { ring_op(builder, FTL_TILE_RELEASE, ring); }

void ftl_load(ftl_builder *builder, int32_t ring, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_LOAD);
  op.ring = ring;
  op.ref = ref;
  op_add(builder, op);
}

static void load_direct(ftl_builder *builder, ftl_tile_op_kind kind, int32_t dst, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.dst = dst;
  op.ref = ref;
  op_add(builder, op);
}

void ftl_load_tile(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  load_direct(builder, FTL_TILE_LOAD_TILE, dst, ref);
}

void ftl_load_rows(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  load_direct(builder, FTL_TILE_LOAD_ROWS, dst, ref);
}

void ftl_load_columns(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  load_direct(builder, FTL_TILE_LOAD_COLUMNS, dst, ref);
}

ftl_operand ftl_value_operand(int32_t value) { return (ftl_operand){.value = value}; }
ftl_operand ftl_immediate(float x) { return (ftl_operand){.value = -1, .immediate = x}; }

void ftl_fill(ftl_builder *builder, int32_t dst, float x) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_FILL);
  op.dst = dst;
  op.a = ftl_immediate(x);
  op_add(builder, op);
}

void ftl_fetch(ftl_builder *builder, int32_t dst, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_FETCH);
  op.dst = dst;
  op.ring = ring;
  op_add(builder, op);
}

void ftl_put(ftl_builder *builder, int32_t ring, int32_t a) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_PUT);
  op.ring = ring;
  op.a = ftl_value_operand(a);
  op_add(builder, op);
}

void ftl_transpose(ftl_builder *builder, int32_t ring, int32_t from) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_TRANSPOSE);
  op.ring = ring;
  op.ring_a = from;
  op_add(builder, op);
}

void ftl_dequantize(ftl_builder *builder, int32_t ring, int32_t from, int32_t scales) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_DEQUANTIZE);
  op.ring = ring;
  op.ring_a = from;
  op.ring_scales = scales;
  op_add(builder, op);
}

static void mma_add(ftl_builder *builder, ftl_tile_op op) {
  if (ok(builder) && op.dst >= 0 && op.dst < builder->program->num_values)
    builder->program->values[op.dst].accumulates = true;
  op_add(builder, op);
}

void ftl_mma_shared(ftl_builder *builder, int32_t dst, int32_t ring_a, int32_t ring_b, bool transpose_b) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MMA);
  op.dst = dst;
  op.ring_a = ring_a;
  op.ring = ring_b;
  op.transpose_b = transpose_b;
  mma_add(builder, op);
}

void ftl_transposed_a(ftl_builder *builder) {
  ftl_tile_program *program = builder->program;
  if (!ok(builder)) return;
  if (program->num_ops == 0 || program->ops[program->num_ops - 1].kind != FTL_TILE_MMA ||
      program->ops[program->num_ops - 1].ring_a < 0)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "only a product that takes A from a ring takes it transposed");
  else
    program->ops[program->num_ops - 1].transpose_a = true;
}

void ftl_mma_value(ftl_builder *builder, int32_t dst, int32_t a, int32_t ring_b, bool transpose_b) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MMA);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.ring = ring_b;
  op.transpose_b = transpose_b;
  mma_add(builder, op);
}

void ftl_elem(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, ftl_operand a, ftl_operand b, ftl_operand c) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_ELEM);
  op.fn = fn;
  op.dst = dst;
  op.a = a;
  op.b = b;
  op.c = c;
  op_add(builder, op);
}

void ftl_unary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a) {
  ftl_elem(builder, fn, dst, ftl_value_operand(a), ftl_immediate(0), ftl_immediate(0));
}

void ftl_binary(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, ftl_operand other) {
  ftl_elem(builder, fn, dst, ftl_value_operand(a), other, ftl_immediate(0));
}

void ftl_mask(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal, ftl_expr limit) {
  ftl_mask_heads(builder, dst, row0, column0, diagonal, limit, 0);
}

static ftl_tile_op mask_of(int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal, ftl_expr limit) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MASK);
  op.dst = dst;
  op.row0 = row0;
  op.column0 = column0;
  op.diagonal = diagonal;
  op.limit = limit;
  return op;
}

void ftl_mask_heads(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                    ftl_expr limit, int64_t period) {
  ftl_tile_op op = mask_of(dst, row0, column0, diagonal, limit);
  op.period = period;
  op_add(builder, op);
}

void ftl_mask_transposed(ftl_builder *builder, int32_t dst, ftl_expr row0, ftl_expr column0, ftl_expr diagonal,
                         ftl_expr limit) {
  ftl_tile_op op = mask_of(dst, row0, column0, diagonal, limit);
  op.transposed = true;
  op_add(builder, op);
}

void ftl_mask_left(ftl_builder *builder, ftl_expr left) {
  ftl_tile_program *program = builder->program;
  if (!ok(builder)) return;
  if (program->num_ops == 0 || program->ops[program->num_ops - 1].kind != FTL_TILE_MASK)
    ftl_builder_fail(builder, FTL_BAD_INPUT, "only a mask has a bound on the left");
  else
    program->ops[program->num_ops - 1].left = left;
}

void ftl_mask_bits(ftl_builder *builder, int32_t dst, ftl_tile_ref ref) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_MASK_BITS);
  op.dst = dst;
  op.ref = ref;
  op_add(builder, op);
}

void ftl_dropout(ftl_builder *builder, int32_t dst, ftl_expr sequence, ftl_expr row0, ftl_expr column0,
                 int32_t threshold) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_DROPOUT);
  op.dst = dst;
  op.sequence = sequence;
  op.row0 = row0;
  op.column0 = column0;
  op.threshold = threshold;
  op_add(builder, op);
}

void ftl_reduce_rows(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_ROWS);
  op.fn = fn;
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op_add(builder, op);
}

void ftl_reduce_lanes(ftl_builder *builder, ftl_elem_fn fn, int32_t dst) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_LANES);
  op.fn = fn;
  op.dst = dst;
  op_add(builder, op);
}

void ftl_reduce_groups(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t staging_ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_REDUCE_GROUPS);
  op.fn = fn;
  op.dst = dst;
  op.ring = staging_ring;
  op_add(builder, op);
}

void ftl_top(ftl_builder *builder, int32_t dst, int32_t a, int32_t count) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_TOP);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.count = count;
  op_add(builder, op);
}

void ftl_store_top(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t ranks) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_STORE_TOP);
  op.ref = ref;
  op.a.value = a;
  op.b = ftl_value_operand(ranks);
  op_add(builder, op);
}

void ftl_gather(ftl_builder *builder, ftl_elem_fn fn, int32_t dst, int32_t a, int32_t staging_ring) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_GATHER);
  op.fn = fn;
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op.ring = staging_ring;
  op_add(builder, op);
}

void ftl_convert(ftl_builder *builder, int32_t dst, int32_t a) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_CONVERT);
  op.dst = dst;
  op.a = ftl_value_operand(a);
  op_add(builder, op);
}

static void store_op(ftl_builder *builder, ftl_tile_op_kind kind, ftl_tile_ref ref, int32_t a, int32_t ring) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.ref = ref;
  op.a = ftl_value_operand(a);
  op.ring = ring;
  op_add(builder, op);
}

void ftl_store(ftl_builder *builder, ftl_tile_ref ref, int32_t a, int32_t staging_ring) {
  store_op(builder, FTL_TILE_STORE, ref, a, staging_ring);
}

void ftl_atomic_add(ftl_builder *builder, ftl_tile_ref ref, int32_t a) {
  store_op(builder, FTL_TILE_ATOMIC_ADD, ref, a, -1);
}

void ftl_store_merged(ftl_builder *builder, ftl_tile_ref ref, int32_t output, int32_t row_max, int32_t row_sum,
                      float scale_log2, int32_t output_staging, int32_t rows_staging) {
  ftl_tile_op op = ftl_builder_op_of(FTL_TILE_STORE_MERGED);
  op.ref = ref;
  op.a = (ftl_operand){.value = output, .immediate = scale_log2};
  op.b = ftl_value_operand(row_max);
  op.c = ftl_value_operand(row_sum);
  op.ring = output_staging;
  op.ring_a = rows_staging;
  op_add(builder, op);
}

void ftl_store_rows(ftl_builder *builder, ftl_tile_ref ref, int32_t a) {
  store_op(builder, FTL_TILE_STORE_ROWS, ref, a, -1);
}

void ftl_at_ring_row(ftl_builder *builder, int32_t row) {
  ftl_tile_program *program = builder->program;
  if (program->num_ops == 0) ftl_builder_fail(builder, FTL_BAD_INPUT, "a row of a ring comes after an op");
  if (ok(builder)) program->ops[program->num_ops - 1].ring_row = row;
}

void ftl_barrier(ftl_builder *builder) { op_add(builder, ftl_builder_op_of(FTL_TILE_BARRIER)); }

static void barrier_op(ftl_builder *builder, ftl_tile_op_kind kind, int32_t barrier) {
  ftl_tile_op op = ftl_builder_op_of(kind);
  op.barrier = barrier;
  op_add(builder, op);
}

void ftl_arrive(ftl_builder *builder, int32_t barrier) { barrier_op(builder, FTL_TILE_ARRIVE, barrier); }
void ftl_sync(ftl_builder *builder, int32_t barrier) { barrier_op(builder, FTL_TILE_SYNC, barrier); }
