#include "lower/checker.h"

#include <inttypes.h>

#include "lower/coverage.h"
#include "lower/replay.h"

static ftl_status differ(const ftl_warp_program *program, int64_t cta, const char *what, const char *which,
                         int64_t tile, int64_t warps, ftl_error *error) {
  return ftl_error_set(error, FTL_RUN_FAILED,
                       "%s: CTA %" PRId64 ": %s%s: %" PRId64 " in the tile program, %" PRId64 " in the warp program",
                       program->tile->name, cta, what, which, tile, warps);
}

static ftl_status compare_work(const ftl_warp_program *program, int64_t cta, ftl_error *error) {
  ftl_work tile, warps;
  ftl_status status = ftl_work_of_tile(program->tile, program->product.mma_columns, cta, &tile, error);
  if (status == FTL_OK) status = ftl_work_of_warps(program, cta, &warps, error);
  if (status != FTL_OK) return status;
  for (int32_t t = 0; t < program->tile->num_tensors; t++) {
    const char *name = program->tile->tensors[t].name;
    if (tile.load_bytes[t] != warps.load_bytes[t])
      return differ(program, cta, "bytes read of ", name, tile.load_bytes[t], warps.load_bytes[t], error);
    if (tile.store_bytes[t] != warps.store_bytes[t])
      return differ(program, cta, "bytes written of ", name, tile.store_bytes[t], warps.store_bytes[t], error);
  }
  if (tile.put_bytes != warps.put_bytes)
    return differ(program, cta, "bytes put into rings", "", tile.put_bytes, warps.put_bytes, error);
  if (tile.mma_macs != warps.mma_macs)
    return differ(program, cta, "multiply-adds", "", tile.mma_macs, warps.mma_macs, error);
  int64_t dropouts = tile.dropouts * program->operand_copies;
  if (dropouts != warps.dropouts) return differ(program, cta, "dropouts", "", dropouts, warps.dropouts, error);
  if (tile.sign_dropouts != warps.sign_dropouts)
    return differ(program, cta, "dropouts by sign", "", tile.sign_dropouts, warps.sign_dropouts, error);
  int64_t exps = tile.exps + tile.row_exps * (program->row_lanes - 1);
  if (exps != warps.exps) return differ(program, cta, "exponentials", "", exps, warps.exps, error);
  return FTL_OK;
}

static ftl_status check_complete(const ftl_warp_program *program, int64_t cta, const ftl_coverage *coverage,
                                 ftl_error *error) {
  const ftl_covered_tile *left = ftl_coverage_incomplete(coverage);
  if (!left) return FTL_OK;
  return ftl_error_set(error, FTL_RUN_FAILED, "%s: CTA %" PRId64 ": %" PRId64 " bytes of a tile of %s are never %s",
                       program->tile->name, cta, left->bytes_left, program->tile->tensors[left->tensor].name,
                       left->is_store   ? "stored"
                       : left->ring < 0 ? "loaded"
                                        : "copied");
}

// The replay goes first: where a copy is missing or made twice it says which.
ftl_status ftl_checker_prove(const ftl_warp_program *program, int64_t cta, ftl_error *error) {
  ftl_coverage coverage;
  ftl_status status = ftl_coverage_init(&coverage, program->tile, cta, error);
  if (status != FTL_OK) return status;
  status = ftl_replay(program, cta, &coverage, error);
  if (status == FTL_OK) status = check_complete(program, cta, &coverage, error);
  ftl_coverage_fini(&coverage);
  return status == FTL_OK ? compare_work(program, cta, error) : status;
}
