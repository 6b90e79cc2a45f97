#include "lower/turns.h"

enum { FARTHEST = 1024 };    // instructions that one may pass: keeps long stretches near O(n)
enum { MOST_STARTED = 64 };  // values whose lives one instruction may lengthen

// A node before its turn: what it makes live over the nodes it passes, going backwards.
typedef struct passing {
  int32_t started[MOST_STARTED];
  int32_t num_started;  // MOST_STARTED + 1: more than can be followed
  int32_t change;       // of the registers live at the node passed last
} passing;

bool ftl_turns_init(ftl_turns *turns, const ftl_draft *draft, int32_t max_nodes, ftl_arena *arena) {
  *turns = (ftl_turns){.draft = draft, .last = -1};
  turns->pressure = FTL_ARENA_NEW(arena, int32_t, max_nodes);
  turns->placed = FTL_ARENA_NEW(arena, bool, max_nodes);
  return turns->pressure && turns->placed;
}

int32_t ftl_turns_start(ftl_turns *turns, const ftl_draft_inst *first, int32_t num_nodes, uint64_t *live_out,
                        int32_t num_words) {
  turns->first = first;
  turns->last = num_nodes - 1;
  for (int32_t node = 0; node < num_nodes; node++) turns->placed[node] = false;
  return ftl_live_pressure(turns->draft, first, num_nodes, live_out, num_words, turns->pressure);
}

static void start(const ftl_turns *turns, passing *p, int32_t value) {
  if (p->num_started > MOST_STARTED) return;
  for (int32_t k = 0; k < p->num_started; k++)
    if (p->started[k] == value) return;
  if (p->num_started < MOST_STARTED) p->started[p->num_started] = value;
  p->num_started++;
  p->change += turns->draft->values[value].num_registers;
}

static bool reads(const ftl_turns *turns, const ftl_draft_inst *inst, int32_t value) {
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++)
    if (ftl_inst_read(turns->draft, inst, k) == value) return true;
  return false;
}

// False if it reads more than can be followed.
static bool begin(const ftl_turns *turns, const uint64_t *live, int32_t node, passing *p) {
  const ftl_draft_inst *inst = &turns->first[node];
  p->num_started = p->change = 0;
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) {
    int32_t value = ftl_inst_read(turns->draft, inst, k);
    if (!ftl_set_has(live, value)) start(turns, p, value);
  }
  for (int32_t k = 0; ftl_inst_overwrites(inst) && k < ftl_inst_num_writes(inst); k++) {
    int32_t value = inst->destination + k;
    if (ftl_set_has(live, value) && !reads(turns, inst, value)) p->change -= turns->draft->values[value].num_registers;
  }
  return p->num_started <= MOST_STARTED;
}

// What the node passed reads would have been live before it anyway.
static void pass(const ftl_turns *turns, const ftl_draft_inst *passed, passing *p) {
  int32_t kept = 0;
  for (int32_t k = 0; k < p->num_started; k++) {
    if (reads(turns, passed, p->started[k])) {
      p->change -= turns->draft->values[p->started[k]].num_registers;
    } else {
      p->started[kept++] = p->started[k];
    }
  }
  p->num_started = kept;
}

bool ftl_turns_allow(const ftl_turns *turns, const uint64_t *live, int32_t node, int32_t limit) {
  passing p;
  if (node == turns->last) return true;
  if (turns->last - node > FARTHEST || !begin(turns, live, node, &p)) return false;
  for (int32_t passed = turns->last; passed > node; passed--) {
    if (turns->placed[passed]) continue;
    if (turns->pressure[passed] + p.change > limit) return false;
    pass(turns, &turns->first[passed], &p);
  }
  return true;
}

void ftl_turns_take(ftl_turns *turns, const uint64_t *live, int32_t node) {
  passing p;
  turns->placed[node] = true;
  if (node != turns->last && begin(turns, live, node, &p)) {
    for (int32_t passed = turns->last; passed > node; passed--) {
      if (turns->placed[passed]) continue;
      turns->pressure[passed] += p.change;
      pass(turns, &turns->first[passed], &p);
    }
  }
  while (turns->last >= 0 && turns->placed[turns->last]) turns->last--;
}
