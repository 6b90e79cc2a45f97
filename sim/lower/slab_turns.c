#include "lower/slab_turns.h"

#include <stdlib.h>
#include <string.h>

#include "lower/dag.h"
#include "lower/wgmma_pressure.h"

enum { NONE = -1 };

// Where exponentials read accumulators themselves slabs take turns only if no more registers than this are needed in
// turn beyond those that there are. Read off Triton's kernels at head_dim 128: those that need 20 more do (256 x 128, 8
// warps, no mask), those that need 28 (128 x 128, 4 warps) and 32 or more (causal) do not.
enum { MOST_BEYOND_CAP_READ_LATE = 24 };

// ---- whether slabs can take turns ----

static bool is_wgmma_control(const ftl_draft_inst *inst) {
  uint8_t op = inst->inst.opcode;
  return op == FTL_OP_WGMMA || op == FTL_OP_WGMMA_ARRIVE || op == FTL_OP_WGMMA_COMMIT || op == FTL_OP_WGMMA_WAIT;
}

// RING_READ and RING_FREE are no instructions: they only tell the checker who reads a buffer.
static bool is_barrier(const ftl_draft_inst *inst) {
  bool is_pseudo = inst->inst.opcode == FTL_OP_RING_READ || inst->inst.opcode == FTL_OP_RING_FREE;
  return (inst->effects & FTL_EFFECT_FENCE) && !is_wgmma_control(inst) && !is_pseudo;
}

static bool writes(const ftl_draft_inst *inst, int32_t value) {
  return value >= inst->destination && value < inst->destination + ftl_inst_num_writes(inst);
}

static bool is_packed_before(const ftl_draft_inst *first, int32_t node, int32_t value) {
  for (int32_t i = node - 1; i >= 0; i--)
    if (writes(&first[i], value)) return first[i].inst.opcode == FTL_OP_CVT;
  return false;
}

// The first wgmma of the stretch whose operand is packed in it; NONE: there is none.
static int32_t first_consumer(const ftl_draft_inst *first, int32_t num_nodes) {
  for (int32_t node = 0; node < num_nodes; node++)
    for (int32_t k = 0; first[node].inst.opcode == FTL_OP_WGMMA && k < first[node].num_sources; k++)
      if (is_packed_before(first, node, first[node].sources[k])) return node;
  return NONE;
}

static bool begins_accumulator(const ftl_draft_inst *inst) {
  return inst->inst.opcode == FTL_OP_WGMMA && !(inst->effects & FTL_EFFECT_READS_DESTINATION);
}

static bool is_read_late(const ftl_draft *draft, const ftl_draft_inst *product) {
  for (int32_t k = 0; k < ftl_inst_num_writes(product); k++)
    if (draft->values[product->destination + k].is_read_late) return true;
  return false;
}

typedef enum slab_use { NO_SLABS, STAY, TAKE_TURNS } slab_use;

// Of the accumulators that are begun in the stretch before the first operand made of them is multiplied.
static slab_use use_of(const ftl_draft_inst *first, int32_t num_nodes) {
  int32_t consumer = first_consumer(first, num_nodes), num_slabs = 0, num_wgmmas = 0;
  bool is_open = false, can = true;
  for (int32_t node = 0; node < consumer; node++) {
    const ftl_draft_inst *inst = &first[node];
    num_wgmmas = inst->inst.opcode == FTL_OP_WGMMA_ARRIVE ? 0 : num_wgmmas + (inst->inst.opcode == FTL_OP_WGMMA);
    can &= num_wgmmas < 2 && !(is_open && is_barrier(inst));
    if (!begins_accumulator(inst)) continue;
    is_open = true;
    num_slabs++;
  }
  if (num_slabs < 2) return NO_SLABS;
  return can ? TAKE_TURNS : STAY;
}

// All that have slabs, or none: what leaves registers in one loop is in memory in all.
static bool all_take_turns(const ftl_draft *draft, const ftl_flow *flow) {
  bool any = false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
    slab_use use = use_of(&draft->insts[stretch->begin], stretch->end - stretch->begin);
    if (use == STAY) return false;
    any |= use == TAKE_TURNS;
  }
  return any;
}

// Of any loop's slabs that take turns.
static bool any_is_read_late(const ftl_draft *draft) {
  for (int32_t i = 0; i < draft->num_insts; i++)
    if (begins_accumulator(&draft->insts[i]) && is_read_late(draft, &draft->insts[i])) return true;
  return false;
}

// ---- the order ----

typedef struct place {
  int32_t behind;  // of the nodes that stay, the last that it depends on; NONE: none. A node that stays: itself
  int32_t key;     // its place among all; of equals the first in the program
  int32_t node;
  bool stays, is_derived;  // from what a wgmma has left
} place;

static int compare(const void *x, const void *y) {
  const place *a = x, *b = y;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return (a->node > b->node) - (a->node < b->node);
}

static bool stays(const ftl_draft_inst *inst) {
  return is_wgmma_control(inst) || (inst->effects & (FTL_EFFECT_FENCE | FTL_EFFECT_MEMORY)) != 0;
}

// What derives from a wgmma's result goes right behind the last node that it depends on of those that stay, and what it
// needs besides no later. All else has the place that it has in the program.
static void find_places(const ftl_draft_inst *first, int32_t num_nodes, const ftl_dag *dag, place *places) {
  const ftl_dag_node *nodes = ftl_dag_nodes(dag);
  const ftl_dag_edge *edges = ftl_dag_edges(dag);
  for (int32_t node = 0; node < num_nodes; node++) {
    place *p = &places[node];
    *p = (place){.behind = NONE, .key = node, .node = node, .stays = stays(&first[node])};
    for (int32_t e = nodes[node].first_edge; e < nodes[node].first_edge + nodes[node].num_edges; e++) {
      const place *earlier = &places[edges[e].node];
      p->is_derived |= earlier->is_derived;
      if (earlier->behind > p->behind) p->behind = earlier->behind;
    }
    if (p->stays) {
      p->behind = node;
      p->is_derived = first[node].inst.opcode == FTL_OP_WGMMA_WAIT;
    } else if (p->is_derived) {
      p->key = p->behind;
    }
  }
  for (int32_t node = num_nodes - 1; node >= 0; node--)
    for (int32_t e = nodes[node].first_edge; e < nodes[node].first_edge + nodes[node].num_edges; e++) {
      place *earlier = &places[edges[e].node];
      if (!earlier->stays && !earlier->is_derived && earlier->key > places[node].key) earlier->key = places[node].key;
    }
}

static void reorder(ftl_draft_inst *first, int32_t num_nodes, place *places, ftl_draft_inst *scratch) {
  qsort(places, (size_t)num_nodes, sizeof *places, compare);
  memcpy(scratch, first, sizeof *first * (size_t)num_nodes);
  for (int32_t i = 0; i < num_nodes; i++) first[i] = scratch[places[i].node];
}

static bool reorder_all(ftl_draft *draft, const ftl_flow *flow, const ftl_op_timings *timings, ftl_dag *dag,
                        ftl_arena *arena) {
  place *places = FTL_ARENA_NEW(arena, place, draft->num_insts);
  ftl_draft_inst *scratch = FTL_ARENA_NEW(arena, ftl_draft_inst, draft->num_insts);
  if (!places || !scratch) return false;
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    const ftl_stretch *stretch = &flow->stretches[s];
    ftl_draft_inst *first = &draft->insts[stretch->begin];
    int32_t num_nodes = stretch->end - stretch->begin;
    if (use_of(first, num_nodes) != TAKE_TURNS) continue;
    if (!ftl_dag_build(dag, draft, stretch, timings)) return false;
    find_places(first, num_nodes, dag, places);
    reorder(first, num_nodes, places, scratch);
  }
  return true;
}

// Of the order at hand; negative when memory is out.
typedef struct need {
  int32_t held;  // by wgmmas at once
  int32_t all;   // live at once
} need;

static need need_of(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, ftl_arena *arena) {
  uint64_t *of_wgmmas = FTL_ARENA_NEW(arena, uint64_t, 2 * liveness->num_words);
  uint64_t *of_all = FTL_ARENA_NEW(arena, uint64_t, liveness->num_words);
  if (!of_wgmmas || !of_all) return (need){-1, -1};
  return (need){.held = ftl_wgmma_pressure(draft, flow, liveness, of_wgmmas),
                .all = ftl_liveness_max(draft, flow, liveness, of_all, NULL)};
}

bool ftl_slabs_take_turns(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, const ftl_arch *arch,
                          int32_t cap, ftl_arena *arena) {
  if (!all_take_turns(draft, flow)) return true;
  need of_written = need_of(draft, flow, liveness, arena);
  if (of_written.held < cap) return of_written.held >= 0;
  size_t bytes = sizeof *draft->insts * (size_t)draft->num_insts;
  ftl_draft_inst *written = FTL_ARENA_NEW(arena, ftl_draft_inst, draft->num_insts);
  ftl_dag *dag = ftl_dag_create(draft->num_values, draft->num_insts);
  ftl_op_timings timings;
  ftl_op_timings_init(&timings, arch, &draft->product);
  bool done = written && dag;
  if (done) {
    memcpy(written, draft->insts, bytes);
    int32_t most = any_is_read_late(draft) ? cap + MOST_BEYOND_CAP_READ_LATE : INT32_MAX;
    done = reorder_all(draft, flow, &timings, dag, arena);
    need in_turn = done ? need_of(draft, flow, liveness, arena) : (need){-1, -1};
    done = in_turn.held >= 0;
    if (in_turn.held >= cap || in_turn.all > most) memcpy(draft->insts, written, bytes);
  }
  ftl_dag_destroy(dag);
  return done;
}
