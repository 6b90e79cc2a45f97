// What FlashAttention-1's forward and backward kernels share: one CTA a head, which walks blocks of keys and, for each
// of them, all tiles of queries; what a query row has so far lies in memory, and every step reads and writes it.
#ifndef FTL_WORKLOADS_FLASH1_H
#define FTL_WORKLOADS_FLASH1_H

#include "workloads/attention.h"
#include "workloads/block_mask.h"
#include "workloads/packed_batch.h"

// The parameters of both passes.
#define FTL_FLASH1_PARAMS                                                                                              \
  (FTL_TAKES(batch) | FTL_TAKES(lengths) | FTL_TAKES(heads) | FTL_TAKES(kv_heads) | FTL_TAKES(seqlen_q) |              \
   FTL_TAKES(seqlen_kv) | FTL_TAKES(head_dim) | FTL_TAKES(head_dim_v) | FTL_TAKES(dtype) | FTL_TAKES(causal) |         \
   FTL_TAKES(softmax_scale) | FTL_TAKES(block_m) | FTL_TAKES(block_n) | FTL_TAKES(num_warps) | FTL_TAKES(num_stages) | \
   FTL_TAKES(copy) | FTL_TAKES(mma) | FTL_TAKES_MASK | FTL_TAKES(dropout_p) | FTL_TAKES(layout) | FTL_TAKES(code) |    \
   FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) | FTL_TAKES(cache) | FTL_TAKES(clock_mhz) | FTL_TAKES(detail))

typedef struct ftl_flash1 {
  const ftl_spec *spec;
  ftl_builder *b;
  ftl_attention a;
  ftl_attention_tile tile;  // the CTA's batch and head
  int64_t num_key_blocks;   // of the longest sequence
  // Of the CTA's sequence: its length, its first row in the tensors and the one after its last.
  ftl_attention_lengths lengths;
  ftl_expr origin, row_end;
  // CTAs of a head, which take its query tiles in turns, and the number of this one: splits, forward.
  int64_t num_splits;
  ftl_expr split;
  int32_t num_warps, num_stages;   // buffers of what is streamed: Q, and dO
  const ftl_tile_lists *lists;     // the query tiles that a block mask leaves to each block of keys; NULL: no mask
  const ftl_packed_batch *packed;  // a tile of it is a sequence; NULL: sequences are equally long
} ftl_flash1;

// `spec` is that of a sequence or, of packed ones, may be that of all tokens.
ftl_flash1 ftl_flash1_of(ftl_builder *builder, const ftl_spec *spec, const ftl_tile_lists *lists,
                         const ftl_packed_batch *packed);
// Which sequence and head the CTA has; once the tensors are declared.
void ftl_flash1_set_tile(ftl_flash1 *f);
// Blocks of keys of the longest sequence.
int64_t ftl_flash1_num_key_blocks(const ftl_attention *a, const ftl_packed_batch *packed);
// Rows of all heads whose query tiles see keys of more than one block: what they have so far passes through memory.
int64_t ftl_flash1_num_partial_rows(const ftl_flash1 *f);
// Packed sequences, each of them one tile; NULL where they are equally long. As ftl_packed_batch_create.
FTL_MUST_USE ftl_status ftl_flash1_pack(ftl_packed_batch **out, const ftl_spec *spec, ftl_error *error);
// For each block of keys the query tiles that see some of it: first those that saw none before, then those that did,
// each as twice its number, plus 1 if it sees none of a later block. So the implementation's block masks say it
// (csrc/flash_attn/src/fmha_blockmask.h). Nothing is listed without a mask. FTL_INFEASIBLE: a query tile that sees
// none.
FTL_MUST_USE ftl_status ftl_flash1_lists_init(ftl_tile_lists *lists, const ftl_spec *spec, ftl_error *error);
// num_splits CTAs for each head of each sequence.
void ftl_flash1_grid(const ftl_flash1 *f);
// `rows` rows of the CTA's sequence from `row` on, of a head of a tensor.
ftl_tile_ref ftl_flash1_ref(const ftl_flash1 *f, int32_t tensor, ftl_expr head, ftl_expr row, int32_t rows,
                            int32_t columns);
// Whether some key or query of a block may be hidden, or past a sequence's end.
bool ftl_flash1_is_masked(const ftl_flash1 *f);
// FTL_INFEASIBLE where the copies or tensor instructions of FlashAttention-1 are not meant.
FTL_MUST_USE ftl_status ftl_flash1_check(const ftl_spec *spec, ftl_error *error);
// mma=mma, and block_n, where the user left them open.
void ftl_flash1_set_defaults(ftl_spec *spec);
// 32-bit values of a step's rows of `columns`, held row-wise by all threads: 16 bytes a thread where a row has as many.
ftl_value_layout ftl_flash1_row_layout(const ftl_flash1 *f, int32_t columns);

// A block of keys.
typedef struct ftl_flash1_block {
  ftl_expr index, key;  // its number, and its first key
  // Steps through the CTA's query tiles: those that see some of it are first .. end-1; of a list those from `seen` on
  // saw a block before this one. Without a list all of them did, unless this is the first.
  ftl_expr first, seen, end;
  int32_t listed;  // table: the entries at these positions; -1: the positions are the CTA's tiles
  bool is_first;
  bool is_last;  // known to be; of several in a loop that is not known
  bool in_loop;
} ftl_flash1_block;

// Calls `block` for the first block of keys and for the others: one after the other where they are few, and in a loop
// where they are many or have lists.
typedef void (*ftl_flash1_block_fn)(void *context, const ftl_flash1_block *block);
void ftl_flash1_each_block(const ftl_flash1 *f, ftl_flash1_block_fn block, void *context);

// K or V's rows of a block, where the CTA has steps through it.
ftl_tile_ref ftl_flash1_keys_ref(const ftl_flash1 *f, const ftl_flash1_block *block, int32_t tensor, int32_t columns);
// The rows of a query tile that begins at `row`.
ftl_tile_ref ftl_flash1_rows_ref(const ftl_flash1 *f, int32_t tensor, ftl_expr row, int32_t columns);
// First row of the query tile of step `step`.
ftl_expr ftl_flash1_row(const ftl_flash1 *f, const ftl_flash1_block *block, ftl_expr step);
// Restricts a store to those query tiles, the one of step `step` among them, that see no key after the block (`final`),
// or to the others. False: to none.
bool ftl_flash1_try_restrict(const ftl_flash1 *f, const ftl_flash1_block *block, ftl_expr step, bool final,
                             ftl_tile_ref *ref);

#endif
