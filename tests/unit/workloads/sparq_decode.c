// What sparq_decode assumes of choices that data make, and what it refuses. That it computes what its algorithm says is
// proved in tests/numeric/attention.
#include <criterion/criterion.h>
#include <string.h>

#include "workloads/sparq.h"
#include "tests/spec_words.h"

static ftl_status build(const char *params, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  ftl_spec spec;
  *error = (ftl_error){0};
  cr_assert_eq(spec_of_words(&spec, "sparq_decode", "copy=cp_async mma=mma heads=2 head_dim=64", params, error), FTL_OK,
               "%s", error->message);
  return spec.workload->build(&spec, launches, num_launches, error);
}

// Of 1000 keys the last 25, and one of each 13 of the first 975.
Test(unit_workloads_sparq_decode, predictions_take_the_latest_keys_and_one_of_each_equal_part_of_the_others) {
  enum { K = 100, LOCAL = 25, BEFORE = 1000 - LOCAL, PART = BEFORE / (K - LOCAL), ROWS = 12 };
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches;
  ftl_error error;
  cr_assert_eq(build("seqlen_kv=1000 sparq_k=100 sparq_local=25", launches, &num_launches, &error), FTL_OK);
  const ftl_tensor *rows = &launches[0]->tensors[ROWS];
  cr_assert_str_eq(rows->name, "rows");
  for (int head = 0; head < 2; head++)
    for (int i = 0; i < K; i++) {
      int32_t entry = rows->table[head * K + i];
      if (i < K - LOCAL)
        cr_expect_eq(entry / PART, i, "head %d: choice %d is %d", head, i, entry);
      else
        cr_expect_eq(entry, BEFORE + i - (K - LOCAL), "head %d: choice %d is %d", head, i, entry);
    }
  for (int i = 0; i < num_launches; i++) ftl_tile_program_destroy(launches[i]);
}

Test(unit_workloads_sparq_decode, choices_of_more_than_there_are_name_both) {
  static const struct {
    const char *params, *reason;
  } cases[] = {
      {"seqlen_kv=1000 sparq_r=80", "sparq_r=80: at most head_dim=64 are allowed"},
      {"seqlen_kv=96 sparq_k=97", "sparq_k=97: at most seqlen_kv=96 are allowed"},
      {"seqlen_kv=1000 sparq_local=129", "sparq_local=129: at most sparq_k=128 are allowed"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
    int num_launches = -1;
    ftl_error error;
    cr_expect_eq(build(cases[i].params, launches, &num_launches, &error), FTL_BAD_INPUT, "%s", cases[i].params);
    cr_expect_eq(num_launches, 0);
    cr_expect_str_eq(error.message, cases[i].reason);
  }
}
