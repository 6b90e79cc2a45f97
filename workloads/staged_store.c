#include "workloads/staged_store.h"

void ftl_stage_open_store(ftl_spec *spec, int64_t shared_bytes) {
  const int64_t *v = spec->value, limit = spec->shared_bytes_per_cta;
  bool is_open = spec->is_code_open && (spec->given & FTL_TAKES(store)) == 0;
  bool is_by_hand = v[FTL_PARAM_code] == FTL_CODE_PLAIN && v[FTL_PARAM_mma] == FTL_SPEC_MMA_MMA;
  if (is_open && is_by_hand && (limit == 0 || shared_bytes <= limit))
    spec->value[FTL_PARAM_store] = FTL_SPEC_STORE_STAGED;
}

int64_t ftl_staged_store_bytes(int64_t tile_bytes, int64_t room_bytes) {
  return tile_bytes <= room_bytes ? room_bytes : room_bytes + tile_bytes;
}

int32_t ftl_staged_store_ring(ftl_builder *b, const char *name, ftl_dtype dtype, int32_t rows, int32_t columns,
                              int64_t room_bytes, int32_t role) {
  int32_t ring = ftl_builder_ring(b, name, dtype, rows, columns, 1, role, 1 << role);
  int64_t tile_bytes = (int64_t)rows * columns * ftl_dtype_bytes(dtype);
  if (ftl_staged_store_bytes(tile_bytes, room_bytes) == room_bytes) ftl_builder_overlay(b, ring);
  return ring;
}

void ftl_staged_store(ftl_builder *b, ftl_tile_ref to, int32_t value, int32_t ring) {
  if (ring >= 0) ftl_barrier(b);
  ftl_store(b, to, value, ring);
}
