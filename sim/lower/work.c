// How much work a CTA does, counted from the tile program and from the warp program.
#include <stdlib.h>

#include "base/integer.h"
#include "lower/checker.h"
#include "lower/walk.h"
#include "tile/exec.h"

enum { WORD_BYTES = 4, WGMMA_ROWS_A_WARP = 16 };

// ---- tile programs ----
typedef struct tile_counter {
  const ftl_tile_program *tile;
  ftl_work *work;
  int32_t mma_columns;
} tile_counter;

static int64_t ref_bytes(const ftl_tile_program *tile, const ftl_exec_event *event) {
  ftl_tile_place place = ftl_tile_place_of(tile, &event->op->ref, event->point);
  return (int64_t)place.row_bytes * place.num_rows;
}

static int64_t mma_macs(const ftl_tile_program *tile, const ftl_tile_op *op, int32_t mma_columns) {
  const ftl_value *dst = &tile->values[op->dst];
  int64_t columns_a_warp = ftl_divide_up(ftl_value_warp_columns(dst), mma_columns) * mma_columns;
  int32_t depth = tile->values[op->ring_a >= 0 ? op->dst : op->a.value].columns;
  if (op->ring_a >= 0) depth = op->transpose_a ? tile->rings[op->ring_a].rows : tile->rings[op->ring_a].columns;
  if (op->num_k > 0) depth = op->num_k;
  return (int64_t)tile->roles[dst->role].num_groups * dst->rows * dst->warps_per_row * columns_a_warp * depth *
         ftl_dtype_numbers(tile->rings[op->ring].dtype);
}

int64_t ftl_merge_row_exps(const ftl_role *role, int32_t columns) {
  int64_t threads = (int64_t)role->num_warps * FTL_WARP_LANES, blocks = ftl_divide_up(columns, threads);
  return threads * role->num_groups * (1 + blocks);
}

// Of `numbers` that a role's warps hold in equal shares, those of the warps that run the operation: in a loop by
// threads, the warps of which some thread is still in it.
static int64_t numbers_worked_on(const ftl_tile_program *tile, const ftl_exec_event *event, int64_t numbers) {
  const ftl_role *role = &tile->roles[event->role_idx];
  const ftl_tile_op *op = event->op, *first = &tile->ops[role->first_op];
  while (op > first && op->kind != FTL_TILE_LOOP && op->kind != FTL_TILE_END_LOOP) op--;
  if (op->kind != FTL_TILE_LOOP || !op->by_threads) return numbers;
  ftl_expr_point point = *event->point;
  int64_t warps = 0;
  for (point.warp = 0; point.warp < role->num_warps; point.warp++)
    warps += point.loop[op->loop_var] < ftl_expr_eval(tile, op->hi, &point);
  return numbers * warps / role->num_warps;
}

static ftl_status count_op(void *context, const ftl_exec_event *event, ftl_error *error) {
  (void)error;
  tile_counter *counter = context;
  const ftl_tile_op *op = event->op;
  ftl_work *work = counter->work;
  const ftl_value *dst = &counter->tile->values[op->dst >= 0 ? op->dst : 0];
  int64_t groups;
  switch (op->kind) {
    case FTL_TILE_LOAD:
    case FTL_TILE_LOOKUP:
    case FTL_TILE_LOAD_TILE:
    case FTL_TILE_LOAD_ROWS:
    case FTL_TILE_LOAD_COLUMNS:
    case FTL_TILE_MASK_BITS:
      work->load_bytes[op->ref.tensor] += ref_bytes(counter->tile, event);
      break;
    case FTL_TILE_STORE_MERGED: {
      work->store_bytes[op->ref.tensor] += ref_bytes(counter->tile, event);
      const ftl_role *role = &counter->tile->roles[counter->tile->values[op->a.value].role];
      work->exps += op->ref.rows * ftl_merge_row_exps(role, op->ref.columns);
      break;
    }
    case FTL_TILE_STORE:
    case FTL_TILE_STORE_ROWS:
    case FTL_TILE_STORE_TOP:
    case FTL_TILE_ATOMIC_ADD:
      work->store_bytes[op->ref.tensor] += ref_bytes(counter->tile, event);
      break;
    case FTL_TILE_DEQUANTIZE:
    case FTL_TILE_TRANSPOSE:
    case FTL_TILE_PUT: {
      const ftl_ring *ring = &counter->tile->rings[op->ring];
      work->put_bytes += (int64_t)ring->rows * ring->columns * ftl_dtype_bytes(ring->dtype);
      break;
    }
    case FTL_TILE_MMA:
      work->mma_macs += mma_macs(counter->tile, op, counter->mma_columns);
      break;
    case FTL_TILE_DROPOUT:
      if (dst->layout.threads_per_row > 0) break;
      (op->by_sign ? &work->sign_dropouts : &work->dropouts)[0] += (int64_t)counter->tile->roles[dst->role].num_groups *
                                                                   dst->rows * dst->columns *
                                                                   (dst->is_repeated ? dst->warps_per_row : 1);
      break;
    case FTL_TILE_ELEM:
      if (op->fn != FTL_ELEM_EXP2 && op->fn != FTL_ELEM_EXP) break;
      groups = ftl_tile_num_copies(counter->tile, op->dst);
      if (dst->layout.threads_per_row > 0) {
        int64_t columns = dst->kind == FTL_VALUE_TILE ? dst->columns : dst->layout.threads_per_row;
        work->exps += numbers_worked_on(counter->tile, event, groups * dst->rows * columns);
        break;
      }
      if (dst->kind != FTL_VALUE_TILE || dst->is_repeated) groups *= dst->warps_per_row;
      work->exps += groups * dst->rows * dst->columns;
      if (dst->kind != FTL_VALUE_TILE) work->row_exps += groups * dst->rows;
      break;
    default:
      break;
  }
  return FTL_OK;
}

ftl_status ftl_work_of_tile(const ftl_tile_program *tile, int32_t mma_columns, int64_t cta, ftl_work *out,
                            ftl_error *error) {
  *out = (ftl_work){0};
  tile_counter counter = {tile, out, mma_columns};
  ftl_exec_options options = {.first_tile = cta, .tile_stride = tile->num_ctas, .visit = count_op, .context = &counter};
  return ftl_exec_cta(tile, &options, error);
}

// ---- warp programs ----
static int64_t access_bytes(const ftl_access *access, const ftl_tile_place *place, int32_t warp) {
  int64_t rows = 0;
  ftl_access_start start = ftl_access_start_of(access, place, warp);
  if (ftl_access_repeats(access, warp)) return 0;
  int32_t row = start.row;
  for (int32_t k = 0; k < access->num_rows; k++, row += access->row_step) rows += row < place->num_rows;
  return rows * start.bytes;
}

static bool issues(uint8_t opcode) {
  switch (opcode) {
    case FTL_OP_TILE:
    case FTL_OP_NEXT_TILE:
    case FTL_OP_RING_READ:
    case FTL_OP_RING_FREE:
    case FTL_OP_LABEL:
    case FTL_OP_MBAR_ADVANCE:
    case FTL_OP_WGMMA_COMMIT:
      return false;
    default:
      return true;
  }
}

static void count_inst(const ftl_warp_program *program, const ftl_warp_inst *inst, int32_t warp,
                       const ftl_tile_place *places, ftl_work *work) {
  if (issues(inst->opcode)) work->warp_insts += inst->repeat;
  switch (inst->opcode) {
    case FTL_OP_LDG:
    case FTL_OP_CP_ASYNC:
    case FTL_OP_TMA_LOAD:
    case FTL_OP_STG:
    case FTL_OP_RED:
    case FTL_OP_TMA_STORE: {
      const ftl_access *access = &program->accesses[inst->access];
      int64_t bytes = access_bytes(access, &places[access->ref], warp);
      bool store = inst->opcode == FTL_OP_STG || inst->opcode == FTL_OP_RED || inst->opcode == FTL_OP_TMA_STORE;
      (store ? work->store_bytes : work->load_bytes)[program->refs[access->ref].tensor] += bytes;
      break;
    }
    case FTL_OP_STS:
      if (inst->ring_a != FTL_NO_RING && ftl_tile_ring_is_put(program->tile, inst->ring_a))
        work->put_bytes += (int64_t)inst->repeat * FTL_WARP_LANES * (inst->arg ? inst->arg : WORD_BYTES);
      break;
    case FTL_OP_MMA:
      work->mma_macs += (int64_t)inst->repeat * program->product.mma_macs;
      break;
    case FTL_OP_WGMMA:
      work->mma_macs += (int64_t)inst->repeat * WGMMA_ROWS_A_WARP * inst->arg * program->product.operand_columns;
      break;
    case FTL_OP_HSET2:
      work->dropouts += (int64_t)inst->repeat * FTL_WARP_LANES * 2;
      break;
    case FTL_OP_SEL:
      if (inst->arg == FTL_SEL_DROPS) work->sign_dropouts += (int64_t)inst->repeat * FTL_WARP_LANES;
      break;
    case FTL_OP_MUFU:
      if (inst->arg == FTL_ELEM_EXP2) work->exps += (int64_t)inst->repeat * FTL_WARP_LANES;
      break;
    default:
      break;
  }
}

ftl_status ftl_work_of_warps(const ftl_warp_program *program, int64_t cta, ftl_work *out, ftl_error *error) {
  *out = (ftl_work){0};
  ftl_tile_place *places = calloc((size_t)program->num_refs + 1, sizeof *places);
  if (!places) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  for (int32_t role = 0; role < program->num_roles; role++) {
    for (int32_t warp = 0; warp < program->roles[role].num_warps; warp++) {
      ftl_walk walk = ftl_walk_start(program, role, warp, cta);
      for (const ftl_warp_inst *inst; (inst = ftl_walk_next(&walk));) {
        if (inst->opcode == FTL_OP_TILE)
          places[inst->access] = ftl_tile_place_of(program->tile, &program->refs[inst->access], &walk.point);
        else
          count_inst(program, inst, warp, places, out);
      }
    }
  }
  free(places);
  return FTL_OK;
}
