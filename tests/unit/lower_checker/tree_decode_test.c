// Both launches of tree_decode do what their tile programs say on every generation, the loads of the mask included.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs };

static void prove(const char *parameters) {
  for (int a = 0; a < NUM_ARCHS; a++)
    for (int launch = 0; launch < 2; launch++) {
      programs p;
      ftl_error error = {0};
      ftl_status status = lower_launch(&p, archs[a], "tree_decode", parameters, launch, &error);
      cr_assert_eq(status, FTL_OK, "%s %s: %s", archs[a], parameters, error.message);
      for (int64_t cta = 0; cta < p.tile->num_ctas; cta += 1 + p.tile->num_ctas / 5)
        cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s: %s", archs[a], parameters, error.message);
      programs_fini(&p);
    }
}

Test(unit_lower_tree_decode, groups_of_warps_and_all_trees_are_proved) {
  prove("heads=8 kv_heads=2 tree=medusa seqlen_kv=333 head_dim=64 splits=2");
  prove("heads=4 kv_heads=4 tree=eagle seqlen_kv=200 head_dim=64 splits=3 block_m=16 block_n=64 num_warps=4 mma=mma");
  prove(
      "heads=6 kv_heads=2 tree=specinfer seqlen_kv=150 head_dim=40 layout=bshd block_m=32 block_n=96 num_warps=4 "
      "splits=1 mma=mma");
  prove(
      "heads=8 kv_heads=1 tree=blockwise seqlen_kv=130 head_dim=64 block_m=32 block_n=32 num_warps=2 splits=2 mma=mma");
}

Test(unit_lower_tree_decode, windows_are_proved) {
  prove("heads=8 kv_heads=2 tree=eagle seqlen_kv=300 head_dim=64 splits=2 window=100 mma=mma");
  prove(
      "heads=8 kv_heads=2 tree=specinfer seqlen_kv=300 head_dim=64 splits=3 window=130 block_n=32 num_warps=2 mma=mma");
}

Test(unit_lower_tree_decode, quantised_caches_are_proved) {
  prove("heads=8 kv_heads=2 tree=eagle seqlen_kv=300 head_dim=64 splits=2 kv_dtype=int8 kv_group_size=32 mma=mma");
  prove("heads=4 kv_heads=2 tree=blockwise seqlen_kv=200 head_dim=64 splits=3 kv_dtype=int4 mma=mma");
}

// 26 tokens of one head in tiles of 32 rows, 2 words each of a tile's 64 keys. The tree is in the last of 4 key tiles
// of 64, and so in the second split.
Test(unit_lower_tree_decode, the_mask_is_read_where_the_tree_is) {
  enum { MASK = 7 };
  for (int split = 0; split < 2; split++) {
    programs p;
    ftl_work work;
    ftl_error error = {0};
    ftl_status status =
        lower_launch(&p, "a100_80", "tree_decode",
                     "heads=1 tree=eagle seqlen_kv=250 head_dim=64 splits=2 block_m=32 num_warps=2", 0, &error);
    cr_assert_eq(status, FTL_OK, "%s", error.message);
    cr_assert_str_eq(p.tile->tensors[MASK].name, "tree_mask");
    cr_assert_eq(ftl_work_of_warps(p.warps, split, &work, &error), FTL_OK, "%s", error.message);
    cr_expect_eq(work.load_bytes[MASK], split == 0 ? 0 : 26 * 2 * 4);
    programs_fini(&p);
  }
}
