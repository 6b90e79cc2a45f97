#include "lower/early_waits.h"

#include <string.h>

#include "lower/op_timing.h"

enum { MAX_GROUPS = 64 };

typedef struct mover {
  ftl_draft *draft;
  ftl_op_timings timings;
  int64_t *time;               // by position: cycles of issue before it, in program order
  int64_t done[MAX_GROUPS];    // by group modulo MAX_GROUPS: when its last wgmma is taken to be done
  int32_t num_groups, lowest;  // position behind the last instruction that nothing moves past
} mover;

static int64_t issue_cycles(const mover *m, const ftl_warp_inst *inst) {
  ftl_op_timing timing = ftl_op_timing_of(&m->timings, inst);
  if (inst->opcode == FTL_OP_WGMMA) return 1;  // its interval is the tensor core's
  return (int64_t)inst->repeat * (timing.interval_cycles > 0 ? timing.interval_cycles : 0);
}

static bool stays(const ftl_draft_inst *inst) {
  return (inst->effects & (FTL_EFFECT_FENCE | FTL_EFFECT_PINNED)) != 0 || inst->inst.opcode == FTL_OP_WGMMA;
}

// The wait at `from` and the releases behind it go to `to`, what lies between follows them.
static void move_up(mover *m, int32_t from, int32_t to) {
  enum { MOST = 8 };
  ftl_draft_inst moved[MOST], *insts = m->draft->insts;
  int32_t count = 1;
  while (count < MOST && from + count < m->draft->num_insts && insts[from + count].inst.opcode == FTL_OP_MBAR_RELEASE)
    count++;
  memcpy(moved, &insts[from], sizeof *moved * (size_t)count);
  memmove(&insts[to + count], &insts[to], sizeof *insts * (size_t)(from - to));
  memcpy(&insts[to], moved, sizeof *moved * (size_t)count);
}

// Gives the position from which to go on.
static int32_t place_wait(mover *m, int32_t at) {
  int32_t group = m->num_groups - 1 - m->draft->insts[at].inst.arg, to = m->lowest;
  if (group < 0) return at;
  while (to < at && m->time[to] < m->done[group % MAX_GROUPS]) to++;
  if (to < at) move_up(m, at, to);
  return to;
}

bool ftl_waits_move_up(ftl_draft *draft, const ftl_arch *arch, ftl_arena *arena) {
  mover m = {.draft = draft, .time = FTL_ARENA_NEW(arena, int64_t, draft->num_insts + 1)};
  if (!m.time) return false;
  ftl_op_timings_init(&m.timings, arch, &draft->product);
  int64_t last_wgmma_done = 0;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    if (draft->insts[i].inst.opcode == FTL_OP_WGMMA_WAIT) i = place_wait(&m, i);
    const ftl_draft_inst *inst = &draft->insts[i];
    if (inst->inst.opcode == FTL_OP_WGMMA)
      last_wgmma_done = m.time[i] + ftl_op_timing_of(&m.timings, &inst->inst).latency_cycles;
    if (inst->inst.opcode == FTL_OP_WGMMA_COMMIT) m.done[m.num_groups++ % MAX_GROUPS] = last_wgmma_done;
    m.time[i + 1] = m.time[i] + issue_cycles(&m, &inst->inst);
    if (stays(inst)) m.lowest = i + 1;
  }
  return true;
}
