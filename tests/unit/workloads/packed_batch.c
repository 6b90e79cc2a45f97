// Sequences of several lengths packed into one batch: where they begin, which query tiles there are.
#include "workloads/packed_batch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static ftl_spec spec_of(const char *params) {
  ftl_spec spec;
  ftl_error error = {0};
  char text[256];
  snprintf(text, sizeof text, "heads=2 head_dim=64 block_m=64 %s", params);
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(word, '=');
    *value++ = '\0';
    cr_assert_eq(ftl_spec_set_text(&spec, word, value, &error), FTL_OK, "%s", error.message);
  }
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  return spec;
}

static ftl_packed_batch *batch_of(const ftl_spec *spec) {
  ftl_packed_batch *batch;
  ftl_error error = {0};
  cr_assert_eq(ftl_packed_batch_create(&batch, spec, spec->value[FTL_PARAM_block_m], &error), FTL_OK, "%s",
               error.message);
  return batch;
}

Test(unit_workloads_packed_batch, lengths_are_those_of_queries_and_keys) {
  ftl_spec spec = spec_of("lengths=130:1:64");
  cr_expect_eq(spec.value[FTL_PARAM_batch], 3);
  cr_expect_eq(spec.value[FTL_PARAM_seqlen_q], 130);
  cr_expect_eq(spec.value[FTL_PARAM_seqlen_kv], 130);
}

Test(unit_workloads_packed_batch, each_query_tile_is_listed_once_in_the_order_of_its_sequence) {
  static const char *const orders[] = {"lengths=130:1:64", "lengths=130:1:64 tile_reverse=1"};
  static const int32_t rows[2][5] = {{0, 64, 128, 0, 0}, {128, 64, 0, 0, 0}};
  const int32_t sequences[] = {0, 0, 0, 1, 2}, offsets[] = {0, 130, 131, 195};
  for (int i = 0; i < 2; i++) {
    ftl_spec spec = spec_of(orders[i]);
    ftl_packed_batch *b = batch_of(&spec);
    cr_assert_eq(b->num_tiles, 5);
    cr_expect_eq(memcmp(b->tile_sequence, sequences, sizeof sequences), 0);
    cr_expect_eq(memcmp(b->tile_row, rows[i], sizeof rows[i]), 0);
    cr_expect_eq(memcmp(b->offsets, offsets, sizeof offsets), 0);
    ftl_packed_batch_destroy(b);
  }
}

Test(unit_workloads_packed_batch, flops_are_those_of_each_sequence_alone) {
  ftl_spec spec = spec_of("lengths=130:1:64 causal=1");
  ftl_packed_batch *b = batch_of(&spec);
  ftl_attention a = ftl_attention_of(&spec);
  int64_t pairs = 130 * 131 / 2 + 1 + 64 * 65 / 2;
  cr_expect_eq(ftl_packed_batch_flops(b, &a), 4 * 64 * 2 * pairs);
  ftl_packed_batch_destroy(b);
}

Test(unit_workloads_packed_batch, what_is_of_equally_long_sequences_is_refused) {
  static const char *const params[] = {"lengths=128:256 mask=strided", "lengths=130:1 head_order=heads_first",
                                       "lengths=16777216x2"};
  static const char *const messages[] = {"mask=strided: of sequences that are equally long, not with lengths",
                                         "head_order=heads_first: of sequences that are equally long, not with lengths",
                                         "lengths: 33554432 tokens in all; allowed are 16777216"};
  for (int i = 0; i < 3; i++) {
    ftl_spec spec = spec_of(params[i]);
    ftl_packed_batch *batch;
    ftl_error error = {0};
    cr_assert_eq(ftl_packed_batch_create(&batch, &spec, spec.value[FTL_PARAM_block_m], &error), FTL_INFEASIBLE, "%s",
                 params[i]);
    cr_expect_str_eq(error.message, messages[i]);
  }
}

Test(unit_workloads_packed_batch, without_lengths_nothing_is_packed) {
  ftl_spec spec = spec_of("seqlen=100");
  cr_expect_null(batch_of(&spec));
}
