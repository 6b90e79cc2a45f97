#include "attention_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reference.h"
#include "workloads/kv_cache.h"
#include "tests/spec_words.h"
#include "../../thinned.h"

enum { Q, K, V, O, LSE, NUM_TENSORS };

static const float max_q = 4.0f;  // scores then spread enough that softmax is far from uniform
static const float max_kv = 1.0f;

static void fail(attention_case *c, const ftl_error *error) {
  snprintf(c->failure, sizeof c->failure, "%s", error->message);
}

// ---- set-up ----

static ftl_status make_spec(ftl_spec *spec, const char *params, ftl_error *error) {
  char workload[32] = "flash2_fwd";
  size_t word = strcspn(params, " ");
  if (memchr(params, '=', word) == NULL) {
    snprintf(workload, sizeof workload, "%.*s", (int)word, params);
    params += word;
  }
  return spec_of_words(spec, workload, "copy=cp_async mma=mma", params, error);
}

// The case's tensor of that name; one that no launch had yet is added.
static int tensor_by_name(attention_case *c, const ftl_tensor *tensor) {
  for (int i = 0; i < c->num_tensors; i++)
    if (strcmp(c->names[i], tensor->name) == 0) return i;
  snprintf(c->names[c->num_tensors], FTL_TILE_NAME_BYTES, "%s", tensor->name);
  return c->num_tensors++;
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

static bool is_scale(const attention_case *c, int tensor) { return strstr(c->names[tensor], "_scales") != NULL; }

// The largest stored number of a quantised cache, so that with scales of at most its inverse K and V lie in [-1, 1].
static float largest_stored(ftl_dtype stored) {
  return stored == FTL_INT4X2 ? 8.0f : stored == FTL_INT8 ? 128.0f : 256.0f;
}

static void make_quantised(float *x, size_t count, ftl_dtype stored, uint64_t seed) {
  float limit = stored == FTL_INT4X2 ? 127.5f : largest_stored(stored) - 1;
  randomise(x, count, limit, FTL_FP32, seed);
  for (size_t i = 0; i < count; i++) x[i] = ftl_dtype_round(stored, stored == FTL_INT4X2 ? x[i] + limit : x[i]);
}

static void make_scales(float *x, size_t count, ftl_dtype dtype, float largest, uint64_t seed) {
  randomise(x, count, 0.5f, FTL_FP32, seed);
  for (size_t i = 0; i < count; i++) x[i] = ftl_dtype_round(dtype, (x[i] + 0.5f) / largest);
}

static bool has_quantised_cache(const attention_case *c) {
  if (!ftl_spec_takes(&c->spec, FTL_PARAM_kv_dtype)) return false;
  ftl_kv_cache cache = ftl_kv_cache_of(&c->spec);
  return ftl_kv_is_quantised(&cache);
}

static void make_numbers(attention_case *c, int i, const ftl_tensor *tensor) {
  size_t count = num_elements(tensor);
  uint64_t seed = (uint64_t)i + 1;
  bool quantised = has_quantised_cache(c);
  if (quantised && is_scale(c, i))
    make_scales(c->tensors[i], count, tensor->dtype, largest_stored(ftl_kv_cache_of(&c->spec).stored), seed);
  else if (quantised && (i == K || i == V))
    make_quantised(c->tensors[i], count, tensor->dtype, seed);
  else
    randomise(c->tensors[i], count, i == Q ? max_q : max_kv, tensor->dtype, seed);
}

static void make_tensors(attention_case *c, const ftl_tile_program *program) {
  for (int t = 0; t < program->num_tensors; t++) {
    const ftl_tensor *tensor = &program->tensors[t];
    int i = tensor_by_name(c, tensor);
    if (c->tensors[i]) continue;
    c->tensors[i] = malloc(sizeof(float) * num_elements(tensor));
    make_numbers(c, i, tensor);
  }
}

// ---- quantised caches ----

static const ftl_tensor *tensor_named(const ftl_tile_program *program, const char *name) {
  int t = 0;
  while (strcmp(program->tensors[t].name, name) != 0) t++;
  return &program->tensors[t];
}

// What the numbers of K or V stand for: stored number times its group's scale, rounded to the queries' type.
static float *dequantise(attention_case *c, int which, const char *scales_name) {
  int64_t columns = which == K ? c->a.head_dim : c->a.head_dim_v;
  const ftl_tensor *stored = tensor_named(c->program, c->names[which]);
  const ftl_tensor *scales = tensor_named(c->program, scales_name);
  const float *x = c->tensors[which], *scale = c->tensors[tensor_by_name(c, scales)];
  ftl_kv_cache cache = ftl_kv_cache_of(&c->spec);
  ftl_tensor_shape shape = ftl_attention_shape(&c->spec, c->a.kv_heads, c->a.seqlen_kv, columns);
  float *out = malloc(sizeof *out * (size_t)(c->a.batch * shape.batch_stride));
  int numbers = ftl_dtype_numbers(stored->dtype);
  for (int64_t b = 0; b < c->a.batch; b++)
    for (int64_t h = 0; h < c->a.kv_heads; h++)
      for (int64_t r = 0; r < c->a.seqlen_kv; r++)
        for (int64_t d = 0; d < columns; d++) {
          float element = x[b * stored->batch_stride + h * stored->head_stride + r * stored->row_stride + d / numbers];
          if (numbers == 2) element = (float)(d % 2 ? ftl_int4x2_high(element) : ftl_int4x2_low(element));
          int64_t group = d / cache.group_size;
          out[b * shape.batch_stride + h * shape.head_stride + r * shape.row_stride + d] = ftl_dtype_round(
              cache.dtype,
              element * scale[b * scales->batch_stride + h * scales->head_stride + group * scales->row_stride + r]);
        }
  return out;
}

void attention_case_init(attention_case *c, const char *params) {
  *c = (attention_case){.names = {"q", "k", "v", "o", "lse"}, .num_tensors = NUM_TENSORS};
  ftl_error error = {0};
  if (make_spec(&c->spec, params, &error) != FTL_OK ||
      c->spec.workload->build(&c->spec, c->launches, &c->num_launches, &error) != FTL_OK) {
    fail(c, &error);
    return;
  }
  c->program = c->launches[0];
  c->a = ftl_attention_of(&c->spec);
  for (int i = 0; i < c->num_launches; i++) make_tensors(c, c->launches[i]);
  c->seen = reference_block_mask(&c->spec);
  if (has_quantised_cache(c)) {
    c->dequantised[0] = dequantise(c, K, "k_scales");
    c->dequantised[1] = dequantise(c, V, "v_scales");
  }
  c->visits.counts = calloc((size_t)(c->a.batch * c->a.heads * c->a.seqlen_q), (size_t)c->a.seqlen_kv);
}

static void run_launch(attention_case *c, const ftl_tile_program *program) {
  ftl_error error = {0};
  float *tensors[FTL_TILE_MAX_TENSORS];
  c->visits.queries = c->visits.keys = -1;
  for (int t = 0; t < program->num_tensors; t++) {
    int i = tensor_by_name(c, &program->tensors[t]);
    tensors[t] = c->tensors[i];
    if (i == Q) c->visits.queries = t;
    if (i == K) c->visits.keys = t;
  }
  if (ftl_interpret(program, tensors, c->visits.keys < 0 ? NULL : &c->visits, &error) != FTL_OK) fail(c, &error);
}

void attention_case_run(attention_case *c) {
  for (int i = 0; i < c->num_launches && c->failure[0] == '\0'; i++) run_launch(c, c->launches[i]);
}

void attention_case_fini(attention_case *c) {
  for (int i = 0; i < c->num_tensors; i++) free(c->tensors[i]);
  for (int i = 0; i < 2; i++) free(c->dequantised[i]);
  free(c->visits.counts);
  free(c->seen);
  for (int i = 0; i < c->num_launches; i++) ftl_tile_program_destroy(c->launches[i]);
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
//
// fp8: exponentials are rounded to e4m3's 4 significant bits (2^-4; below 2^-6 of 256, by 2^-10 of 256), O to bf16.
static double output_tolerance(const ftl_attention *a, double expected) {
  double u = a->dtype == FTL_FP16 ? 0x1p-11 : 0x1p-8, n = (double)a->seqlen_kv;
  double u_p = a->dtype == FTL_FP8_E4M3 ? 0x1p-4 + n * 0x1p-18 : u;
  return (double)max_kv * (u_p + 2 * score_error(a) + n * 0x1p-25 + 2 * n * 0x1p-24 + n / 16 * 0x1p-23) +
         u * fabs(expected) + 0x1p-25;
}

// Dropout scales the output, and its error.
static double dropped_tolerance(const ftl_attention *a, double expected) {
  double keep = 1 - a->dropout_p;
  return output_tolerance(a, expected * keep) / keep;
}

// LSE is the maximum score plus the logarithm of a sum with the relative error of its terms.
static double lse_tolerance(const ftl_attention *a, double expected) {
  return 2 * score_error(a) + (double)a->seqlen_kv * 0x1p-23 + 4 * 0x1p-24 * (fabs(expected) + 8);
}

// ---- comparison ----

static ftl_tensor_shape shape_of(const attention_case *c, int tensor) {
  const ftl_attention *a = &c->a;
  bool of_keys = tensor == K || tensor == V;
  if (tensor == LSE)
    return (ftl_tensor_shape){
        .batch_stride = a->heads * a->seqlen_q, .head_stride = a->seqlen_q, .row_stride = 1, .num_columns = 1};
  return ftl_attention_shape(&c->spec, of_keys ? a->kv_heads : a->heads, of_keys ? a->seqlen_kv : a->seqlen_q,
                             tensor == V || tensor == O ? a->head_dim_v : a->head_dim);
}

static const float *row0(const attention_case *c, int tensor, int64_t batch, int64_t head) {
  ftl_tensor_shape shape = shape_of(c, tensor);
  const float *x = c->tensors[tensor];
  if (c->dequantised[0] && (tensor == K || tensor == V)) x = c->dequantised[tensor - K];
  return x + batch * shape.batch_stride + head * shape.head_stride;
}

static int64_t row_stride(const attention_case *c, int tensor) { return shape_of(c, tensor).row_stride; }

static bool equal_within(double x, double expected, double tolerance) {
  return x == expected || fabs(x - expected) <= tolerance;
}

static void check_row(attention_case *c, int64_t batch, int64_t head, int64_t i) {
  const ftl_attention *a = &c->a;
  int64_t kv_head = head / (a->heads / a->kv_heads);
  double expected[REFERENCE_MOST_COLUMNS], lse;
  reference_more more = {.seen = c->seen, .sequence = batch * a->heads + head};
  reference_row_of(a, &more, i, row0(c, Q, batch, head), row_stride(c, Q), row0(c, K, batch, kv_head), row_stride(c, K),
                   row0(c, V, batch, kv_head), row_stride(c, V), expected, &lse);
  double found_lse = (double)row0(c, LSE, batch, head)[i];
  if (!equal_within(found_lse, lse, lse_tolerance(a, lse)))
    snprintf(c->failure, sizeof c->failure, "LSE of batch %lld head %lld row %lld is %.9g, not %.9g +- %.2g",
             (long long)batch, (long long)head, (long long)i, found_lse, lse, lse_tolerance(a, lse));
  for (int32_t d = 0; d < a->head_dim_v; d++) {
    double found = (double)row0(c, O, batch, head)[i * row_stride(c, O) + d];
    if (!equal_within(found, expected[d], dropped_tolerance(a, expected[d])))
      snprintf(c->failure, sizeof c->failure, "O[%lld][%lld][%lld][%d] is %.9g, not %.9g +- %.2g", (long long)batch,
               (long long)head, (long long)i, d, found, expected[d], dropped_tolerance(a, expected[d]));
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
      int64_t i = row % a->seqlen_q;
      int expected = reference_sees(a, i, j) && (c->seen == NULL || c->seen[i * a->seqlen_kv + j]),
          found = c->visits.counts[row * a->seqlen_kv + j];
      if (found != expected)
        snprintf(c->failure, sizeof c->failure, "query %lld of all heads met key %lld %d times, not %d", (long long)row,
                 (long long)j, found, expected);
    }
}

const char *attention_case_prove(const char *params) {
  static char failure[FTL_ERROR_MESSAGE_BYTES];
  static int count;
  attention_case c;
  attention_case_init(&c, params);
  if (thinned_runs(&count)) {
    attention_case_run(&c);
    attention_case_check_numbers(&c);
    attention_case_check_visits(&c);
  }
  snprintf(failure, sizeof failure, "%s", c.failure);
  attention_case_fini(&c);
  return failure;
}
