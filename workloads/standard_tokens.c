// Launches over tensors of tokens, [batch][heads][tokens][head_dim], as eager PyTorch has them around its products:
// copies that a product wants side by side or transposed, scales, and the gathering of three gradients in one tensor.
#include "base/integer.h"
#include "workloads/standard_attention.h"

enum { NUM_WARPS = 4, NUM_THREADS = NUM_WARPS * FTL_WARP_LANES, VECTOR_COLUMNS = 8 };
enum { ELEMENTS_PER_THREAD = 4 };

// What all threads of a CTA take at once, and how often: four times an element a thread, which is stored before the
// next is loaded, or (no index_insts) once 16 bytes.
typedef struct token_tiles {
  ftl_value_layout layout;
  int32_t rows, columns, num_steps;
} token_tiles;

static token_tiles tiles_of(const ftl_attention *a, int32_t index_insts) {
  bool by_elements = index_insts > 0;
  int32_t vector = by_elements ? 1 : VECTOR_COLUMNS, threads = by_elements ? FTL_WARP_LANES : 1;
  int32_t most = by_elements ? NUM_THREADS : FTL_WARP_LANES;
  while (threads * vector < a->head_dim && threads < most) threads *= 2;
  int32_t columns = (int32_t)ftl_divide_up(a->head_dim, threads * vector) * threads * vector;
  return (token_tiles){{threads, vector}, NUM_THREADS / threads, columns, by_elements ? ELEMENTS_PER_THREAD : 1};
}

typedef struct tokens_kernel {
  ftl_builder *b;
  const ftl_attention *a;
  const ftl_standard_tokens *t;
  token_tiles tiles;
  ftl_attention_tile tile;
  int32_t x16, x;  // as stored; in fp32, where it is scaled
} tokens_kernel;

static void copy_step(const tokens_kernel *k, int i, int32_t step) {
  ftl_builder *b = k->b;
  ftl_expr row = ftl_add(b, k->tile.row, ftl_const(b, (int64_t)step * k->tiles.rows));
  ftl_tile_ref from = ftl_attention_query_ref(&k->tile, k->t->from[i], row, k->tiles.rows, k->a->head_dim);
  ftl_tile_ref to = ftl_attention_query_ref(&k->tile, k->t->to[i], row, k->tiles.rows, k->a->head_dim);
  from.index_insts = k->t->index_insts;
  ftl_load_tile(b, k->x16, from);
  if (k->t->scale != 1) {
    ftl_convert(b, k->x, k->x16);
    ftl_binary(b, FTL_ELEM_MUL, k->x, k->x, ftl_immediate(k->t->scale));
    ftl_convert(b, k->x16, k->x);
  }
  ftl_store(b, to, k->x16, -1);
}

void ftl_standard_write_tokens(ftl_builder *b, const ftl_attention *a, const ftl_standard_tokens *t) {
  tokens_kernel k = {.b = b, .a = a, .t = t, .tiles = tiles_of(a, t->index_insts)};
  const token_tiles *tiles = &k.tiles;
  ftl_builder_role(b, "main", NUM_WARPS, 0);
  k.tile = ftl_standard_row_grid(b, a, t->num_tokens, tiles->rows * tiles->num_steps);
  k.x16 = ftl_builder_tile_by_rows(b, "x", a->dtype, tiles->rows, tiles->columns, tiles->layout);
  if (t->scale != 1) k.x = ftl_builder_tile_by_rows(b, "x32", FTL_FP32, tiles->rows, tiles->columns, tiles->layout);
  for (int i = 0; i < FTL_STANDARD_MOST_TOKENS && t->to[i] >= 0; i++)
    for (int32_t step = 0; step < tiles->num_steps; step++) copy_step(&k, i, step);
}

// A CTA writes 512 elements of a row of the result; what a warp reads for it lies in 32 rows.
void ftl_standard_write_transposed(ftl_builder *b, const ftl_attention *a, int32_t from, int32_t to) {
  enum { CTA_TOKENS = ELEMENTS_PER_THREAD * NUM_THREADS };
  int64_t num_pieces = ftl_divide_up(a->seqlen_kv, CTA_TOKENS);
  ftl_builder_role(b, "main", NUM_WARPS, 0);
  ftl_attention_tile tile = ftl_standard_row_grid(b, a, a->head_dim * num_pieces, 1);
  ftl_expr pieces = ftl_const(b, num_pieces), column = ftl_div(b, tile.row, pieces);
  ftl_expr first = ftl_mul(b, ftl_mod(b, tile.row, pieces), ftl_const(b, CTA_TOKENS));
  int32_t x = ftl_builder_tile_by_rows(b, "x", a->dtype, 1, NUM_THREADS, (ftl_value_layout){NUM_THREADS, 1});
  for (int32_t step = 0; step < ELEMENTS_PER_THREAD; step++) {
    ftl_expr token = ftl_add(b, first, ftl_const(b, (int64_t)step * NUM_THREADS));
    ftl_tile_ref of_from = ftl_attention_query_ref(&tile, from, token, NUM_THREADS, 1);
    of_from.column = column;
    of_from.transposed = true;
    of_from.index_insts = FTL_EAGER_TRANSPOSE_INSTS;
    ftl_load_tile(b, x, of_from);
    int64_t columns = ftl_standard_scores_shape(a).num_columns;
    ftl_tile_ref of_to = ftl_attention_query_ref(&tile, to, column, 1, (int32_t)ftl_smaller(NUM_THREADS, columns));
    of_to.column = token;
    of_to.column_end = ftl_const(b, columns);
    ftl_store(b, of_to, x, -1);
  }
}
