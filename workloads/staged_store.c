#include "workloads/staged_store.h"

void ftl_stage_open_store(ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool is_named = (spec->given & (FTL_TAKES(store) | FTL_TAKES(code))) != 0;
  if (!is_named && v[FTL_PARAM_code] == FTL_CODE_PLAIN && v[FTL_PARAM_mma] == FTL_SPEC_MMA_MMA)
    spec->value[FTL_PARAM_store] = FTL_SPEC_STORE_STAGED;
}

int32_t ftl_staged_store_ring(ftl_builder *b, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                              int64_t room_bytes, int32_t role) {
  int32_t ring = ftl_builder_ring(b, name, dtype, rows, columns, 1, role, 1 << role);
  if ((int64_t)rows * columns * ftl_dtype_bytes(dtype) <= room_bytes) ftl_builder_overlay(b, ring);
  return ring;
}

void ftl_staged_store(ftl_builder *b, ftl_tile_ref to, int32_t value, int32_t ring) {
  if (ring >= 0) ftl_barrier(b);
  ftl_store(b, to, value, ring);
}
