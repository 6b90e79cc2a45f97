// TOP and STORE_TOP of row-wise tiles. TOP is a radix selection from the highest digit down, as CUB's and PyTorch's:
// the threads of a row count the digits of the elements that still are candidates in 256 bins of shared memory, one
// warp finds the bin that holds the last of the largest, and the next digit goes on within it. Equal digits of a warp
// are one increment (ATOMS.POPC.INC), which is issued as a store here. Numbers by column are sums over the lanes
// before. Source: T. Alabi et al., "Fast k-selection algorithms for graphics processing units", 2012. Not held against
// a measured kernel.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { KEY_BITS = 32, DIGIT_BITS = 8, NUM_BINS = 1 << DIGIT_BITS, BIN_BYTES = 4, VECTOR_BINS = 4 };

// A running sum over the lanes of a warp.
static int32_t sum_lanes(ftl_select *s, int32_t x) {
  for (int32_t step = 1; step < FTL_WARP_LANES; step *= 2) {
    int32_t other = ftl_select_temp(s, 1), sum = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_SHFL, 1, other, x, NONE, NONE)->inst.wavefronts = 1;
    ftl_select_add(s, FTL_OP_IADD, 1, sum, x, other, NONE);
    x = sum;
  }
  return x;
}

// Keys whose order as integers is that of the numbers: two instructions an element.
static void make_keys(ftl_select *s, const ftl_tile_op *op, int32_t slab) {
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t sign = ftl_select_temp(s, map.num_registers), key = ftl_select_fragment(s, op->dst, slab, i);
    ftl_select_add(s, FTL_OP_IADD, map.num_registers, sign, ftl_select_fragment(s, op->a.value, slab, i), NONE, NONE);
    ftl_select_add(s, FTL_OP_LOP, map.num_registers, key, ftl_select_fragment(s, op->a.value, slab, i), sign, NONE);
  }
}

// An element: is it a candidate, its digit, an increment.
static void count_digits(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t prefix) {
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t key = ftl_select_fragment(s, op->dst, slab, i), digit = ftl_select_temp(s, map.num_registers);
    int32_t is_candidate = ftl_select_temp(s, 0);
    ftl_select_add(s, FTL_OP_LOP, map.num_registers, digit, key, NONE, NONE);
    ftl_select_add(s, FTL_OP_ISETP, map.num_registers, is_candidate, key, prefix, NONE);
    for (int32_t k = 0; k < map.num_registers; k++)
      ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, digit, is_candidate, 1);
  }
}

// Each warp reads all bins, a few a lane, and finds the one in which the count is reached.
static int32_t find_bin(ftl_select *s) {
  int32_t bins = ftl_select_temp(s, VECTOR_BINS), sum = ftl_select_temp(s, 1), prefix = ftl_select_temp(s, 1);
  for (int32_t bin = 0; bin < NUM_BINS / FTL_WARP_LANES; bin += VECTOR_BINS) {
    ftl_select_add_shared(s, FTL_OP_LDS, 1, bins, NONE, NONE, 1);
    ftl_select_add(s, FTL_OP_IADD, VECTOR_BINS, sum, bins, NONE, NONE);
  }
  ftl_select_add(s, FTL_OP_LOP, NUM_BINS / FTL_WARP_LANES, prefix, sum_lanes(s, sum), bins, NONE);
  return prefix;
}

// The largest keys by the last prefix; their numbers: those of the row's warps and lanes before, vector by vector.
static void number_elements(ftl_select *s, const ftl_tile_op *op, int32_t slab, int32_t prefix) {
  ftl_fragment_map map = s->values[op->dst].map;
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t key = ftl_select_fragment(s, op->dst, slab, i), is_large = ftl_select_temp(s, 0);
    int32_t count = ftl_select_temp(s, 1);
    ftl_select_add(s, FTL_OP_ISETP, map.num_registers, is_large, key, prefix, NONE);
    ftl_select_add(s, FTL_OP_IADD, map.num_registers, count, is_large, NONE, NONE);
    count = sum_lanes(s, count);
    if (s->tile->values[op->dst].layout.threads_per_row > FTL_WARP_LANES) {
      int32_t before = ftl_select_temp(s, 1);
      ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, count, NONE, 1);
      ftl_select_barrier(s);
      ftl_select_add_shared(s, FTL_OP_LDS, 1, before, NONE, NONE, 1);
      ftl_select_add(s, FTL_OP_IADD, 1, count, count, sum_lanes(s, before), NONE);
    }
    ftl_select_add(s, FTL_OP_SEL, map.num_registers, key, count, is_large, NONE);
  }
}

void ftl_select_top(ftl_select *s, const ftl_tile_op *op) {
  for (int32_t slab = 0; slab < s->values[op->dst].map.num_slabs; slab++) {
    int32_t prefix = NONE;
    make_keys(s, op, slab);
    for (int32_t bits = 0; bits < KEY_BITS; bits += DIGIT_BITS) {
      ftl_select_barrier(s);
      ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, NONE, NONE, 1);  // the bins are 0
      ftl_select_barrier(s);
      count_digits(s, op, slab, prefix);
      ftl_select_barrier(s);
      prefix = find_bin(s);
    }
    number_elements(s, op, slab, prefix);
  }
}

// The numbered elements meet in shared memory, each at its number; from there they are stored side by side.
static void stage_numbered(ftl_select *s, const ftl_tile_op *op, int32_t slab) {
  ftl_fragment_map map = s->values[op->b.value].map;
  for (int32_t i = 0; i < map.per_slab; i++) {
    int32_t rank = ftl_select_fragment(s, op->b.value, slab, i), is_numbered = ftl_select_temp(s, 0);
    int32_t data = op->a.value >= 0 ? ftl_select_fragment(s, op->a.value, slab, i) : s->thread;
    ftl_select_add(s, FTL_OP_ISETP, map.num_registers, is_numbered, rank, NONE, NONE);
    for (int32_t k = 0; k < map.num_registers; k++) ftl_select_add_shared(s, FTL_OP_STS, 1, NONE, data, is_numbered, 1);
  }
}

// A number a lane, side by side: of a row of a table, or of a column of a row.
static ftl_access numbered_access(const ftl_select *s, const ftl_tile_op *op, uint16_t ref, int32_t slab, int32_t i,
                                  int32_t element_bytes) {
  if (op->a.value >= 0) return ftl_select_row_access(s, op->b.value, ref, slab, i, element_bytes);
  return (ftl_access){.ref = ref,
                      .num_rows = FTL_WARP_LANES,
                      .row = i * s->tile->values[op->b.value].layout.threads_per_row,
                      .warp_row_step = FTL_WARP_LANES,
                      .row_step = 1,
                      .bytes = element_bytes};
}

void ftl_select_store_top(ftl_select *s, const ftl_tile_op *op) {
  int32_t element_bytes = ftl_dtype_bytes(s->tile->tensors[op->ref.tensor].dtype);
  int32_t threads = s->tile->values[op->b.value].layout.threads_per_row;
  int32_t count = op->a.value < 0 ? op->ref.rows : op->ref.columns;
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  for (int32_t slab = 0; slab < s->values[op->b.value].map.num_slabs; slab++) {
    ftl_select_barrier(s);
    stage_numbered(s, op, slab);
    ftl_select_barrier(s);
    int32_t address = ftl_select_row_address(s, &op->ref);
    for (int32_t i = 0; i * threads < count; i++) {
      ftl_access access = numbered_access(s, op, ref, slab, i, element_bytes);
      int32_t left = (count - i * threads) * element_bytes, data = ftl_select_temp(s, 1);
      if (op->a.value >= 0 && access.row_warps <= 1 && left < access.bytes) access.bytes = left;
      ftl_select_add_shared(s, FTL_OP_LDS, 1, data, NONE, NONE, 1);
      ftl_select_add_stg(s, access, address, data, ftl_select_row_predicate(s, &op->ref));
    }
  }
}

int32_t ftl_select_top_bytes(const ftl_tile_program *tile, const ftl_tile_op *op) {
  if (op->kind == FTL_TILE_STORE_TOP) return op->ref.rows * op->ref.columns * BIN_BYTES;
  return op->kind == FTL_TILE_TOP ? tile->values[op->dst].rows * (NUM_BINS + FTL_WARP_LANES) * BIN_BYTES : 0;
}
