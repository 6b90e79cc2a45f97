#include "attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"

enum { Q, K, V, O, LSE, NUM_TENSORS };  // as the workloads declare them

static const float max_q = 4.0f;  // scores then spread enough that softmax is far from uniform
static const float max_kv = 1.0f;

static void fail(attention_case *c, const ftl_error *error) {
  snprintf(c->failure, sizeof c->failure, "%s", error->message);
}

// ---- set-up ----

static ftl_status make_spec(ftl_spec *spec, const char *params, ftl_error *error) {
  char text[512], workload[32] = "flash2_fwd", *rest = text;
  size_t word = strcspn(params, " ");
  if (memchr(params, '=', word) == NULL) {
    snprintf(workload, sizeof workload, "%.*s", (int)word, params);
    params += word;
  }
  ftl_status made = ftl_spec_init(spec, workload, error);
  if (made != FTL_OK) return made;
  snprintf(text, sizeof text, "copy=cp_async mma=mma %s", params);
  for (char *param; (param = strsep(&rest, " ")) != NULL;) {
    if (*param == '\0') continue;
    char *value = strchr(param, '=');
    *value++ = '\0';
    ftl_status status = ftl_spec_set_text(spec, param, value, error);
    if (status != FTL_OK) return status;
  }
  return ftl_spec_complete(spec, error);
}

static size_t num_elements(const ftl_tensor *tensor) {
  return (size_t)(tensor->size_bytes / ftl_dtype_bytes(tensor->dtype));
}

// Reproducible numbers in [-limit, limit]: the generator of POSIX's drand48 in its own state.
static void randomise(float *x, size_t count, float limit, ftl_dtype dtype, uint64_t seed) {
  for (size_t i = 0; i < count; i++) {
    seed = (seed * UINT64_C(0x5DEECE66D) + 0xB) & ((UINT64_C(1) << 48) - 1);
    x[i] = ftl_dtype_round(dtype, limit * ((float)(seed >> 24) / (float)(1 << 23) - 1.0f));
  }
}

void attention_case_init(attention_case *c, const char *params) {
  *c = (attention_case){0};
  ftl_error error = {0};
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches;
  if (make_spec(&c->spec, params, &error) != FTL_OK ||
      c->spec.workload->build(&c->spec, launches, &num_launches, &error) != FTL_OK) {
    fail(c, &error);
    return;
  }
  c->program = launches[0];
  c->a = ftl_attention_of(&c->spec);
  for (int i = 0; i < NUM_TENSORS; i++) {
    const ftl_tensor *tensor = &c->program->tensors[i];
    c->tensors[i] = malloc(sizeof(float) * num_elements(tensor));
    randomise(c->tensors[i], num_elements(tensor), i == Q ? max_q : max_kv, tensor->dtype, (uint64_t)i + 1);
  }
  c->visits = (ftl_pair_visits){.queries = Q, .keys = K};
  c->visits.counts = calloc((size_t)(c->a.batch * c->a.heads * c->a.seqlen_q), (size_t)c->a.seqlen_kv);
}

void attention_case_run(attention_case *c) {
  ftl_error error = {0};
  if (c->failure[0] == '\0' && ftl_interpret(c->program, c->tensors, &c->visits, &error) != FTL_OK) fail(c, &error);
}

void attention_case_fini(attention_case *c) {
  for (int i = 0; i < NUM_TENSORS; i++) free(c->tensors[i]);
  free(c->visits.counts);
  ftl_tile_program_destroy(c->program);
}

// ---- tolerances ----
// u: unit roundoff of the 16-bit type (2^-11 for fp16 with its 11 significant bits, 2^-8 for bf16 with its 8).
//
// A score is a sum of head_dim products in fp32, times the scale: its error is at most
//   scale * head_dim * 2^-24 * (sum of |q k|) <= scale * head_dim^2 * 2^-24 * max|q| max|k|,
// and the exponent's own roundings (one FMA, the shift, exp2) add 4 * 2^-24 of its largest magnitude,
// scale * head_dim * max|q| max|k| * log2(e), and 2^-23 of the result.
static double score_error(const ftl_attention *a) {
  double largest = (double)a->scale * a->head_dim * (double)max_q * (double)max_kv;
  return largest * (a->head_dim + 4 * 1.4427) * 0x1p-24 + 0x1p-23;
}

// An exponential is wrong by that relative error (e^x - 1 ~ x), in the numerator and in the denominator of O, is
// rounded to 16 bits (u; below 2^-14 in fp16 by 2^-25), and the sum and the products accumulate in fp32. O itself is
// rounded (u). The running maximum leaves room for a larger denominator than 1 only. A correction multiplies each
// tile's share again: 2^-23 a tile, at most one tile per 16 keys.
static double output_tolerance(const ftl_attention *a, double expected) {
  double u = a->dtype == FTL_FP16 ? 0x1p-11 : 0x1p-8;
  double n = (double)a->seqlen_kv;
  return (double)max_kv * (u + 2 * score_error(a) + n * 0x1p-25 + 2 * n * 0x1p-24 + n / 16 * 0x1p-23) +
         u * fabs(expected) + 0x1p-25;
}

// LSE is the maximum score plus the logarithm of a sum with the relative error of its terms.
static double lse_tolerance(const ftl_attention *a, double expected) {
  return 2 * score_error(a) + (double)a->seqlen_kv * 0x1p-23 + 4 * 0x1p-24 * (fabs(expected) + 8);
}

// ---- comparison ----

static const float *row0(const attention_case *c, int tensor, int64_t batch, int64_t head) {
  const ftl_tensor *t = &c->program->tensors[tensor];
  return c->tensors[tensor] + batch * t->batch_stride + head * t->head_stride;
}

static bool equal_within(double x, double expected, double tolerance) {
  return x == expected || fabs(x - expected) <= tolerance;
}

static void check_row(attention_case *c, int64_t batch, int64_t head, int64_t i) {
  const ftl_attention *a = &c->a;
  const ftl_tensor *t = c->program->tensors;
  int64_t kv_head = head / (a->heads / a->kv_heads);
  double expected[256], lse;
  reference_row(a, i, row0(c, Q, batch, head), t[Q].row_stride, row0(c, K, batch, kv_head), t[K].row_stride,
                row0(c, V, batch, kv_head), t[V].row_stride, expected, &lse);
  double found_lse = (double)row0(c, LSE, batch, head)[i * t[LSE].row_stride];
  if (!equal_within(found_lse, lse, lse_tolerance(a, lse)))
    snprintf(c->failure, sizeof c->failure, "LSE of batch %lld head %lld row %lld is %.9g, not %.9g +- %.2g",
             (long long)batch, (long long)head, (long long)i, found_lse, lse, lse_tolerance(a, lse));
  for (int32_t d = 0; d < a->head_dim; d++) {
    double found = (double)row0(c, O, batch, head)[i * t[O].row_stride + d];
    if (!equal_within(found, expected[d], output_tolerance(a, expected[d])))
      snprintf(c->failure, sizeof c->failure, "O[%lld][%lld][%lld][%d] is %.9g, not %.9g +- %.2g", (long long)batch,
               (long long)head, (long long)i, d, found, expected[d], output_tolerance(a, expected[d]));
  }
}

void attention_case_check_numbers(attention_case *c) {
  for (int64_t batch = 0; batch < c->a.batch; batch++)
    for (int64_t head = 0; head < c->a.heads; head++)
      for (int64_t i = 0; i < c->a.seqlen_q && c->failure[0] == '\0'; i++) check_row(c, batch, head, i);
}

void attention_case_check_visits(attention_case *c) {
  const ftl_attention *a = &c->a;
  if (c->failure[0] != '\0') return;
  if (c->visits.num_outside > 0)
    snprintf(c->failure, sizeof c->failure, "%lld pairs beyond the last key", (long long)c->visits.num_outside);
  for (int64_t row = 0; row < a->batch * a->heads * a->seqlen_q; row++)
    for (int64_t j = 0; j < a->seqlen_kv; j++) {
      int expected = reference_sees(a, row % a->seqlen_q, j), found = c->visits.counts[row * a->seqlen_kv + j];
      if (found != expected)
        snprintf(c->failure, sizeof c->failure, "query %lld of all heads met key %lld %d times, not %d", (long long)row,
                 (long long)j, found, expected);
    }
}

const char *attention_case_prove(const char *params) {
  static char failure[FTL_ERROR_MESSAGE_BYTES];
  attention_case c;
  attention_case_init(&c, params);
  attention_case_run(&c);
  attention_case_check_numbers(&c);
  attention_case_check_visits(&c);
  snprintf(failure, sizeof failure, "%s", c.failure);
  attention_case_fini(&c);
  return failure;
}
