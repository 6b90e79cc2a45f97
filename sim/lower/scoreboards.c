// How ptxas gives out scoreboards (control fields of the SASS of kernels/attention/flash1_mma.h, eight instances):
// - One counts groups of cp.async, and one what is first read behind a branch or another end of a stretch.
// - The others are given out a stretch at a time, in program order. A result takes one that is free; it is free again
//   when somebody has waited for it.
// - Loads from shared memory come in order: one whose reader stands behind that of the next has none.
// - Fragments of a second set, loaded long before they are multiplied, go on with one (CUTLASS's multistage mainloop as
//   ptxas 13.0 compiles it for sm_80 and sm_90a, three tiles: of 8 ldmatrix of a k step 5 or 6 and 2 count on one each,
//   with others free).
// - Where none is free the result shares the one that costs least, by ptxas's latencies: if the others' reader comes
//   first it waits for the result too, else the result's reader waits for the others.
#include "lower/scoreboards.h"

#include "lower/op_timing.h"

enum { NONE = -1, NUM_SCOREBOARDS = 6 };

typedef struct scoreboard {
  int32_t waiter;          // the next instruction that waits for it; NONE: free
  int32_t num_loads;       // LDGs that count on it
  int32_t done_cycle;      // of all that counts on it, in the stretch's cycles
  int32_t slowest_value;   // of these, the last of the longest latency
  int32_t slowest_cycles;  // its latency
} scoreboard;

// Of each instruction of the draft, within its stretch.
typedef struct inst_note {
  int32_t issue_cycle, done_cycle;  // in a lone warp, as ptxas takes latencies
  int32_t latency_cycles;
  int32_t reader;            // first to read what it writes; NONE
  int32_t next_shared_load;  // the one behind it; NONE
} inst_note;

typedef struct allotment {
  ftl_draft *draft;
  ftl_op_timings timings;
  inst_note *notes;
  int32_t *by_value;  // when it is ready, or who reads it next
  int32_t num_scoreboards;
  scoreboard scoreboards[NUM_SCOREBOARDS];
  scoreboard *last_ahead;  // of the last fragment that its program loads ahead; NULL: none in this stretch
} allotment;

static bool is_shared_load(const ftl_draft_inst *inst) {
  return inst->inst.opcode == FTL_OP_LDSM || inst->inst.opcode == FTL_OP_LDS;
}

static bool has_variable_latency(const ftl_draft_inst *inst) {
  int opcode = inst->inst.opcode;
  bool loads = is_shared_load(inst) || opcode == FTL_OP_LDG || opcode == FTL_OP_LDL;
  return ftl_inst_num_writes(inst) == 1 && (loads || opcode == FTL_OP_SHFL || opcode == FTL_OP_MUFU);
}

static bool reads(const ftl_draft *draft, const ftl_draft_inst *inst, int32_t value) {
  for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++)
    if (ftl_inst_read(draft, inst, k) == value) return true;
  return false;
}

static void set_accessed(allotment *a, const ftl_draft_inst *inst, int32_t to) {
  for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) a->by_value[ftl_inst_read(a->draft, inst, k)] = to;
  for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) a->by_value[inst->destination + k] = to;
}

static void find_readers(allotment *a, const ftl_stretch *stretch) {
  for (int32_t i = stretch->begin; i < stretch->end; i++) set_accessed(a, &a->draft->insts[i], NONE);
  int32_t next_shared_load = NONE;
  for (int32_t i = stretch->end - 1; i >= stretch->begin; i--) {
    const ftl_draft_inst *inst = &a->draft->insts[i];
    a->notes[i].reader = inst->destination == FTL_NO_VALUE ? NONE : a->by_value[inst->destination];
    a->notes[i].next_shared_load = next_shared_load;
    if (is_shared_load(inst)) next_shared_load = i;
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) a->by_value[inst->destination + k] = NONE;
    for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) a->by_value[ftl_inst_read(a->draft, inst, k)] = i;
  }
}

static void find_cycles(allotment *a, const ftl_stretch *stretch) {
  int32_t pipe_free[FTL_PIPE_COUNT] = {0}, cycle = 0;
  for (int32_t i = stretch->begin; i < stretch->end; i++) set_accessed(a, &a->draft->insts[i], 0);
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    const ftl_draft_inst *inst = &a->draft->insts[i];
    ftl_op_timing timing = ftl_op_timing_of(&a->timings, &inst->inst);
    if (pipe_free[timing.pipe] > cycle) cycle = pipe_free[timing.pipe];
    for (int32_t k = 0; k < ftl_inst_num_reads(inst); k++) {
      int32_t ready = a->by_value[ftl_inst_read(a->draft, inst, k)];
      if (ready > cycle) cycle = ready;
    }
    pipe_free[timing.pipe] = cycle + timing.interval_cycles * inst->inst.repeat;
    int32_t done = pipe_free[timing.pipe] - timing.interval_cycles + timing.latency_cycles;
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) a->by_value[inst->destination + k] = done;
    a->notes[i].issue_cycle = cycle;
    a->notes[i].done_cycle = done;
    a->notes[i].latency_cycles = timing.latency_cycles;
    if (timing.pipe != FTL_PIPE_NONE) cycle += inst->inst.repeat;
  }
}

static bool comes_with_the_next(const allotment *a, int32_t i) {
  int32_t next = a->notes[i].next_shared_load;
  if (!is_shared_load(&a->draft->insts[i]) || next == NONE || next > a->notes[i].reader) return false;
  return a->notes[next].reader != NONE && a->notes[next].reader <= a->notes[i].reader;
}

static int32_t sharing_cycles(const allotment *a, const scoreboard *with, const inst_note *result) {
  bool others_first = with->waiter < result->reader;
  int32_t waiter = others_first ? with->waiter : result->reader;
  int32_t cycles = (others_first ? result->done_cycle : with->done_cycle) - a->notes[waiter].issue_cycle;
  return cycles > 0 ? cycles : 0;
}

// Of the two sets of fragments in CUTLASS's loops those of one are on their way together: each goes on with the
// scoreboard of the one before it as long as nobody waits for that before the data are there.
static bool goes_on_with(const allotment *a, int32_t i) {
  const ftl_draft_inst *inst = &a->draft->insts[i];
  const scoreboard *s = a->last_ahead;
  bool is_ahead = a->draft->buffers_fragments && (inst->effects & FTL_EFFECT_AHEAD) != 0;
  return is_ahead && s != NULL && s->waiter != NONE && sharing_cycles(a, s, &a->notes[i]) == 0;
}

static scoreboard *choose(allotment *a, int32_t i) {
  const inst_note *result = &a->notes[i];
  if (goes_on_with(a, i)) return a->last_ahead;
  scoreboard *best = &a->scoreboards[0];
  for (int32_t n = 0; n < a->num_scoreboards; n++) {
    scoreboard *s = &a->scoreboards[n];
    if (s->waiter == NONE) return s;
    if (sharing_cycles(a, s, result) < sharing_cycles(a, best, result)) best = s;
  }
  return best;
}

static void count_result(allotment *a, int32_t i) {
  const inst_note *result = &a->notes[i];
  scoreboard *s = choose(a, i);
  if (a->draft->insts[i].effects & FTL_EFFECT_AHEAD) a->last_ahead = s;
  if (s->waiter == NONE) *s = (scoreboard){.waiter = result->reader};
  if (result->reader < s->waiter) s->waiter = result->reader;
  if (a->draft->insts[i].inst.opcode == FTL_OP_LDG) {
    s->num_loads++;
    a->draft->insts[i].inst.scoreboard = (uint8_t)(1 + (s - a->scoreboards));
  }
  if (result->done_cycle > s->done_cycle) s->done_cycle = result->done_cycle;
  if (result->latency_cycles < s->slowest_cycles) return;
  s->slowest_cycles = result->latency_cycles;
  s->slowest_value = a->draft->insts[i].destination;
}

static void wait_for_all(allotment *a, int32_t i) {
  ftl_draft_inst *inst = &a->draft->insts[i];
  int32_t longest_latency = 0;
  for (int32_t n = 0; n < a->num_scoreboards; n++) {
    scoreboard *s = &a->scoreboards[n];
    if (s->waiter != i) continue;
    s->waiter = NONE;
    if (s->num_loads > 1) inst->inst.awaits |= (uint8_t)(1 << n);
    if (s->slowest_cycles <= longest_latency || reads(a->draft, inst, s->slowest_value)) continue;
    longest_latency = s->slowest_cycles;
    inst->also_awaits = s->slowest_value;
  }
}

static void share_in_stretch(allotment *a, const ftl_stretch *stretch) {
  find_readers(a, stretch);
  find_cycles(a, stretch);
  for (int32_t n = 0; n < a->num_scoreboards; n++) a->scoreboards[n].waiter = NONE;
  a->last_ahead = NULL;
  for (int32_t i = stretch->begin; i < stretch->end; i++) {
    wait_for_all(a, i);
    if (!has_variable_latency(&a->draft->insts[i]) || a->notes[i].reader == NONE) continue;
    if (!comes_with_the_next(a, i)) count_result(a, i);
  }
}

static bool commits_copies(const ftl_draft *draft) {
  for (int32_t i = 0; i < draft->num_insts; i++)
    if (draft->insts[i].inst.opcode == FTL_OP_CP_COMMIT) return true;
  return false;
}

bool ftl_scoreboards_share(ftl_draft *draft, const ftl_flow *flow, const ftl_arch *arch, ftl_arena *arena) {
  allotment a = {.draft = draft,
                 .notes = FTL_ARENA_NEW(arena, inst_note, draft->num_insts),
                 .by_value = FTL_ARENA_NEW(arena, int32_t, draft->num_values),
                 .num_scoreboards = NUM_SCOREBOARDS - 1 - (commits_copies(draft) ? 1 : 0)};
  if (!a.notes || !a.by_value) return false;
  ftl_op_timings_init(&a.timings, arch, &draft->product);
  for (int32_t s = 0; s < flow->num_stretches; s++) share_in_stretch(&a, &flow->stretches[s]);
  return true;
}
