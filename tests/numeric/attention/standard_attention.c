// standard_attention computes attention in its three launches, over lengths that no tile divides, masks, grouped heads.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_case.h"
#include "reference.h"
#include "../../thinned.h"
#include "workloads/attention.h"
#include "tests/spec_words.h"

enum { Q, K, V, O, LSE, S, PADDING };

static ftl_tensor_shape shape_of(const pipeline_case *c, const ftl_attention *a, int tensor) {
  bool of_keys = tensor == K || tensor == V;
  return ftl_attention_shape(&c->spec, of_keys ? a->kv_heads : a->heads, of_keys ? a->seqlen_kv : a->seqlen_q,
                             tensor == V || tensor == O ? a->head_dim_v : a->head_dim);
}

static const float *head_of(const pipeline_case *c, const ftl_attention *a, int tensor, int64_t batch, int64_t head) {
  ftl_tensor_shape shape = shape_of(c, a, tensor);
  return c->tensors[tensor] + batch * shape.batch_stride + head * shape.head_stride;
}

// The largest magnitude of a score of query i.
static double largest_score(const ftl_attention *a, const float *q, const float *k, int64_t k_stride) {
  double largest = 0;
  for (int64_t j = 0; j < a->seqlen_kv; j++) {
    double score = 0;
    for (int32_t d = 0; d < a->head_dim; d++) score += (double)q[d] * (double)k[j * k_stride + d];
    largest = fmax(largest, fabs(score) * (double)a->scale);
  }
  return largest;
}

// u: unit roundoff of the 16-bit type. A score is rounded to it: an absolute error of u * |s|, beside head_dim * 2^-24
// of it from fp32 sums; twice where a launch of its own scales it. Where a launch of its own adds padding, a number of
// at most 2, the sum is rounded again. An exponential is wrong by that as a relative error, in the numerator and in the
// denominator; exp2 and the multiplications around it add 2^-20.
static double score_error(const pipeline_case *c, const ftl_attention *a, double largest, double u) {
  int64_t elementwise = c->spec.value[FTL_PARAM_elementwise];
  bool is_scaled_apart = elementwise == FTL_ELEMENTWISE_SEPARATE || elementwise == FTL_ELEMENTWISE_EAGER_MATMUL;
  double roundings = is_scaled_apart ? 2 : 1;
  double error = largest * (roundings * u + a->head_dim * 0x1p-24) + 0x1p-20;
  bool padded = c->spec.value[FTL_PARAM_padding_mask] != 0 && elementwise != FTL_ELEMENTWISE_FUSED;
  return padded ? error + (largest + 2) * u : error;
}

// What launches were told, as the definition has it.
static reference_more reference_of(const pipeline_case *c, const ftl_attention *a, int64_t batch, int64_t head,
                                   const uint8_t *seen) {
  bool padded = c->spec.value[FTL_PARAM_padding_mask] != 0;
  int64_t padded_keys = (a->seqlen_kv + 7) / 8 * 8;  // rows of whole 16-byte vectors
  return (reference_more){.seen = seen,
                          .key_bias = padded ? c->tensors[PADDING] + batch * padded_keys : NULL,
                          .sequence = batch * a->heads + head,
                          .rows_are_streamed = true};
}

// The largest error of a row's output and LSE, as a multiple of what is allowed. Beside the score's errors P is rounded
// (u, below 2^-14 in fp16 by 2^-25 each), as is O. Dropout rounds P again, and scales it and its error.
static double row_error(const pipeline_case *c, const ftl_attention *a, const uint8_t *seen, int64_t batch,
                        int64_t head, int64_t i) {
  int64_t kv_head = head / (a->heads / a->kv_heads), q_stride = shape_of(c, a, Q).row_stride;
  int64_t k_stride = shape_of(c, a, K).row_stride;
  const float *q = head_of(c, a, Q, batch, head), *k = head_of(c, a, K, batch, kv_head);
  double expected[REFERENCE_MOST_COLUMNS], lse, u = a->dtype == FTL_FP16 ? 0x1p-11 : 0x1p-8;
  reference_more more = reference_of(c, a, batch, head, seen);
  reference_row_of(a, &more, i, q, q_stride, k, k_stride, head_of(c, a, V, batch, kv_head),
                   shape_of(c, a, V).row_stride, expected, &lse);
  double wrong = score_error(c, a, largest_score(a, q + i * q_stride, k, k_stride), u);
  double found_lse = (double)c->tensors[LSE][(batch * a->heads + head) * a->seqlen_q + i];
  double worst = found_lse == lse ? 0 : fabs(found_lse - lse) / (2 * wrong + 0x1p-20 * fabs(lse));
  if (isnan(worst)) return INFINITY;  // one of them is -inf
  double tolerance = 2 * wrong + u + (double)a->seqlen_kv * 0x1p-24;
  if (a->dropout_p > 0) tolerance = (tolerance + u) / (1 - a->dropout_p);
  for (int32_t d = 0; d < a->head_dim_v; d++) {
    double found = (double)head_of(c, a, O, batch, head)[i * shape_of(c, a, O).row_stride + d];
    double error = fabs(found - expected[d]) / (tolerance + u * fabs(expected[d]));
    if (!(error <= worst)) worst = isnan(error) ? INFINITY : error;
  }
  return worst;
}

static double worst_error(const pipeline_case *c, const ftl_attention *a) {
  uint8_t *seen = reference_block_mask(&c->spec);
  double worst = 0;
  for (int64_t batch = 0; batch < a->batch; batch++)
    for (int64_t head = 0; head < a->heads; head++)
      for (int64_t i = 0; i < a->seqlen_q; i++) worst = fmax(worst, row_error(c, a, seen, batch, head, i));
  free(seen);
  return worst;
}

// The matrix of hidden pairs, where there is one.
static float *hidden_of(const pipeline_case *c) {
  for (int t = 0; t < c->launches[0]->num_tensors; t++)
    if (strcmp(c->launches[0]->tensors[t].name, "hidden") == 0) return c->tensors[t];
  return NULL;
}

static void fill_hidden(const pipeline_case *c, const ftl_attention *a) {
  float *hidden = hidden_of(c);
  if (hidden == NULL) return;
  uint8_t *seen = reference_block_mask(&c->spec);
  int64_t columns = (a->seqlen_kv + 7) / 8 * 8;
  for (int64_t i = 0; i < a->seqlen_q; i++)
    for (int64_t j = 0; j < a->seqlen_kv; j++) {
      bool sees = reference_sees(a, i, j) && (seen == NULL || seen[i * a->seqlen_kv + j] != 0);
      hidden[i * columns + j] = sees ? 0.0F : -INFINITY;
    }
  free(seen);
}

static void prove(const char *params) {
  static int count = 0;
  pipeline_case c;
  pipeline_case_make(&c, "standard_attention", params);
  if (!thinned_runs(&count)) {
    pipeline_case_fini(&c);
    return;
  }
  ftl_attention a = ftl_attention_of(&c.spec);
  fill_hidden(&c, &a);
  pipeline_case_execute(&c);
  double worst = worst_error(&c, &a);
  cr_assert_leq(worst, 1, "%s: %g times what is allowed", c.text, worst);
  pipeline_case_fini(&c);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
static const char *const softmaxes[] = {"softmax=safe", "softmax=online"};

Test(numeric_attention_standard, lengths_that_no_tile_divides_give_attention) {
  static const int lengths[] = {1, 15, 16, 33, 64, 100, 130};
  char params[256];
  for (size_t s = 0; s < COUNT(softmaxes); s++)
    for (size_t q = 0; q < COUNT(lengths); q++)
      for (size_t kv = 0; kv < COUNT(lengths); kv++)
        for (int causal = 0; causal < 2; causal++) {
          snprintf(params, sizeof params,
                   "heads=1 head_dim=16 seqlen_q=%d seqlen_kv=%d block_m=32 block_n=32 num_warps=2 causal=%d %s",
                   lengths[q], lengths[kv], causal, softmaxes[s]);
          prove(params);
        }
}

Test(numeric_attention_standard, values_may_have_columns_of_their_own) {
  static const char *const heads[] = {"head_dim=48 head_dim_v=32", "head_dim=16 head_dim_v=24",
                                      "head_dim=40 head_dim_v=120"};
  static const char *const kinds[] = {"", "causal=1 layout=bshd num_stages=3", "elementwise=fused dropout_p=0.1",
                                      "elementwise=separate padding_mask=1"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t k = 0; k < COUNT(kinds); k++) {
      snprintf(params, sizeof params,
               "batch=2 heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=100 block_m=32 block_n=32 num_warps=2 %s %s", heads[h],
               kinds[k]);
      prove(params);
    }
}

// A step of the softmax's 128 threads takes 1024 columns.
Test(numeric_attention_standard, rows_of_several_steps_give_attention) {
  static const int lengths[] = {1000, 1024, 1030, 2500};
  char params[256];
  for (size_t s = 0; s < COUNT(softmaxes); s++)
    for (size_t kv = 0; kv < COUNT(lengths); kv++)
      for (int causal = 0; causal < 2; causal++) {
        snprintf(params, sizeof params,
                 "heads=1 head_dim=16 seqlen_q=40 seqlen_kv=%d block_m=32 block_n=64 num_warps=2 causal=%d %s",
                 lengths[kv], causal, softmaxes[s]);
        prove(params);
      }
}

Test(numeric_attention_standard, grouped_heads_layouts_orders_dtypes_and_stages_give_attention) {
  static const char *const variants[] = {"layout=bhsd tile_order=head_first",
                                         "layout=bshd",
                                         "tile_reverse=true",
                                         "dtype=bf16 num_stages=1",
                                         "num_stages=3 mma=wgmma num_warps=4 block_m=64",
                                         "head_dim=40 copy=ldg",
                                         "store=staged",
                                         "store=staged head_dim_v=80 num_stages=1"};
  char params[256];
  for (size_t i = 0; i < COUNT(variants); i++)
    for (int causal = 0; causal < 2; causal++) {
      snprintf(params, sizeof params,
               "batch=2 heads=4 kv_heads=2 head_dim=32 seqlen_q=70 seqlen_kv=90 block_m=32 block_n=48 num_warps=2 "
               "causal=%d %s",
               causal, variants[i]);
      prove(params);
    }
}

Test(numeric_attention_standard, padding_and_dropout_are_launches_of_their_own) {
  static const char *const problems[] = {"heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=130 causal=true",
                                         "heads=2 seqlen_q=40 seqlen_kv=1100",
                                         "heads=1 seqlen_q=65 seqlen_kv=63 window=20"};
  static const char *const more[] = {"padding_mask=true", "dropout_p=0.25",
                                     "padding_mask=true dropout_p=0.5 dtype=bf16"};
  char params[256];
  for (size_t p = 0; p < COUNT(problems); p++)
    for (size_t m = 0; m < COUNT(more); m++) {
      snprintf(params, sizeof params, "batch=2 head_dim=16 block_m=32 block_n=32 num_warps=2 %s %s", problems[p],
               more[m]);
      prove(params);
    }
}

// One kernel for all of it, and one for each.
static const char *const places[] = {"elementwise=fused", "elementwise=separate"};

Test(numeric_attention_standard, element_wise_work_in_one_kernel_or_in_one_each_gives_attention) {
  static const char *const problems[] = {
      "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=130 causal=true", "heads=2 seqlen_q=40 seqlen_kv=1100 softmax=online",
      "heads=1 seqlen_q=65 seqlen_kv=63 window=20", "heads=2 seqlen_q=50 seqlen_kv=33 causal=true",
      "heads=1 seqlen_q=30 seqlen_kv=1041 causal=true window=100"};
  static const char *const more[] = {"", "padding_mask=true", "dropout_p=0.25",
                                     "padding_mask=true dropout_p=0.5 dtype=bf16 softmax=online"};
  char params[320];
  for (size_t e = 0; e < COUNT(places); e++)
    for (size_t p = 0; p < COUNT(problems); p++)
      for (size_t m = 0; m < COUNT(more); m++) {
        snprintf(params, sizeof params, "batch=2 head_dim=16 block_m=32 block_n=32 num_warps=2 %s %s %s", places[e],
                 problems[p], more[m]);
        prove(params);
      }
}

// Rows of a warp and of a CTA, of one step and of several, with a part of one; scales that are powers of two, since K
// is rounded when einsum's program scales it.
Test(numeric_attention_standard, programs_of_eager_pytorch_give_attention) {
  static const char *const programs[] = {"elementwise=eager_baddbmm", "elementwise=eager_einsum"};
  static const char *const problems[] = {"heads=3 seqlen_q=70 seqlen_kv=130 causal=true head_dim=16",
                                         "heads=2 seqlen_q=40 seqlen_kv=1100 head_dim=64",
                                         "heads=1 seqlen_q=65 seqlen_kv=63 window=20 head_dim=16 layout=bshd",
                                         "heads=1 seqlen_q=30 seqlen_kv=1041 causal=true window=100 head_dim=16",
                                         "heads=2 seqlen=128 mask=butterfly mask_block=64 head_dim=16"};
  static const char *const more[] = {"", "padding_mask=true", "padding_mask=true dropout_p=0.5 dtype=bf16"};
  char params[320];
  for (size_t e = 0; e < COUNT(programs); e++)
    for (size_t p = 0; p < COUNT(problems); p++)
      for (size_t m = 0; m < COUNT(more); m++) {
        snprintf(params, sizeof params, "batch=2 block_m=32 block_n=32 num_warps=2 %s %s %s", programs[e], problems[p],
                 more[m]);
        prove(params);
      }
  prove("elementwise=eager_baddbmm heads=2 head_dim=40 seqlen=33 block_m=32 block_n=32 num_warps=2");
}

// Scores of several rows a CTA, of a row, and of a part of one, with rows and columns that fill no CTA.
Test(numeric_attention_standard, products_of_tensors_as_they_lie_give_attention) {
  static const char *const problems[] = {"heads=3 seqlen_q=70 seqlen_kv=130 causal=true head_dim=16",
                                         "heads=2 seqlen_q=40 seqlen_kv=1100 head_dim=64",
                                         "heads=2 seqlen_q=41 seqlen_kv=20 head_dim=32 head_dim_v=16",
                                         "heads=1 seqlen_q=20 seqlen_kv=1500 head_dim=16",
                                         "heads=1 seqlen_q=20 seqlen_kv=2100 head_dim=16",
                                         "heads=1 seqlen_q=16 seqlen_kv=16400 head_dim=16",
                                         "heads=2 seqlen=128 mask=butterfly mask_block=64 head_dim=16"};
  static const char *const more[] = {"", "padding_mask=true dropout_p=0.5 dtype=bf16"};
  char params[320];
  for (size_t p = 0; p < COUNT(problems); p++)
    for (size_t m = 0; m < COUNT(more); m++) {
      snprintf(params, sizeof params, "batch=2 block_m=32 block_n=32 num_warps=2 elementwise=eager_matmul %s %s",
               problems[p], more[m]);
      prove(params);
    }
}

Test(numeric_attention_standard, block_masks_hide_what_they_say_wherever_they_are_applied) {
  static const char *const ways[] = {"elementwise=epilogue", "elementwise=epilogue mma=wgmma num_warps=4 block_m=64",
                                     "elementwise=fused", "elementwise=separate"};
  static const char *const masks[] = {"mask=butterfly", "mask=local_global mask_width=1 causal=true",
                                      "mask=strided mask_width=3 window=90", "mask=bits mask_bits=1:0:1:0:0x4:0x3:1"};
  static const char *const more[] = {"", "padding_mask=true dropout_p=0.2"};
  char params[400];
  for (size_t w = 0; w < COUNT(ways); w++)
    for (size_t m = 0; m < COUNT(masks); m++)
      for (size_t k = 0; k < COUNT(more); k++) {
        snprintf(params, sizeof params,
                 "batch=2 heads=2 head_dim=16 seqlen_q=192 seqlen_kv=256 block_m=32 block_n=32 num_warps=2 "
                 "mask_block=64 %s %s %s",
                 ways[w], masks[m], more[k]);
        prove(params);
      }
}

// The table of blocks says that a hidden one is seen; the matrix of pairs says so of one query.
Test(numeric_attention_standard, a_mask_with_a_wrong_entry_is_caught) {
  static const char shape[] =
      "heads=1 head_dim=16 seqlen=128 block_m=32 block_n=32 num_warps=2 mask=bits mask_block=64 mask_bits=1:0:1:1";
  pipeline_case c;
  pipeline_case_make(&c, "standard_attention", shape);
  ftl_attention a = ftl_attention_of(&c.spec);
  for (int t = 0; t < c.launches[0]->num_tensors; t++)
    if (strcmp(c.launches[0]->tensors[t].name, "seen") == 0) c.launches[0]->tensors[t].table[1] = 1;
  pipeline_case_execute(&c);
  cr_assert_gt(worst_error(&c, &a), 1);
  pipeline_case_fini(&c);
  for (size_t e = 0; e < COUNT(places); e++) {
    char params[256];
    snprintf(params, sizeof params, "%s %s", shape, places[e]);
    pipeline_case_make(&c, "standard_attention", params);
    fill_hidden(&c, &a);
    cr_assert(isinf(hidden_of(&c)[64]), "query 0 does not see the second block");
    for (int j = 64; j < 128; j++) hidden_of(&c)[j] = 0;
    pipeline_case_execute(&c);
    cr_assert_gt(worst_error(&c, &a), 1, "%s", places[e]);
    pipeline_case_fini(&c);
  }
}

static void assert_refused(const char *params, const char *message) {
  ftl_spec spec;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  ftl_error error = {0};
  cr_assert_eq(spec_of_words(&spec, "standard_attention", "copy=cp_async mma=mma", params, &error), FTL_OK, "%s",
               error.message);
  cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_INFEASIBLE, "%s is built", params);
  cr_assert_str_eq(error.message, message);
}

Test(numeric_attention_standard, what_eager_pytorch_does_not_run_is_refused) {
  assert_refused("copy=cp_async mma=mma heads=4 kv_heads=2 head_dim=16 seqlen=256 elementwise=eager_einsum",
                 "kv_heads=2: elementwise=eager_... has as many as heads, 4");
  assert_refused("heads=4 head_dim=32 head_dim_v=16 seqlen=256 elementwise=eager_baddbmm",
                 "head_dim_v=16: elementwise=eager_... takes Q, K and V from one tensor, with head_dim=32 each");
  assert_refused("heads=4 head_dim=32 seqlen=256 layout=bshd elementwise=eager_matmul",
                 "layout=bshd: elementwise=eager_matmul multiplies tensors as they lie: layout=bhsd");
  assert_refused("heads=4 head_dim=32 seqlen=256 pass=bwd elementwise=eager_matmul",
                 "pass=bwd: what autograd runs of elementwise=eager_matmul is not known; allowed is fwd");
  assert_refused("copy=cp_async mma=mma heads=1 head_dim=16 seqlen_q=16 seqlen_kv=131080 elementwise=eager_baddbmm",
                 "seqlen_kv=131080: elementwise=eager_... holds a row in registers, up to 131072");
}

Test(numeric_attention_standard, masks_that_do_not_fit_are_refused) {
  static const char reason[] = "mask_block=64: a block must hold a whole number of tiles, block_m=128";
  assert_refused("heads=1 head_dim=16 seqlen=256 mask=butterfly mask_block=64", reason);
  assert_refused("heads=1 head_dim=16 seqlen=256 mask=butterfly mask_block=64 elementwise=separate", reason);
  assert_refused("pass=bwd heads=1 head_dim=16 seqlen=256 mask=butterfly mask_block=64", reason);
}

// Padding of -inf hides keys; a sequence all of which is padding sees none.
Test(numeric_attention_standard, padded_keys_are_hidden) {
  pipeline_case c;
  pipeline_case_run(&c, "standard_attention",
                    "batch=2 heads=1 head_dim=16 seqlen_q=20 seqlen_kv=40 block_m=32 block_n=32 num_warps=2 "
                    "padding_mask=true");
  for (int64_t j = 0; j < 80; j++) c.tensors[PADDING][j] = j >= 25 ? -INFINITY : 0.0F;
  ftl_error error = {0};
  for (int i = 0; i < c.num_launches; i++)
    cr_assert_eq(ftl_interpret(c.launches[i], c.tensors, NULL, &error), FTL_OK, "%s", error.message);
  ftl_attention a = ftl_attention_of(&c.spec);
  cr_assert_leq(worst_error(&c, &a), 1);
  cr_assert_eq(c.tensors[LSE][20], -INFINITY);
  pipeline_case_fini(&c);
}

// The bytes of `kept` say which elements are dropped: about a quarter of 8 heads' 64 x 64, five standard deviations.
Test(numeric_attention_standard, dropout_writes_which_elements_it_keeps) {
  pipeline_case c;
  pipeline_case_run(&c, "standard_attention",
                    "heads=8 head_dim=16 seqlen=64 block_m=32 block_n=32 num_warps=2 dropout_p=0.25");
  const int64_t dropped = S + 1, kept = S + 2, count = 8 * 64 * 64;
  int64_t num_kept = 0;
  for (int64_t i = 0; i < count; i++) {
    cr_assert(c.tensors[kept][i] == 0 || c.tensors[kept][i] == 1, "%g", (double)c.tensors[kept][i]);
    cr_assert_eq(c.tensors[dropped][i] != 0, c.tensors[kept][i] != 0 && c.tensors[S][i] != 0);
    num_kept += c.tensors[kept][i] != 0;
  }
  cr_assert_leq(fabs((double)num_kept - 0.75 * (double)count), 5 * sqrt(0.75 * 0.25 * (double)count));
  pipeline_case_fini(&c);
}

Test(numeric_attention_standard, windows_give_attention_within) {
  static const int windows[] = {1, 31, 32, 33, 100, 1000};
  static const char *const lengths_of[] = {"seqlen_q=130 seqlen_kv=130", "seqlen_q=70 seqlen_kv=205",
                                           "seqlen_q=205 seqlen_kv=70"};
  char params[256];
  for (size_t w = 0; w < COUNT(windows); w++)
    for (size_t l = 0; l < COUNT(lengths_of); l++)
      for (size_t s = 0; s < COUNT(softmaxes); s++)
        for (int causal = 0; causal < 2; causal++) {
          snprintf(params, sizeof params,
                   "heads=2 head_dim=16 block_m=32 block_n=32 num_warps=2 window=%d causal=%d %s %s", windows[w],
                   causal, softmaxes[s], lengths_of[l]);
          prove(params);
        }
}

Test(numeric_attention_standard, rows_that_see_no_key_give_zero_and_minus_infinity) {
  for (size_t s = 0; s < COUNT(softmaxes); s++) {
    char params[256];
    snprintf(params, sizeof params,
             "heads=1 head_dim=16 seqlen_q=40 seqlen_kv=10 causal=true block_m=16 block_n=16 num_warps=1 %s",
             softmaxes[s]);
    pipeline_case c;
    pipeline_case_run(&c, "standard_attention", params);
    // aligned at the bottom right: queries 0 to 29 see none
    for (int i = 0; i < 40; i++) {
      cr_assert((c.tensors[LSE][i] == -INFINITY) == (i < 30), "row %d: LSE %g", i, (double)c.tensors[LSE][i]);
      for (int d = 0; d < 16 && i < 30; d++) cr_assert(c.tensors[O][i * 16 + d] == 0.0f, "row %d", i);
    }
    pipeline_case_fini(&c);
  }
}
