// DEQUANTIZE: a stage of one-byte elements becomes a stage of 16-bit ones: a lane reads eight numbers (8 bytes, or 4 of
// int4), converts them, multiplies by their group's scale, and writes them back as one 16-byte chunk. Neighbouring
// lanes have neighbouring chunks, so that neither access has conflicts.
//
// Conversions, by what is multiplied later. int8 to fp16: bytes are placed under the exponent of 1024 (LOP3 flips the
// signs, a PRMT and an HADD2 a pair); int4 to fp16: a LOP3 a pair places nibbles likewise, and an HADD2 or, for the
// upper ones, an HFMA2 brings them down, with a shift for every eight (CUTLASS, numeric_conversion.h, after
// FasterTransformer's interleaved_numeric_conversion.h). To bf16 bytes go through fp32 (PRMT, FADD each, PRMT a pair);
// nibbles as for fp16. fp8 to fp16: one F2FP a pair (sm_89 on); to bf16 through fp32, two HADD2.F32 and an F2FP more.
// Then an HMUL2 a pair by the scale.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { CHUNK_NUMBERS = 8, CHUNK_REGISTERS = 4, REGISTER_BYTES = 4, LANES = 32 };

typedef struct step {
  ftl_opcode opcode;
  int32_t count;  // for the eight numbers of a lane
} step;

typedef struct recipe {
  step steps[4];
  int32_t num_steps;
} recipe;

static recipe recipe_of(ftl_dtype from, ftl_dtype to) {
  bool fp16 = to == FTL_FP16;
  if (from == FTL_INT4X2) return (recipe){{{FTL_OP_LOP, 5}, {FTL_OP_HFMA2, 4}}, 2};
  if (from == FTL_INT8 && fp16) return (recipe){{{FTL_OP_LOP, 2}, {FTL_OP_PRMT, 4}, {FTL_OP_HFMA2, 4}}, 3};
  if (from == FTL_INT8) return (recipe){{{FTL_OP_LOP, 2}, {FTL_OP_PRMT, 8}, {FTL_OP_FFMA, 8}, {FTL_OP_PRMT, 4}}, 4};
  if (fp16) return (recipe){{{FTL_OP_CVT, 4}}, 1};
  return (recipe){{{FTL_OP_CVT, 4}, {FTL_OP_HFMA2, 8}, {FTL_OP_CVT, 4}}, 3};
}

// Which eight numbers a lane takes: chunks row after row by neighbouring lanes, and warp after warp.
typedef struct lanes {
  const ftl_tile_op *op;
  int32_t per_row, num_rounds;  // chunks of a row, and how many all lanes take one after the other
  int32_t num_groups;           // of columns, each with a scale
} lanes;

// Of a lane of warp 0, first.
static int32_t row_of(const lanes *l, int32_t lane) { return lane / l->per_row; }
static int32_t first_number(const lanes *l, int32_t lane) { return lane % l->per_row * CHUNK_NUMBERS; }

static ftl_wavefronts read_wavefronts(const ftl_select *s, const lanes *l) {
  const ftl_ring *from = &s->tile->rings[l->op->ring_a];
  int32_t offset[LANES], numbers = ftl_dtype_numbers(from->dtype);
  for (int32_t lane = 0; lane < LANES; lane++)
    offset[lane] =
        ftl_shared_layout_offset(&s->layouts[l->op->ring_a], row_of(l, lane), first_number(l, lane) / numbers);
  return ftl_shared_wavefronts(offset, CHUNK_NUMBERS / numbers);
}

// Rows of the quantised stage are columns of the scales', page by page.
static ftl_wavefronts scale_wavefronts(const ftl_select *s, const lanes *l) {
  const ftl_ring *scales = &s->tile->rings[l->op->ring_scales];
  int32_t group_numbers = s->tile->rings[l->op->ring].columns / l->num_groups;
  int32_t offset[LANES];
  for (int32_t lane = 0; lane < LANES; lane++) {
    int32_t row = row_of(l, lane);
    int32_t scale_row = ftl_tile_scale_row(scales, l->num_groups, row, first_number(l, lane) / group_numbers);
    int32_t byte = ftl_shared_layout_offset(&s->layouts[l->op->ring_scales], scale_row, row % scales->columns);
    offset[lane] = byte / REGISTER_BYTES * REGISTER_BYTES;
  }
  return ftl_shared_wavefronts(offset, REGISTER_BYTES);
}

static ftl_wavefronts write_wavefronts(const ftl_select *s, const lanes *l) {
  int32_t offset[LANES];
  for (int32_t lane = 0; lane < LANES; lane++)
    offset[lane] = ftl_shared_layout_offset(&s->layouts[l->op->ring], row_of(l, lane), first_number(l, lane));
  return ftl_shared_wavefronts(offset, FTL_CHUNK_BYTES);
}

static int32_t load(ftl_select *s, int32_t ring, int32_t registers, ftl_wavefronts wavefronts) {
  int32_t data = ftl_select_temp(s, registers), address = ftl_draft_value_add(&s->draft, 1, 1);
  ftl_select_add(s, FTL_OP_IADD, 1, address, s->rings[ring].read_address, NONE, NONE);
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_LDS, 1, data, address, NONE, NONE);
  inst->inst.ring_a = (uint8_t)ring;
  inst->effects = FTL_EFFECT_MEMORY;
  ftl_select_set_wavefronts(inst, wavefronts);
  return data;
}

static int32_t convert(ftl_select *s, const lanes *l, int32_t bytes, int32_t scale) {
  recipe r = recipe_of(s->tile->rings[l->op->ring_a].dtype, s->tile->rings[l->op->ring].dtype);
  int32_t numbers = ftl_select_temp(s, CHUNK_REGISTERS), from = bytes;
  for (int32_t i = 0; i < r.num_steps; i++) {
    ftl_select_add(s, r.steps[i].opcode, r.steps[i].count, numbers, from, NONE, NONE);
    from = numbers;
  }
  ftl_select_add(s, FTL_OP_HFMA2, CHUNK_REGISTERS, numbers, numbers, scale, NONE);
  return numbers;
}

static void write_chunk(ftl_select *s, const lanes *l, int32_t numbers) {
  int32_t address = ftl_draft_value_add(&s->draft, 1, 1);
  ftl_select_add(s, FTL_OP_IADD, 1, address, s->rings[l->op->ring].write_address, NONE, NONE);
  ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STS, 1, NONE, numbers, address, NONE);
  store->inst.ring_a = (uint8_t)l->op->ring;
  store->inst.arg = FTL_CHUNK_BYTES;
  store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  ftl_select_set_wavefronts(store, write_wavefronts(s, l));
}

static bool try_deal(ftl_select *s, const ftl_tile_op *op, lanes *out) {
  const ftl_ring *to = &s->tile->rings[op->ring], *scales = &s->tile->rings[op->ring_scales];
  int32_t at_once = LANES * s->role->num_warps, chunks = to->rows * to->columns / CHUNK_NUMBERS;
  int32_t num_groups = ftl_tile_scale_groups(to, scales);
  *out = (lanes){
      .op = op, .per_row = to->columns / CHUNK_NUMBERS, .num_rounds = chunks / at_once, .num_groups = num_groups};
  bool whole = to->columns % CHUNK_NUMBERS == 0 && to->columns / num_groups % CHUNK_NUMBERS == 0;
  if (whole && chunks % at_once == 0 && !ftl_select_is_mbarrier_role(s)) return true;
  ftl_select_fail(s, "%d x %d numbers of ring %s, in groups of %d, are not dealt to %d warps by eights", to->rows,
                  to->columns, to->name, to->columns / num_groups, s->role->num_warps);
  return false;
}

void ftl_select_dequantize(ftl_select *s, const ftl_tile_op *op) {
  lanes l;
  if (!try_deal(s, op, &l)) return;
  int32_t registers = CHUNK_NUMBERS / ftl_dtype_numbers(s->tile->rings[op->ring_a].dtype) / REGISTER_BYTES;
  for (int32_t round = 0; round < l.num_rounds; round++) {
    int32_t bytes = load(s, op->ring_a, registers, read_wavefronts(s, &l));
    int32_t scale = load(s, op->ring_scales, 1, scale_wavefronts(s, &l));
    ftl_select_add(s, FTL_OP_PRMT, 1, scale, scale, NONE, NONE);  // to both halves
    write_chunk(s, &l, convert(s, &l, bytes, scale));
  }
}
