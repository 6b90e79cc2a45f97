// ptxas issues a MUFU whenever the unit takes one and puts what else is ready between them: in the loop of
// kernels/attention/flash2_wgmma.h (sm_90a) six or seven FMULs of O's scaling stand behind each. A list schedule made
// from the end of a stretch puts that arithmetic into the latencies behind the last MUFU instead, and has nothing left
// for the others. So it is moved up here.
#include "lower/gaps.h"

#include <string.h>

#include "lower/op_timing.h"

enum { WINDOW = 160 };  // instructions behind a gap that are looked at

typedef struct filler {
  ftl_draft *draft;
  ftl_op_timings timings;
  ftl_draft_inst *out;
  int32_t num_out;
  bool *taken;                    // by position: has been moved up
  int32_t *ready;                 // by value: when a lone warp has it
  int32_t *read_in, *written_in;  // by value: the last search that passed a reader, or a writer
  int32_t *last_read;             // by value: the stretch's last reader, in the order before
  int32_t search, now, pipe_free[FTL_PIPE_COUNT];
} filler;

static void issue(filler *f, const ftl_draft_inst *inst) {
  ftl_op_timing timing = ftl_op_timing_of(&f->timings, &inst->inst);
  f->out[f->num_out++] = *inst;
  if (timing.pipe == FTL_PIPE_NONE) return;
  bool is_async = inst->inst.opcode == FTL_OP_WGMMA;
  for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) {
    int32_t value = ftl_inst_read(f->draft, inst, k);
    if (!is_async && !(inst->effects & FTL_EFFECT_CONTINUES) && f->ready[value] > f->now) f->now = f->ready[value];
  }
  int32_t last = f->now;
  for (int32_t i = 0; i < inst->inst.repeat; i++) {
    last = f->now > f->pipe_free[timing.pipe] ? f->now : f->pipe_free[timing.pipe];
    f->pipe_free[timing.pipe] = last + (is_async ? 1 : timing.interval_cycles);
    f->now = last + 1;
  }
  for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++)
    f->ready[inst->destination + k] = last + timing.latency_cycles;
}

static bool is_ready(const filler *f, const ftl_draft_inst *inst) {
  for (int32_t k = 0; k < inst->num_sources; k++)
    if (f->ready[inst->sources[k]] > f->now) return false;
  return true;
}

// The sums of a lane's two rows.
static bool is_small(const filler *f, const ftl_draft_inst *inst) {
  return f->draft->values[inst->destination].num_registers <= 2;
}

static bool writes_over_operand(const ftl_draft_inst *inst) {
  for (int32_t k = 0; k < inst->num_sources; k++)
    if (inst->sources[k] == inst->destination) return true;
  return false;
}

// Of a conversion that is the last to read its operands.
static bool ends_operands(const filler *f, int32_t i) {
  const ftl_draft_inst *inst = &f->draft->insts[i];
  for (int32_t k = 0; k < inst->num_sources; k++)
    if (f->read_in[inst->sources[k]] == f->search || f->last_read[inst->sources[k]] > i) return false;
  return true;
}

// What makes no more registers live if it comes sooner: arithmetic that writes over one of its operands, conversions
// that end theirs; and a lane's sums begin. Eight FMULs stand behind a MUFU (SASS of Triton's and our own kernels), one
// more than the gap has cycles for.
static bool may_move(const filler *f, int32_t i, int32_t cycles) {
  const ftl_draft_inst *inst = &f->draft->insts[i];
  bool is_fp32 = inst->inst.opcode == FTL_OP_FFMA, is_scaling = is_fp32 && inst->inst.arg == FTL_FP32_BY_ROW;
  if (inst->inst.repeat > cycles + is_scaling || inst->effects != 0 || !is_ready(f, inst)) return false;
  if (is_fp32) return writes_over_operand(inst) || is_small(f, inst);
  return inst->inst.opcode == FTL_OP_CVT && ends_operands(f, i);
}

static void pass(filler *f, const ftl_draft_inst *inst) {
  for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) f->read_in[ftl_inst_read(f->draft, inst, k)] = f->search;
  for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) f->written_in[inst->destination + k] = f->search;
}

static bool depends_on_passed(const filler *f, const ftl_draft_inst *inst) {
  for (int32_t k = 0; k < inst->num_sources; k++)
    if (f->written_in[inst->sources[k]] == f->search) return true;
  return f->read_in[inst->destination] == f->search || f->written_in[inst->destination] == f->search;
}

// Moves one instruction of (at, end) up to here; false: there is none.
static bool fill_one(filler *f, int32_t at, int32_t end, int32_t cycles) {
  f->search++;
  pass(f, &f->draft->insts[at]);
  if (end > at + WINDOW) end = at + WINDOW;
  for (int32_t i = at + 1; i < end; i++) {
    const ftl_draft_inst *inst = &f->draft->insts[i];
    if (f->taken[i]) continue;
    if (inst->inst.opcode == FTL_OP_WGMMA_ARRIVE) return false;  // sums behind it stay there (row_sums=behind)
    if (may_move(f, i, cycles) && !depends_on_passed(f, inst)) {
      f->taken[i] = true;
      issue(f, inst);
      return true;
    }
    pass(f, inst);
  }
  return false;
}

static void take_apart(filler *f, int32_t at, int32_t end) {
  ftl_draft_inst part = f->draft->insts[at];
  int32_t repeat = part.inst.repeat;
  part.inst.repeat = 1;
  for (int32_t i = 0; i < repeat; i++) {
    while (f->pipe_free[FTL_PIPE_SFU] > f->now)
      if (!fill_one(f, at, end, f->pipe_free[FTL_PIPE_SFU] - f->now)) break;
    if (i > 0) part.effects |= FTL_EFFECT_READS_DESTINATION | FTL_EFFECT_CONTINUES;
    issue(f, &part);
  }
}

static bool filler_init(filler *f, ftl_draft *draft, const ftl_arch *arch, ftl_arena *arena) {
  int32_t most = 0;
  for (int32_t i = 0; i < draft->num_insts; i++)
    most += draft->insts[i].inst.opcode == FTL_OP_MUFU ? draft->insts[i].inst.repeat : 1;
  *f = (filler){.draft = draft};
  ftl_op_timings_init(&f->timings, arch, &draft->product);
  f->out = FTL_ARENA_NEW(arena, ftl_draft_inst, most);
  f->taken = FTL_ARENA_NEW(arena, bool, draft->num_insts);
  f->ready = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  f->read_in = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  f->written_in = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  f->last_read = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  return f->out && f->taken && f->ready && f->read_in && f->written_in && f->last_read;
}

static void note_last_reads(filler *f, const ftl_stretch *stretch) {
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    const ftl_draft_inst *inst = &f->draft->insts[i];
    for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) f->last_read[ftl_inst_read(f->draft, inst, k)] = i;
  }
}

bool ftl_fill_gaps(ftl_draft *draft, const ftl_flow *flow, const ftl_arch *arch, ftl_arena *arena) {
  filler f;
  if (!filler_init(&f, draft, arch, arena)) return false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
    note_last_reads(&f, stretch);
    for (int32_t i = stretch->begin; i < stretch->end; i++) {
      if (f.taken[i]) continue;
      if (draft->insts[i].inst.opcode == FTL_OP_MUFU)
        take_apart(&f, i, stretch->end);
      else
        issue(&f, &draft->insts[i]);
    }
  }
  while (draft->num_insts < f.num_out && !draft->failed) ftl_draft_add(draft, FTL_OP_NOP, 1);
  if (draft->failed) return false;
  memcpy(draft->insts, f.out, sizeof *f.out * (size_t)f.num_out);
  return true;
}
