// Clusters: sizes, and that the CTAs which share the loads of a ring load the same tiles in the same order.
#include "tile/check_internal.h"
#include "tile/exec.h"

// What a CTA loads into each ring, as a hash of all places in order.
typedef struct load_history {
  const ftl_tile_program *program;
  uint64_t of_ring[FTL_TILE_MAX_RINGS];
} load_history;

// The FNV-1a step, on words.
static uint64_t mixed(uint64_t hash, int64_t word) { return (hash ^ (uint64_t)word) * UINT64_C(1099511628211); }

static ftl_status visit(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  load_history *history = context;
  if (event->op->kind != FTL_TILE_LOAD) return FTL_OK;
  const ftl_tile_ref *ref = &event->op->ref;
  const ftl_expr where[] = {ref->batch, ref->head, ref->row, ref->column, ref->column_end};
  uint64_t hash = mixed(mixed(history->of_ring[event->op->ring], ref->tensor), event->present);
  for (size_t i = 0; event->present && i < sizeof where / sizeof *where; i++)
    hash = mixed(hash, ftl_expr_eval(history->program, where[i], event->point));
  history->of_ring[event->op->ring] = hash;
  return FTL_OK;
}

static ftl_status load_all(load_history *history, const ftl_tile_program *program, int64_t cta, ftl_error *error) {
  *history = (load_history){.program = program};
  for (int32_t r = 0; r < program->num_rings; r++) history->of_ring[r] = UINT64_C(14695981039346656037);
  ftl_exec_options options = {.first_tile = cta,
                              .tile_stride = program->num_ctas,
                              .max_trips = 2 * (FTL_TILE_MAX_STAGES + 1),
                              .max_steps = 1 << 20,
                              .visit = visit,
                              .context = history};
  return ftl_exec_cta(program, &options, error);
}

static ftl_status check_members(const ftl_tile_program *program, const load_history *histories, ftl_error *error) {
  for (int32_t r = 0; r < program->num_rings; r++) {
    ftl_multicast multicast = program->rings[r].multicast;
    for (int32_t rank = 0; multicast.num_ctas > 1 && rank < program->cluster_ctas; rank++) {
      int32_t first = rank - ftl_multicast_member(multicast, rank) * multicast.stride;
      if (histories[rank].of_ring[r] != histories[first].of_ring[r])
        return ftl_error_set(error, FTL_BAD_INPUT,
                             "%s: ring %s: CTAs %d and %d of a cluster share its loads and load different tiles",
                             program->name, program->rings[r].name, first, rank);
    }
  }
  return FTL_OK;
}

static ftl_status check_shares(const ftl_tile_program *program, ftl_error *error) {
  for (int32_t i = 0; i < program->num_ops; i++) {
    const ftl_tile_op *op = &program->ops[i];
    if (op->kind != FTL_TILE_LOAD) continue;
    ftl_multicast multicast = program->rings[op->ring].multicast;
    if (multicast.num_ctas <= 1) continue;
    if (multicast.stride >= 1 && program->cluster_ctas % (multicast.num_ctas * multicast.stride) == 0 &&
        op->ref.rows % multicast.num_ctas == 0)
      continue;
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s: ring %s: %d CTAs, every %d of a cluster of %d, cannot share loads of %d rows evenly",
                         program->name, program->rings[op->ring].name, multicast.num_ctas, multicast.stride,
                         program->cluster_ctas, op->ref.rows);
  }
  return FTL_OK;
}

static ftl_status check_sizes(const ftl_tile_program *program, ftl_error *error) {
  int32_t cluster = program->cluster_ctas;
  if (cluster >= 1 && cluster <= FTL_TILE_MAX_CLUSTER_CTAS && program->num_ctas % cluster == 0)
    return check_shares(program, error);
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%s: clusters of %d CTAs in a grid of %lld: allowed are 1 to %d that divide the grid",
                       program->name, cluster, (long long)program->num_ctas, FTL_TILE_MAX_CLUSTER_CTAS);
}

ftl_status ftl_check_cluster(const ftl_tile_program *program, ftl_error *error) {
  ftl_status status = check_sizes(program, error);
  int32_t cluster = program->cluster_ctas;
  if (status != FTL_OK || cluster == 1) return status;
  const int64_t last = program->num_ctas / cluster - 1, clusters[] = {0, last / 2, last};
  for (size_t i = 0; status == FTL_OK && i < sizeof clusters / sizeof *clusters; i++) {
    load_history histories[FTL_TILE_MAX_CLUSTER_CTAS];
    for (int32_t rank = 0; status == FTL_OK && rank < cluster; rank++)
      status = load_all(&histories[rank], program, clusters[i] * cluster + rank, error);
    if (status == FTL_OK) status = check_members(program, histories, error);
  }
  return status;
}
