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

// Arithmetic that writes over one of its operands: no more registers are live if it comes sooner.
static bool may_move(const filler *f, const ftl_draft_inst *inst, int32_t cycles) {
  if (inst->inst.opcode != FTL_OP_FFMA || inst->inst.repeat > cycles || inst->effects != 0) return false;
  bool in_place = false;
  for (int32_t k = 0; k < inst->num_sources; k++) {
    in_place |= inst->sources[k] == inst->destination;
    if (f->ready[inst->sources[k]] > f->now) return false;
  }
  return in_place;
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
    if (may_move(f, inst, cycles) && !depends_on_passed(f, inst)) {
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
  return f->out && f->taken && f->ready && f->read_in && f->written_in;
}

bool ftl_fill_gaps(ftl_draft *draft, const ftl_flow *flow, const ftl_arch *arch, ftl_arena *arena) {
  filler f;
  if (!filler_init(&f, draft, arch, arena)) return false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
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
