// paged_decode's two kernels together compute attention of each sequence over the tokens in its pages, and the first
// visits each pair once: pages of any size, sequences of any lengths, shared prefixes, packed heads, several tokens.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_case.h"
#include "reference.h"
#include "workloads/kv_cache.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// A batch as the kernels see it: the tables of the program.
typedef struct paged_case {
  pipeline_case run;
  ftl_attention a;
  const ftl_tensor *k;
  int q, k_idx, v, o, lse;
  const int32_t *lengths, *first_page, *pages;
  int64_t page_size;
  ftl_kv_cache cache;
  double shrink;  // of a quantised cache: what its scales were divided by
} paged_case;

static int tensor_named(const ftl_tile_program *program, const char *name) {
  for (int i = 0; i < program->num_tensors; i++)
    if (strcmp(program->tensors[i].name, name) == 0) return i;
  cr_assert_fail("no tensor %s", name);
  return -1;
}

// Scales of at most 2 / the largest stored number, so that keys and values lie in [-2, 2] as others do.
static void shrink_scales(paged_case *c) {
  const ftl_tile_program *program = c->run.launches[0];
  static const char *const names[] = {"k_scales", "v_scales"};
  ftl_dtype stored = c->cache.stored;
  c->shrink = stored == FTL_INT4X2 ? 8 : stored == FTL_INT8 ? 128 : 2;
  for (int n = 0; n < 2; n++) {
    int t = tensor_named(program, names[n]);
    int64_t count = program->tensors[t].size_bytes / ftl_dtype_bytes(c->cache.dtype);
    for (int64_t i = 0; i < count; i++)
      c->run.tensors[t][i] = ftl_dtype_round(c->cache.dtype, (float)(fabs((double)c->run.tensors[t][i]) / c->shrink));
  }
}

static paged_case run(const char *params) {
  paged_case c;
  pipeline_case_make(&c.run, "paged_decode", params);
  c.cache = ftl_kv_cache_of(&c.run.spec);
  c.shrink = 1;
  if (ftl_kv_is_quantised(&c.cache)) shrink_scales(&c);
  pipeline_case_execute(&c.run);
  const ftl_tile_program *program = c.run.launches[0];
  c.a = ftl_attention_of(&c.run.spec);
  c.q = tensor_named(program, "q");
  c.k_idx = tensor_named(program, "k");
  c.v = tensor_named(program, "v");
  c.o = tensor_named(program, "o");
  c.lse = tensor_named(program, "lse");
  c.k = &program->tensors[c.k_idx];
  c.lengths = program->tensors[tensor_named(program, "lengths")].table;
  c.first_page = program->tensors[tensor_named(program, "first_page")].table;
  c.pages = program->tensors[tensor_named(program, "pages")].table;
  c.page_size = c.run.spec.value[FTL_PARAM_page_size];
  return c;
}

// ---- the reference: K and V of one sequence and KV head as rows that follow each other ----

// Element d of a token's key or value; of a quantised cache times its group's scale, rounded to the queries' type.
static float element_of(const paged_case *c, int tensor, int64_t page, int64_t kv_head, int64_t token, int64_t d) {
  const ftl_tile_program *program = c->run.launches[0];
  const ftl_tensor *of = &program->tensors[tensor];
  int64_t numbers = ftl_dtype_numbers(of->dtype);
  float x =
      c->run
          .tensors[tensor][page * of->batch_stride + kv_head * of->head_stride + token * of->row_stride + d / numbers];
  if (!ftl_kv_is_quantised(&c->cache)) return x;
  if (numbers == 2) x = (float)(d % 2 ? ftl_int4x2_high(x) : ftl_int4x2_low(x));
  int t = tensor_named(program, tensor == c->k_idx ? "k_scales" : "v_scales");
  const ftl_tensor *scales = &program->tensors[t];
  float scale = c->run.tensors[t][page * scales->batch_stride + kv_head * scales->head_stride +
                                  d / c->cache.group_size * scales->row_stride + token];
  return ftl_dtype_round(c->cache.dtype, x * scale);
}

static float *gathered(const paged_case *c, int tensor, int64_t sequence, int64_t kv_head) {
  int64_t length = c->lengths[sequence], columns = tensor == c->v ? c->a.head_dim_v : c->a.head_dim;
  float *rows = malloc(sizeof *rows * (size_t)(length * columns));
  cr_assert_not_null(rows);
  for (int64_t i = 0; i < length; i++) {
    int64_t page = c->pages[c->first_page[sequence] + i / c->page_size];
    for (int64_t d = 0; d < columns; d++)
      rows[i * columns + d] = element_of(c, tensor, page, kv_head, i % c->page_size, d);
  }
  return rows;
}

static void check_head(const paged_case *c, int64_t sequence, int64_t head) {
  ftl_attention a = c->a;
  int64_t kv_head = head / (a.heads / a.kv_heads);
  ftl_tensor_shape shape = ftl_attention_shape(&c->run.spec, a.heads, a.seqlen_q, a.head_dim);
  ftl_tensor_shape of_o = ftl_attention_shape(&c->run.spec, a.heads, a.seqlen_q, a.head_dim_v);
  int64_t at = sequence * shape.batch_stride + head * shape.head_stride;
  int64_t at_o = sequence * of_o.batch_stride + head * of_o.head_stride;
  float *k = gathered(c, c->k_idx, sequence, kv_head), *v = gathered(c, c->v, sequence, kv_head);
  a.seqlen_kv = c->lengths[sequence];
  for (int64_t i = 0; i < a.seqlen_q; i++) {
    double out[REFERENCE_MOST_COLUMNS], lse;
    reference_row(&a, i, c->run.tensors[c->q] + at, shape.row_stride, k, a.head_dim, v, a.head_dim_v, out, &lse);
    double found = (double)c->run.tensors[c->lse][(sequence * a.heads + head) * a.seqlen_q + i];
    cr_assert(found == lse || fabs(found - lse) <= pipeline_lse_tolerance(&a, lse), "%s: LSE %g, not %g", c->run.text,
              found, lse);
    for (int32_t d = 0; d < a.head_dim_v; d++) {
      found = (double)c->run.tensors[c->o][at_o + i * of_o.row_stride + d];
      cr_assert_float_eq(found, out[d], pipeline_output_tolerance(&a, out[d]),
                         "%s: sequence %lld head %lld O[%lld][%d] is %g, not %g", c->run.text, (long long)sequence,
                         (long long)head, (long long)i, d, found, out[d]);
    }
  }
  free(k);
  free(v);
}

// Rows of packed heads are those of the query heads, in the same order.
static void check_visits(paged_case *c) {
  ftl_attention a = c->a;
  const ftl_tile_program *program = c->run.launches[0];
  int64_t rows = a.batch * a.heads * a.seqlen_q;
  ftl_pair_visits visits = {.queries = c->q, .keys = c->k_idx, .num_keys = a.seqlen_kv};
  ftl_error error = {0};
  visits.counts = calloc((size_t)rows, (size_t)a.seqlen_kv);
  cr_assert_eq(ftl_interpret(program, c->run.tensors, &visits, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(visits.num_outside, 0, "%s", c->run.text);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t j = 0; j < c->a.seqlen_kv; j++) {
      a.seqlen_kv = c->lengths[row / (a.heads * a.seqlen_q)];
      int expected = j < a.seqlen_kv && reference_sees(&a, row % a.seqlen_q, j);
      cr_assert_eq(visits.counts[row * c->a.seqlen_kv + j], expected, "%s: row %lld met key %lld", c->run.text,
                   (long long)row, (long long)j);
    }
  free(visits.counts);
}

static void prove(const char *params) {
  paged_case c = run(params);
  for (int64_t sequence = 0; sequence < c.a.batch; sequence++)
    for (int64_t head = 0; head < c.a.heads; head++) check_head(&c, sequence, head);
  check_visits(&c);
  pipeline_case_fini(&c.run);
}

// Sequences shorter than a page, than a tile and than a part; and the ends of each.
static const char *const lengths[] = {"1", "16:1:17", "64:63:65:130", "300x2:5"};
static const char *const layouts[] = {"contiguous", "scattered"};

Test(numeric_attention_paged_decode, any_lengths_in_any_pages_give_attention) {
  static const int page_sizes[] = {1, 3, 16, 48, 64, 256};
  char params[256];
  for (size_t l = 0; l < COUNT(lengths); l++)
    for (size_t p = 0; p < COUNT(page_sizes); p++)
      for (size_t splits = 1; splits <= 5; splits += 2) {
        snprintf(params, sizeof params,
                 "heads=2 head_dim=16 seqlen_q=1 lengths=%s page_size=%d page_layout=%s splits=%zu block_m=16 "
                 "block_n=%d num_warps=4 num_stages=%zu",
                 lengths[l], page_sizes[p], layouts[(l + p) % 2], splits, 64, 1 + l % 3);
        prove(params);
      }
}

Test(numeric_attention_paged_decode, heads_are_packed_in_both_layouts) {
  static const char *const heads[] = {"heads=4 kv_heads=4", "heads=8 kv_heads=2", "heads=24 kv_heads=1"};
  static const char *const orders[] = {"layout=bhsd", "layout=bshd"};
  char params[256];
  for (size_t h = 0; h < COUNT(heads); h++)
    for (size_t o = 0; o < COUNT(orders); o++)
      for (int persistent = 0; persistent < 2; persistent++) {
        snprintf(params, sizeof params,
                 "%s %s head_dim=24 seqlen_q=1 lengths=150:20:77 page_size=16 page_layout=scattered splits=3 "
                 "block_m=16 block_n=32 num_warps=2 persistent=%d",
                 heads[h], orders[o], persistent);
        prove(params);
      }
}

Test(numeric_attention_paged_decode, values_may_have_columns_of_their_own) {
  static const char *const kinds[] = {"head_dim=48 head_dim_v=32 layout=bshd", "head_dim=24 head_dim_v=64",
                                      "head_dim=16 head_dim_v=120 block_m=32 block_n=64 warps_n=4 num_warps=8",
                                      "head_dim=96 head_dim_v=64 kv_dtype=int4",
                                      "head_dim=32 head_dim_v=64 kv_dtype=int8 kv_group_size=16 layout=bshd"};
  char params[256];
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (int splits = 1; splits <= 3; splits += 2) {
      snprintf(params, sizeof params,
               "heads=8 kv_heads=2 seqlen_q=1 lengths=150:20:77 page_size=16 page_layout=scattered splits=%d "
               "block_m=16 block_n=32 num_warps=2 %s",
               splits, kinds[k]);
      prove(params);
    }
}

Test(numeric_attention_paged_decode, several_tokens_see_the_keys_up_to_their_own) {
  static const char *const orders[] = {"layout=bhsd", "layout=bshd"};
  char params[256];
  for (size_t o = 0; o < COUNT(orders); o++)
    for (int tokens = 2; tokens <= 17; tokens += 5) {
      snprintf(params, sizeof params,
               "heads=6 kv_heads=2 %s head_dim=16 seqlen_q=%d lengths=200:3:64:67 causal=1 page_size=8 splits=2 "
               "block_m=32 block_n=32 num_warps=4",
               orders[o], tokens);
      prove(params);
    }
}

Test(numeric_attention_paged_decode, quantised_pages_are_what_their_scales_make_of_them) {
  static const char *const caches[] = {"kv_dtype=int8", "kv_dtype=int8 kv_group_size=16", "kv_dtype=int4",
                                       "kv_dtype=int4 kv_group_size=32", "kv_dtype=fp8 kv_group_size=16"};
  // Several pages a tile, one, and part of one; groups that are no power of two.
  static const char *const pages[] = {"page_size=8 head_dim=64", "page_size=32 head_dim=64 layout=bshd",
                                      "page_size=256 head_dim=96", "page_size=16 head_dim=96 page_layout=scattered"};
  char params[256];
  for (size_t i = 0; i < COUNT(caches); i++)
    for (size_t p = 0; p < COUNT(pages); p++)
      for (int window = 0; window <= 50; window += 50) {
        snprintf(params, sizeof params,
                 "heads=4 kv_heads=2 seqlen_q=1 lengths=150:8:33 causal=1 window=%d splits=2 block_m=16 block_n=32 "
                 "num_warps=2 num_stages=%zu %s %s",
                 window, 2 + p % 2, caches[i], pages[p]);
        prove(params);
      }
}

// Triton's warps: each has keys of a tile and then columns of V.
Test(numeric_attention_paged_decode, warps_side_by_side_give_attention) {
  static const char *const tiles[] = {"block_n=64 num_warps=4 warps_n=4", "block_n=32 num_warps=2 warps_n=2",
                                      "block_n=128 num_warps=4 warps_n=4 kv_dtype=int8"};
  char params[256];
  for (size_t t = 0; t < COUNT(tiles); t++)
    for (int stages = 1; stages <= 2; stages++)
      for (int tokens = 1; tokens <= 5; tokens += 4) {
        snprintf(params, sizeof params,
                 "heads=8 kv_heads=2 head_dim=64 seqlen_q=%d lengths=200:8:64:97 causal=1 page_size=16 row_sums=step "
                 "page_layout=scattered splits=2 block_m=16 num_stages=%d mma=mma %s",
                 tokens, stages, tiles[t]);
        prove(params);
      }
}

// Windows of one key, within a tile of 32, around its boundary, longer than some sequences and than all.
Test(numeric_attention_paged_decode, a_window_is_that_of_each_sequence) {
  static const int windows[] = {1, 2, 31, 32, 33, 70, 1000};
  static const char *const orders[] = {"layout=bhsd", "layout=bshd"};
  char params[256];
  for (size_t w = 0; w < COUNT(windows); w++)
    for (int tokens = 1; tokens <= 5; tokens += 2)
      for (int causal = 0; causal < 2; causal++)
        for (size_t o = 0; o < COUNT(orders); o++) {
          snprintf(params, sizeof params,
                   "heads=6 kv_heads=2 %s head_dim=16 seqlen_q=%d lengths=200:3:64:97 causal=%d window=%d page_size=8 "
                   "page_layout=scattered splits=%d block_m=16 block_n=32 num_warps=2 persistent=%d",
                   orders[o], tokens, causal, windows[w], 1 + tokens / 2, causal);
          prove(params);
        }
}

Test(numeric_attention_paged_decode, a_shared_prefix_gives_each_sequence_its_own_attention) {
  static const int prefixes[] = {1, 16, 20, 48};
  char params[256];
  for (size_t p = 0; p < COUNT(prefixes); p++) {
    snprintf(params, sizeof params,
             "heads=2 kv_heads=1 head_dim=16 seqlen_q=1 lengths=100:48:61 page_layout=shared_prefix prefix=%d "
             "page_size=16 splits=2",
             prefixes[p]);
    prove(params);
  }
}

// ---- the pages ----

static void assert_pages(const char *params, int64_t num_pages, int64_t num_distinct) {
  paged_case c = run(params);
  int64_t batch = c.a.batch, found = 0;
  bool *used = calloc((size_t)c.k->num_batches, sizeof *used);
  for (int32_t i = 0; i < c.first_page[batch]; i++) {
    found += !used[c.pages[i]];
    used[c.pages[i]] = true;
  }
  free(used);
  cr_expect_eq(c.k->num_batches, num_pages, "%s: %lld pages", params, (long long)c.k->num_batches);
  cr_expect_eq(found, num_distinct, "%s: %lld distinct pages", params, (long long)found);
  pipeline_case_fini(&c.run);
}

#define BATCH "heads=1 head_dim=16 seqlen_q=1 lengths=100:48:61 page_size=16 splits=2 "

// 7, 3 and 4 pages.
Test(numeric_attention_paged_decode, sequences_have_pages_of_their_own_unless_they_share_a_prefix) {
  assert_pages(BATCH "page_layout=contiguous", 14, 14);
  assert_pages(BATCH "page_layout=scattered", 14, 14);
  assert_pages(BATCH "page_layout=shared_prefix prefix=32", 10, 10);
  // of the prefix's two pages the second is half full: each sequence writes to a copy of its own
  assert_pages(BATCH "page_layout=shared_prefix prefix=24", 13, 12);
}
