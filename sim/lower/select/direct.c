// Global memory straight into registers and back: LOAD_TILE, LOAD_ROWS, and the stores of row-wise values.
#include "base/integer.h"
#include "lower/select/select.h"

#include "base/sectors.h"

#define NONE FTL_NO_VALUE
enum { WORD_BYTES = 4 };

static uint16_t begin_tile(ftl_select *s, const ftl_tile_ref *ref) {
  uint16_t index = ftl_select_ref(s, ref);
  ftl_select_add_tile(s, index, 0);
  return index;
}

void ftl_select_add_ldg(ftl_select *s, const ftl_tile_ref *ref, ftl_access access, int32_t dst, int32_t address,
                        int32_t predicate) {
  ftl_draft_inst *load = ftl_select_add(s, FTL_OP_LDG, 1, dst, address, predicate, NONE);
  load->inst.access = ftl_select_access(s, access);
  load->inst.wavefronts = (uint16_t)(access.num_rows * ftl_divide_up32(access.bytes, FTL_LINE_BYTES));
  load->inst.flags = ref->present == FTL_ALWAYS ? 0 : FTL_INST_IF_PRESENT;
  load->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// ---- row-wise ----
// What one instruction of a warp moves of row `slab` of its threads: the columns of vector `vector`, `vector_bytes` a
// lane; or a number a row, where every lane of a row moves the same 4 bytes.
ftl_access ftl_select_row_access(const ftl_select *s, int32_t value, uint16_t ref, int32_t slab, int32_t vector,
                                 int32_t vector_bytes) {
  const ftl_value *info = &s->tile->values[value];
  bool of_rows = info->kind == FTL_VALUE_ROWS;
  int32_t threads = info->layout.threads_per_row, groups = s->role->num_warps * FTL_WARP_LANES / threads;
  int32_t row_bytes = of_rows ? 0 : threads * vector_bytes;
  ftl_access access = {.ref = ref, .num_rows = 1, .row = slab * groups, .warp_row_step = 1, .row_step = 1};
  access.column_byte = vector * row_bytes;
  access.bytes = of_rows ? vector_bytes : row_bytes;
  if (threads <= FTL_WARP_LANES) {
    access.num_rows = (uint16_t)(FTL_WARP_LANES / threads);
    access.warp_row_step = FTL_WARP_LANES / threads;
    return access;
  }
  access.row_warps = threads / FTL_WARP_LANES;
  if (of_rows) return access;
  access.warp_column_bytes = FTL_WARP_LANES * vector_bytes;
  access.bytes = FTL_WARP_LANES * vector_bytes;
  return access;
}

// The same where the tile is transposed: each lane's element is in a row of the tensor of its own, the warps of a row
// of the tile following each other.
static ftl_access transposed_access(const ftl_select *s, int32_t value, uint16_t ref, int32_t slab, int32_t vector,
                                    int32_t element_bytes) {
  int32_t threads = s->tile->values[value].layout.threads_per_row;
  return (ftl_access){.ref = ref,
                      .num_rows = FTL_WARP_LANES,
                      .row = vector * threads,
                      .warp_row_step = FTL_WARP_LANES,
                      .row_step = 1,
                      .column_byte = slab * element_bytes,
                      .bytes = element_bytes};
}

static void zero(ftl_select *s, int32_t fragment, int32_t num_registers) {
  ftl_select_add(s, FTL_OP_MOV, (num_registers + 1) / 2, fragment, NONE, NONE, NONE);
}

// Pairs of registers are zeroed at once; other numbers take a MOV each.
static void fill_outside(ftl_select *s, int32_t fragment, int32_t num_registers, float outside) {
  if (outside == 0)
    zero(s, fragment, num_registers);
  else
    ftl_select_add(s, FTL_OP_MOV, num_registers, fragment, NONE, NONE, NONE);
}

// Integer arithmetic, and what only takes issue slots: constants of each dimension, branches past the last.
static int32_t element_address(ftl_select *s, const ftl_tile_ref *ref, int32_t address) {
  int32_t num_alu = ref->index_insts / 3, num_imad = ref->index_insts / 4;
  if (ref->index_insts == 0) return address;
  int32_t own = ftl_select_temp(s, 2);
  ftl_select_add(s, FTL_OP_NOP, ref->index_insts - num_alu - num_imad, NONE, NONE, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, num_imad, own, address, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, num_alu, own, own, NONE, NONE);
  return own;
}

// What tells whether a vector lies inside. Of one vector a row of each thread it is a compare. Of several each has a
// compare of its own column, by a load, and one by a store that no load was masked like.
static ftl_select_row_bit load_bit(ftl_select *s, const ftl_tile_ref *ref, int32_t vector, int32_t num_vectors,
                                   int32_t address) {
  int32_t own = element_address(s, ref, address);
  if (num_vectors > 1 && ftl_select_is_ragged(s, ref)) return ftl_select_find_row_bit(s, vector, own);
  return (ftl_select_row_bit){ftl_select_row_predicate(s, ref), own};
}

static ftl_select_row_bit store_bit(ftl_select *s, const ftl_tile_ref *ref, int32_t vector, int32_t num_vectors,
                                    int32_t address) {
  if (num_vectors == 1 || !ftl_select_is_ragged(s, ref))
    return (ftl_select_row_bit){ftl_select_row_predicate(s, ref), address};
  if (ftl_select_has_row_bits(s, ref, num_vectors)) return ftl_select_kept_row_bit(s, vector, address);
  int32_t column = ftl_select_temp(s, 1), predicate = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_LOP, 1, column, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_ISETP, 1, predicate, column, NONE, NONE);
  return (ftl_select_row_bit){predicate, address};
}

// Vectors that may lie beyond the tensor are made `outside` before; where rows end at run time all vectors are loaded,
// under a predicate.
static void load_vectors(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t slab) {
  const ftl_tile_ref *from = &op->ref;
  const ftl_value *info = &s->tile->values[op->dst];
  ftl_fragment_map map = s->values[op->dst].map;
  int32_t element_bytes = ftl_dtype_bytes(info->dtype), vector_bytes = info->layout.vector_columns * element_bytes;
  int32_t address = ftl_select_row_address(s, from), wanted_bytes = from->columns * element_bytes;
  // Each step of an unrolled loop has an address of its own, which ptxas moves to a pair of registers for the load
  // (SASS of kernels/attention/softmax_rows.h: IADD3, IADD3.X, 2 MOV a load).
  if (s->by_threads && !s->once) ftl_select_add(s, FTL_OP_MOV, 2, address, address, NONE, NONE);
  if (map.per_slab > 1 && ftl_select_is_ragged(s, from)) ftl_select_begin_row_bits(s, op, map.per_slab);
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t fragment = ftl_select_fragment(s, op->dst, slab, i);
    ftl_access access = from->transposed ? transposed_access(s, op->dst, ref, slab, i, element_bytes)
                                         : ftl_select_row_access(s, op->dst, ref, slab, i, vector_bytes);
    bool inside = access.column_byte < wanted_bytes, ragged = ftl_select_is_ragged(s, from);
    if (!inside || ragged) fill_outside(s, fragment, map.num_registers, op->a.immediate);
    if (!inside && !ragged) continue;
    int32_t left = wanted_bytes - access.column_byte;
    if (access.row_warps <= 1 && inside && left < access.bytes) access.bytes = left;
    access.in_subwords = (from->transposed ? element_bytes : vector_bytes) < WORD_BYTES;
    ftl_select_row_bit bit = load_bit(s, from, i, map.per_slab, address);
    ftl_select_add_ldg(s, from, access, fragment, bit.address, bit.predicate);
  }
}

void ftl_select_load_tile(ftl_select *s, const ftl_tile_op *op) {
  if (!ftl_select_is_by_rows(s, op->dst)) {
    ftl_select_load_sums(s, op);
    return;
  }
  uint16_t ref = begin_tile(s, &op->ref);
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++) load_vectors(s, op, ref, slab);
}

// A fragment's lanes hold two rows of 16, 8 apart, which two loads bring: counted as one of all 16.
static ftl_access fragment_rows(const ftl_select *s, int32_t value, uint16_t ref, int32_t slab, int32_t element_bytes) {
  int32_t across = s->tile->values[value].warps_per_row;
  return (ftl_access){.ref = ref,
                      .num_rows = FTL_SLAB_ROWS,
                      .row = ftl_select_slab_row(s, value, slab),
                      .warp_row_step = FTL_SLAB_ROWS,
                      .row_step = 1,
                      .bytes = element_bytes,
                      .row_warps = across > 1 ? across : 0};
}

void ftl_select_load_rows(ftl_select *s, const ftl_tile_op *op) {
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  uint16_t ref = begin_tile(s, &op->ref);
  int32_t address = ftl_select_row_address(s, &op->ref);
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t slab = 0; slab < map.num_slabs; slab++) {
    if (slab > 0 && s->plain_code && ftl_select_is_by_rows(s, op->dst)) address = ftl_select_row_address(s, &op->ref);
    int32_t rows = ftl_select_fragment(s, op->dst, slab, 0);
    if (ftl_select_is_ragged(s, &op->ref)) zero(s, rows, map.num_registers);
    ftl_access access = ftl_select_is_by_rows(s, op->dst)
                            ? ftl_select_row_access(s, op->dst, ref, slab, 0, element_bytes)
                            : fragment_rows(s, op->dst, ref, slab, element_bytes);
    ftl_select_add_ldg(s, &op->ref, access, rows, address, ftl_select_row_predicate(s, &op->ref));
  }
}

static int32_t packed_vector(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t vector) {
  const ftl_value *info = &s->tile->values[op->a.value];
  int32_t fragment = ftl_select_fragment(s, op->a.value, slab, vector);
  if (ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype) == ftl_dtype_bytes(info->dtype)) return fragment;
  int32_t registers = (info->layout.vector_columns + 1) / 2, packed = ftl_select_temp(s, registers);
  ftl_select_add(s, FTL_OP_CVT, registers, packed, fragment, NONE, NONE);
  return packed;
}

void ftl_select_store_by_rows(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *info = &s->tile->values[op->a.value];
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  int32_t vector_bytes = info->layout.vector_columns * element_bytes, wanted_bytes = op->ref.columns * element_bytes;
  uint16_t ref = begin_tile(s, &op->ref);
  ftl_slab_span slabs = ftl_select_slabs(s, op->a.value);
  for (int32_t slab = slabs.first; slab < slabs.end; slab++) {
    int32_t address = ftl_select_row_address(s, &op->ref);
    for (int32_t i = 0; i < s->values[op->a.value].map.per_slab; i++) {
      ftl_access access = ftl_select_row_access(s, op->a.value, ref, slab, i, vector_bytes);
      int32_t left = wanted_bytes - access.column_byte;
      if (left <= 0 && !ftl_select_is_ragged(s, &op->ref)) continue;
      if (access.row_warps <= 1 && left > 0 && left < access.bytes) access.bytes = left;
      if (op->ref.check_insts > 0) ftl_select_add(s, FTL_OP_NOP, op->ref.check_insts, NONE, NONE, NONE, NONE);
      int32_t data = packed_vector(s, op, slab, i);
      ftl_select_row_bit bit = store_bit(s, &op->ref, i, s->values[op->a.value].map.per_slab, address);
      ftl_select_add_stg(s, access, bit.address, data, bit.predicate);
    }
  }
}

// One lane of each row stores.
void ftl_select_store_rows_by_rows(ftl_select *s, const ftl_tile_op *op) {
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  uint16_t ref = begin_tile(s, &op->ref);
  int32_t address = ftl_select_row_address(s, &op->ref), first = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, first, s->thread, NONE, NONE);
  ftl_slab_span slabs = ftl_select_slabs(s, op->a.value);
  for (int32_t slab = slabs.first; slab < slabs.end; slab++) {
    ftl_access access = ftl_select_row_access(s, op->a.value, ref, slab, 0, element_bytes);
    access.first_of_row = true;
    ftl_select_add_stg(s, access, address, ftl_select_fragment(s, op->a.value, slab, 0), first);
  }
}
