// The softmax of the rows of S, in place: of what other launches have scaled and masked, or (elementwise=fused) with
// all of that in it: scale and masks as a row is read, dropout as it is written. Sources of the latter: Megatron-LM's
// fused kernels (scaled masked softmax) and NVIDIA apex, contrib/csrc/multihead_attn (mask, softmax and dropout in one
// kernel, which also stores P and the bytes of dropout for the backward pass).
#include "workloads/row_softmax.h"
#include "workloads/standard_attention.h"

// ---- what a fused kernel does on the way ----

typedef struct fused_work {
  const ftl_standard_softmax *s;
  ftl_standard_rows rows;
  float scale;
  int32_t added16, added32, keep;  // values
} fused_work;

static void declare_work(void *context) {
  fused_work *f = context;
  ftl_dtype dtype = f->rows.a->dtype;
  bool adds = false;
  for (int i = 0; i < FTL_STANDARD_MOST_ADDED; i++) adds |= f->s->added[i].tensor >= 0;
  if (adds) {
    f->added16 = ftl_standard_rows_tile(&f->rows, "added", dtype);
    f->added32 = ftl_standard_rows_tile(&f->rows, "added32", FTL_FP32);
  }
  if (f->rows.a->dropout_p > 0) f->keep = ftl_standard_rows_tile(&f->rows, "kept", FTL_FP32);
}

static void scale_and_add(const void *context, ftl_expr column, int32_t x) {
  const fused_work *f = context;
  ftl_builder *b = f->rows.b;
  ftl_binary(b, FTL_ELEM_MUL, x, x, ftl_immediate(f->scale));
  for (int i = 0; i < FTL_STANDARD_MOST_ADDED; i++) {
    if (f->s->added[i].tensor < 0) continue;
    ftl_load_tile(b, f->added16, ftl_standard_added_ref(&f->rows, f->s->added[i], column));
    ftl_convert(b, f->added32, f->added16);
    ftl_binary(b, FTL_ELEM_ADD, x, x, ftl_value_operand(f->added32));
  }
}

static void drop(const void *context, ftl_expr column, int32_t x, int32_t raw) {
  const fused_work *f = context;
  ftl_builder *b = f->rows.b;
  if (f->rows.a->dropout_p == 0) return;
  ftl_standard_rows_draw(&f->rows, f->keep, column);
  ftl_standard_rows_drop(&f->rows, x, f->keep);
  ftl_convert(b, raw, x);
  ftl_store(b, ftl_standard_rows_ref(&f->rows, f->s->dropped, column), raw, -1);
  ftl_store(b, ftl_standard_rows_ref(&f->rows, f->s->kept, column), f->keep, -1);
}

// ---- what a row sees ----

// By causal and window.
static void set_visible(ftl_builder *b, const ftl_attention *a, ftl_row_softmax *s) {
  ftl_attention_band band = ftl_attention_band_of(a);
  ftl_expr seqlen_kv = ftl_const(b, a->seqlen_kv), zero = ftl_const(b, 0);
  s->visible = seqlen_kv;
  if (!band.has_right) return;
  s->visible = ftl_min(b, seqlen_kv, ftl_max(b, zero, ftl_add(b, s->row, ftl_const(b, band.right + 1))));
  s->may_see_none |= ftl_attention_may_see_none(a);
  if (!band.has_left) return;
  s->first_visible = ftl_max(b, zero, ftl_add(b, s->row, ftl_const(b, band.left)));
}

// ---- the kernel ----

void ftl_standard_write_softmax(ftl_builder *b, const ftl_standard_softmax *softmax) {
  const ftl_spec *spec = softmax->spec;
  ftl_attention walked = ftl_standard_walked(spec), a = ftl_attention_of(spec);
  fused_work fused = {.s = softmax, .rows = ftl_standard_rows_of(b, &walked), .scale = a.scale};
  ftl_row_work work = {.context = &fused, .declare = declare_work, .read = scale_and_add, .written = drop};
  ftl_row_softmax s = {.online = spec->value[FTL_PARAM_softmax] == FTL_SOFTMAX_ONLINE,
                       .dtype = a.dtype,
                       .from = softmax->s,
                       .to = softmax->s,
                       .lse = softmax->lse,
                       .batch = fused.rows.tile.batch,
                       .head = fused.rows.tile.head,
                       .row = fused.rows.tile.row,
                       .rows = 1,
                       .num_warps = FTL_STANDARD_ROW_WARPS,
                       .columns = ftl_standard_scores_shape(&a).num_columns,
                       .begin = fused.rows.begin,
                       .end = fused.rows.end,
                       .may_see_none = softmax->hides_keys,
                       .more = ftl_standard_is_fused(spec) ? &work : NULL};
  // Where a launch of its own has masked the scores, a row sees all of them.
  set_visible(b, ftl_standard_is_separate(spec) ? &walked : &a, &s);
  ftl_row_softmax_build(b, &s);
  ftl_builder_grid(b, a.batch * a.heads * a.seqlen_q, false, FTL_TILES_BY_STRIDE);
}
