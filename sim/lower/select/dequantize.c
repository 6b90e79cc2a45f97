// DEQUANTIZE: a stage of one-byte elements becomes a stage of 16-bit ones: a lane reads eight numbers (8 bytes, or 4 of
// int4), converts them, multiplies by their group's scale, and writes them back as one 16-byte chunk. Neighbouring
// lanes have neighbouring chunks, so that neither access has conflicts.
//
// Conversions, by what is multiplied later. int8 to fp16: bytes are placed under the exponent of 1024 (LOP3 flips the
// signs, a PRMT and an HADD2 a pair); int4 to fp16: a LOP3 a pair places nibbles likewise, and an HADD2 or, for the
// upper ones, an HFMA2 brings them down, with a shift for every eight (CUTLASS, numeric_conversion.h, after
// FasterTransformer's interleaved_numeric_conversion.h). To bf16 bytes go through fp32 (PRMT, FADD each, PRMT a pair);
// nibbles as for fp16. fp8 to fp16: one F2FP a pair (sm_89 on); to bf16 through fp32, two HADD2.F32 and an F2FP more.
// Then an HMUL2 a pair by the scale, which is one half of a register for both.
//
// Plain code (SASS of kernels/attention/decode_quantized.h, nvcc 13): mask and exponent of a nibble pair are two LOP3,
// the upper pairs of fp8 come down by a shift. Rounds of the stored stage are an immediate apart. Each has a row of its
// own, whose number stays in a register over the loop and is scaled and added to the stage of the scales (IMAD), and a
// swizzled chunk to write, which stays too where the 16-bit ring has one stage. The next ring alike (V after K) lies an
// immediate away and has the same addresses. No load passes the store before it, which might write what it reads.
// Lean code: immediates alone, and loads go ahead.
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { CHUNK_NUMBERS = 8, CHUNK_REGISTERS = 4, REGISTER_BYTES = 4 };

typedef struct step {
  ftl_opcode opcode;
  int32_t count;  // for the eight numbers of a lane
} step;

typedef struct recipe {
  step steps[4];
  int32_t num_steps;
} recipe;

static recipe recipe_of(ftl_dtype from, ftl_dtype to, bool plain_code) {
  bool fp16 = to == FTL_FP16;
  if (from == FTL_INT4X2) return (recipe){{{FTL_OP_LOP, plain_code ? 9 : 5}, {FTL_OP_HFMA2, 4}}, 2};
  if (from == FTL_INT8 && fp16) return (recipe){{{FTL_OP_LOP, 2}, {FTL_OP_PRMT, 4}, {FTL_OP_HFMA2, 4}}, 3};
  if (from == FTL_INT8) return (recipe){{{FTL_OP_LOP, 2}, {FTL_OP_PRMT, 8}, {FTL_OP_FFMA, 8}, {FTL_OP_PRMT, 4}}, 4};
  if (fp16 && plain_code) return (recipe){{{FTL_OP_LOP, 2}, {FTL_OP_CVT, 4}}, 2};
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
  int32_t offset[FTL_WARP_LANES], numbers = ftl_dtype_numbers(from->dtype);
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++)
    offset[lane] =
        ftl_shared_layout_offset(&s->layouts[l->op->ring_a], row_of(l, lane), first_number(l, lane) / numbers);
  return ftl_shared_wavefronts(offset, CHUNK_NUMBERS / numbers);
}

// Rows of the quantised stage are columns of the scales', page by page.
static ftl_wavefronts scale_wavefronts(const ftl_select *s, const lanes *l) {
  const ftl_ring *scales = &s->tile->rings[l->op->ring_scales];
  int32_t group_numbers = s->tile->rings[l->op->ring].columns / l->num_groups;
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++) {
    int32_t row = row_of(l, lane);
    int32_t scale_row = ftl_tile_scale_row(scales, l->num_groups, row, first_number(l, lane) / group_numbers);
    int32_t byte = ftl_shared_layout_offset(&s->layouts[l->op->ring_scales], scale_row, row % scales->columns);
    offset[lane] = byte / REGISTER_BYTES * REGISTER_BYTES;
  }
  return ftl_shared_wavefronts(offset, REGISTER_BYTES);
}

static ftl_wavefronts write_wavefronts(const ftl_select *s, const lanes *l) {
  int32_t offset[FTL_WARP_LANES];
  for (int32_t lane = 0; lane < FTL_WARP_LANES; lane++)
    offset[lane] = ftl_shared_layout_offset(&s->layouts[l->op->ring], row_of(l, lane), first_number(l, lane));
  return ftl_shared_wavefronts(offset, FTL_CHUNK_BYTES);
}

static int32_t load(ftl_select *s, int32_t ring, int32_t registers, int32_t address, ftl_wavefronts wavefronts) {
  int32_t data = ftl_select_temp(s, registers);
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_LDS, 1, data, address, NONE, NONE);
  inst->inst.ring_a = (uint8_t)ring;
  inst->effects = FTL_EFFECT_MEMORY | (s->plain_code ? FTL_EFFECT_CHAIN : 0);
  ftl_select_set_wavefronts(inst, wavefronts);
  return data;
}

static int32_t convert(ftl_select *s, const lanes *l, int32_t bytes, int32_t scale) {
  recipe r = recipe_of(s->tile->rings[l->op->ring_a].dtype, s->tile->rings[l->op->ring].dtype, s->plain_code);
  int32_t numbers = ftl_select_temp(s, CHUNK_REGISTERS), from = bytes;
  for (int32_t i = 0; i < r.num_steps; i++) {
    ftl_select_add(s, r.steps[i].opcode, r.steps[i].count, numbers, from, NONE, NONE);
    from = numbers;
  }
  ftl_select_add(s, FTL_OP_HFMA2, CHUNK_REGISTERS, numbers, numbers, scale, NONE);
  return numbers;
}

static void write_chunk(ftl_select *s, const lanes *l, int32_t numbers, int32_t address) {
  ftl_draft_inst *store = ftl_select_add(s, FTL_OP_STS, 1, NONE, numbers, address, NONE);
  store->inst.ring_a = (uint8_t)l->op->ring;
  store->inst.arg = FTL_CHUNK_BYTES;
  store->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
  ftl_select_set_wavefronts(store, write_wavefronts(s, l));
}

static bool try_deal(ftl_select *s, const ftl_tile_op *op, lanes *out) {
  const ftl_ring *to = &s->tile->rings[op->ring], *scales = &s->tile->rings[op->ring_scales];
  int32_t at_once = FTL_WARP_LANES * s->role->num_warps, chunks = to->rows * to->columns / CHUNK_NUMBERS;
  int32_t num_groups = ftl_tile_scale_groups(to, scales);
  *out = (lanes){
      .op = op, .per_row = to->columns / CHUNK_NUMBERS, .num_rounds = chunks / at_once, .num_groups = num_groups};
  bool whole = to->columns % CHUNK_NUMBERS == 0 && to->columns / num_groups % CHUNK_NUMBERS == 0;
  if (whole && chunks % at_once == 0 && !ftl_select_is_mbarrier_role(s)) return true;
  ftl_select_fail(s, "%d x %d numbers of ring %s, in groups of %d, are not dealt to %d warps by eights", to->rows,
                  to->columns, to->name, to->columns / num_groups, s->role->num_warps);
  return false;
}

// ---- addresses ----
static bool are_alike(const ftl_select *s, int32_t a, int32_t b) {
  const ftl_ring *rings = s->tile->rings;
  return rings[a].rows == rings[b].rows && rings[a].columns == rings[b].columns && rings[a].dtype == rings[b].dtype &&
         rings[a].num_stages == rings[b].num_stages;
}

// The operation of the same loop body before this one whose rings are alike; NULL: none.
static const ftl_tile_op *alike_before(const ftl_select *s, const ftl_tile_op *op) {
  const ftl_tile_op *first = &s->tile->ops[s->role->first_op];
  for (const ftl_tile_op *at = op; at > first;) {
    at--;
    if (at->kind == FTL_TILE_LOOP || at->kind == FTL_TILE_END_LOOP) break;
    if (at->kind == FTL_TILE_DEQUANTIZE && are_alike(s, at->ring, op->ring) &&
        are_alike(s, at->ring_scales, op->ring_scales))
      return at;
  }
  return NULL;
}

// One a round, computed from the thread's index before the loop.
static int32_t keep(ftl_select *s, int32_t num_rounds, int32_t num_insts) {
  int32_t first = NONE;
  for (int32_t round = 0; round < num_rounds; round++) {
    int32_t kept = ftl_draft_value_add(&s->draft, 1, (int16_t)num_insts);
    if (round == 0) first = kept;
    ftl_select_add(s, FTL_OP_LOP, num_insts, kept, s->thread, NONE, NONE);
  }
  return first;
}

void ftl_select_dequantize_offsets(ftl_select *s) {
  enum { ROW_INSTS = 2, CHUNK_INSTS = 6 };  // IADD3, SHF; these, three LOP3 and an IMAD
  for (int32_t i = 0; s->plain_code && i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    lanes l;
    if (op->kind != FTL_TILE_DEQUANTIZE || !try_deal(s, op, &l)) continue;
    const ftl_tile_op *before = alike_before(s, op);
    ftl_select_ring *ring = &s->rings[op->ring], *scales = &s->rings[op->ring_scales];
    scales->first_round = before ? s->rings[before->ring_scales].first_round : keep(s, l.num_rounds, ROW_INSTS);
    ring->first_round = before ? s->rings[before->ring].first_round : keep(s, l.num_rounds, CHUNK_INSTS);
  }
}

// offset + stage, unless the ring alike before has them; first of num_rounds values.
static int32_t addresses_of(ftl_select *s, int32_t first_offset, int32_t stage, int32_t num_rounds) {
  int32_t first = NONE;
  for (int32_t round = 0; round < num_rounds; round++) {
    int32_t address = ftl_draft_value_add(&s->draft, 1, 1);
    if (round == 0) first = address;
    ftl_select_add(s, FTL_OP_IMAD, 1, address, first_offset + round, stage, NONE);
  }
  return first;
}

static void settle_addresses(ftl_select *s, const lanes *l) {
  const ftl_tile_op *op = l->op, *before = alike_before(s, op);
  ftl_select_ring *ring = &s->rings[op->ring], *scales = &s->rings[op->ring_scales];
  bool in_stage = s->tile->rings[op->ring].num_stages > 1;
  scales->first_address = before ? s->rings[before->ring_scales].first_address
                                 : addresses_of(s, scales->first_round, scales->read_address, l->num_rounds);
  ring->first_address = before     ? s->rings[before->ring].first_address
                        : in_stage ? addresses_of(s, ring->first_round, ring->write_address, l->num_rounds)
                                   : ring->first_round;
}

void ftl_select_dequantize(ftl_select *s, const ftl_tile_op *op) {
  lanes l;
  if (!try_deal(s, op, &l)) return;
  const ftl_select_ring *ring = &s->rings[op->ring], *scales = &s->rings[op->ring_scales];
  if (s->plain_code) settle_addresses(s, &l);
  int32_t registers = CHUNK_NUMBERS / ftl_dtype_numbers(s->tile->rings[op->ring_a].dtype) / REGISTER_BYTES;
  for (int32_t round = 0; round < l.num_rounds; round++) {
    int32_t scale_address = s->plain_code ? scales->first_address + round : scales->read_address;
    int32_t bytes = load(s, op->ring_a, registers, s->rings[op->ring_a].read_address, read_wavefronts(s, &l));
    int32_t scale = load(s, op->ring_scales, 1, scale_address, scale_wavefronts(s, &l));
    write_chunk(s, &l, convert(s, &l, bytes, scale), s->plain_code ? ring->first_address + round : ring->write_address);
  }
}
