// Which of heads and sequences follow each other in a grid decides how often keys that heads share come from DRAM.
#include <math.h>

#include "fixture.h"

// Two heads share 0.5 MiB of keys and values in each of 12 sequences, 6 MiB in all; 6 MiB of queries; an L2 of 6 MiB.
// 82 SMs with a CTA each work on at most 7 heads of 16 query tiles at a time: 3.5 MiB of keys and values.
static const char problem[] =
    "batch=12 heads=2 kv_heads=1 seqlen=1024 head_dim=128 block_m=64 block_n=64 num_warps=4 mma=mma copy=cp_async ";
enum { MIB = 1 << 20, QUERIES = 6 * MIB, KEYS_AND_VALUES = 6 * MIB };

static double dram_read(const char *more) {
  char text[512];
  snprintf(text, sizeof text, "%s%s", problem, more);
  ftl_arch *arch = shipped_arch("rtx3090");
  ftl_prediction prediction = prediction_of(arch, text, NULL);
  ftl_arch_destroy(arch);
  return prediction.metrics.value[FTL_METRIC_dram_read];
}

static void check(const char *order, double expected) {
  static const char *const details[] = {"detail=sampled ", "detail=full "};
  for (int d = 0; d < 2; d++) {
    char more[128];
    snprintf(more, sizeof more, "%s%s", details[d], order);
    double read = dram_read(more);
    cr_expect_lt(fabs(read - expected), 0.03 * expected, "%s: %.0f bytes, not %.0f", more, read, expected);
  }
}

Test(unit_engine_head_order, heads_of_a_sequence_read_shared_keys_once) {
  check("head_order=heads_first", QUERIES + KEYS_AND_VALUES);
}

// Between the two heads of a sequence 16.5 MiB of other sequences pass through L2: queries, keys, values and outputs.
Test(unit_engine_head_order, heads_with_all_sequences_between_them_read_shared_keys_again) {
  check("head_order=sequences_first", QUERIES + 2 * KEYS_AND_VALUES);
}
