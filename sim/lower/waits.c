// What each WGMMA_WAIT settles. A wgmma reads its register operands and writes its accumulator until it has been waited
// for, so both must stay untouched until then. Groups are counted as the hardware counts them; a loop's body is walked
// twice, so that groups left in flight at its end reach the waits at its start.
#include <stdlib.h>
#include <string.h>

#include "lower/flow.h"

typedef struct flight {
  int32_t value, group;  // group: number of commits before the one that closes it
} flight;

typedef struct flights {
  flight *entries;
  int32_t num_entries;
  int32_t num_commits;
} flights;

typedef struct settled {
  int32_t inst, value;
} settled;

typedef struct walker {
  ftl_draft *draft;
  ftl_arena *arena;
  flights now;
  settled *found;
  int32_t num_found, capacity_found;
  bool failed;
} walker;

static void take_off(walker *w, int32_t value) {
  for (int32_t i = 0; i < w->now.num_entries; i++) {
    if (w->now.entries[i].value != value) continue;
    w->now.entries[i].group = w->now.num_commits;
    return;
  }
  w->now.entries[w->now.num_entries++] = (flight){value, w->now.num_commits};
}

static void note_settled(walker *w, int32_t inst, int32_t value) {
  if (w->num_found == w->capacity_found) {
    int32_t capacity = w->capacity_found ? w->capacity_found * 2 : 64;
    settled *larger = realloc(w->found, (size_t)capacity * sizeof *larger);
    if (!larger) {
      w->failed = true;
      return;
    }
    w->found = larger;
    w->capacity_found = capacity;
  }
  w->found[w->num_found++] = (settled){inst, value};
}

static void land(walker *w, int32_t inst_idx, int32_t groups_left) {
  int32_t kept = 0;
  for (int32_t i = 0; i < w->now.num_entries; i++) {
    flight entry = w->now.entries[i];
    if (entry.group < w->now.num_commits - groups_left) {
      note_settled(w, inst_idx, entry.value);
    } else {
      w->now.entries[kept++] = entry;
    }
  }
  w->now.num_entries = kept;
}

// A loop may run no iteration: what was in flight before it may be so after it, as many groups back.
static void rejoin(walker *w, const flights *before) {
  for (int32_t i = 0; i < before->num_entries; i++) {
    flight entry = before->entries[i];
    bool known = false;
    for (int32_t k = 0; k < w->now.num_entries; k++) known |= w->now.entries[k].value == entry.value;
    if (known) continue;
    entry.group += w->now.num_commits - before->num_commits;
    w->now.entries[w->now.num_entries++] = entry;
  }
}

static flights copy_of(walker *w, const flights *from) {
  flights copy = *from;
  copy.entries = FTL_ARENA_NEW(w->arena, flight, from->num_entries);
  w->failed |= !copy.entries;
  if (copy.entries && from->num_entries)
    memcpy(copy.entries, from->entries, sizeof(flight) * (size_t)from->num_entries);
  return copy;
}

static int32_t end_of_loop(const ftl_draft *draft, int32_t loop) {
  int32_t depth = 0;
  for (int32_t i = loop; i < draft->num_insts; i++) {
    depth += (draft->insts[i].inst.opcode == FTL_OP_LOOP) - (draft->insts[i].inst.opcode == FTL_OP_END_LOOP);
    if (depth == 0) return i;
  }
  return draft->num_insts;
}

static void walk(walker *w, int32_t begin, int32_t end) {
  for (int32_t i = begin; i < end && !w->failed; i++) {
    const ftl_draft_inst *inst = &w->draft->insts[i];
    switch (inst->inst.opcode) {
      case FTL_OP_WGMMA:
        for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) take_off(w, inst->destination + k);
        for (int32_t k = 0; k < inst->num_sources; k++) take_off(w, inst->sources[k]);
        break;
      case FTL_OP_WGMMA_COMMIT:
        w->now.num_commits++;
        break;
      case FTL_OP_WGMMA_WAIT:
        land(w, i, inst->inst.arg);
        break;
      case FTL_OP_LOOP: {
        int32_t body_end = end_of_loop(w->draft, i);
        flights before = copy_of(w, &w->now);
        if (w->failed) return;
        walk(w, i + 1, body_end);
        walk(w, i + 1, body_end);
        rejoin(w, &before);
        i = body_end;
        break;
      }
      default:
        break;
    }
  }
}

static int compare(const void *left, const void *right) {
  const settled *a = left, *b = right;
  if (a->inst != b->inst) return a->inst < b->inst ? -1 : 1;
  return (a->value > b->value) - (a->value < b->value);
}

static void attach(walker *w) {
  if (w->num_found) qsort(w->found, (size_t)w->num_found, sizeof *w->found, compare);
  for (int32_t i = 0; i < w->num_found; i++) {
    if (i > 0 && compare(&w->found[i - 1], &w->found[i]) == 0) continue;
    ftl_draft_inst *inst = &w->draft->insts[w->found[i].inst];
    if (inst->num_waits == 0) inst->first_wait = w->draft->num_waits;
    if (!ftl_draft_add_wait(w->draft, w->found[i].value)) return;
    inst->num_waits++;
  }
}

ftl_status ftl_waits_find(ftl_draft *draft, ftl_arena *arena, ftl_error *error) {
  walker w = {.draft = draft, .arena = arena};
  w.now.entries = FTL_ARENA_NEW(arena, flight, draft->num_values);
  w.failed = !w.now.entries;
  if (!w.failed) walk(&w, 0, draft->num_insts);
  if (!w.failed) attach(&w);
  free(w.found);
  if (w.failed || draft->failed) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  return FTL_OK;
}
