// STORE and STORE_ROWS: tiles of registers to global memory.
#include "base/integer.h"
#include "base/sectors.h"
#include "lower/select/copy_plan.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { HALF_ROWS = 8, TILE_COLUMNS = 8 };
// bytes of a lane; 512 bytes, 128 a cycle
enum { STSM_BYTES = 16, STSM_WAVEFRONTS = 4, STSM_SINCE_COMPUTE_CAPABILITY = 90 };
enum { PACKED_REGISTERS = FTL_SLAB_ROWS * FTL_OPERAND_COLUMNS / 2 / FTL_WARP_LANES };  // of a lane, a 16 x 16 block

int32_t ftl_select_row_predicate(ftl_select *s, const ftl_tile_ref *ref) {
  if (!ftl_select_is_ragged(s, ref)) return NONE;
  int32_t predicate = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_ISETP, 1, predicate, s->thread, NONE, NONE);
  return predicate;
}

void ftl_select_add_stg(ftl_select *s, ftl_access access, int32_t address, int32_t data, int32_t predicate) {
  if (s->plain_code && s->stored == NONE) s->stored = ftl_draft_value_add(&s->draft, 0, true);
  int32_t repeat = access.in_words ? FTL_LANE_WORDS : 1;
  ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STG, repeat, s->stored, address, data, predicate);
  store->inst.access = ftl_select_access(s, access);
  store->inst.wavefronts = (uint16_t)(access.num_rows * ftl_divide_up32(access.bytes, FTL_LINE_BYTES));
  store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

// A row group's 64-bit address: rows are a run-time stride apart.
int32_t ftl_select_row_address(ftl_select *s, const ftl_tile_ref *ref) {
  int32_t address = ftl_draft_value_add(&s->draft, 2, true), pages = ftl_select_pages_of(s, ref);
  if (pages != NONE && ref->pages.num_entries > 1) {
    int32_t own = ftl_select_temp(s, 2);
    ftl_select_add(s, FTL_OP_SHFL, 2, own, pages, NONE, NONE)->inst.wavefronts = 1;
    pages = own;
  }
  ftl_select_add(s, FTL_OP_IADD, 2, address, s->tensor_pointer[ref->tensor], ftl_select_entry_of_ref(s, ref), pages);
  return address;
}

// ---- through shared memory ----
// The 16 columns of operand block `block`, packed to 16 bits: four registers of a lane.
static int32_t packed_block(ftl_select *s, int32_t value, int32_t slab, int32_t block) {
  const ftl_value *info = &s->tile->values[value];
  if (info->dtype != FTL_FP32 && info->accumulates)
    ftl_select_fail(s, "%s: sums in %s are stored from registers only", info->name, ftl_dtype_name(info->dtype));
  if (info->dtype != FTL_FP32) return ftl_select_fragment(s, value, slab, block);
  int32_t packed = ftl_select_temp(s, 4);
  ftl_select_pack(s, value, slab, block, packed);
  return packed;
}

// A lane's swizzled place in shared memory: chunk and row combined, scaled and added to the stage's base.
static int32_t staging_address(ftl_select *s, int32_t base, int32_t num_accesses) {
  int32_t address = ftl_draft_value_add(&s->draft, 1, 1);
  ftl_select_add(s, FTL_OP_LOP, num_accesses, address, base, NONE, NONE);
  ftl_select_add(s, FTL_OP_IADD, num_accesses, address, address, NONE, NONE);
  return address;
}

static void add_proxy_fence(ftl_select *s) {
  ftl_draft_inst *fence = ftl_select_add(s, FTL_OP_FENCE_PROXY, 1, NONE, NONE, NONE, NONE);
  fence->effects = FTL_EFFECT_FENCE;
}

// Of a thread that has the coordinates in registers of its own, as for its loads (load.c): behind the branch that the
// others take, buffer and column are worked out and moved to uniform registers, one behind the other. Returns what the
// store waits for. Source: control fields of product_wgmma.h, 18 instructions and 50 cycles from the barrier to
// UTMASTG.
static int32_t move_coordinates(ftl_select *s) {
  enum { UNIFORM_INSTS = 4, ALU_INSTS = 5, COMPARES = 5 };
  if (!ftl_select_moves_coordinates(s)) return NONE;
  ftl_draft_inst *branch = ftl_select_add(s, FTL_OP_NOP, 1, NONE, NONE, NONE, NONE);
  branch->inst.flags = FTL_INST_WARP0;
  branch->effects = FTL_EFFECT_PINNED;
  int32_t map = ftl_select_temp(s, 0), elected = ftl_select_temp(s, 0), place = ftl_select_temp(s, 1);
  int32_t column = ftl_select_temp(s, 0), buffer = ftl_select_temp(s, 0);
  ftl_select_add(s, FTL_OP_UNIFORM, UNIFORM_INSTS, map, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  ftl_select_add(s, FTL_OP_ISETP, COMPARES, elected, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  ftl_select_add(s, FTL_OP_IADD, ALU_INSTS, place, NONE, NONE, NONE)->inst.flags = FTL_INST_WARP0;
  ftl_select_add(s, FTL_OP_R2UR, 2, column, place, elected, NONE)->inst.flags = FTL_INST_WARP0;
  ftl_select_add(s, FTL_OP_R2UR, 1, buffer, place, column, map)->inst.flags = FTL_INST_WARP0;
  ftl_select_idle(s, 1, FTL_INST_WARP0);
  return buffer;
}

// A box of the ring's stage, by one thread.
static void add_tma_store(ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t column_byte, int32_t bytes) {
  int32_t coordinates = move_coordinates(s);
  ftl_draft_inst *store =
      ftl_select_add(s, FTL_OP_TMA_STORE, 1, NONE, s->tensor_pointer[op->ref.tensor], coordinates, NONE);
  store->inst.access = ftl_select_access(
      s,
      (ftl_access){
          .ref = ref, .num_rows = (uint16_t)op->ref.rows, .row_step = 1, .column_byte = column_byte, .bytes = bytes});
  store->inst.flags = FTL_INST_WARP0 | FTL_INST_BYPASS_L1;
  store->inst.arg = (uint16_t)op->ring;
  store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  if (coordinates != NONE) ftl_select_join(s);  // where those that branched around the elected thread meet it
}

// Until all but `num_left` of its boxes have been read.
static void wait_for_boxes(ftl_select *s, int32_t num_left) {
  ftl_draft_inst *wait = ftl_select_add(s, FTL_OP_TMA_STORE_WAIT, 1, NONE, NONE, NONE, NONE);
  wait->inst.arg = (uint16_t)num_left;
  wait->inst.flags = FTL_INST_WARP0;
  wait->effects = FTL_EFFECT_FENCE;
}

// One STSM.x4 of a 16 x 16 block; its address is kept, and a block or a buffer an immediate away.
static ftl_draft_inst *add_stsm(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t block) {
  ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STS, 1, NONE, packed_block(s, op->a.value, slab, block),
                                         s->rings[op->ring].write_address, NONE);
  store->inst.arg = STSM_BYTES;
  store->effects = FTL_EFFECT_MEMORY;
  ftl_select_set_wavefronts(store, (ftl_wavefronts){STSM_WAVEFRONTS, STSM_WAVEFRONTS});
  return store;
}

// ---- in pieces ----
static void write_piece(ftl_select *s, const ftl_tile_op *op, int32_t first_block, int32_t num_blocks) {
  for (int32_t slab = 0; slab < s->values[op->a.value].map.num_slabs; slab++)
    for (int32_t block = first_block; block < first_block + num_blocks; block++) add_stsm(s, op, slab, block);
}

// A piece of the columns after the other (CUTLASS's sm90_epilogue_tma_warpspecialized): the buffer is free when its
// last store but those of the other buffers has read it, which one thread sees and a barrier tells; a barrier again
// when all have written and made it visible to TMA.
static void store_in_pieces(ftl_select *s, const ftl_tile_op *op) {
  const ftl_shared_layout *layout = &s->layouts[op->ring];
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  if (s->copy != FTL_COPY_TMA || op->ref.row_end != FTL_TENSOR_END) {
    ftl_select_fail(s, "ring %s stages a part of the columns, which leave by TMA only", s->tile->rings[op->ring].name);
    return;
  }
  ftl_select_staging_offsets(s, op->ring);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, FTL_INST_WARP0);
  for (int32_t column = 0; column < op->ref.columns; column += layout->columns) {
    wait_for_boxes(s, s->tile->rings[op->ring].num_stages - 1);
    ftl_select_barrier(s);
    write_piece(s, op, column / FTL_OPERAND_COLUMNS, layout->columns / FTL_OPERAND_COLUMNS);
    if (s->plain_code) ftl_select_idle(s, 1, 0);  // MEMBAR.ALL.CTA
    add_proxy_fence(s);
    ftl_select_barrier(s);
    add_tma_store(s, op, ref, column * element_bytes,
                  ftl_smaller32(layout->columns, op->ref.columns - column) * element_bytes);
  }
}

// ---- whole ----
// `fills`: the ring whose stage being filled this is; FTL_NO_RING for staging.
static void write_fragments(ftl_select *s, const ftl_tile_op *op, uint8_t fills) {
  const ftl_select_value *a = &s->values[op->a.value];
  const ftl_shared_layout *layout = &s->layouts[op->ring];
  int32_t blocks = ftl_divide_up32(ftl_select_warp_columns(s, op->a.value), FTL_OPERAND_COLUMNS);
  for (int32_t slab = 0; slab < a->map.num_slabs; slab++)
    for (int32_t block = 0; block < blocks; block++) {
      int32_t packed = packed_block(s, op->a.value, slab, block);
      int32_t address = staging_address(s, s->rings[op->ring].write_address, PACKED_REGISTERS);
      ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STS, PACKED_REGISTERS, NONE, packed, address, NONE);
      store->inst.ring_a = fills;
      store->effects = fills == FTL_NO_RING ? FTL_EFFECT_MEMORY : FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
      ftl_select_set_wavefronts(store,
                                ftl_accumulator_wavefronts(&s->shape, layout, ftl_select_slab_row(s, op->a.value, slab),
                                                           block * FTL_OPERAND_COLUMNS));
    }
}

static void write_by_stsm(ftl_select *s, const ftl_tile_op *op, uint8_t fills, uint8_t effects) {
  int32_t blocks = (int32_t)ftl_divide_up(ftl_select_warp_columns(s, op->a.value), FTL_OPERAND_COLUMNS);
  for (int32_t slab = 0; slab < s->values[op->a.value].map.num_slabs; slab++)
    for (int32_t block = 0; block < blocks; block++) {
      ftl_draft_inst *store = add_stsm(s, op, slab, block);
      store->inst.ring_a = fills;
      store->effects |= effects;
    }
}

// Triton puts P by stmatrix where there is one (SASS of triton_attention.py and triton_decode.py with warps side by
// side, whose rows meet). FlashAttention-2's backward kernels put P and dS in words (SmemCopyAtomPdS).
static bool has_stsm(const ftl_select *s) {
  bool rows_meet = false;
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    rows_meet |= op->kind == FTL_TILE_REDUCE_WARPS && !op->in_shared;
  }
  return rows_meet && !s->plain_code && s->arch->chip_compute_capability >= STSM_SINCE_COMPUTE_CAPABILITY;
}

void ftl_select_put(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_mbarrier_role(s))
    ftl_select_fail(s, "registers are put into ring %s in a kernel of several roles", s->tile->rings[op->ring].name);
  else if (has_stsm(s))
    write_by_stsm(s, op, (uint8_t)op->ring, FTL_EFFECT_CHAIN);
  else
    write_fragments(s, op, (uint8_t)op->ring);
}

// nvcc splits a 16-byte store of what inline assembly has read into four of 4 bytes where it does not know the address
// for a multiple of 16: in all kernels of flash2_fwd and flash3_fwd but that of mma.sync at head_dim 256
// (l1tex__t_sectors_pipe_lsu_mem_global_op_st of kernels/attention: 4.0 sectors a sector of O). The words of mma.sync's
// warps, which come to their stores one by one, merge to 1.05 to 1.2 writes a sector: these stay whole here, as warps
// of the model come together and would not merge theirs.
static bool stores_in_words(const ftl_select *s) { return s->plain_code && s->mma == FTL_MMA_WGMMA; }

static void copy_out_by_lanes(ftl_select *s, const ftl_tile_op *op) {
  const ftl_shared_layout *layout = &s->layouts[op->ring];
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  ftl_copy_plan plan = ftl_copy_plan_of(&op->ref, element_bytes, layout, s->role->num_warps, FTL_COPIED_BY_BLOCKS);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  for (int32_t group = 0; group < plan.num_groups; group++) {
    int32_t address = ftl_select_row_address(s, &op->ref), predicate = ftl_select_row_predicate(s, &op->ref);
    for (int32_t block = 0; block < plan.num_blocks; block++) {
      int32_t bytes = ftl_copy_plan_bytes(&plan, block), data = ftl_select_temp(s, 4);
      if (bytes == 0) continue;
      int32_t from = staging_address(s, s->rings[op->ring].read_address, 1);
      ftl_draft_inst *load = ftl_select_add(s, FTL_OP_LDS, 1, data, from, NONE, NONE);
      load->effects = FTL_EFFECT_MEMORY;
      ftl_select_set_wavefronts(load, ftl_copy_plan_wavefronts(&plan, layout, block));
      ftl_select_add_stg(s,
                         (ftl_access){.ref = ref,
                                      .num_rows = (uint16_t)plan.rows,
                                      .row = group * plan.rows * s->role->num_warps,
                                      .warp_row_step = plan.rows,
                                      .row_step = 1,
                                      .column_byte = block * plan.block_bytes,
                                      .bytes = bytes,
                                      .in_words = stores_in_words(s)},
                         address, data, predicate);
    }
  }
}

static void copy_out_by_tma(ftl_select *s, const ftl_tile_op *op) {
  const ftl_shared_layout *layout = &s->layouts[op->ring];
  int32_t row_bytes = op->ref.columns * ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  int32_t box_bytes = layout->block_columns * layout->element_bytes;
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, FTL_INST_WARP0);
  for (int32_t byte = 0; byte < row_bytes; byte += box_bytes)
    add_tma_store(s, op, ref, byte, ftl_smaller32(box_bytes, row_bytes - byte));
  wait_for_boxes(s, 0);
}

// The kernels of kernels/attention, which plain code stands for, store with the threads whatever loads their tiles; a
// bulk copy cannot end before the tensor does.
static void store_staged(ftl_select *s, const ftl_tile_op *op) {
  if (op->ref.columns > s->layouts[op->ring].columns) {
    store_in_pieces(s, op);
    return;
  }
  bool by_tma = s->copy == FTL_COPY_TMA && !s->plain_code && op->ref.row_end == FTL_TENSOR_END;
  ftl_select_staging_offsets(s, op->ring);
  if (!s->orders || s->orders[s->op_idx].barrier_before) ftl_select_barrier(s);
  if (ftl_select_copies_together(s))
    write_by_stsm(s, op, FTL_NO_RING, 0);
  else
    write_fragments(s, op, FTL_NO_RING);
  if (by_tma) add_proxy_fence(s);
  ftl_select_barrier(s);
  if (by_tma)
    copy_out_by_tma(s, op);
  else
    copy_out_by_lanes(s, op);
}

// ---- from the fragments ----
// Half a slab's rows of 8 columns: 4 lanes a row, so 16 bytes of 8 rows with 16-bit elements.
static ftl_access fragment_access(const ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t slab, int32_t half,
                                  int32_t column_byte, int32_t bytes) {
  int32_t across = s->tile->values[op->a.value].warps_per_row;
  ftl_access access = {.ref = ref,
                       .num_rows = HALF_ROWS,
                       .row = ftl_select_slab_row(s, op->a.value, slab) + half * HALF_ROWS,
                       .warp_row_step = FTL_SLAB_ROWS,
                       .row_step = 1,
                       .column_byte = column_byte,
                       .bytes = bytes};
  if (across == 1) return access;
  access.row_warps = across;
  access.warp_column_bytes =
      ftl_select_warp_columns(s, op->a.value) * ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  return access;
}

// Triton and cuBLAS, which lean code stands for, write whole sectors (C is written once, by L2's count of 110
// products): of two tiles of columns beside each other, the first store has the upper rows and the second the lower
// ones. What they exchange for it is not counted.
static void pair_columns(ftl_access *access, bool is_second) {
  access->num_rows = HALF_ROWS / 2;
  if (is_second) access->row += HALF_ROWS / 2;
  if (is_second) access->column_byte -= access->bytes;
  access->bytes *= 2;
}

// Of a slab: where its rows go and how.
typedef struct ftl_direct_store {
  const ftl_tile_op *op;
  uint16_t ref;
  int32_t slab, addresses[2], predicate;
  int32_t element_bytes, held;  // columns of a warp
  bool packs;                   // fp32 to 16 bits
  int32_t data_columns;         // of a fragment that is stored as it is
} ftl_direct_store;

// A lane's values of 8 columns, `halves` of them.
static int32_t direct_data(ftl_select *s, const ftl_direct_store *d, int32_t column, int32_t halves) {
  int32_t value = d->op->a.value;
  if (!d->packs) return ftl_select_fragment(s, value, d->slab, column / d->data_columns);
  int32_t data = ftl_select_temp(s, halves);
  int32_t sums = ftl_select_fragment(s, value, d->slab, column / s->shape.accumulator_columns);
  ftl_select_add(s, FTL_OP_CVT, halves, data, sums, NONE, NONE);
  return data;
}

static void store_half(ftl_select *s, const ftl_direct_store *d, int32_t column, int32_t half, int32_t data) {
  int32_t bytes = ftl_smaller32(TILE_COLUMNS, d->op->ref.columns - column) * d->element_bytes;
  bool pairs = !s->plain_code && d->element_bytes == 2 && d->held % FTL_OPERAND_COLUMNS == 0;
  ftl_access access = fragment_access(s, d->op, d->ref, d->slab, half, column * d->element_bytes, bytes);
  if (pairs) pair_columns(&access, column % FTL_OPERAND_COLUMNS != 0);
  ftl_select_add_stg(s, access, d->addresses[half], data, d->predicate);
}

// Plain code stores all columns of the slab's upper 8 rows, then those of the lower ones, as it is written: ptxas keeps
// stores through two addresses in order (SASS of standard_mma.h, product_mma.h and product_wgmma.h).
static void store_slab(ftl_select *s, const ftl_direct_store *d) {
  if (!s->plain_code) {
    for (int32_t column = 0; column < d->held; column += TILE_COLUMNS) {
      int32_t data = direct_data(s, d, column, 2);
      for (int32_t half = 0; half < 2; half++) store_half(s, d, column, half, data);
    }
    return;
  }
  for (int32_t half = 0; half < 2; half++)
    for (int32_t column = 0; column < d->held; column += TILE_COLUMNS)
      store_half(s, d, column, half, direct_data(s, d, column, 1));
}

static void store_direct(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *value = &s->tile->values[op->a.value];
  ftl_direct_store d = {.op = op,
                        .ref = ftl_select_ref(s, &op->ref),
                        .element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype),
                        .held = ftl_smaller32(op->ref.columns, ftl_select_warp_columns(s, op->a.value))};
  d.packs = d.element_bytes < 4 && value->dtype == FTL_FP32;
  bool is_sum = value->accumulates || value->dtype == FTL_FP32;
  d.data_columns = is_sum && !d.packs ? s->shape.accumulator_columns : FTL_OPERAND_COLUMNS;
  ftl_select_add_tile(s, d.ref, 0);
  for (d.slab = 0; d.slab < s->values[op->a.value].map.num_slabs; d.slab++) {
    for (int32_t half = 0; half < 2; half++) d.addresses[half] = ftl_select_row_address(s, &op->ref);
    d.predicate = ftl_select_row_predicate(s, &op->ref);
    store_slab(s, &d);
  }
}

void ftl_select_store(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->a.value))
    ftl_select_store_by_rows(s, op);
  else if (op->ring >= 0)
    store_staged(s, op);
  else
    store_direct(s, op);
}

void ftl_select_store_rows(ftl_select *s, const ftl_tile_op *op) {
  if (ftl_select_is_by_rows(s, op->a.value)) {
    ftl_select_store_rows_by_rows(s, op);
    return;
  }
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  int32_t address = ftl_select_row_address(s, &op->ref);
  for (int32_t slab = 0; slab < s->values[op->a.value].map.num_slabs; slab++)
    for (int32_t half = 0; half < 2; half++) {
      ftl_access access = fragment_access(s, op, ref, slab, half, 0, element_bytes);
      access.warp_column_bytes = 0;
      access.first_of_row = access.row_warps > 1;
      ftl_select_add_stg(s, access, address, ftl_select_fragment(s, op->a.value, slab, 0),
                         ftl_select_row_predicate(s, &op->ref));
    }
}
