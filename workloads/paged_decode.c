// Split-KV decoding over a paged KV cache: sequences of several lengths, whose keys and values lie in pages that a
// block table names. A CTA takes a work item, a part of a sequence's keys; a second kernel combines the partial
// outputs. Sources: W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
// arXiv:2309.06180; vLLM's paged_attention_v2 (parts of a sequence and their reduction); FlashInfer (work items made on
// the host, GQA packing).
#include "base/integer.h"
#include "workloads/decode.h"

// CTAs at once as FlashAttention-2 counts them for its splits.
static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  enum { CTAS_PER_SM = 2 };
  if (spec->value[FTL_PARAM_splits] > 0) return;
  ftl_decode d = ftl_decode_of(spec);
  int64_t tiles_per_part =
      ftl_paged_batch_tiles_per_part(spec, d.num_m_tiles * d.num_heads, CTAS_PER_SM * arch->chip_num_sms);
  spec->value[FTL_PARAM_splits] = ftl_divide_up(d.tiles_n, ftl_smaller(tiles_per_part, d.tiles_n));
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_decode d = ftl_decode_of(spec);
  ftl_paged_batch *batch;
  ftl_status status = ftl_paged_batch_create(&batch, spec, d.tiles_per_split, error);
  if (status != FTL_OK) return status;
  d.paged = batch;
  status = ftl_decode_build(spec, &d, launches, num_launches, error);
  ftl_paged_batch_destroy(batch);
  return status;
}

const ftl_workload ftl_workload_paged_decode = {
    .name = "paged_decode",
    .doc = "Split-KV decoding over a paged KV cache, of a batch of sequences of several lengths",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES(lengths) | FTL_TAKES_PAGES | FTL_TAKES_KV_CACHE | FTL_TAKES_SOFTMAX_FORM |
                FTL_TAKES(warps_n)) &
               ~(FTL_TAKES(softmax) | FTL_TAKES(q_operand) | FTL_TAKES(schedule) | FTL_TAKES(tile_order) |
                 FTL_TAKES(tile_reverse)),
    .set_defaults = ftl_decode_set_defaults,
    .resolve = resolve,
    .decodes = true,
    .build = build,
};
