// The second kernel of split-KV decoding: a CTA adds up the partial outputs of its query rows, each weighed by
// exp(its log-sum-exp - the largest of them). The log-sum-exps are read twice, once for their maximum.
// Sources: kernels/attention/decode_mma.h (combine): a row a CTA, a column a thread, four splits at a time in both
// walks, as nvcc unrolls them. FlashAttention-2's combine_attn_seqk_parallel (schedule=interleaved): 128 threads have 4
// rows, 8 or 16 of heads that 128, 64 or 32 columns divide, 4 columns a thread at a time; it has all log-sum-exps on
// their way at once, and waits for each split's output before it asks for the next.
#include <math.h>
#include <stdio.h>

#include "base/integer.h"
#include "workloads/decode.h"

enum { MOST_AT_ONCE = 16, FLASH_THREADS = 128, FLASH_COLUMNS = 4 };

static const float log2_e = 1.44269504088896340736f;
static const float ln_2 = 0.69314718055994530942f;

typedef struct combine {
  ftl_builder *b;
  ftl_decode d;
  ftl_decode_results results;
  bool is_flat;                                                      // O and LSE are rows of one head
  int32_t rows, max_at_once, add_at_once;                            // of a CTA; splits that a walk takes at a time
  int32_t lse[MOST_AT_ONCE], weight[MOST_AT_ONCE], max, shift, sum;  // rows
  int32_t part[MOST_AT_ONCE], output;                                // tiles
  ftl_expr first, count, row;  // partial results of the CTA's row: `count` from `first` on
} combine;

static void declare_parts(combine *c) {
  ftl_builder *b = c->b;
  if (!c->d.paged) {
    c->first = ftl_const(b, 0);
    c->count = ftl_const(b, c->d.splits);
    c->row = ftl_mul(b, ftl_cta(b), ftl_const(b, c->rows));
    return;
  }
  ftl_expr rows = ftl_const(b, c->d.a.heads * c->d.a.seqlen_q), sequence = ftl_div(b, ftl_cta(b), rows);
  c->row = ftl_mod(b, ftl_cta(b), rows);
  c->first = ftl_lookup(b, c->results.tables.first_item, sequence);
  ftl_expr end = ftl_lookup(b, c->results.tables.first_item, ftl_add(b, sequence, ftl_const(b, 1)));
  c->count = ftl_sub(b, end, c->first);
}

static int32_t flash_rows(int32_t head_dim) { return head_dim % 128 == 0 ? 4 : head_dim % 64 == 0 ? 8 : 16; }

typedef struct form {
  int32_t rows, num_warps, columns, max_at_once, add_at_once;
  ftl_value_layout layout;
} form;

// Where its rows' results do not follow each other in memory a CTA has one.
static bool takes_rows_together(const ftl_spec *spec, const ftl_decode *d) {
  return spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED && ftl_decode_is_flat(spec, d);
}

static form form_of(const ftl_spec *spec, const ftl_decode *d) {
  const ftl_attention *a = &d->a;
  if (takes_rows_together(spec, d)) {
    int32_t rows = flash_rows(a->padded_head_dim_v), threads = FLASH_THREADS / rows;
    int32_t unit = threads * FLASH_COLUMNS;
    return (form){.rows = rows,
                  .num_warps = FLASH_THREADS / FTL_WARP_LANES,
                  .columns = ftl_round_up32(a->head_dim_v, unit),
                  .max_at_once = MOST_AT_ONCE,
                  .add_at_once = 1,
                  .layout = {.threads_per_row = threads, .vector_columns = FLASH_COLUMNS}};
  }
  int32_t num_warps = ftl_divide_up32(a->head_dim_v, FTL_WARP_LANES), columns = num_warps * FTL_WARP_LANES;
  return (form){.rows = 1,
                .num_warps = num_warps,
                .columns = columns,
                .max_at_once = 4,
                .add_at_once = 4,
                .layout = {.threads_per_row = columns, .vector_columns = 1}};
}

static void declare(combine *c, const ftl_spec *spec) {
  ftl_builder *b = c->b;
  form f = form_of(spec, &c->d);
  c->rows = f.rows;
  c->max_at_once = f.max_at_once;
  c->add_at_once = f.add_at_once;
  c->is_flat = f.rows > 1;
  c->results = ftl_decode_declare(b, spec, &c->d, c->is_flat ? FTL_DECODE_FLAT : FTL_DECODE_SPLIT_MAJOR);
  ftl_builder_role(b, "main", f.num_warps, 0);
  for (int i = 0; i < f.max_at_once; i++) c->lse[i] = ftl_builder_rows_by_rows(b, "lse", f.rows, f.layout);
  for (int i = 0; i < f.add_at_once; i++) {
    c->weight[i] = ftl_builder_rows_by_rows(b, "weight", f.rows, f.layout);
    c->part[i] = ftl_builder_tile_by_rows(b, "part", FTL_FP32, f.rows, f.columns, f.layout);
  }
  c->max = ftl_builder_rows_by_rows(b, "max", f.rows, f.layout);
  c->shift = ftl_builder_rows_by_rows(b, "shift", f.rows, f.layout);
  c->sum = ftl_builder_rows_by_rows(b, "sum", f.rows, f.layout);
  c->output = ftl_builder_tile_by_rows(b, "o", FTL_FP32, f.rows, f.columns, f.layout);
  declare_parts(c);
}

static ftl_tile_ref partial_ref(const combine *c, int32_t tensor, ftl_expr split, int32_t columns) {
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = ftl_add(c->b, c->first, split),
                        .head = ftl_const(c->b, 0),
                        .row = c->row,
                        .present = FTL_ALWAYS,
                        .rows = c->rows,
                        .columns = columns};
}

static ftl_tile_ref result_ref(const combine *c, int32_t tensor, int32_t columns) {
  ftl_builder *b = c->b;
  ftl_expr zero = ftl_const(b, 0);
  if (c->is_flat)
    return (ftl_tile_ref){.tensor = tensor,
                          .batch = zero,
                          .head = zero,
                          .row = c->row,
                          .present = FTL_ALWAYS,
                          .rows = c->rows,
                          .columns = columns};
  ftl_expr seqlen_q = ftl_const(b, c->d.a.seqlen_q), heads = ftl_const(b, c->d.a.heads);
  ftl_expr any_head = ftl_div(b, ftl_cta(b), seqlen_q);
  return (ftl_tile_ref){.tensor = tensor,
                        .batch = ftl_div(b, any_head, heads),
                        .head = ftl_mod(b, any_head, heads),
                        .row = ftl_mod(b, ftl_cta(b), seqlen_q),
                        .present = FTL_ALWAYS,
                        .rows = 1,
                        .columns = columns};
}

// ---- the two walks ----

static void find_max(const combine *c, ftl_expr first, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    ftl_expr split = ftl_add(c->b, first, ftl_const(c->b, i));
    ftl_load_rows(c->b, c->lse[i], partial_ref(c, c->results.partial_lse, split, 1));
  }
  for (int32_t i = 0; i < count; i++) ftl_binary(c->b, FTL_ELEM_MAX, c->max, c->max, ftl_value_operand(c->lse[i]));
}

static void add_parts(const combine *c, ftl_expr first, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    ftl_expr split = ftl_add(c->b, first, ftl_const(c->b, i));
    ftl_load_rows(c->b, c->lse[i], partial_ref(c, c->results.partial_lse, split, 1));
    ftl_load_tile(c->b, c->part[i], partial_ref(c, c->results.partial_o, split, c->d.a.head_dim_v));
  }
  for (int32_t i = 0; i < count; i++) {
    ftl_binary(c->b, FTL_ELEM_SUB, c->weight[i], c->lse[i], ftl_value_operand(c->shift));
    ftl_binary(c->b, FTL_ELEM_MUL, c->weight[i], c->weight[i], ftl_immediate(log2_e));
    ftl_unary(c->b, FTL_ELEM_EXP2, c->weight[i], c->weight[i]);
    ftl_binary(c->b, FTL_ELEM_ADD, c->sum, c->sum, ftl_value_operand(c->weight[i]));
    ftl_elem(c->b, FTL_ELEM_FMA, c->output, ftl_value_operand(c->part[i]), ftl_value_operand(c->weight[i]),
             ftl_value_operand(c->output));
  }
}

// Parts lo .. hi-1, `count` at a time; a range that is empty whatever the CTA gives no code.
static void walk_range(const combine *c, void (*visit)(const combine *c, ftl_expr first, int32_t count), ftl_expr lo,
                       ftl_expr hi, int32_t count) {
  if (lo == hi) return;
  ftl_expr i = ftl_loop_value(c->b, ftl_loop(c->b, lo, hi));
  visit(c, ftl_mul(c->b, i, ftl_const(c->b, count)), count);
  ftl_end_loop(c->b);
}

static void walk(const combine *c, void (*visit)(const combine *c, ftl_expr first, int32_t count), int32_t at_once) {
  ftl_expr unroll = ftl_const(c->b, at_once), whole = ftl_div(c->b, c->count, unroll);
  walk_range(c, visit, ftl_const(c->b, 0), whole, at_once);
  if (at_once > 1) walk_range(c, visit, ftl_mul(c->b, whole, unroll), c->count, 1);
}

static void finish(const combine *c) {
  ftl_builder *b = c->b;
  ftl_unary(c->b, FTL_ELEM_RECIP, c->max, c->sum);
  ftl_binary(c->b, FTL_ELEM_MUL, c->output, c->output, ftl_value_operand(c->max));
  ftl_store(b, result_ref(c, c->results.o, c->d.a.head_dim_v), c->output, -1);
  ftl_unary(c->b, FTL_ELEM_LOG2, c->sum, c->sum);
  ftl_elem(b, FTL_ELEM_FMA, c->sum, ftl_value_operand(c->sum), ftl_immediate(ln_2), ftl_value_operand(c->shift));
  ftl_store_rows(b, result_ref(c, c->results.lse, 1), c->sum);
}

ftl_status ftl_decode_build_combine(const ftl_spec *spec, const ftl_decode *d, ftl_tile_program **out,
                                    ftl_error *error) {
  combine c = {.d = *d};
  char name[FTL_TILE_NAME_BYTES];
  snprintf(name, sizeof name, "%s_combine", spec->workload->name);
  ftl_status status = ftl_builder_create(&c.b, name, error);
  if (status != FTL_OK) return status;
  declare(&c, spec);
  ftl_builder_grid(c.b, ftl_divide_up(c.d.a.batch * c.d.a.heads * c.d.a.seqlen_q, c.rows), false, FTL_TILES_BY_STRIDE);
  ftl_fill(c.b, c.max, -INFINITY);
  walk(&c, find_max, c.max_at_once);
  // Where no split saw a key all are -inf: shifted by 0 they weigh nothing, and the log-sum-exp stays -inf.
  ftl_unary(c.b, FTL_ELEM_ZERO_IF_NEG_INF, c.shift, c.max);
  ftl_fill(c.b, c.sum, 0.0f);
  ftl_fill(c.b, c.output, 0.0f);
  walk(&c, add_parts, c.add_at_once);
  finish(&c);
  status = ftl_builder_finish(c.b, out, error);
  ftl_builder_destroy(c.b);
  return status;
}
