#include <criterion/criterion.h>
#include <string.h>

#include "workloads/spec.h"
#include "tests/spec_words.h"

static ftl_spec spec;
static ftl_error error;

static void setup(void) {
  error = (ftl_error){0};
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
}

TestSuite(unit_workloads_spec, .init = setup);

static void set(const char *name, const char *text) {
  cr_assert_eq(ftl_spec_set_text(&spec, name, text, &error), FTL_OK, "%s", error.message);
}

static void assert_refused(const char *name, const char *text, const char *message) {
  ftl_spec before = spec;
  cr_assert_eq(ftl_spec_set_text(&spec, name, text, &error), FTL_BAD_INPUT, "%s=%s", name, text);
  cr_assert_str_eq(error.message, message);
  cr_assert_eq(memcmp(&before, &spec, sizeof spec), 0, "a refused value changes nothing");
}

static void set_llama(void) {
  set("heads", "32");
  set("kv_heads", "8");
  set("seqlen", "8192");
  set("head_dim", "128");
  set("causal", "true");
}

Test(unit_workloads_spec, an_unknown_workload_is_refused_with_the_known_ones) {
  cr_assert_eq(ftl_spec_init(&spec, "flash9", &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, "unknown workload flash9; known are flash1_fwd, flash1_bwd") != NULL, "%s",
            error.message);
}

Test(unit_workloads_spec, a_misspelt_parameter_is_refused_with_the_nearest) {
  assert_refused("block_mm", "64", "unknown parameter block_mm; the nearest is block_m");
  assert_refused("seqlem", "64", "unknown parameter seqlem; the nearest is seqlen");
  assert_refused("ldx", "64", "unknown parameter ldx; foretile workload show flash2_fwd lists those of flash2_fwd");
  assert_refused("x", "64", "unknown parameter x; foretile workload show flash2_fwd lists those of flash2_fwd");
}

Test(unit_workloads_spec, numbers_out_of_range_are_refused_with_the_range) {
  assert_refused("heads", "0", "heads=0: allowed is a whole number from 1 to 65536");
  assert_refused("seqlen", "-4", "seqlen=-4: allowed is a whole number from 1 to 16777216 tokens");
  assert_refused("head_dim", "264", "head_dim=264: allowed is a whole number from 16 to 256 elements");
}

Test(unit_workloads_spec, what_is_not_a_whole_number_is_refused) {
  static const char *const texts[] = {"", "12x", "1.5", " 4", "4 ", "+4", "0x10", "1e3", "-", "NaN"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    cr_assert_eq(ftl_spec_set_text(&spec, "heads", texts[i], &error), FTL_BAD_INPUT, "\"%s\"", texts[i]);
}

Test(unit_workloads_spec, numbers_beyond_64_bits_are_refused_not_wrapped) {
  // 2^64 + 1 would be 1 if it wrapped.
  assert_refused("heads", "18446744073709551617",
                 "heads=18446744073709551617: allowed is a whole number from 1 to 65536");
  assert_refused("heads", "-18446744073709551615",
                 "heads=-18446744073709551615: allowed is a whole number from 1 to 65536");
}

Test(unit_workloads_spec, real_parameters_are_decimals_that_read_back_to_themselves) {
  static const char *const texts[] = {"0", "1", "0.1", "0.088388348", "999.999999999", "1e-09"};
  char buffer[32];
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    set("softmax_scale", texts[i]);
    cr_assert_str_eq(ftl_spec_text(&spec, FTL_PARAM_softmax_scale, buffer), texts[i]);
  }
  set("softmax_scale", "0.50");
  cr_assert_eq(spec.value[FTL_PARAM_softmax_scale], FTL_PARAM_UNITS_PER_ONE / 2);
  static const char *const bad[] = {"", "x", "-1", "1001", "nan", "inf", "1e400", "0x1", "0.1 ", "1,5"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    cr_assert_eq(ftl_spec_set_text(&spec, "softmax_scale", bad[i], &error), FTL_BAD_INPUT, "%s", bad[i]);
  assert_refused("softmax_scale", "-1", "softmax_scale=-1: allowed is a number from 0 to 1000");
}

Test(unit_workloads_spec, words_are_matched_whole) {
  assert_refused("dtype", "fp", "dtype=fp: allowed are fp16|bf16");
  assert_refused("dtype", "fp16|bf16", "dtype=fp16|bf16: allowed are fp16|bf16");
  assert_refused("dtype", "", "dtype=: allowed are fp16|bf16");
  set("dtype", "bf16");
  cr_assert_eq(spec.value[FTL_PARAM_dtype], 1);
}

Test(unit_workloads_spec, truth_values_are_true_false_1_and_0) {
  static const struct {
    const char *text;
    int64_t value;
  } cases[] = {{"true", 1}, {"1", 1}, {"false", 0}, {"0", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    set("causal", cases[i].text);
    cr_assert_eq(spec.value[FTL_PARAM_causal], cases[i].value);
  }
  assert_refused("causal", "yes", "causal=yes: allowed are true, false, 1, 0");
}

Test(unit_workloads_spec, seqlen_sets_both_lengths_and_either_may_be_set_after_it) {
  set("seqlen", "100");
  set("seqlen_kv", "200");
  cr_assert_eq(spec.value[FTL_PARAM_seqlen_q], 100);
  cr_assert_eq(spec.value[FTL_PARAM_seqlen_kv], 200);
}

// Of packed sequences; a cache of keys may have room for more.
Test(unit_workloads_spec, lengths_allow_no_other_sequence_length) {
  const struct {
    const char *names[2], *value, *message;  // NULL: no second
  } cases[] = {{{"seqlen", NULL}, "60000", "seqlen=60000: the longest of lengths is 512"},
               {{"seqlen_kv", NULL}, "600", "seqlen_kv=600: the longest of lengths is 512"},
               {{"seqlen_q", NULL}, "100", "seqlen_q=100: the longest of lengths is 512"},
               {{"seqlen_q", "seqlen_kv"}, "512", NULL},
               {{"seqlen", NULL}, "512", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
    set("heads", "8");
    set("head_dim", "64");
    set("lengths", "512:77");
    for (int n = 0; n < 2 && cases[i].names[n]; n++) set(cases[i].names[n], cases[i].value);
    ftl_status status = ftl_spec_complete(&spec, &error);
    cr_expect_eq(status, cases[i].message ? FTL_BAD_INPUT : FTL_OK, "%s=%s", cases[i].names[0], cases[i].value);
    if (cases[i].message) cr_expect_str_eq(error.message, cases[i].message);
  }
}

Test(unit_workloads_spec, integers_are_set_as_their_text_is) {
  cr_assert_eq(ftl_spec_set_int(&spec, "heads", 5, &error), FTL_OK);
  cr_assert_eq(spec.value[FTL_PARAM_heads], 5);
  cr_assert_eq(ftl_spec_set_int(&spec, "heads", INT64_MIN, &error), FTL_BAD_INPUT);
  cr_assert_eq(ftl_spec_set_int(&spec, "dtype", 1, &error), FTL_BAD_INPUT, "a word is not a number");
}

Test(unit_workloads_spec, a_missing_required_parameter_is_named) {
  set("heads", "4");
  set("seqlen", "64");
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, "flash2_fwd needs head_dim, 16 to 256 elements") != NULL, "%s", error.message);
}

Test(unit_workloads_spec, defaults_fill_what_was_not_given) {
  set_llama();
  spec.given &= ~(UINT64_C(1) << FTL_PARAM_kv_heads);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(spec.value[FTL_PARAM_kv_heads], 32, "as many as heads");
  cr_assert_eq(spec.value[FTL_PARAM_block_m], 128);
  cr_assert_eq(spec.value[FTL_PARAM_num_stages], 2);
}

Test(unit_workloads_spec, interleaved_has_one_stage_unless_a_number_was_given) {
  set_llama();
  set("schedule", "interleaved");
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  cr_assert_eq(spec.value[FTL_PARAM_num_stages], 1);
  set("num_stages", "2");
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  cr_assert_eq(spec.value[FTL_PARAM_num_stages], 2, "what the user asks for is answered, as infeasible, not replaced");
}

Test(unit_workloads_spec, rules_between_parameters_name_the_parameter_and_the_limit) {
  static const struct {
    const char *name, *text, *message;
  } cases[] = {{"kv_heads", "5", "kv_heads=5: must divide heads=32"},
               {"head_dim", "100", "head_dim=100: must be a multiple of 8"},
               {"head_dim_v", "100", "head_dim_v=100: must be a multiple of 8"},
               {"head_dim_multiple", "40", "head_dim_multiple=40: must be a multiple of 16"},
               {"block_m", "40", "block_m=40: must be a multiple of 16"},
               {"block_n", "12", "block_n=12: must be a multiple of 8"},
               {"mask_bits", "1x4", "mask_bits: only with mask=bits"},
               {"mask", "bits", "mask=bits: needs mask_bits, a number for each block of queries and keys"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    setup();
    set_llama();
    set(cases[i].name, cases[i].text);
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
    cr_assert_str_eq(error.message, cases[i].message);
  }
}

Test(unit_workloads_spec, values_have_the_columns_of_keys_unless_told) {
  set_llama();
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  cr_expect_eq(spec.value[FTL_PARAM_head_dim_v], 128);
  cr_expect_eq(ftl_spec_head_dim_v(&spec), 128);
  setup();
  set_llama();
  set("head_dim_v", "64");
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  cr_expect_eq(spec.value[FTL_PARAM_head_dim_v], 64);
  cr_expect_eq(ftl_spec_widest_head(&spec), 128);
  cr_expect_eq(ftl_spec_set_text(&spec, "head_dim_v", "520", &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "head_dim_v=520: allowed is a whole number from 16 to 512 elements");
  char text[FTL_PARAM_TEXT_BYTES];
  cr_expect_str_eq(ftl_workload_default(spec.workload, FTL_PARAM_head_dim_v, text), "as head_dim");
}

// SparQ's values are gathered as its keys are; others have no heads.
Test(unit_workloads_spec, some_workloads_have_no_columns_of_values_of_their_own) {
  static const char *const names[] = {"sparq_decode", "softmax_safe", "matmul_tiled", "glu"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    cr_assert_eq(ftl_spec_init(&spec, names[i], &error), FTL_OK);
    cr_expect_eq(ftl_spec_set_text(&spec, "head_dim_v", "64", &error), FTL_BAD_INPUT);
    cr_expect_not_null(strstr(error.message, "does not take the parameter head_dim_v"), "%s", error.message);
  }
}

// A tool may give the same keys to all kernels: what a workload is anyway is no error, and anything else is.
Test(unit_workloads_spec, what_a_workload_is_anyway_may_be_said) {
  static const struct {
    const char *workload, *name, *said, *other;
  } cases[] = {
      {"flash2_fwd", "pass", "fwd", "bwd"},
      {"flash2_bwd", "pass", "bwd", "fwd"},
      {"paged_decode", "pass", "fwd", "bwd"},
      {"flash2_fwd", "acc_dtype", "fp32", "fp16"},
      {"flash2_fwd", "splits", "1", "2"},
      {"flash2_bwd", "persistent", "false", "true"},
      {"flash2_bwd", "persistent", "0", "1"},
      {"paged_decode", "dropout_p", "0.0", "0.1"},
      {"glu", "lengths", "none", "5"},
      {"softmax_safe", "layout", "bhsd", "bshd"},
      {"softmax_safe", "causal", "false", "true"},
      {"matmul_tiled", "window", "0", "64"},
      {"flash2_bwd", "schedule", "stages", "pingpong"},
      {"flash2_fwd", "tree", "none", "medusa"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cr_assert_eq(ftl_spec_init(&spec, cases[i].workload, &error), FTL_OK);
    cr_expect_eq(ftl_spec_set_text(&spec, cases[i].name, cases[i].said, &error), FTL_OK, "%s: %s", cases[i].workload,
                 error.message);
    cr_expect_eq(spec.given, 0, "%s %s", cases[i].workload, cases[i].name);
    cr_expect_eq(ftl_spec_set_text(&spec, cases[i].name, cases[i].other, &error), FTL_BAD_INPUT, "%s %s=%s",
                 cases[i].workload, cases[i].name, cases[i].other);
  }
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  cr_expect_eq(ftl_spec_set_text(&spec, "splits", "2", &error), FTL_BAD_INPUT);
  cr_expect_str_eq(
      error.message,
      "flash2_fwd does not take the parameter splits but as 1; foretile workload show flash2_fwd lists its "
      "own");
  cr_expect_eq(ftl_spec_set_text(&spec, "splits", "1.", &error), FTL_OK);
  cr_expect_eq(ftl_spec_set_text(&spec, "splits", "", &error), FTL_BAD_INPUT);
  cr_expect_eq(ftl_spec_set_text(&spec, "page_size", "16", &error), FTL_BAD_INPUT);
}

// Scores of an attention may be scaled in six ways, rows alone in two.
Test(unit_workloads_spec, rows_know_their_own_scaling) {
  cr_assert_eq(ftl_spec_init(&spec, "softmax_safe", &error), FTL_OK);
  set("heads", "1");
  set("seqlen_q", "64");
  set("seqlen_kv", "1024");
  set("scaling", "twice");
  cr_expect_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "scaling=twice: softmax_safe allows auto|exponent|apart");
  set("scaling", "apart");
  cr_expect_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
}

// Lists of blocks and unrolled steps are flash2_fwd's.
Test(unit_workloads_spec, a_workload_knows_its_own_steps_of_a_mask) {
  cr_assert_eq(ftl_spec_init(&spec, "flash3_fwd", &error), FTL_OK);
  set_llama();
  set("mask_steps", "blocks");
  cr_expect_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
  cr_expect_str_eq(error.message, "mask_steps=blocks: flash3_fwd allows auto|edges|window|all");
  set("mask_steps", "unrolled");
  cr_expect_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
  set("mask_steps", "all");
  cr_expect_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
}

Test(unit_workloads_spec, problems_too_large_to_count_are_refused) {
  static const struct {
    const char *batch, *heads, *seqlen, *message;
  } cases[] = {
      {"65536", "65536", "16777216", "is a tensor of more than 2^46 bytes"},
      {"65536", "65536", "64", "is more than 2147483647 CTAs"},  // 2^32 heads of one tile
      {"1", "16384", "8388608", "is more than 2^60 FLOPs"},      // 4 * 16 * 2^14 * 2^46 = 2^66
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    setup();
    set("batch", cases[i].batch);
    set("heads", cases[i].heads);
    set("seqlen", cases[i].seqlen);
    set("head_dim", "16");
    cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_BAD_INPUT);
    cr_assert(strstr(error.message, cases[i].message) != NULL, "%s", error.message);
  }
}

Test(unit_workloads_spec, the_canonical_text_lists_every_parameter_and_reads_back_to_itself) {
  set_llama();
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  ftl_text text = {0}, again = {0};
  ftl_spec_canonical(&spec, &text);
  const char *expected =
      "flash2_fwd batch=1 heads=32 kv_heads=8 seqlen_q=8192 seqlen_kv=8192 lengths=none head_dim=128 head_dim_v=128 "
      "head_dim_multiple=16 dtype=fp16 causal=true";
  cr_assert_eq(strncmp(ftl_text_get(&text), expected, strlen(expected)), 0, "%s", ftl_text_get(&text));
  setup();
  cr_assert_eq(spec_set_words(&spec, strchr(ftl_text_get(&text), ' '), &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK);
  ftl_spec_canonical(&spec, &again);
  cr_assert_str_eq(ftl_text_get(&again), ftl_text_get(&text));
  ftl_text_fini(&text);
  ftl_text_fini(&again);
}

// The names that the engine has for words of a list stand in the list's order.
Test(unit_workloads_spec, names_of_enumerated_values_are_their_words) {
  static const struct {
    const char *name, *word;
    int64_t value;
  } words[] = {{"conditions", "ncu", FTL_CONDITIONS_NCU},
               {"conditions", "stream", FTL_CONDITIONS_STREAM},
               {"cache", "auto", FTL_CACHE_AUTO},
               {"cache", "cold", FTL_CACHE_COLD},
               {"cache", "warm", FTL_CACHE_WARM},
               {"cache", "chain", FTL_CACHE_CHAIN},
               {"detail", "sampled", FTL_DETAIL_SAMPLED},
               {"detail", "full", FTL_DETAIL_FULL},
               {"code", "lean", FTL_CODE_LEAN},
               {"code", "plain", FTL_CODE_PLAIN},
               {"code", "buffered", FTL_CODE_BUFFERED},
               {"code", "stepped", FTL_CODE_STEPPED},
               {"copy", "tma", FTL_SPEC_COPY_TMA},
               {"mma", "wgmma", FTL_SPEC_MMA_WGMMA},
               {"schedule", "interleaved", FTL_SCHEDULE_INTERLEAVED},
               {"tile_order", "head_first", FTL_ORDER_HEAD_FIRST}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    set(words[i].name, words[i].word);
    cr_expect_eq(spec.value[ftl_param_find(words[i].name)], words[i].value, "%s=%s", words[i].name, words[i].word);
  }
}

// In steps of the 4 warps of a CTA, 1024 columns, at most 16.
Test(unit_workloads_spec, a_named_block_of_a_whole_row_is_kept_in_registers) {
  static const struct {
    const char *words;
    int64_t schedule;
  } cases[] = {{"block_n=2048", FTL_SCHEDULE_REGISTERS},
               {"block_n=4096", FTL_SCHEDULE_REGISTERS},
               {"block_n=1024", FTL_SCHEDULE_REREAD},
               {"", FTL_SCHEDULE_REREAD},
               {"block_n=2056", FTL_SCHEDULE_REREAD},
               {"block_n=17408", FTL_SCHEDULE_REREAD},
               {"block_n=2048 schedule=reread", FTL_SCHEDULE_REREAD}};
  static const char *const workloads[] = {"softmax_safe", "softmax_online"};
  for (size_t w = 0; w < sizeof workloads / sizeof *workloads; w++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      cr_assert_eq(ftl_spec_init(&spec, workloads[w], &error), FTL_OK);
      cr_assert_eq(spec_set_words(&spec, "heads=2 seqlen_q=64 seqlen_kv=2048 num_warps=4", &error), FTL_OK);
      cr_assert_eq(spec_set_words(&spec, cases[i].words, &error), FTL_OK, "%s", error.message);
      cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
      cr_expect_eq(spec.value[FTL_PARAM_schedule], cases[i].schedule, "%s %s", workloads[w], cases[i].words);
    }
}
