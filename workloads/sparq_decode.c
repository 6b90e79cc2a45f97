// SparQ attention as a workload (sparq.h): its five launches. What steps 1 and 3 choose depends on the data. The
// programs gather by tables that those launches write; what the tables hold in a prediction is one of each of as many
// equal parts of the row, at a pseudo-random place in it, the same in every run, and of keys the latest that are always
// chosen. Executed numerically, they hold what
// was chosen.
#include <stdlib.h>

#include "base/integer.h"
#include "workloads/sparq.h"

enum { MMA_K = 16, VECTOR_ELEMENTS = 8, MOST_ENTRIES = 1 << 22 };

// ---- what launches share ----

ftl_tile_ref ftl_sparq_ref(int32_t tensor, ftl_expr batch, ftl_expr kv_head, ftl_expr row, int32_t rows,
                           int32_t columns) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = batch,
                        .head = kv_head,
                        .row = row,
                        .present = FTL_ALWAYS,
                        .rows = rows,
                        .columns = columns};
}

ftl_expr ftl_sparq_first_entry(const ftl_sparq *s, ftl_expr batch, ftl_expr kv_head, int32_t count) {
  ftl_builder *b = s->b;
  ftl_expr head = ftl_add(b, ftl_mul(b, batch, ftl_const(b, s->a.kv_heads)), kv_head);
  return ftl_mul(b, head, ftl_const(b, count));
}

ftl_pages ftl_sparq_gather(int32_t table, ftl_expr first_entry, int64_t stride) {
  return (ftl_pages){.page_rows = 1, .table = table, .first_entry = first_entry, .page_stride = stride};
}

// Of `range` numbers `count`, ascending: the last `latest`, and of those before one of each of as many equal parts as
// are left to choose.
static void assume_choice(int32_t *entries, int64_t count, int64_t range, int64_t latest, uint64_t *random) {
  int64_t parts = count - latest, before = range - latest;
  for (int64_t i = 0; i < parts; i++) {
    int64_t from = i * before / parts, to = (i + 1) * before / parts;
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    entries[i] = (int32_t)(from + (int64_t)((*random >> 33) % (uint64_t)(to - from)));
  }
  for (int64_t i = 0; i < latest; i++) entries[parts + i] = (int32_t)(before + i);
}

// For each of `num_heads` heads.
static int32_t assumed_choices(ftl_builder *b, const char *name, int64_t num_heads, int64_t count, int64_t range,
                               int64_t latest) {
  int32_t *entries = malloc((size_t)(num_heads * count) * sizeof *entries);
  uint64_t random = 1;
  for (int64_t i = 0; entries && i < num_heads; i++) assume_choice(entries + i * count, count, range, latest, &random);
  int32_t table = entries ? ftl_builder_temp_table(b, name, entries, num_heads * count) : -1;
  free(entries);
  return table;
}

static ftl_status declare_tensors(ftl_sparq *s, ftl_error *error) {
  const ftl_attention *a = &s->a;
  int64_t batch = a->batch, heads = a->kv_heads, columns = a->head_dim;
  ftl_tensor_shape queries = ftl_contiguous(batch, heads, s->group, columns);
  ftl_tensor_shape keys = ftl_contiguous(batch, heads, a->seqlen_kv, columns);
  ftl_tensor_shape numbers = ftl_contiguous(batch, heads, s->group, 1);
  s->q = ftl_builder_tensor(s->b, "q", a->dtype, FTL_TENSOR_INPUT, queries);
  s->keys = ftl_builder_tensor(s->b, "k", a->dtype, FTL_TENSOR_INPUT, keys);
  s->keys_by_column = ftl_builder_tensor(s->b, "k_by_column", a->dtype, FTL_TENSOR_INPUT,
                                         ftl_contiguous(batch, heads, columns, a->seqlen_kv));
  s->v = ftl_builder_tensor(s->b, "v", a->dtype, FTL_TENSOR_INPUT, keys);
  s->v_mean = ftl_builder_tensor(s->b, "v_mean", FTL_FP32, FTL_TENSOR_INPUT, ftl_contiguous(batch, heads, 1, columns));
  s->o = ftl_builder_tensor(s->b, "o", a->dtype, FTL_TENSOR_OUTPUT, queries);
  s->q_top = ftl_builder_tensor(s->b, "q_top", a->dtype, FTL_TENSOR_TEMP, ftl_contiguous(batch, heads, s->group, s->r));
  s->inv_tau = ftl_builder_tensor(s->b, "inv_tau", FTL_FP32, FTL_TENSOR_TEMP, numbers);
  s->scores = ftl_builder_tensor(s->b, "scores", FTL_FP32, FTL_TENSOR_TEMP,
                                 ftl_contiguous(batch, heads, s->group, a->seqlen_kv));
  s->alpha = ftl_builder_tensor(s->b, "alpha", FTL_FP32, FTL_TENSOR_TEMP, numbers);
  s->o_top = ftl_builder_tensor(s->b, "o_top", FTL_FP32, FTL_TENSOR_TEMP, queries);
  ftl_attention_needs_keys(s->b, a, s->keys, s->v, s->k);
  ftl_builder_needs(s->b, s->keys_by_column, batch * heads * s->r * a->seqlen_kv);
  s->components = assumed_choices(s->b, "components", batch * heads, s->r, a->head_dim, 0);
  s->rows = assumed_choices(s->b, "rows", batch * heads, s->k, a->seqlen_kv, s->local);
  if (s->components >= 0 && s->rows >= 0) return FTL_OK;
  return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the tables of sparq_decode");
}

// ---- what cannot exist ----

static ftl_status check_choice(const ftl_spec *spec, ftl_param count, ftl_param of, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[count] <= v[of]) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: at most %s=%lld are allowed", ftl_param_get(count)->name,
                       (long long)v[count], ftl_param_get(of)->name, (long long)v[of]);
}

static ftl_status check_multiple(const ftl_spec *spec, ftl_param param, int64_t of, const char *why, ftl_error *error) {
  if (spec->value[param] % of == 0) return FTL_OK;
  return ftl_error_set(error, FTL_INFEASIBLE, "%s=%lld: %s, so a multiple of %lld", ftl_param_get(param)->name,
                       (long long)spec->value[param], why, (long long)of);
}

static ftl_status check_sizes(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  int64_t most = v[FTL_PARAM_sparq_r] > v[FTL_PARAM_sparq_k] ? v[FTL_PARAM_sparq_r] : v[FTL_PARAM_sparq_k];
  if (v[FTL_PARAM_heads] / v[FTL_PARAM_kv_heads] > MMA_K)
    return ftl_error_set(error, FTL_INFEASIBLE, "heads=%lld: more than %d query heads a KV head",
                         (long long)v[FTL_PARAM_heads], MMA_K);
  if (v[FTL_PARAM_seqlen_kv] > FTL_SPARQ_MOST_KEYS)
    return ftl_error_set(error, FTL_INFEASIBLE, "seqlen_kv=%lld: a CTA holds the scores of at most %d keys",
                         (long long)v[FTL_PARAM_seqlen_kv], FTL_SPARQ_MOST_KEYS);
  if (v[FTL_PARAM_batch] > MOST_ENTRIES / (v[FTL_PARAM_kv_heads] * most))
    return ftl_error_set(error, FTL_INFEASIBLE, "batch=%lld: more than %d chosen keys or components in all",
                         (long long)v[FTL_PARAM_batch], MOST_ENTRIES);
  return FTL_OK;
}

static ftl_status check_kernels(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA)
    return ftl_error_set(error, FTL_INFEASIBLE, "mma=wgmma: a tile has the %d rows of a KV head, not 64", MMA_K);
  if (v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA)
    return ftl_error_set(error, FTL_INFEASIBLE, "copy=tma: rows are gathered one by one; use copy=cp_async");
  if (v[FTL_PARAM_num_stages] < 2)
    return ftl_error_set(error, FTL_INFEASIBLE, "num_stages=%lld: %s fills ahead, at least 2",
                         (long long)v[FTL_PARAM_num_stages], spec->workload->name);
  ftl_status status = ftl_attention_check_stages(spec, error);
  if (status != FTL_OK) return status;
  return check_multiple(spec, FTL_PARAM_block_n, MMA_K * v[FTL_PARAM_num_warps], "warps share the columns of a tile",
                        error);
}

static ftl_status check_feasible(const ftl_spec *spec, ftl_error *error) {
  ftl_status status = check_choice(spec, FTL_PARAM_sparq_r, FTL_PARAM_head_dim, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_sparq_k, FTL_PARAM_seqlen_kv, error);
  if (status == FTL_OK) status = check_choice(spec, FTL_PARAM_sparq_local, FTL_PARAM_sparq_k, error);
  if (status == FTL_OK) status = check_sizes(spec, error);
  if (status == FTL_OK) status = check_multiple(spec, FTL_PARAM_sparq_r, MMA_K, "it is the K of a product", error);
  if (status == FTL_OK)
    status = check_multiple(spec, FTL_PARAM_seqlen_kv, VECTOR_ELEMENTS, "columns of K are copied by 16 bytes", error);
  return status == FTL_OK ? check_kernels(spec, error) : status;
}

// ---- the workload ----

static ftl_status build_launch(const ftl_spec *spec, const char *name, void (*build)(ftl_sparq *),
                               ftl_tile_program **out, ftl_error *error) {
  ftl_sparq s = {.spec = spec,
                 .a = ftl_attention_of(spec),
                 .group = spec->value[FTL_PARAM_heads] / spec->value[FTL_PARAM_kv_heads],
                 .r = (int32_t)spec->value[FTL_PARAM_sparq_r],
                 .k = (int32_t)spec->value[FTL_PARAM_sparq_k],
                 .local = (int32_t)spec->value[FTL_PARAM_sparq_local],
                 .num_warps = (int32_t)spec->value[FTL_PARAM_num_warps],
                 .num_stages = (int32_t)spec->value[FTL_PARAM_num_stages]};
  ftl_status status = ftl_builder_create(&s.b, name, error);
  if (status != FTL_OK) return status;
  status = declare_tensors(&s, error);
  if (status == FTL_OK) {
    build(&s);
    status = ftl_builder_finish(s.b, out, error);
  }
  ftl_builder_destroy(s.b);
  return status;
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  static const struct {
    const char *name;
    void (*build)(ftl_sparq *);
  } steps[] = {{"sparq_components", ftl_sparq_build_components},
               {"sparq_scores", ftl_sparq_build_scores},
               {"sparq_keys", ftl_sparq_build_keys},
               {"sparq_attend", ftl_sparq_build_attend},
               {"sparq_mean", ftl_sparq_build_mean}};
  *num_launches = 0;
  ftl_status status = check_feasible(spec, error);
  for (size_t i = 0; status == FTL_OK && i < sizeof steps / sizeof *steps; i++) {
    status = build_launch(spec, steps[i].name, steps[i].build, &launches[i], error);
    if (status == FTL_OK) *num_launches = (int)i + 1;
  }
  return status;
}

static void set_defaults(ftl_spec *spec) {
  spec->value[FTL_PARAM_seqlen_q] = 1;
  spec->value[FTL_PARAM_block_m] = MMA_K;
  ftl_spec_set_default(spec, FTL_PARAM_block_n, 256);
  int64_t most_r = spec->value[FTL_PARAM_head_dim] / MMA_K * MMA_K;
  ftl_spec_set_default(spec, FTL_PARAM_sparq_r, ftl_smaller(spec->value[FTL_PARAM_sparq_r], most_r));
  ftl_spec_set_default(spec, FTL_PARAM_sparq_k,
                       ftl_smaller(spec->value[FTL_PARAM_sparq_k], spec->value[FTL_PARAM_seqlen_kv]));
}

const ftl_workload ftl_workload_sparq_decode = {
    .name = "sparq_decode",
    .doc = "SparQ attention, decoding from a part of the cache: r columns of K for scores, then k rows of K and V",
    .accepts = FTL_TAKES(batch) | FTL_TAKES(heads) | FTL_TAKES(kv_heads) | FTL_TAKES(seqlen_kv) | FTL_TAKES(head_dim) |
               FTL_TAKES_SPARQ | FTL_TAKES(dtype) | FTL_TAKES(softmax_scale) | FTL_TAKES(block_n) |
               FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | FTL_TAKES(copy) | FTL_TAKES(mma) | FTL_TAKES(code) |
               FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) | FTL_TAKES(cache) | FTL_TAKES(clock_mhz) |
               FTL_TAKES(detail),
    .set_defaults = set_defaults,
    .build = build,
};
