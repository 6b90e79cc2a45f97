// Roles whose warps are groups with copies of their own (sliced K): exchanging and adding up the copies through shared
// memory. As kernels/attention/decode_mma.h: each warp writes its copy, row after row in fp32, a barrier, then every
// thread reads the copies of what it works on.
#include "lower/select/copy_plan.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { LANE_WORDS = 4 };

static ftl_draft_inst *add_shared(ftl_select *s, ftl_opcode opcode, int32_t repeat, int32_t destination, int32_t data,
                                  int32_t address, ftl_wavefronts wavefronts) {
  ftl_draft_inst *inst = ftl_select_add(s, opcode, repeat, destination, data, address, NONE);
  inst->effects = FTL_EFFECT_MEMORY;
  ftl_select_set_wavefronts(inst, wavefronts);
  return inst;
}

static void barrier_before_staging(ftl_select *s) {
  if (!s->orders || s->orders[s->op_idx].barrier_before) ftl_select_barrier(s);
}

// One lane of each row writes its number: eight words next to each other, no conflict; all lanes of a row read one.
void ftl_select_reduce_groups(ftl_select *s, const ftl_tile_op *op) {
  const ftl_wavefronts one = {1, 0};
  const ftl_select_ring *ring = &s->rings[op->ring];
  int32_t rows = ftl_select_fragment(s, op->dst, 0, 0);
  barrier_before_staging(s);
  add_shared(s, FTL_OP_STS, 2, NONE, rows, ring->write_address, one);
  ftl_select_barrier(s);
  for (int32_t group = 0; group < s->role->num_groups; group++) {
    int32_t other = group == 0 ? rows : ftl_select_temp(s, 2);
    add_shared(s, FTL_OP_LDS, 2, other, ring->read_address, NONE, one);
    if (group > 0) ftl_select_add(s, op->fn == FTL_ELEM_MAX ? FTL_OP_FMNMX : FTL_OP_FFMA, 2, rows, rows, other, NONE);
  }
}

static void write_copies(ftl_select *s, const ftl_tile_op *op, const ftl_shared_layout *layout) {
  const ftl_select_value *a = &s->values[op->a.value];
  for (int32_t i = 0; i < a->map.per_slab; i++) {
    int32_t fragment = ftl_select_fragment(s, op->a.value, 0, i);
    ftl_wavefronts w = ftl_accumulator_wavefronts(&s->shape, layout, 0, i * s->shape.accumulator_columns);
    add_shared(s, FTL_OP_STS, a->map.num_registers / 2, NONE, fragment, s->rings[op->ring].write_address, w);
  }
}

// The sum of the copies of 16 bytes a lane.
static int32_t read_sum(ftl_select *s, const ftl_tile_op *op, ftl_wavefronts wavefronts) {
  int32_t sum = ftl_select_temp(s, LANE_WORDS), address = s->rings[op->ring].read_address;
  add_shared(s, FTL_OP_LDS, 1, sum, address, NONE, wavefronts);
  for (int32_t group = 1; group < s->role->num_groups; group++) {
    int32_t copy = ftl_select_temp(s, LANE_WORDS);
    add_shared(s, FTL_OP_LDS, 1, copy, address, NONE, wavefronts);
    ftl_select_add(s, FTL_OP_FFMA, LANE_WORDS, sum, sum, copy, NONE);
  }
  return sum;
}

void ftl_select_store_groups(ftl_select *s, const ftl_tile_op *op) {
  const ftl_value *value = &s->tile->values[op->a.value];
  ftl_shared_layout layout =
      ftl_shared_layout_of(value->rows, value->columns, ftl_dtype_bytes(FTL_FP32), FTL_SHARED_PLAIN);
  barrier_before_staging(s);
  write_copies(s, op, &layout);
  ftl_select_barrier(s);
  ftl_copy_plan plan = ftl_copy_plan_of(&op->ref, layout.element_bytes, &layout, s->role->num_warps);
  uint16_t ref = ftl_select_ref(s, &op->ref);
  ftl_select_add_tile(s, ref, 0);
  for (int32_t group = 0; group < plan.num_groups; group++) {
    int32_t address = ftl_select_row_address(s, &op->ref), predicate = ftl_select_row_predicate(s, &op->ref);
    for (int32_t block = 0; block < plan.num_blocks; block++) {
      int32_t bytes = ftl_copy_plan_bytes(&plan, block);
      if (bytes == 0) continue;
      ftl_access access = {.ref = ref,
                           .num_rows = (uint16_t)plan.rows,
                           .row = group * plan.rows * s->role->num_warps,
                           .warp_row_step = plan.rows,
                           .row_step = 1,
                           .column_byte = block * plan.block_bytes,
                           .bytes = bytes};
      int32_t sum = read_sum(s, op, ftl_copy_plan_wavefronts(&plan, &layout, block));
      ftl_select_add_stg(s, access, address, sum, predicate);
    }
  }
}
