// Which steps of flash3_fwd mask. That it computes attention is proved in tests/numeric/attention.
#include <criterion/criterion.h>

#include "tile/exec.h"
#include "tests/spec_words.h"

// Of both consumer warpgroups.
typedef struct counts {
  int masks, guards;
} counts;

static ftl_status count(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  counts *c = context;
  c->masks += event->op->kind == FTL_TILE_MASK;
  c->guards += event->op->kind == FTL_TILE_ELEM && event->op->fn == FTL_ELEM_ZERO_IF_NEG_INF;
  return FTL_OK;
}

static counts count_first_cta(const char *params) {
  ftl_spec spec;
  ftl_error error = {0};
  ftl_tile_program *program = NULL;
  int num_launches;
  cr_assert_eq(spec_of_words(&spec, "flash3_fwd", "heads=2 head_dim=64 block_m=128 block_n=64 mma=wgmma copy=tma",
                             params, &error),
               FTL_OK, "%s", error.message);
  cr_assert_eq(spec.workload->build(&spec, &program, &num_launches, &error), FTL_OK, "%s", error.message);
  counts c = {0};
  ftl_exec_options options = {.tile_stride = program->num_ctas, .visit = count, .context = &c};
  cr_assert_eq(ftl_exec_cta(program, &options, &error), FTL_OK, "%s", error.message);
  ftl_tile_program_destroy(program);
  return c;
}

// Of 200 or 256 keys there are four tiles, of 200 the last is cut. Within 299 keys the first 128 queries see those up
// to 426, seven tiles, and all of them those up to 299: the edge crosses the last three, and the first step is masked
// with any window, whose left edge stands there in other tiles of queries. A step that masks looks for rows that have
// seen no key.
Test(unit_workloads_flash3_fwd, all_tiles_are_masked_where_it_is_said) {
  static const struct {
    const char *params;
    int masked_steps;
  } cases[] = {{"seqlen=256", 0},
               {"seqlen=200", 1},
               {"seqlen=256 mask_steps=all", 4},
               {"seqlen=200 mask_steps=all", 4},
               {"seqlen=256 mask_steps=window", 0},
               {"seqlen=512 window=300", 1 + 3},
               {"seqlen=512 window=300 mask_steps=window", 7}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    counts c = count_first_cta(cases[i].params);
    cr_expect_eq(c.masks, 2 * cases[i].masked_steps, "%s: %d", cases[i].params, c.masks);
    cr_expect_eq(c.guards, 2 * cases[i].masked_steps, "%s: %d", cases[i].params, c.guards);
  }
}
