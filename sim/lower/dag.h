// The dependency graph of one straight-line stretch: what must stay before what, and by how many cycles.
#ifndef FTL_LOWER_DAG_H
#define FTL_LOWER_DAG_H

#include "lower/flow.h"
#include "lower/op_timing.h"

typedef struct ftl_dag_edge {
  int32_t node;  // the earlier instruction, counted from the stretch's first
  int32_t latency_cycles;
  int32_t lead_cycles;  // by which the earlier one should stand ahead while registers last: the latency or more
} ftl_dag_edge;

typedef struct ftl_dag_node {
  int32_t first_edge, num_edges;  // edges to earlier instructions
  int32_t num_later;              // edges from later instructions
  int32_t depth_cycles;           // longest path from the stretch's start to this instruction's issue
} ftl_dag_node;

typedef struct ftl_dag ftl_dag;

// For drafts with this many values and stretches of at most this many instructions; NULL when memory is out.
ftl_dag *ftl_dag_create(int32_t num_values, int32_t max_nodes);
void ftl_dag_destroy(ftl_dag *dag);

// Rebuilds the graph for a stretch: RAW, WAR and WAW on values; FENCE against MEMORY; CHAIN; RING_READ and RING_FREE
// against the accesses of their ring and fences; TILE against the accesses. False when memory is out.
bool ftl_dag_build(ftl_dag *dag, const ftl_draft *draft, const ftl_stretch *stretch, const ftl_op_timings *timings);

const ftl_dag_node *ftl_dag_nodes(const ftl_dag *dag);
const ftl_dag_edge *ftl_dag_edges(const ftl_dag *dag);

#endif
