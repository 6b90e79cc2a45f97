#include "lower/dag.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

// A list of nodes that grows at its head; links live in one pool.
typedef struct link {
  int32_t node, next;
  int32_t latency_cycles;  // members of an order: to the mark that follows
} link;

// Marks are ordered against each other and against all members; members are free among themselves.
typedef struct order {
  int32_t last_mark, members;
} order;

typedef struct value_state {
  int32_t stretch_stamp;
  int32_t last_writer, readers;
  int32_t product_cycles;  // of the products behind which the last writer stands
} value_state;

struct ftl_dag {
  ftl_dag_node *nodes;
  ftl_dag_edge *edges;
  link *links;
  value_state *values;
  int32_t num_edges, capacity_edges, num_links, capacity_links;
  int32_t stamp;
  order memory, tiles, rings[FTL_TILE_MAX_RINGS];
  int32_t last_chained, last_copy_wait, last_copy;
  int32_t products;        // a list of those that no copy has followed yet
  int32_t product_cycles;  // that those which have been added take to issue
  int32_t loads_cycles;    // that the fragments take to issue which have been loaded ahead since the last product
  int32_t pipe_free_at[FTL_PIPE_COUNT];  // in program order
  bool failed;
};

ftl_dag *ftl_dag_create(int32_t num_values, int32_t max_nodes) {
  ftl_dag *dag = calloc(1, sizeof *dag);
  if (!dag) return NULL;
  dag->nodes = calloc((size_t)max_nodes + 1, sizeof *dag->nodes);
  dag->values = calloc((size_t)num_values + 1, sizeof *dag->values);
  if (dag->nodes && dag->values) return dag;
  ftl_dag_destroy(dag);
  return NULL;
}

void ftl_dag_destroy(ftl_dag *dag) {
  if (!dag) return;
  free(dag->nodes);
  free(dag->edges);
  free(dag->links);
  free(dag->values);
  free(dag);
}

const ftl_dag_node *ftl_dag_nodes(const ftl_dag *dag) { return dag->nodes; }
const ftl_dag_edge *ftl_dag_edges(const ftl_dag *dag) { return dag->edges; }

static void *grow(void *array, int32_t *capacity, size_t element_bytes) {
  int32_t wanted = *capacity ? *capacity * 2 : 1024;
  void *larger = realloc(array, (size_t)wanted * element_bytes);
  if (larger) *capacity = wanted;
  return larger;
}

static void push(ftl_dag *dag, int32_t *head, int32_t node, int32_t latency_cycles) {
  if (dag->num_links == dag->capacity_links) {
    link *larger = grow(dag->links, &dag->capacity_links, sizeof *larger);
    if (!larger) {
      dag->failed = true;
      return;
    }
    dag->links = larger;
  }
  dag->links[dag->num_links] = (link){node, *head, latency_cycles};
  *head = dag->num_links++;
}

// `node` must be the one whose edges are being added.
static void add_edge(ftl_dag *dag, int32_t node, int32_t earlier, int32_t latency_cycles) {
  if (earlier == NONE || earlier == node) return;
  if (dag->num_edges == dag->capacity_edges) {
    ftl_dag_edge *larger = grow(dag->edges, &dag->capacity_edges, sizeof *larger);
    if (!larger) {
      dag->failed = true;
      return;
    }
    dag->edges = larger;
  }
  dag->edges[dag->num_edges++] = (ftl_dag_edge){earlier, latency_cycles, latency_cycles};
  dag->nodes[node].num_edges++;
  dag->nodes[earlier].num_later++;
  int32_t depth = dag->nodes[earlier].depth_cycles + latency_cycles;
  if (depth > dag->nodes[node].depth_cycles) dag->nodes[node].depth_cycles = depth;
}

static void order_member(ftl_dag *dag, order *class, int32_t node, int32_t latency_cycles) {
  add_edge(dag, node, class->last_mark, 0);
  push(dag, &class->members, node, latency_cycles);
}

static void order_mark(ftl_dag *dag, order *class, int32_t node) {
  add_edge(dag, node, class->last_mark, 0);
  for (int32_t at = class->members; at != NONE; at = dag->links[at].next)
    add_edge(dag, node, dag->links[at].node, dag->links[at].latency_cycles);
  *class = (order){node, NONE};
}

static value_state *state_of(ftl_dag *dag, int32_t value) {
  value_state *state = &dag->values[value];
  if (state->stretch_stamp != dag->stamp) *state = (value_state){dag->stamp, NONE, NONE, 0};
  return state;
}

// The tensor core adds a chain of wgmmas in order without the warp waiting between them.
static int32_t raw_latency(const ftl_op_timings *timings, const ftl_warp_inst *writer, const ftl_warp_inst *reader) {
  if (writer->opcode == FTL_OP_WGMMA && reader->opcode == FTL_OP_WGMMA) return 1;
  ftl_op_timing timing = ftl_op_timing_of(timings, writer);
  bool guards =
      ftl_sets_predicate(writer->opcode, writer->arg) && ftl_is_guarded_by_predicate(reader->opcode, reader->arg);
  int32_t latency = guards ? timings->guard_latency_cycles : timing.latency_cycles;
  return latency + (writer->repeat - 1) * timing.interval_cycles;
}

// Of the two sets of fragments in CUTLASS's loops one is loaded before the products with the other begin: ptxas leaves
// it as many products ahead of its own while registers last.
static int32_t ahead_cycles(const ftl_dag *dag, const value_state *state, const ftl_draft_inst *first) {
  return first[state->last_writer].effects & FTL_EFFECT_AHEAD ? dag->product_cycles - state->product_cycles + 1 : 0;
}

static void read_value(ftl_dag *dag, int32_t node, int32_t value, const ftl_draft_inst *first,
                       const ftl_op_timings *timings) {
  value_state *state = state_of(dag, value);
  if (state->last_writer != NONE) {
    int32_t latency = raw_latency(timings, &first[state->last_writer].inst, &first[node].inst);
    int32_t ahead = ahead_cycles(dag, state, first);
    add_edge(dag, node, state->last_writer, latency);
    if (ahead > latency && !dag->failed) dag->edges[dag->num_edges - 1].lead_cycles = ahead;
  }
  push(dag, &state->readers, node, 0);
}

static void write_value(ftl_dag *dag, int32_t node, int32_t value) {
  value_state *state = state_of(dag, value);
  if (state->readers == NONE) add_edge(dag, node, state->last_writer, 1);
  for (int32_t at = state->readers; at != NONE; at = dag->links[at].next) add_edge(dag, node, dag->links[at].node, 0);
  state->last_writer = node;
  state->readers = NONE;
  state->product_cycles = dag->product_cycles;
}

// ptxas moves no cp.async ahead of the products that the program has before it, however long the copy will be awaited
// (SASS of kernels/attention/flash2_mma.h, one buffer), nor an ldmatrix ahead of the copies before it: both access
// shared memory (11 loops of that file: no LDSM stands ahead of or among LDGSTS that it follows in the program). Nor an
// STS: of flash1_mma.h all outputs are put behind the last product, though the first are there 100 cycles before.
// The copies that CUTLASS's multistage mainloop spreads over a step's products (AMID) stand among them: between the
// fragments that the program loads before and after them.
static void follow_products(ftl_dag *dag, int32_t node) {
  for (int32_t at = dag->products; at != NONE; at = dag->links[at].next) add_edge(dag, node, dag->links[at].node, 0);
}

static void add_orders(ftl_dag *dag, int32_t node, const ftl_draft_inst *inst, const ftl_op_timings *timings) {
  const ftl_warp_inst *op = &inst->inst;
  if (op->opcode == FTL_OP_RING_READ || op->opcode == FTL_OP_RING_FREE) {
    order_mark(dag, &dag->rings[op->arg], node);
    order_member(dag, &dag->memory, node, 0);  // a wgmma's reads end with its wait, which is a fence
    return;
  }
  if (op->opcode == FTL_OP_TILE) {
    order_mark(dag, &dag->tiles, node);
    return;
  }
  if (inst->effects & FTL_EFFECT_FENCE) {
    order_mark(dag, &dag->memory, node);
  } else if (inst->effects & FTL_EFFECT_MEMORY) {
    order_member(dag, &dag->memory, node, inst->effects & FTL_EFFECT_AMID ? 0 : ftl_op_background_cycles(timings, op));
  }
  if (inst->effects & FTL_EFFECT_CHAIN) {
    add_edge(dag, node, dag->last_chained, 0);
    dag->last_chained = node;
  }
  if (op->opcode == FTL_OP_MMA) {
    push(dag, &dag->products, node, 0);
    dag->loads_cycles = 0;
    dag->product_cycles += op->repeat * ftl_op_timing_of(timings, op).interval_cycles;
  }
  if (op->opcode == FTL_OP_STS) follow_products(dag, node);
  if (op->opcode == FTL_OP_LDSM) add_edge(dag, node, dag->last_copy, 0);
  if (op->opcode == FTL_OP_CP_ASYNC) {
    if ((inst->effects & FTL_EFFECT_AMID) == 0) {
      follow_products(dag, node);
      dag->products = NONE;
    }
    dag->last_copy = node;
  }
  if (op->access != FTL_NO_ACCESS) order_member(dag, &dag->tiles, node, 0);
  if (op->ring_a != FTL_NO_RING) order_member(dag, &dag->rings[op->ring_a], node, 0);
  if (op->ring_b != FTL_NO_RING) order_member(dag, &dag->rings[op->ring_b], node, 0);
}

// What reads an accumulator that a wgmma's operand is packed from has done so before the product begins: ptxas sums
// exponentials between them, not beside the product, whether the operand lies in the accumulator's registers (SASS of
// kernels/attention/flash2_wgmma.h) or in others, in flight until the next step (kernels/foreign/triton_attention.py).
// Of the latter some sums stand behind (FlexAttention's template, Triton 3.6).
static void follow_readers(ftl_dag *dag, const ftl_draft *draft, const ftl_draft_inst *first, int32_t node,
                           int32_t operand) {
  int32_t packed_by = state_of(dag, operand)->last_writer;
  if (packed_by == NONE || first[packed_by].inst.opcode != FTL_OP_CVT) return;
  for (int32_t k = 0; k < first[packed_by].num_sources; k++)
    if (draft->values[first[packed_by].sources[k]].is_apart) return;
  for (int32_t k = 0; k < first[packed_by].num_sources; k++) {
    const value_state *accumulator = state_of(dag, ftl_inst_read(draft, &first[packed_by], k));
    for (int32_t at = accumulator->readers; at != NONE; at = dag->links[at].next)
      add_edge(dag, node, dag->links[at].node, 0);
  }
}

// The wgmmas behind a fence, up to the next commit.
static int32_t group_size(const ftl_draft_inst *first, int32_t fence, int32_t num_nodes) {
  int32_t count = 0;
  for (int32_t later = fence + 1; later < num_nodes && first[later].inst.opcode != FTL_OP_WGMMA_COMMIT; later++)
    count += first[later].inst.opcode == FTL_OP_WGMMA;
  return count;
}

// WGMMA_ARRIVE (wgmma.fence) settles the registers of the products up to the next commit: it reads their accumulators
// and register operands, so that nothing that makes one of them may follow it. Where registers suffice for one wgmma at
// a time only, the operand is not settled as a whole, and what else reads the accumulator may stand between them.
static void read_group(ftl_dag *dag, const ftl_draft *draft, const ftl_draft_inst *first, int32_t node,
                       int32_t num_nodes, const ftl_op_timings *timings) {
  bool is_serial = group_size(first, node, num_nodes) == 1;
  for (int32_t later = node + 1; later < num_nodes; later++) {
    const ftl_draft_inst *inst = &first[later];
    if (inst->inst.opcode == FTL_OP_WGMMA_COMMIT) return;
    if (inst->inst.opcode != FTL_OP_WGMMA) continue;
    int32_t num_reads = ftl_inst_num_reads(inst);
    for (int32_t k = 0; k < num_reads; k++) {
      read_value(dag, node, ftl_inst_read(draft, inst, k), first, timings);
      if (!is_serial) follow_readers(dag, draft, first, node, ftl_inst_read(draft, inst, k));
    }
  }
}

// In code with two sets of fragments products and exponentials have their turns in their pipes at the earliest, as the
// program has them: ptxas issues the first product with V behind the exponentials that it needs, not behind as many as
// there is time for (SASS of PyTorch's FlashAttention-2 at head_dim 64, sm_90: 20 of 132; without this 56).
static void take_turn(ftl_dag *dag, int32_t node, const ftl_draft_inst *inst, const ftl_op_timings *timings) {
  if (inst->inst.opcode != FTL_OP_MMA && inst->inst.opcode != FTL_OP_MUFU) return;
  ftl_op_timing timing = ftl_op_timing_of(timings, &inst->inst);
  int32_t *free_at = &dag->pipe_free_at[timing.pipe];
  if (dag->nodes[node].depth_cycles < *free_at) dag->nodes[node].depth_cycles = *free_at;
  *free_at = dag->nodes[node].depth_cycles + timing.interval_cycles * inst->inst.repeat;
}

// Of the fragments that are loaded between two products those that are issued within the latency of the first stand
// before the second, the others as much farther behind: in PyTorch's kernel at head_dim 64 (sm_90) 8 of 20 before the
// first product of a step, 14 before the fifth.
static void put_ahead(ftl_dag *dag, const ftl_draft_inst *inst, const ftl_op_timings *timings) {
  ftl_op_timing timing = ftl_op_timing_of(timings, &inst->inst);
  int32_t late_cycles = dag->loads_cycles - timing.latency_cycles;
  if (late_cycles > 0) state_of(dag, inst->destination)->product_cycles += late_cycles;
  dag->loads_cycles += timing.interval_cycles > inst->inst.wavefronts ? timing.interval_cycles : inst->inst.wavefronts;
}

static void add_node(ftl_dag *dag, const ftl_draft *draft, const ftl_draft_inst *first, int32_t node, int32_t num_nodes,
                     const ftl_op_timings *timings) {
  const ftl_draft_inst *inst = &first[node];
  dag->nodes[node] = (ftl_dag_node){.first_edge = dag->num_edges};
  int32_t num_reads = ftl_inst_num_reads(inst);
  for (int32_t k = 0; k < num_reads; k++) read_value(dag, node, ftl_inst_read(draft, inst, k), first, timings);
  if (inst->inst.opcode == FTL_OP_WGMMA_ARRIVE) read_group(dag, draft, first, node, num_nodes, timings);
  for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) write_value(dag, node, inst->destination + k);
  for (int32_t k = 0; k < inst->num_waits; k++) write_value(dag, node, draft->waits[inst->first_wait + k]);
  // What the program has behind a wait for copies does not hide their latency: ptxas waits where it is written.
  add_edge(dag, node, dag->last_copy_wait, 0);
  if (draft->buffers_fragments && (inst->effects & FTL_EFFECT_AHEAD)) put_ahead(dag, inst, timings);
  if (inst->inst.opcode == FTL_OP_CP_WAIT) dag->last_copy_wait = node;
  add_orders(dag, node, inst, timings);
  if (draft->buffers_fragments) take_turn(dag, node, inst, timings);
}

bool ftl_dag_build(ftl_dag *dag, const ftl_draft *draft, const ftl_stretch *stretch, const ftl_op_timings *timings) {
  dag->stamp++;
  dag->num_edges = dag->num_links = 0;
  dag->last_chained = dag->last_copy_wait = dag->last_copy = dag->products = NONE;
  dag->product_cycles = dag->loads_cycles = 0;
  memset(dag->pipe_free_at, 0, sizeof dag->pipe_free_at);
  dag->memory = dag->tiles = (order){NONE, NONE};
  for (int32_t r = 0; r < FTL_TILE_MAX_RINGS; r++) dag->rings[r] = (order){NONE, NONE};
  const ftl_draft_inst *first = &draft->insts[stretch->begin];
  int32_t num_nodes = stretch->end - stretch->begin;
  for (int32_t node = 0; node < num_nodes && !dag->failed; node++)
    add_node(dag, draft, first, node, num_nodes, timings);
  return !dag->failed;
}
