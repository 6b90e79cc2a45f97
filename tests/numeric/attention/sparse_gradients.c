// flash2_bwd with what forward kernels drop or hide: dropout, block masks, packed sequences.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "gradient_case.h"
#include "tile/dropout.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void prove_all(const char *const *kernels, size_t num_kernels, const char *const *problems,
                      size_t num_problems) {
  char params[400];
  for (size_t k = 0; k < num_kernels; k++)
    for (size_t p = 0; p < num_problems; p++) {
      snprintf(params, sizeof params, "%s %s", kernels[k], problems[p]);
      gradients_prove("flash2_bwd", params);
    }
}

// ---- dropout ----

Test(numeric_attention_sparse_gradients, dropout_gives_the_gradients_of_what_the_forward_pass_kept) {
  static const char *const kernels[] = {
      "block_m=32 block_n=64", "block_m=64 block_n=128 num_stages=3 mma=wgmma copy=tma",
      "dq=atomics block_m=32 block_n=64 num_warps=4", "dq=atomics block_m=64 block_n=128 num_warps=8 num_stages=1",
      "dq=atomics block_m=64 block_n=96 num_warps=4 num_stages=3"};
  static const char *const problems[] = {
      "batch=2 heads=2 head_dim=16 seqlen_q=70 seqlen_kv=130 dropout_p=0.1",
      "batch=1 heads=4 kv_heads=2 head_dim=32 seqlen_q=130 seqlen_kv=100 causal=true dropout_p=0.5 layout=bshd",
      "batch=3 heads=1 head_dim=16 seqlen_q=150 seqlen_kv=150 window=40 dropout_p=0.3 dtype=bf16"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

static const char dropped[] =
    "batch=2 heads=2 head_dim=16 seqlen_q=96 seqlen_kv=96 block_m=32 block_n=64 dropout_p=0.3";

static ftl_tile_op *find_op(gradients *g, int launch, ftl_tile_op_kind kind, ftl_elem_fn fn) {
  for (int32_t i = 0; i < g->launches[launch]->num_ops; i++) {
    ftl_tile_op *op = &g->launches[launch]->ops[i];
    if (op->kind == kind && op->fn == fn) return op;
  }
  cr_assert_fail("no such op");
  return NULL;
}

static void assert_caught(gradients *g, const char *what) {
  char where[128];
  cr_assert_not(gradients_try(g, where, sizeof where), "%s is not caught", what);
  gradients_fini(g);
}

Test(numeric_attention_sparse_gradients, numbers_of_another_head_row_column_or_threshold_are_caught) {
  for (int launch = 1; launch <= 2; launch++)
    for (int field = 0; field < 4; field++) {
      gradients g;
      gradients_init(&g, "flash2_bwd", dropped);
      ftl_tile_op *op = find_op(&g, launch, FTL_TILE_DROPOUT, 0);
      ftl_expr *places[] = {&op->sequence, &op->row0, &op->column0};
      if (field < 3)
        *places[field] = 0;
      else
        op->threshold++;
      assert_caught(&g, field < 3 ? "a place" : "a threshold");
    }
}

Test(numeric_attention_sparse_gradients, scores_that_are_dropped_untransposed_are_caught) {
  gradients g;
  gradients_init(&g, "flash2_bwd", dropped);
  find_op(&g, 1, FTL_TILE_DROPOUT, 0)->transposed = false;
  assert_caught(&g, "the transposition");
}

Test(numeric_attention_sparse_gradients, probabilities_that_keep_their_sign_are_caught) {
  gradients g;
  gradients_init(&g, "flash2_bwd", dropped);
  find_op(&g, 1, FTL_TILE_CONVERT, 0)->positive = false;
  assert_caught(&g, "a negative probability");
}

Test(numeric_attention_sparse_gradients, a_gradient_of_what_was_dropped_is_caught) {
  gradients g;
  gradients_init(&g, "flash2_bwd", dropped);
  ftl_tile_op *op = find_op(&g, 2, FTL_TILE_ELEM, FTL_ELEM_SELECT);
  op->c = op->b;
  assert_caught(&g, "dP of what was dropped");
}

// ---- block masks ----

Test(numeric_attention_sparse_gradients, block_masks_give_the_gradients_of_the_blocks_that_are_left) {
  static const char *const kernels[] = {
      "mask_block=64 block_m=32 block_n=64 mask=strided mask_width=3",
      "mask_block=64 block_m=64 block_n=64 mask=butterfly num_stages=3 mma=wgmma copy=tma",
      "mask_block=64 block_m=32 block_n=64 mask=local_global mask_width=2 num_stages=1 dropout_p=0.2",
      "dq=atomics mask_block=64 block_m=32 block_n=64 num_warps=4 mask=strided mask_width=3",
      "dq=atomics mask_block=64 block_m=64 block_n=64 num_warps=4 mask=butterfly num_stages=3 dropout_p=0.2",
      "dq=atomics mask_block=64 block_m=32 block_n=64 num_warps=4 mask=local_global mask_width=100 num_stages=1"};
  // 384 keys are 6 blocks.
  static const char *const problems[] = {
      "heads=1 head_dim=16 seqlen_q=384 seqlen_kv=384", "heads=1 head_dim=16 seqlen_q=350 seqlen_kv=350 causal=true",
      "heads=1 head_dim=16 seqlen_q=128 seqlen_kv=384 causal=true window=150",
      "batch=2 heads=4 kv_heads=2 head_dim=16 seqlen_q=100 seqlen_kv=292 layout=bshd"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

// Keys and queries that see nothing at all, and query tiles whose first rows see nothing.
Test(numeric_attention_sparse_gradients, tokens_that_no_block_shows_have_no_gradient) {
  static const char *const kernels[] = {"block_m=32 block_n=64", "dq=atomics block_m=32 block_n=64 num_warps=4"};
  static const char *const problems[] = {
      "heads=1 head_dim=16 seqlen_q=192 seqlen_kv=256 mask_block=64 mask=bits mask_bits=1:0:1:0:0x4:0:0:1:0",
      "heads=1 head_dim=16 seqlen_q=192 seqlen_kv=192 mask_block=64 mask=bits causal=true mask_bits=1:1:0:0:0:1:0:0:1",
      "heads=1 head_dim=16 seqlen_q=192 seqlen_kv=192 mask_block=64 mask=bits window=5 mask_bits=0:1:0:0:1:0:1:0:0"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

Test(numeric_attention_sparse_gradients, a_tile_that_is_not_in_the_list_is_caught) {
  for (int launch = 1; launch <= 2; launch++) {
    gradients g;
    gradients_init(&g, "flash2_bwd",
                   "heads=1 head_dim=16 seqlen_q=256 seqlen_kv=256 block_m=32 block_n=64 mask=butterfly mask_block=64");
    const ftl_tile_program *program = g.launches[launch];
    for (int32_t t = 0; t < program->num_tensors; t++)
      if (strcmp(program->tensors[t].name, "step_tiles") == 0) program->tensors[t].table[3]--;
    assert_caught(&g, "a wrong tile");
  }
}

// ---- packed sequences ----

Test(numeric_attention_sparse_gradients, packed_sequences_have_the_gradients_of_each_alone) {
  static const char *const kernels[] = {"block_m=32 block_n=64",
                                        "block_m=48 block_n=64 num_stages=3 tile_reverse=1",
                                        "block_m=32 block_n=128 mma=wgmma copy=tma tile_order=head_first layout=bshd",
                                        "dq=atomics block_m=32 block_n=64 num_warps=4",
                                        "dq=atomics block_m=64 block_n=32 num_warps=4 num_stages=1 layout=bshd",
                                        "dq=atomics block_m=64 block_n=128 num_stages=3 tile_order=head_first"};
  // Sequences of one token, of less than a tile, of tiles and one more.
  static const char *const problems[] = {
      "heads=2 kv_heads=1 head_dim=24 lengths=33:1:130x2", "heads=2 kv_heads=1 head_dim=24 lengths=5:64:70 causal=1",
      "heads=1 head_dim=32 lengths=16:17:150 causal=1 window=41", "heads=1 head_dim=16 lengths=1:64:129 window=20"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}

Test(numeric_attention_sparse_gradients, packed_sequences_drop_what_their_forward_pass_dropped) {
  static const char *const kernels[] = {"block_m=32 block_n=64", "block_m=64 block_n=64 num_stages=3 tile_reverse=1",
                                        "dq=atomics block_m=64 block_n=64 num_warps=4",
                                        "dq=atomics block_m=64 block_n=128 num_stages=3 tile_order=head_first"};
  static const char *const problems[] = {"heads=2 kv_heads=1 head_dim=24 lengths=33:1:130x2 dropout_p=0.1",
                                         "heads=2 head_dim=24 lengths=5:64:70 causal=1 dropout_p=0.5 layout=bshd",
                                         "heads=1 head_dim=32 lengths=16:17:150 causal=1 window=41 dropout_p=0.3"};
  prove_all(kernels, COUNT(kernels), problems, COUNT(problems));
}
