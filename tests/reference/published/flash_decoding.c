// Times that others published, on GPUs that this project never measured. Nothing in the model was chosen by them.
// Source: T. Dao, D. Haziza, F. Massa, G. Sizov, "Flash-Decoding for long-context inference", pytorch.org, 2023: 16
// query heads, 2 KV heads, head_dim 128, fp16, calls back to back; FlashAttention 2.0.9 (a tile of 128 x 64 for one
// query row a head) and Flash-Decoding. The post says A100; 1259 GB/s of K and V fit the 40 GB one with its 1555.
#include <math.h>

#include "../../unit/engine/fixture.h"

static const struct {
  int batch, seqlen_kv;
  double unsplit_us, split_us;
} published[] = {
    {256, 256, 390.5, 63.4}, {64, 1024, 364.8, 77.7},  {16, 4096, 401.7, 57.0},
    {8, 8192, 529.2, 56.4},  {2, 32768, 1156.1, 60.3}, {1, 131072, 4592.2, 106.6},
};
enum { NUM_PUBLISHED = sizeof published / sizeof *published };

static double predicted_us(int i, const char *workload) {
  char parameters[256];
  snprintf(parameters, sizeof parameters,
           "%s batch=%d heads=16 kv_heads=2 seqlen_q=1 seqlen_kv=%d head_dim=128 conditions=stream cache=warm",
           workload, published[i].batch, published[i].seqlen_kv);
  ftl_arch *arch = shipped_arch("a100_40");
  ftl_spec spec = spec_of(parameters);
  ftl_prediction prediction;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &prediction, &error), FTL_OK, "%s", error.message);
  cr_assert(prediction.feasible, "%s", prediction.reason);
  ftl_arch_destroy(arch);
  return prediction.metrics.value[FTL_METRIC_stream_time_ns] / 1000;
}

static double error_pct(double predicted, double measured) { return 100 * (predicted - measured) / measured; }

// Five of six lie within 6 %; of 64 x 1024 the post gives a fifth more than of its neighbours, which no model explains.
Test(reference_published_flash_decoding, the_split_kernel_takes_the_time_of_its_traffic) {
  double sum = 0;
  for (int i = 0; i < NUM_PUBLISHED; i++) {
    double error = error_pct(predicted_us(i, "flash_decode"), published[i].split_us);
    cr_expect_leq(fabs(error), published[i].batch == 64 ? 32 : 10, "batch %d: %.1f %%", published[i].batch, error);
    sum += fabs(error);
  }
  cr_expect_leq(sum / NUM_PUBLISHED, 12, "mean error %.1f %%", sum / NUM_PUBLISHED);
}

// The package of FlashAttention-2 passes --use_fast_math.
#define UNSPLIT "flash2_fwd block_m=128 block_n=64 num_warps=4 schedule=interleaved scaling=exponent exp2=ftz"

Test(reference_published_flash_decoding, the_unsplit_kernel_is_five_to_forty_times_slower) {
  double sum = 0;
  for (int i = 0; i < NUM_PUBLISHED; i++) {
    double unsplit = predicted_us(i, UNSPLIT);
    double error = error_pct(unsplit, published[i].unsplit_us);
    cr_expect_leq(fabs(error), 12, "batch %d: %.1f %%", published[i].batch, error);
    double times_slower = unsplit / predicted_us(i, "flash_decode");
    double published_times = published[i].unsplit_us / published[i].split_us;  // 4.7 to 43
    cr_expect_leq(fabs(error_pct(times_slower, published_times)), 27, "batch %d: %.1f times for %.1f",
                  published[i].batch, times_slower, published_times);
    sum += fabs(error);
  }
  cr_expect_leq(sum / NUM_PUBLISHED, 7, "mean error %.1f %%", sum / NUM_PUBLISHED);
}
