// Tensors: shapes, strides, and the addresses that they get.
#include "base/integer.h"
#include "tile/builder_internal.h"

static const int64_t max_tensor_bytes = INT64_C(1) << 46;

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
  if (!ftl_builder_is_ok(builder)) return 0;
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
  // The gaps between strided rows are not needed; batches that share their elements need them once.
  tensor->needed_bytes = ftl_smaller(ftl_tensor_bytes(tensor), size_bytes);
  ftl_builder_copy_name(tensor->name, name);
  builder->next_base_bytes += ftl_round_up(size_bytes, FTL_TILE_BASE_ALIGNMENT_BYTES);
  return program->num_tensors++;
}

void ftl_builder_needs(ftl_builder *builder, int32_t tensor, int64_t num_elements) {
  if (!ftl_builder_is_ok(builder)) return;
  ftl_tensor *of = &builder->program->tensors[tensor];
  of->needed_bytes = num_elements * ftl_dtype_bytes(of->dtype);
}

void ftl_builder_l2_priority(ftl_builder *builder, int32_t tensor, ftl_l2_priority priority) {
  if (ftl_builder_is_ok(builder)) builder->program->tensors[tensor].l2_priority = priority;
}
