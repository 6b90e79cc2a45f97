// Split-KV decoding: few queries against many keys. The keys are split so that all SMs have work; a second kernel
// combines the partial outputs. Source: "Flash-Decoding for long-context inference" (2023); FlashAttention-2's
// mha_fwd_kvcache.
#include "base/integer.h"
#include "workloads/decode.h"

// One tile for the rows of a KV head, up to 64, since each key tile is read once a query tile.
static void set_defaults(ftl_spec *spec) {
  enum { UNIT = 16, MOST = 64 };
  const int64_t *v = spec->value;
  int64_t rows = v[FTL_PARAM_heads] / v[FTL_PARAM_kv_heads] * v[FTL_PARAM_seqlen_q];
  int64_t block_m = (rows + UNIT - 1) / UNIT * UNIT;
  ftl_spec_set_default(spec, FTL_PARAM_block_m, rows > MOST ? MOST : block_m);
}

static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  if (spec->value[FTL_PARAM_splits] > 0) return;
  ftl_decode d = ftl_decode_of(spec);
  enum { CTAS_PER_SM = 2 };  // as FlashAttention-2 counts, with its CTAs of 128 threads
  spec->value[FTL_PARAM_splits] =
      ftl_decode_num_splits(d.num_m_tiles * d.num_heads * d.a.batch, CTAS_PER_SM * arch->chip_num_sms, d.tiles_n);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  *num_launches = 0;
  ftl_status status = ftl_decode_build_split(spec, &launches[0], error);
  if (status != FTL_OK) return status;
  *num_launches = 1;
  status = ftl_decode_build_combine(spec, &launches[1], error);
  if (status == FTL_OK) *num_launches = 2;
  return status;
}

const ftl_workload ftl_workload_flash_decode = {
    .name = "flash_decode",
    .doc = "Split-KV decoding: CTAs attend to a part of the keys each, a second kernel combines their results",
    .accepts = FTL_TAKES_ALL & ~(FTL_TAKES(softmax) | FTL_TAKES(q_operand) | FTL_TAKES(schedule) |
                                 FTL_TAKES(tile_order) | FTL_TAKES(tile_reverse)),
    .set_defaults = set_defaults,
    .resolve = resolve,
    .build = build,
};
