// The verification step of speculative decoding: the tokens of a tree of guesses are queries against the KV cache and
// against each other, each seeing its ancestors only; one pass tells which guesses hold. Split-KV decoding (decode.h)
// whose last key tiles are masked by bits. Sources of the method: SpecInfer, arXiv:2305.09781 (tree attention); Medusa,
// arXiv:2401.10774; those of the trees are in tree.c.
#include "workloads/decode.h"

// The tokens of the tree are the queries.
static void set_defaults(ftl_spec *spec) {
  spec->value[FTL_PARAM_seqlen_q] = ftl_tree_num_tokens(spec);
  ftl_decode_set_defaults(spec);
}

static void resolve(ftl_spec *spec, const ftl_arch *arch) {
  ftl_decode d = ftl_decode_of(spec);
  ftl_decode_resolve_splits(spec, &d, arch);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  ftl_tree tree;
  *num_launches = 0;
  ftl_status status = ftl_tree_of(&tree, spec, error);
  if (status != FTL_OK) return status;
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_seqlen_kv] < tree.num_tokens)
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "seqlen_kv=%lld: at least %d are needed, as the tokens of the tree are among them",
                         (long long)v[FTL_PARAM_seqlen_kv], tree.num_tokens);
  ftl_decode d = ftl_decode_of(spec);
  d.tree = &tree;
  return ftl_decode_build(spec, &d, launches, num_launches, error);
}

const ftl_workload ftl_workload_tree_decode = {
    .name = "tree_decode",
    .doc = "verification of a tree of speculated tokens against a KV cache: split-KV decoding, masked by ancestors",
    .accepts = (FTL_TAKES_ALL | FTL_TAKES_TREE | FTL_TAKES_KV_CACHE | FTL_TAKES_SOFTMAX_FORM) &
               ~(FTL_TAKES(seqlen_q) | FTL_TAKES(causal) | FTL_TAKES(softmax) | FTL_TAKES(q_operand) |
                 FTL_TAKES(schedule) | FTL_TAKES(tile_order) | FTL_TAKES(tile_reverse)),
    .set_defaults = set_defaults,
    .resolve = resolve,
    .build = build,
};
