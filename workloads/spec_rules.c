#include "workloads/spec_rules.h"

#include <string.h>

#include "base/integer.h"
#include "workloads/spec_list.h"

static const int64_t max_tensor_bytes = INT64_C(1) << 46;
static const int64_t max_flops = INT64_C(1) << 60;  // forward; a backward pass has two and a half times as many

static ftl_status check_multiple(const ftl_spec *spec, ftl_param param, int64_t of, ftl_error *error) {
  if (spec->value[param] % of == 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: must be a multiple of %lld", ftl_param_get(param)->name,
                       (long long)spec->value[param], (long long)of);
}

// Not every workload knows every value of an enumeration.
static ftl_status check_choice(const ftl_spec *spec, ftl_param param, ftl_error *error) {
  if (!ftl_spec_takes(spec, param)) return FTL_OK;
  char allowed[FTL_PARAM_TEXT_BYTES], given[32];
  ftl_spec_text(spec, param, given);
  for (const char *word = ftl_workload_allowed(spec->workload, param, allowed);;) {
    size_t size = strcspn(word, "|");
    if (size == strlen(given) && memcmp(word, given, size) == 0) return FTL_OK;
    if (word[size] == '\0') break;
    word += size + 1;
  }
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%s: %s allows %s", ftl_param_get(param)->name, given,
                       spec->workload->name, allowed);
}

static ftl_status check_l2_priorities(const ftl_spec *spec, ftl_error *error) {
  int64_t last = spec->value[FTL_PARAM_l2_persist], first = spec->value[FTL_PARAM_l2_evict_first];
  if (!ftl_spec_takes(spec, FTL_PARAM_l2_persist) || last != first || last == FTL_L2_OF_NONE) return FTL_OK;
  char text[32];
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "l2_evict_first=%s: l2_persist names the same tensors; allowed is one of both",
                       ftl_spec_text(spec, FTL_PARAM_l2_evict_first, text));
}

static ftl_status check_pages(const ftl_spec *spec, ftl_error *error) {
  if (!ftl_spec_takes(spec, FTL_PARAM_page_layout)) return FTL_OK;
  int64_t prefix = spec->value[FTL_PARAM_prefix], shortest = spec->value[FTL_PARAM_seqlen_kv];
  bool shared = spec->value[FTL_PARAM_page_layout] == FTL_PAGES_SHARED_PREFIX;
  if (spec->value[FTL_PARAM_lengths] != 0) shortest = ftl_spec_list_least(spec, FTL_PARAM_lengths);
  if (shared ? prefix >= 1 && prefix <= shortest : prefix == 0) return FTL_OK;
  if (!shared)
    return ftl_error_set(error, FTL_BAD_INPUT, "prefix=%lld: only with page_layout=shared_prefix", (long long)prefix);
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "prefix=%lld: with page_layout=shared_prefix from 1 to %lld, the shortest sequence",
                       (long long)prefix, (long long)shortest);
}

static ftl_status check_mask(const ftl_spec *spec, ftl_error *error) {
  bool is_listed = spec->value[FTL_PARAM_mask] == FTL_MASK_BITS, has_list = spec->value[FTL_PARAM_mask_bits] != 0;
  if (!ftl_spec_takes(spec, FTL_PARAM_mask) || is_listed == has_list) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       is_listed ? "mask=bits: needs mask_bits, a number for each block of queries and keys"
                                 : "mask_bits: only with mask=bits");
}

static ftl_status check_tile_scheduler(const ftl_spec *spec, ftl_error *error) {
  if (!ftl_spec_takes(spec, FTL_PARAM_tile_scheduler) ||
      spec->value[FTL_PARAM_tile_scheduler] == FTL_TILE_SCHEDULER_STATIC)
    return FTL_OK;
  char scheduler[32], cluster[32];
  ftl_spec_text(spec, FTL_PARAM_tile_scheduler, scheduler);
  if (spec->value[FTL_PARAM_persistent] == 0)
    return ftl_error_set(error, FTL_BAD_INPUT, "tile_scheduler=%s: only with persistent=true", scheduler);
  bool in_clusters = ftl_spec_takes(spec, FTL_PARAM_cluster) && spec->value[FTL_PARAM_cluster] != 0;
  if (!in_clusters) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "tile_scheduler=%s: not with cluster=%s; allowed is 1x1", scheduler,
                       ftl_spec_text(spec, FTL_PARAM_cluster, cluster));
}

static ftl_status check_heads(const ftl_spec *spec, ftl_error *error) {
  int64_t heads = spec->value[FTL_PARAM_heads], kv_heads = spec->value[FTL_PARAM_kv_heads];
  if (!ftl_spec_takes(spec, FTL_PARAM_kv_heads)) return FTL_OK;
  if (heads % kv_heads == 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "kv_heads=%lld: must divide heads=%lld", (long long)kv_heads,
                       (long long)heads);
}

// a * b, or INT64_MAX where that is more (a, b >= 0).
static int64_t saturating_mul(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static ftl_status check_tensor_bytes(const ftl_spec *spec, ftl_param heads, ftl_param seqlen, ftl_error *error) {
  enum { BYTES_PER_ELEMENT = 2 };
  bool widest_is_v = ftl_spec_head_dim_v(spec) > spec->value[FTL_PARAM_head_dim];
  int64_t rows = saturating_mul(spec->value[FTL_PARAM_batch] * spec->value[heads], spec->value[seqlen]);
  if (saturating_mul(rows, ftl_spec_widest_head(spec) * BYTES_PER_ELEMENT) <= max_tensor_bytes) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: batch * %s * %s * %s is a tensor of more than 2^46 bytes",
                       ftl_param_get(seqlen)->name, (long long)spec->value[seqlen], ftl_param_get(heads)->name,
                       ftl_param_get(seqlen)->name, widest_is_v ? "head_dim_v" : "head_dim");
}

static ftl_status check_work(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t tiles_m = ftl_divide_up(v[FTL_PARAM_seqlen_q], v[FTL_PARAM_block_m]);
  int64_t num_ctas = saturating_mul(v[FTL_PARAM_batch] * v[FTL_PARAM_heads], tiles_m);
  if (num_ctas > INT32_MAX)
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "block_m=%lld: batch * heads * ceil(seqlen_q / block_m) is more than %d CTAs",
                         (long long)v[FTL_PARAM_block_m], INT32_MAX);
  int64_t pairs = v[FTL_PARAM_seqlen_q] * v[FTL_PARAM_seqlen_kv];  // at most 2^48
  int64_t columns = v[FTL_PARAM_head_dim] + ftl_spec_head_dim_v(spec);
  int64_t flops = saturating_mul(v[FTL_PARAM_batch] * v[FTL_PARAM_heads] * 2 * columns, pairs);
  if (flops > max_flops)
    return ftl_error_set(
        error, FTL_BAD_INPUT,
        "seqlen_kv=%lld: 2 * batch * heads * %lld columns of keys and values * seqlen_q * seqlen_kv is more "
        "than 2^60 FLOPs",
        (long long)v[FTL_PARAM_seqlen_kv], (long long)columns);
  return FTL_OK;
}

ftl_status ftl_spec_check_rules(const ftl_spec *spec, ftl_error *error) {
  ftl_status status = check_heads(spec, error);
  if (status == FTL_OK) status = check_multiple(spec, FTL_PARAM_head_dim, 8, error);
  if (status == FTL_OK) status = check_multiple(spec, FTL_PARAM_head_dim_v, 8, error);
  if (status == FTL_OK) status = check_multiple(spec, FTL_PARAM_head_dim_multiple, 16, error);
  bool multiplies = ftl_spec_takes(spec, FTL_PARAM_mma);
  if (status == FTL_OK && multiplies) status = check_multiple(spec, FTL_PARAM_block_m, 16, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_schedule, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_tile_order, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_cluster, error);
  if (status == FTL_OK) status = check_tile_scheduler(spec, error);
  if (status == FTL_OK) status = check_l2_priorities(spec, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_dtype, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_mask_steps, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_scaling, error);
  if (status == FTL_OK) status = check_mask(spec, error);
  if (status == FTL_OK) status = check_pages(spec, error);
  if (status == FTL_OK) status = check_multiple(spec, FTL_PARAM_block_n, 8, error);
  if (status == FTL_OK) status = check_tensor_bytes(spec, FTL_PARAM_heads, FTL_PARAM_seqlen_q, error);
  if (status == FTL_OK) status = check_tensor_bytes(spec, FTL_PARAM_kv_heads, FTL_PARAM_seqlen_kv, error);
  return status == FTL_OK ? check_work(spec, error) : status;
}
