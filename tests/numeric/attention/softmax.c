// softmax_safe and softmax_online compute the softmax of rows, whatever their length, threads and where they are kept.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "pipeline_case.h"

enum { X, Y, LSE };

// Elements of x are at most 2 in magnitude, so the exponentials' sum has at most n terms of a relative error of a few
// 2^-23; y is rounded to 16 bits (u, below 2^-14 in fp16 by 2^-25).
static void check_row(const pipeline_case *c, int64_t row, int64_t columns) {
  const float *x = c->tensors[X] + row * columns, *y = c->tensors[Y] + row * columns;
  double sum = 0, u = c->spec.value[FTL_PARAM_dtype] == FTL_FP16 ? 0x1p-11 : 0x1p-8;
  for (int64_t j = 0; j < columns; j++) sum += exp((double)x[j]);
  double relative = (double)columns * 0x1p-23 + 0x1p-20, lse = log(sum);
  cr_assert_float_eq((double)c->tensors[LSE][row], lse, relative + fabs(lse) * 0x1p-20, "%s: LSE of row %lld", c->text,
                     (long long)row);
  for (int64_t j = 0; j < columns; j++) {
    double expected = exp((double)x[j]) / sum;
    cr_assert_float_eq((double)y[j], expected, expected * (u + relative) + 0x1p-25, "%s: row %lld column %lld", c->text,
                       (long long)row, (long long)j);
  }
}

static void prove(const char *workload, const char *params) {
  pipeline_case c;
  pipeline_case_run(&c, workload, params);
  int64_t columns = c.spec.value[FTL_PARAM_seqlen_kv];
  int64_t rows = c.spec.value[FTL_PARAM_batch] * c.spec.value[FTL_PARAM_heads] * c.spec.value[FTL_PARAM_seqlen_q];
  for (int64_t row = 0; row < rows; row++) check_row(&c, row, columns);
  pipeline_case_fini(&c);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

Test(numeric_softmax, rows_of_any_length_threads_and_place_give_softmax) {
  static const char *const workloads[] = {"softmax_safe", "softmax_online"};
  static const char *const places[] = {"schedule=reread", "schedule=registers", "schedule=registers block_n=4096"};
  static const char *const ctas[] = {"block_m=1",
                                     "block_m=4",
                                     "block_m=2 num_warps=4",
                                     "block_m=1 num_warps=1",
                                     "block_m=1 num_warps=12",
                                     "block_m=8 num_warps=8"};
  static const char *const scalings[] = {"scaling=apart", "scaling=exponent"};
  static const int lengths[] = {8, 128, 256, 1000, 1024, 2056};
  char params[256];
  for (size_t w = 0; w < COUNT(workloads); w++)
    for (size_t p = 0; p < COUNT(places); p++)
      for (size_t c = 0; c < COUNT(ctas); c++)
        for (size_t n = 0; n < 2 * COUNT(lengths); n++) {
          if (p == 2 && c > 1) continue;  // 4096 columns are whole steps of 1024 and of 256 only
          snprintf(params, sizeof params, "batch=2 heads=1 seqlen_q=5 seqlen_kv=%d %s %s %s", lengths[n / 2], places[p],
                   ctas[c], scalings[n % 2]);
          prove(workloads[w], params);
        }
}

// Rows of any length: element by element where they are no multiple of 16; vectors and warps beyond the row.
Test(numeric_softmax, exponentials_that_are_kept_give_softmax) {
  static const char *const blocks[] = {"", "num_warps=1", "num_warps=8", "block_n=4096"};
  static const int lengths[] = {1, 37, 256, 1000, 1001, 2056};
  char params[256];
  for (size_t i = 0; i < COUNT(blocks); i++)
    for (size_t n = 0; n < COUNT(lengths); n++) {
      snprintf(params, sizeof params, "batch=2 heads=1 seqlen_q=3 seqlen_kv=%d schedule=exponentials scaling=apart %s",
               lengths[n], blocks[i]);
      prove("softmax_safe", params);
    }
}

Test(numeric_softmax, bf16_rows_of_many_steps_give_softmax) {
  prove("softmax_safe", "heads=3 seqlen_q=2 seqlen_kv=9000 dtype=bf16");
  prove("softmax_online", "heads=3 seqlen_q=2 seqlen_kv=9000 dtype=bf16 block_m=2 num_warps=2");
}
