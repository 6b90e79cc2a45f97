// The hash of a program: its numbers and names in a fixed order, 64 bits each, so that it depends neither on padding
// nor on the order of fields in memory. XXH3.
#include <string.h>
#include <xxhash.h>

#include "tile/tile.h"

typedef struct hasher {
  uint64_t words[256];
  int num_words;
  uint64_t hash;  // of the words before: the seed of those to come
} hasher;

static void flush(hasher *h) {
  h->hash = XXH3_64bits_withSeed(h->words, sizeof h->words[0] * (size_t)h->num_words, h->hash);
  h->num_words = 0;
}

static void add(hasher *h, int64_t word) {
  if (h->num_words == (int)(sizeof h->words / sizeof h->words[0])) flush(h);
  h->words[h->num_words++] = (uint64_t)word;
}

static void add_float(hasher *h, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  add(h, bits);
}

static void add_name(hasher *h, const char *name) { add(h, (int64_t)XXH3_64bits(name, strlen(name))); }

static void add_operand(hasher *h, ftl_operand operand) {
  add(h, operand.value);
  add_float(h, operand.immediate);
}

static void add_tensor(hasher *h, const ftl_tensor *tensor) {
  const int64_t words[] = {tensor->dtype,      tensor->use,         tensor->num_batches,  tensor->num_heads,
                           tensor->num_rows,   tensor->num_columns, tensor->batch_stride, tensor->head_stride,
                           tensor->row_stride, tensor->base_bytes,  tensor->size_bytes,   tensor->l2_priority};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
  add_name(h, tensor->name);
  if (tensor->table)
    add(h,
        (int64_t)XXH3_64bits(tensor->table, sizeof *tensor->table * (size_t)(tensor->num_rows * tensor->num_columns)));
}

static void add_ring(hasher *h, const ftl_ring *ring) {
  const int64_t words[] = {ring->dtype,
                           ring->rows,
                           ring->columns,
                           ring->num_stages,
                           ring->producer,
                           ring->consumers_mask,
                           ring->multicast.num_ctas,
                           ring->multicast.stride,
                           ring->overlaid,
                           ring->through_registers,
                           ring->counts_releases};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
  add_name(h, ring->name);
}

static void add_value(hasher *h, const ftl_value *value) {
  const int64_t words[] = {value->kind,
                           value->dtype,
                           value->rows,
                           value->columns,
                           value->role,
                           value->layout.threads_per_row,
                           value->layout.vector_columns,
                           value->warps_per_row,
                           value->is_repeated};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
  add_name(h, value->name);
}

static void add_role(hasher *h, const ftl_role *role) {
  const int64_t words[] = {role->num_warps, role->first_warp, role->num_registers, role->num_groups,
                           role->first_op,  role->num_ops,    role->num_setup_ops};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
  add_name(h, role->name);
}

static void add_ref(hasher *h, const ftl_tile_ref *ref) {
  const ftl_pages *pages = &ref->pages;
  const int64_t words[] = {ref->tensor,      ref->batch,     ref->head,    ref->row,           ref->present,
                           ref->rows,        ref->columns,   ref->column,  ref->column_end,    ref->row_end,
                           pages->page_rows, pages->table,   pages->entry, pages->page_stride, ref->index_insts,
                           ref->check_insts, ref->transposed};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
}

static void add_op(hasher *h, const ftl_tile_op *op) {
  const int64_t words[] = {
      op->kind,        op->fn,          op->dst,         op->ring,       op->ring_a,   op->ring_row,   op->barrier,
      op->transpose_a, op->lo,          op->hi,          op->loop_var,   op->row0,     op->column0,    op->diagonal,
      op->transpose_b, op->limit,       op->period,      op->transposed, op->lookup,   op->left,       op->sequence,
      op->threshold,   op->ring_scales, op->count,       op->by_sign,    op->positive, op->by_threads, op->first_apart,
      op->behind,      op->part.steps,  op->part.once,   op->amid,       op->first_k,  op->num_k,      op->again,
      op->in_shared,   op->as_b,        op->is_condition};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(h, words[i]);
  add_operand(h, op->a);
  add_operand(h, op->b);
  add_operand(h, op->c);
  add_ref(h, &op->ref);
}

uint64_t ftl_tile_program_hash(const ftl_tile_program *program) {
  hasher h = {.num_words = 0};
  const int64_t words[] = {program->num_ctas,     program->persistent,   program->handout,       program->num_tensors,
                           program->num_roles,    program->num_rings,    program->num_values,    program->num_barriers,
                           program->num_ops,      program->num_exprs,    program->num_loop_vars, program->model_flops,
                           program->cluster_ctas, program->half_products};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) add(&h, words[i]);
  add_name(&h, program->name);
  for (int32_t i = 0; i < program->num_tensors; i++) add_tensor(&h, &program->tensors[i]);
  for (int32_t i = 0; i < program->num_roles; i++) add_role(&h, &program->roles[i]);
  for (int32_t i = 0; i < program->num_rings; i++) add_ring(&h, &program->rings[i]);
  for (int32_t i = 0; i < program->num_barriers; i++) {
    add(&h, program->barriers[i].roles_mask);
    add_name(&h, program->barriers[i].name);
  }
  for (int32_t i = 0; i < program->num_values; i++) add_value(&h, &program->values[i]);
  for (int32_t i = 0; i < program->num_ops; i++) add_op(&h, &program->ops[i]);
  for (int32_t i = 0; i < program->num_exprs; i++) {
    const ftl_expr_node *node = &program->exprs[i];
    add(&h, node->kind);
    add(&h, node->value);
    add(&h, node->a);
    add(&h, node->b);
  }
  flush(&h);
  return h.hash;
}
