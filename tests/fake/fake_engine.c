#include "fake/fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/predict.h"

enum { MAX_TILE = 16384, FAILING_BLOCK_N = 24 };

atomic_int ftl_fake_num_predictions;

static ftl_status wait_as_asked(const ftl_predict_options *options, ftl_error *error) {
  const char *delay = getenv("FTL_FAKE_DELAY_MS");
  const struct timespec millisecond = {.tv_nsec = 1000000};
  for (int left_ms = delay != NULL ? atoi(delay) : 0; left_ms > 0; left_ms--) {
    if (options->cancel != NULL && atomic_load(options->cancel)) {
      return ftl_error_set(error, FTL_INTERRUPTED, "interrupted");
    }
    nanosleep(&millisecond, NULL);
  }
  return FTL_OK;
}

static void count(void) {
  atomic_fetch_add(&ftl_fake_num_predictions, 1);
  const char *path = getenv("FTL_FAKE_LOG");
  FILE *log = path != NULL ? fopen(path, "a") : NULL;
  if (log == NULL) return;
  fputs("answer\n", log);
  fclose(log);
}

static void fill(const ftl_spec *spec, ftl_metrics *out) {
  const int64_t *v = spec->value;
  double tiles = (double)(v[FTL_PARAM_heads] * v[FTL_PARAM_seqlen_q] * v[FTL_PARAM_seqlen_kv]) /
                 (double)(v[FTL_PARAM_block_m] * v[FTL_PARAM_block_n]);
  double time_ns = tiles * (v[FTL_PARAM_num_warps] < 8 ? 2 : 1);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) out->value[i] = i + 0.5;
  out->value[FTL_METRIC_time_ns] = time_ns;
  out->value[FTL_METRIC_stream_time_ns] = time_ns + 1000;
  out->value[FTL_METRIC_cycles] = time_ns * 1.5;
  out->value[FTL_METRIC_cycles_active] = time_ns * 1.4;
  out->value[FTL_METRIC_insts] = tiles * 100;
  out->value[FTL_METRIC_dram_read] = 1e6 * (double)v[FTL_PARAM_seqlen_q] / (double)v[FTL_PARAM_block_m];
  out->value[FTL_METRIC_dram_write] = 1e5;
}

ftl_status ftl_predict(const ftl_spec *spec, const ftl_arch *arch, const ftl_predict_options *options,
                       ftl_prediction *out, ftl_error *error) {
  memset(out, 0, sizeof *out);
  out->spec = *spec;
  ftl_status status = wait_as_asked(options, error);
  if (status != FTL_OK) return status;
  count();
  int64_t block_m = spec->value[FTL_PARAM_block_m], block_n = spec->value[FTL_PARAM_block_n];
  if (block_n == FAILING_BLOCK_N) return ftl_error_set(error, FTL_RUN_FAILED, "this engine cannot do block_n=24");
  if (spec->value[FTL_PARAM_copy] == 0) out->spec.value[FTL_PARAM_copy] = 1;  // auto is resolved
  out->wall_s = 0.25;
  out->feasible = block_m * block_n <= MAX_TILE;
  if (!out->feasible) {
    snprintf(out->reason, sizeof out->reason, "block_m=%d block_n=%d is more than %s holds", (int)block_m, (int)block_n,
             arch->name);
    return FTL_OK;
  }
  out->num_kernels = spec->value[FTL_PARAM_splits] > 1 ? 2 : 1;  // the second as the first, and slower
  snprintf(out->kernels[0].name, sizeof out->kernels[0].name, "fake");
  snprintf(out->kernels[1].name, sizeof out->kernels[1].name, "fake_combine");
  fill(spec, &out->kernels[0].metrics);
  fill(spec, &out->kernels[1].metrics);
  out->kernels[1].metrics.value[FTL_METRIC_time_ns] += 1e6;
  for (int k = 0; k < out->num_kernels; k++) {
    out->kernels[k].bottleneck = (ftl_bottleneck){.bound = FTL_BOUND_RESOURCE, .resource = FTL_RESOURCE_tensor};
    for (int i = 0; i < FTL_RESOURCE_COUNT; i++) out->kernels[k].usage_pct[i] = (float)(90 - i);
  }
  out->metrics = out->kernels[0].metrics;
  snprintf(out->bottleneck, sizeof out->bottleneck, "tensor pipe");
  out->error_bound_cycles_pct = 2.5;
  out->error_bound_hbm_bytes_pct = 1.25;
  return FTL_OK;
}

// Not needed by what these tests test; here so that the real engine's file with ftl_predict is not linked for them.
ftl_status ftl_predict_programs(const ftl_spec *spec, const ftl_arch *arch, int launch_idx, ftl_tile_program **tile,
                                ftl_warp_program **warps, ftl_error *error) {
  (void)spec, (void)arch, (void)launch_idx;
  *tile = NULL;
  *warps = NULL;
  return ftl_error_set(error, FTL_RUN_FAILED, "the fake engine has no programs");
}
