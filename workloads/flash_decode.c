// Split-KV decoding: few queries against many keys. The keys are split so that all SMs have work; a second kernel
// combines the partial outputs. Source: "Flash-Decoding for long-context inference" (2023); FlashAttention-2's
// mha_fwd_kvcache.
#include "workloads/decode.h"

// Of a block mask the key tiles that are left are split.
static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  ftl_decode d = ftl_decode_of(spec);
  ftl_tile_lists lists;
  ftl_error refused = {0};  // build says why
  if (ftl_decode_list_keys(&d, spec, &lists, &refused) == FTL_OK) ftl_decode_resolve_splits(spec, &d, arch);
  ftl_tile_lists_fini(&lists);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  ftl_decode d = ftl_decode_of(spec);
  ftl_tile_lists lists;
  *num_launches = 0;
  ftl_status status = ftl_decode_list_keys(&d, spec, &lists, error);
  if (status == FTL_OK) status = ftl_decode_build(spec, &d, launches, num_launches, error);
  ftl_tile_lists_fini(&lists);
  return status;
}

const ftl_workload ftl_workload_flash_decode = {
    .name = "flash_decode",
    .doc = "Split-KV decoding: CTAs attend to a part of the keys each, a second kernel combines their results",
    .accepts = FTL_TAKES_KV_CACHE | FTL_TAKES_MASK | FTL_TAKES_SOFTMAX_FORM |
               (FTL_TAKES_ALL &
                ~(FTL_TAKES(softmax) | FTL_TAKES(q_operand) | FTL_TAKES(tile_order) | FTL_TAKES(tile_reverse))),
    .schedules = 1 << FTL_SCHEDULE_STAGES | 1 << FTL_SCHEDULE_INTERLEAVED,
    .set_defaults = ftl_decode_set_defaults,
    .resolve = resolve,
    .decodes = true,
    .build = build,
};
