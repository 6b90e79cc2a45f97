#include "workloads/packed_batch.h"

#include <stdlib.h>

#include "base/integer.h"

static const int64_t most_tokens = INT64_C(1) << 24;

void ftl_packed_batch_destroy(ftl_packed_batch *batch) {
  if (!batch) return;
  free(batch->lengths);
  free(batch->offsets);
  free(batch->tile_sequence);
  free(batch->tile_row);
  free(batch);
}

static ftl_status check(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  char text[32];
  if (v[FTL_PARAM_mask] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "mask=%s: of sequences that are equally long, not with lengths",
                         ftl_spec_text(spec, FTL_PARAM_mask, text));
  if (v[FTL_PARAM_mask_steps] == FTL_MASK_STEPS_BLOCKS)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "mask_steps=blocks: of sequences that are equally long, not with lengths");
  if (v[FTL_PARAM_head_order] == FTL_HEADS_FIRST)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "head_order=heads_first: of sequences that are equally long, not with lengths");
  return FTL_OK;
}

// False when memory is out.
static bool try_place_sequences(ftl_packed_batch *b, const ftl_spec *spec) {
  b->lengths = malloc((size_t)b->num_sequences * sizeof *b->lengths);
  b->offsets = malloc((size_t)(b->num_sequences + 1) * sizeof *b->offsets);
  if (!b->lengths || !b->offsets) return false;
  ftl_spec_list(spec, FTL_PARAM_lengths, b->lengths, b->num_sequences);
  for (int64_t i = 0; i < b->num_sequences; i++) {
    b->num_tokens += b->lengths[i];
    b->num_tiles += ftl_divide_up(b->lengths[i], b->tile_rows);
  }
  return true;
}

static bool try_list_tiles(ftl_packed_batch *b, const ftl_spec *spec) {
  int64_t at = 0, offset = 0;
  b->tile_sequence = malloc((size_t)b->num_tiles * sizeof *b->tile_sequence);
  b->tile_row = malloc((size_t)b->num_tiles * sizeof *b->tile_row);
  if (!b->tile_sequence || !b->tile_row) return false;
  for (int64_t i = 0; i < b->num_sequences; offset += b->lengths[i++]) {
    int64_t num_tiles = ftl_divide_up(b->lengths[i], b->tile_rows);
    b->offsets[i] = (int32_t)offset;
    for (int64_t m = 0; m < num_tiles; m++, at++) {
      b->tile_sequence[at] = (int32_t)i;
      b->tile_row[at] = (int32_t)((spec->value[FTL_PARAM_tile_reverse] ? num_tiles - 1 - m : m) * b->tile_rows);
    }
  }
  b->offsets[b->num_sequences] = (int32_t)offset;
  return true;
}

ftl_status ftl_packed_batch_create(ftl_packed_batch **out, const ftl_spec *spec, int64_t tile_rows, ftl_error *error) {
  *out = NULL;
  if (spec->value[FTL_PARAM_lengths] == 0) return FTL_OK;
  ftl_status status = check(spec, error);
  if (status != FTL_OK) return status;
  ftl_packed_batch *b = calloc(1, sizeof *b);
  if (!b) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a batch");
  b->num_sequences = spec->value[FTL_PARAM_batch];
  b->tile_rows = tile_rows;
  if (!try_place_sequences(b, spec)) {
    status = FTL_NO_MEMORY;
  } else if (b->num_tokens > most_tokens) {
    status = ftl_error_set(error, FTL_INFEASIBLE, "lengths: %lld tokens in all; allowed are %lld",
                           (long long)b->num_tokens, (long long)most_tokens);
  } else if (!try_list_tiles(b, spec)) {
    status = FTL_NO_MEMORY;
  }
  if (status == FTL_OK) {
    *out = b;
    return FTL_OK;
  }
  ftl_packed_batch_destroy(b);
  return status == FTL_NO_MEMORY ? ftl_error_set(error, status, "out of memory for a batch") : status;
}

ftl_spec ftl_packed_batch_tokens(const ftl_packed_batch *batch, const ftl_spec *spec) {
  ftl_spec tokens = *spec;
  tokens.value[FTL_PARAM_batch] = 1;
  tokens.value[FTL_PARAM_seqlen_q] = tokens.value[FTL_PARAM_seqlen_kv] = batch->num_tokens;
  return tokens;
}

int64_t ftl_packed_batch_flops(const ftl_packed_batch *batch, const ftl_attention *a) {
  ftl_attention one = *a;
  int64_t sum = 0;
  one.batch = 1;
  one.diagonal = 0;
  for (int64_t i = 0; i < batch->num_sequences; i++) {
    one.seqlen_q = one.seqlen_kv = batch->lengths[i];
    sum += ftl_attention_forward_flops(&one);
  }
  return sum;
}

ftl_attention_tensors ftl_packed_batch_declare(ftl_builder *b, const ftl_spec *spec, const ftl_packed_batch *batch,
                                               const ftl_attention *a) {
  ftl_spec tokens = ftl_packed_batch_tokens(batch, spec);
  ftl_attention all = *a;
  all.batch = 1;
  all.seqlen_q = all.seqlen_kv = batch->num_tokens;
  all.diagonal = 0;
  return ftl_attention_declare(b, &tokens, &all);
}

ftl_packed_tile ftl_packed_batch_tile(ftl_builder *b, const ftl_spec *spec, const ftl_packed_batch *batch,
                                      const ftl_attention *a) {
  int32_t sequences = ftl_builder_table(b, "tile_sequence", batch->tile_sequence, batch->num_tiles);
  int32_t rows = ftl_builder_table(b, "tile_row", batch->tile_row, batch->num_tiles);
  int32_t offsets = ftl_builder_table(b, "offsets", batch->offsets, batch->num_sequences + 1);
  bool head_first = spec->value[FTL_PARAM_tile_order] == FTL_ORDER_HEAD_FIRST;
  ftl_expr cta = ftl_cta(b), num_tiles = ftl_const(b, batch->num_tiles), heads = ftl_const(b, a->heads);
  ftl_expr tile = head_first ? ftl_div(b, cta, heads) : ftl_mod(b, cta, num_tiles);
  ftl_expr head = head_first ? ftl_mod(b, cta, heads) : ftl_div(b, cta, num_tiles);
  ftl_expr sequence = ftl_lookup(b, sequences, tile), origin = ftl_lookup(b, offsets, sequence);
  ftl_expr row_end = ftl_lookup(b, offsets, ftl_add(b, sequence, ftl_const(b, 1)));
  return (ftl_packed_tile){.tile = {.batch = ftl_const(b, 0),
                                    .head = head,
                                    .kv_head = ftl_div(b, head, ftl_const(b, a->heads / a->kv_heads)),
                                    .sequence = sequence,
                                    .row = ftl_lookup(b, rows, tile)},
                           .lengths = {.seqlen_kv = ftl_sub(b, row_end, origin), .diagonal = ftl_const(b, 0)},
                           .origin = origin,
                           .row_end = row_end};
}
