#include "machine/sm/op.h"

#include <string.h>

#include "base/check.h"
#include "base/integer.h"
#include "machine/sm/pipes.h"
#include "machine/sm/role_code.h"
#include "machine/sm/sm.h"
#include "machine/sm/state.h"

enum { WAVEFRONT_BYTES = 128 };

static ftl_sm_pipe pipe_named(const char *name) {
  if (strcmp(name, "fp32") == 0) return FTL_SM_PIPE_FP32;
  if (strcmp(name, "half") == 0) return FTL_SM_PIPE_HALF;
  if (strcmp(name, "sfu") == 0) return FTL_SM_PIPE_SFU;
  return FTL_SM_PIPE_ALU;
}

typedef struct timing {
  sm_kind kind;
  ftl_sm_pipe pipe;
  int64_t interval, latency;
  uint8_t producer;
  ftl_stall throttle;
} timing;

static timing fixed(ftl_sm_pipe pipe, int64_t interval, int64_t latency) {
  return (timing){SM_FIXED, pipe, interval, latency, SM_PRODUCER_FIXED, FTL_STALL_MATH_PIPE_THROTTLE};
}

// The LSU decides when a memory instruction is done: an interval of 0, as the queue keeps the pipe's time.
static timing mio(sm_kind kind, int64_t latency) {
  return (timing){kind, FTL_SM_PIPE_MIO, 0, latency, SM_PRODUCER_SHARED, FTL_STALL_MIO_THROTTLE};
}

static timing global(int64_t latency) {
  return (timing){SM_GLOBAL, FTL_SM_PIPE_LG, 0, latency, SM_PRODUCER_GLOBAL, FTL_STALL_LG_THROTTLE};
}

static timing slot_only(sm_kind kind) {
  return (timing){kind, FTL_SM_PIPE_BRANCH, 0, 1, SM_PRODUCER_FIXED, FTL_STALL_DISPATCH_STALL};
}

static void set_math(timing *of, const ftl_arch *arch, const ftl_product *product) {
  for (int op = FTL_OP_FMNMX; op <= FTL_OP_LDC; op++)
    of[op] = fixed(FTL_SM_PIPE_ALU, arch->alu_interval_cycles, arch->alu_latency_cycles);
  of[FTL_OP_UNIFORM] = fixed(FTL_SM_PIPE_BRANCH, 1, arch->uniform_latency_cycles);
  of[FTL_OP_R2UR] = fixed(FTL_SM_PIPE_ALU, arch->alu_interval_cycles, arch->uniform_move_latency_cycles);
  of[FTL_OP_LDC].kind = SM_PARAMETER;
  timing imad = fixed(pipe_named(arch->imad_pipe), arch->imad_interval_cycles, arch->imad_latency_cycles);
  of[FTL_OP_IMAD] = of[FTL_OP_IMAD_WIDE] = of[FTL_OP_MOV] = imad;
  of[FTL_OP_IMAD_WIDE].interval *= FTL_WIDE_INTERVALS;
  of[FTL_OP_FFMA] = fixed(FTL_SM_PIPE_FP32, arch->fp32_interval_cycles, arch->fp32_latency_cycles);
  of[FTL_OP_HFMA2] = of[FTL_OP_HSET2] = fixed(FTL_SM_PIPE_HALF, arch->half_interval_cycles, arch->half_latency_cycles);
  of[FTL_OP_CVT] = fixed(pipe_named(arch->cvt_pipe), arch->cvt_interval_cycles, arch->cvt_latency_cycles);
  of[FTL_OP_MUFU] = fixed(FTL_SM_PIPE_SFU, arch->sfu_interval_cycles, arch->sfu_latency_cycles);
  of[FTL_OP_MUFU].producer = SM_PRODUCER_SHARED;      // its scoreboard is the short one, as shared memory's
  of[FTL_OP_MUFU].throttle = FTL_STALL_MIO_THROTTLE;  // Nsight Compute counts special math with the MIO
  // the latency is that of all the instructions of one mma.sync; the last of them sets the token
  int64_t interval = product->mma_interval_cycles;
  int64_t latency = product->mma_latency_cycles - (product->mma_num_insts - 1) * interval;
  of[FTL_OP_MMA] = fixed(FTL_SM_PIPE_TENSOR, interval, latency > 1 ? latency : 1);
  of[FTL_OP_WGMMA] = fixed(FTL_SM_PIPE_GMMA, arch->tensor_wgmma_issue_cycles, 1);
  of[FTL_OP_WGMMA].kind = SM_WGMMA;
}

static void set_memory(timing *of, const ftl_arch *arch) {
  of[FTL_OP_SHFL] = mio(SM_SHARED, arch->shared_shuffle_latency_cycles);
  of[FTL_OP_LDS] = mio(SM_SHARED, arch->shared_load_latency_cycles);
  of[FTL_OP_LDSM] = mio(SM_SHARED, arch->shared_ldmatrix_latency_cycles);
  of[FTL_OP_STS] = mio(SM_SHARED, 1);
  for (int op = FTL_OP_LDG; op <= FTL_OP_CP_ASYNC; op++) of[op] = global(arch->l1_hit_latency_cycles);
  of[FTL_OP_CP_COMMIT] = mio(SM_CP_COMMIT, 1);
  of[FTL_OP_TMA_LOAD] = of[FTL_OP_TMA_STORE] = (timing){SM_TMA,
                                                        FTL_SM_PIPE_TMA,
                                                        arch->tma_issue_cycles,
                                                        arch->tma_release_cycles,
                                                        SM_PRODUCER_GLOBAL,
                                                        FTL_STALL_TEX_THROTTLE};
  of[FTL_OP_MBAR_ACQUIRE] = mio(SM_MBAR_ACQUIRE, 1);
  of[FTL_OP_MBAR_EXPECT] = mio(SM_MBAR_EXPECT, 1);
  of[FTL_OP_MBAR_WAIT] = mio(SM_MBAR_WAIT, 1);
  of[FTL_OP_MBAR_RELEASE] = mio(SM_MBAR_RELEASE, 1);
  of[FTL_OP_TILE_ASK] = mio(SM_TILE_ASK, 1);
}

static void set_control(timing *of) {
  for (int op = 0; op < FTL_OPCODE_COUNT; op++) of[op] = slot_only(SM_SLOT);
  of[FTL_OP_CP_WAIT] = slot_only(SM_CP_WAIT);
  of[FTL_OP_WGMMA_WAIT] = slot_only(SM_WGMMA_WAIT);
  of[FTL_OP_TMA_STORE_WAIT] = slot_only(SM_TMA_STORE_WAIT);
  of[FTL_OP_FENCE_PROXY] = slot_only(SM_PROXY_FENCE);
  of[FTL_OP_BAR_SYNC] = slot_only(SM_BARRIER);
  of[FTL_OP_BAR_ARRIVE] = slot_only(SM_BARRIER_ARRIVE);
  of[FTL_OP_TILE_WAIT] = slot_only(SM_TILE_WAIT);
  of[FTL_OP_BRA] = slot_only(SM_BRANCH);
  of[FTL_OP_BSYNC] = slot_only(SM_JOIN);
  of[FTL_OP_EXIT] = slot_only(SM_EXIT);
  of[FTL_OP_LOOP] = slot_only(SM_LOOP);
  of[FTL_OP_END_LOOP] = slot_only(SM_END_LOOP);
  of[FTL_OP_TILE] = slot_only(SM_TILE);
  of[FTL_OP_WGMMA_COMMIT] = slot_only(SM_WGMMA_COMMIT);
  of[FTL_OP_MBAR_ADVANCE] = slot_only(SM_MBAR_ADVANCE);
  of[FTL_OP_RING_READ] = of[FTL_OP_RING_FREE] = of[FTL_OP_NEXT_TILE] = of[FTL_OP_LABEL] = slot_only(SM_MARK);
}

static int64_t lowest_bit(int64_t x, int64_t limit) { return x == 0 || (x & -x) > limit ? limit : x & -x; }

// The most lines that one execution can touch: rows that follow each other in memory share lines.
static int64_t most_lines(const ftl_warp_program *program, const ftl_access *access, int64_t line_bytes) {
  if (access->is_local) return access->num_rows;
  const ftl_tile_ref *ref = &program->refs[access->ref];
  const ftl_tensor *tensor = &program->tile->tensors[ref->tensor];
  int64_t element = ftl_dtype_bytes(tensor->dtype), row_bytes = tensor->row_stride * element;
  int64_t bits = row_bytes | tensor->head_stride * element | tensor->batch_stride * element | access->column_byte |
                 access->warp_column_bytes | ref->pages.page_stride * element |
                 ftl_expr_alignment(program->tile, ref->column) * element;
  int64_t align = lowest_bit(bits, line_bytes);
  bool runs_on = access->row_step == 1 && row_bytes == access->bytes && ref->pages.page_rows == 0;
  int64_t runs = runs_on ? 1 : access->num_rows,
          bytes = runs_on ? (int64_t)access->num_rows * access->bytes : access->bytes;
  return runs * ((line_bytes - align + bytes - 1) / line_bytes + 1);
}

static bool is_present(uint16_t access) { return access != FTL_NO_ACCESS; }

typedef struct builder {
  const ftl_warp_program *program;
  const ftl_arch *arch;
  timing of[FTL_OPCODE_COUNT];
  int16_t *barrier_of;  // [role][two scopes][id] -> dense index, or -1; those between roles in role 0's
  sm_code *code;
  int64_t most_lines;
} builder;

// What the instruction takes from the SM's data pipe, and by how much that lengthens its latency.
static void set_data(const builder *b, const ftl_warp_inst *inst, sm_op *op) {
  const ftl_arch *arch = b->arch;
  int64_t cycles = ftl_divide_up((int64_t)inst->wavefronts * WAVEFRONT_BYTES, arch->shared_bytes_per_cycle), extra = 0;
  switch (inst->opcode) {
    case FTL_OP_SHFL:
      cycles = arch->shared_shuffle_interval_cycles;
      break;
    case FTL_OP_LDSM:  // its latency is stated for a whole ldmatrix.x4
      extra = ftl_divide_up((int64_t)inst->conflicts * WAVEFRONT_BYTES, arch->shared_bytes_per_cycle);
      break;
    case FTL_OP_LDG:
    case FTL_OP_LDL:
    case FTL_OP_STG:
    case FTL_OP_STL:
    case FTL_OP_RED:
      cycles = ftl_divide_up((int64_t)inst->wavefronts * WAVEFRONT_BYTES, arch->l1_bytes_per_cycle);
      extra = cycles > 0 ? cycles - 1 : 0;
      break;
    default:
      extra = cycles > 0 ? cycles - 1 : 0;
      break;
  }
  op->data_cycles = (uint16_t)cycles;
  op->extra_cycles = (uint16_t)extra;
  op->is_store = inst->opcode == FTL_OP_STG || inst->opcode == FTL_OP_STL || inst->opcode == FTL_OP_RED;
  op->is_load = inst->opcode == FTL_OP_LDG || inst->opcode == FTL_OP_LDL;
  if (inst->opcode == FTL_OP_LDS || inst->opcode == FTL_OP_STS || inst->opcode == FTL_OP_LDSM ||
      inst->opcode == FTL_OP_CP_ASYNC) {
    op->shared_wavefronts = inst->wavefronts;
    op->bank_conflicts = inst->conflicts;
  }
}

// m64nN with 32 bytes of K: cycles of math, and of reading the operands that are in shared memory (see gmma.c).
static void set_product(const builder *b, const ftl_warp_inst *inst, sm_op *op) {
  enum { M = 64 };
  const ftl_product *product = &b->program->product;
  bool a_in_shared = inst->ring_a != FTL_NO_RING;
  int64_t bytes = (int64_t)inst->arg * FTL_OPERAND_BYTES + (a_in_shared ? M * FTL_OPERAND_BYTES : 0);
  op->latency =
      (uint16_t)ftl_divide_up((int64_t)M * product->operand_columns * inst->arg, product->wgmma_fma_per_cycle);
  op->data_cycles = (uint16_t)ftl_divide_up(bytes, b->arch->shared_bytes_per_cycle);
  // B is read all along, A at once in the cycles that B leaves
  int64_t of_b = (int64_t)inst->arg * FTL_OPERAND_BYTES / b->arch->shared_bytes_per_cycle;
  int64_t free_cycles = op->latency - of_b, of_a = op->data_cycles - of_b;
  if (a_in_shared)
    op->extra_cycles = of_a < free_cycles ? (uint16_t)(of_a * op->latency / free_cycles) : op->data_cycles;
  if (!a_in_shared) op->interval = (uint16_t)b->arch->tensor_wgmma_rs_issue_cycles;
}

static ftl_l2_priority priority_of(const ftl_warp_program *program, const ftl_access *access) {
  if (access->is_local) return FTL_L2_EVICT_NORMAL;
  return program->tile->tensors[program->refs[access->ref].tensor].l2_priority;
}

static void set_lines(builder *b, const ftl_warp_inst *inst, sm_op *op) {
  if (op->kind == SM_GLOBAL || op->kind == SM_TMA)
    op->priority = (uint8_t)priority_of(b->program, &b->program->accesses[inst->access]);
  if (op->kind != SM_GLOBAL) return;
  FTL_CHECK(is_present(inst->access), "%s without an access", ftl_opcode_name((ftl_opcode)inst->opcode));
  int64_t lines = most_lines(b->program, &b->program->accesses[inst->access], b->arch->l1_line_bytes);
  if (lines > b->most_lines) b->most_lines = lines;
  op->max_lines = (uint16_t)(lines < SM_MAX_LINES ? lines : SM_MAX_LINES);
  if (op->max_lines > b->code->gate_lines) b->code->gate_lines = op->max_lines;
}

static void set_barrier(builder *b, int32_t role, const ftl_warp_inst *inst, sm_op *op) {
  int32_t named_warps = b->program->barrier_warps[inst->arg], warps = b->program->roles[role].num_warps;
  bool warpgroup = inst->flags & FTL_INST_WARPGROUP;
  int32_t scope = named_warps ? 0 : role * 2 + warpgroup;
  int16_t *index = &b->barrier_of[scope * (int32_t)b->arch->sm_num_barriers + inst->arg];
  if (*index < 0) {
    *index = (int16_t)b->code->num_barriers;
    b->code->num_barriers += warpgroup ? ftl_divide_up32(warps, SM_WARPGROUP) : 1;
  }
  op->barrier = *index;
  op->meeting = (uint8_t)(named_warps ? named_warps : warps);
}

// Instructions of fixed latency and special math read their operands one after the other, mma.sync for long; of those
// of the MIO shuffles, ldmatrix and cp.async with them (kernels/measurements/micro_mma_beside_shared.csv,
// micro_ldmatrix_queue.csv, control_fields.csv), others later and on their own (Huerta et al.). An ldmatrix between
// products costs less than a cycle: it freezes nothing.
static void set_dispatch(const ftl_product *product, sm_op *op) {
  bool is_product = op->pipe == FTL_SM_PIPE_TENSOR;
  bool is_copy = op->opcode == FTL_OP_SHFL || op->opcode == FTL_OP_LDSM || op->opcode == FTL_OP_CP_ASYNC;
  if (op->pipe <= FTL_SM_PIPE_TENSOR || is_copy)
    op->dispatch = (uint8_t)(is_product ? product->mma_dispatch_cycles : 1);
  int32_t factor = op->opcode == FTL_OP_FFMA ? op->arg : 0;
  op->first_reads = factor == FTL_FP32_BY_CONSTANT ? 1 : 2;
  op->reads = factor ? 1 : 2;
  op->freezes = op->dispatch && !is_product && op->opcode != FTL_OP_LDSM;
  op->wide = op->opcode == FTL_OP_IMAD_WIDE;
  if (op->wide) op->dispatch = (uint8_t)op->interval;
}

static sm_op op_of(builder *b, int32_t role, const ftl_warp_inst *inst, int32_t inst_idx) {
  timing t = b->of[inst->opcode];
  int32_t none_source = b->code->num_tokens - 1, none_destination = b->code->num_tokens - 2;
  sm_op op = {.kind = (uint8_t)t.kind,
              .pipe = (uint8_t)t.pipe,
              .repeat = inst->repeat ? inst->repeat : 1,
              .flags = inst->flags,
              .inst = inst_idx,
              .opcode = inst->opcode,
              .interval = (uint16_t)t.interval,
              .latency = (uint16_t)t.latency,
              .producer = t.producer,
              .throttle = (uint8_t)t.throttle,
              .access = inst->access,
              .arg = inst->arg,
              .loop = -1,
              .barrier = -1};
  op.destination = inst->destination == FTL_NO_TOKEN ? (uint16_t)none_destination : inst->destination;
  for (int i = 0; i < FTL_MAX_SOURCES; i++)
    op.sources[i] =
        i < inst->num_sources && inst->sources[i] != FTL_NO_TOKEN ? inst->sources[i] : (uint16_t)none_source;
  if (op.kind == SM_LOOP || op.kind == SM_END_LOOP) op.loop = (int16_t)inst->arg;
  if (op.kind == SM_BARRIER || op.kind == SM_BARRIER_ARRIVE) set_barrier(b, role, inst, &op);
  if (op.kind == SM_WGMMA)
    set_product(b, inst, &op);
  else
    set_data(b, inst, &op);
  set_lines(b, inst, &op);
  op.scoreboard = inst->scoreboard;
  op.awaits = inst->awaits;
  bool waits = op.awaits || op.kind == SM_CP_WAIT || op.kind == SM_WGMMA || op.kind == SM_WGMMA_WAIT ||
               op.kind == SM_TMA_STORE_WAIT;
  set_dispatch(&b->program->product, &op);
  op.special = waits || op.kind >= SM_LOOP || (op.flags & FTL_INST_WARP0);
  op.bulk = op.kind == SM_FIXED && op.repeat > 2 && op.pipe != FTL_SM_PIPE_TENSOR && !op.wide;  // wgmma takes it too
  return op;
}

static ftl_status check_inst(const builder *b, int32_t role, const ftl_warp_inst *inst, ftl_error *error) {
  const ftl_arch *arch = b->arch;
  const ftl_warp_role *r = &b->program->roles[role];
  const char *name = ftl_opcode_name((ftl_opcode)inst->opcode);
  if (inst->opcode == FTL_OP_WGMMA && (!b->program->product.wgmma_fma_per_cycle || !arch->tensor_wgmma_queue_depth))
    return ftl_error_set(error, FTL_INFEASIBLE, "%s: %s has no wgmma", name, arch->name);
  if (inst->opcode == FTL_OP_WGMMA && (r->num_warps % SM_WARPGROUP || r->first_warp % SM_WARPGROUP))
    return ftl_error_set(error, FTL_INFEASIBLE, "role %s: wgmma needs whole warpgroups", r->name);
  bool is_tma = inst->opcode == FTL_OP_TMA_LOAD || inst->opcode == FTL_OP_TMA_STORE;
  if (is_tma && (!arch->tma_lines_per_cycle_milli || !arch->tma_max_pending_lines))
    return ftl_error_set(error, FTL_INFEASIBLE, "%s: %s has no TMA", name, arch->name);
  bool is_barrier = inst->opcode == FTL_OP_BAR_SYNC || inst->opcode == FTL_OP_BAR_ARRIVE;
  if (is_barrier && (inst->arg >= arch->sm_num_barriers || inst->arg >= FTL_MAX_BARRIER_IDS))
    return ftl_error_set(error, FTL_INFEASIBLE, "barrier %d: %s has %lld", inst->arg, arch->name,
                         (long long)arch->sm_num_barriers);
  bool is_wait = inst->opcode == FTL_OP_CP_WAIT || inst->opcode == FTL_OP_WGMMA_WAIT;
  if (is_wait && inst->arg >= SM_GROUPS)
    return ftl_error_set(error, FTL_INFEASIBLE, "%s: at most %d groups in flight", name, SM_GROUPS - 1);
  return FTL_OK;
}

// Where the instructions lie: 16 bytes each, roles one after the other, those of the same code at the same place. A
// warp enters a line when it comes to the line's first instruction, and again after a mark, from where it may have
// jumped.
static void lay_out(sm_code *code, sm_op *ops, int32_t num_ops, int64_t *byte) {
  enum { INST_BYTES = 16 };
  bool comes_from_afar = true;
  for (int32_t i = 0; i < num_ops; i++) {
    if (ops[i].kind >= SM_LOOP) {
      comes_from_afar = true;
      continue;
    }
    int64_t first = *byte / SM_CODE_LINE_BYTES, before = (*byte - 1) / SM_CODE_LINE_BYTES;
    *byte += INST_BYTES * ops[i].repeat;
    int64_t last = (*byte - 1) / SM_CODE_LINE_BYTES;
    if (!comes_from_afar && *byte > 0 && before == first) first++;
    ops[i].line = (uint16_t)first;
    ops[i].num_lines = (uint8_t)(last - first + 1);
    comes_from_afar = ops[i].kind == SM_BRANCH || ops[i].kind == SM_JOIN;
    if (last >= code->num_lines) code->num_lines = (int32_t)last + 1;
  }
}

// A branch needs its predicate earlier than an instruction of the pipes needs a register. Compilers put the compare of
// a loop's end that far ahead; that of a guard hangs on what is only known there.
static void make_predicate_late(sm_op *ops, int32_t branch, int64_t latency) {
  for (int32_t i = branch - 1; i >= 0; i--) {
    if (ops[i].kind != SM_FIXED || ops[i].destination != ops[branch].sources[0]) continue;
    if (ops[i].latency < latency) ops[i].latency = (uint16_t)latency;
    return;
  }
}

// The first proxy fence behind stores to shared memory waits for them; others take their slot (docs/model_sm.md).
static void make_fence_wait(sm_op *ops, int32_t fence, int64_t cycles) {
  for (int32_t i = fence - 1; i >= 0 && ops[i].kind != SM_PROXY_FENCE; i--) {
    if (ops[i].opcode != FTL_OP_STS) continue;
    ops[fence].latency = (uint16_t)(1 + cycles);
    return;
  }
}

// What a warp issues that has come to a barrier before the others (kernels/measurements/micro_barrier_defer.csv).
// That uniform instructions go on is not measured.
static bool passes_barrier(const sm_op *op) {
  return op->kind == SM_FIXED && op->pipe != FTL_SM_PIPE_SFU && op->opcode != FTL_OP_S2R;
}

// Up to which instructions the warps go on behind a barrier: to the first that is held. Where a loop or a tile begins
// or ends before it they wait at the barrier itself.
static void defer_barrier(sm_op *ops, int32_t num_ops, int32_t barrier) {
  int32_t i = barrier + 1;
  for (; i < num_ops && (passes_barrier(&ops[i]) || ops[i].kind == SM_MARK); i++)
    if (ops[i].flags & FTL_INST_WARP0) return;
  if (i == num_ops || ops[i].kind >= SM_LOOP || ops[i].flags & FTL_INST_WARP0) return;
  ops[barrier].defers = ops[i].held = ops[i].special = 1;
}

// A warp writes no register that a load is still to write: it has as many on their way as its code has loads at most.
static void count_loads(sm_op *ops, int32_t num_ops, int64_t max_warp_loads) {
  int64_t num_loads = 0;
  for (int32_t i = 0; i < num_ops; i++) num_loads += ops[i].opcode == FTL_OP_LDG ? ops[i].repeat : 0;
  if (max_warp_loads == 0 || num_loads <= max_warp_loads) return;
  for (int32_t i = 0; i < num_ops; i++)
    if (ops[i].opcode == FTL_OP_LDG) ops[i].counts = ops[i].special = 1;
}

static ftl_status build_role(builder *b, int32_t role, sm_op *ops, int64_t *byte, ftl_error *error) {
  const ftl_warp_role *r = &b->program->roles[role];
  int32_t num_parameters = 0;
  for (int32_t i = 0; i < r->num_insts; i++) {
    const ftl_warp_inst *inst = &b->program->insts[r->first_inst + i];
    ftl_status status = check_inst(b, role, inst, error);
    if (status != FTL_OK) return status;
    ops[i] = op_of(b, role, inst, r->first_inst + i);
    if (ops[i].kind == SM_PROXY_FENCE) make_fence_wait(ops, i, b->arch->shared_proxy_fence_cycles);
    if (ops[i].kind == SM_PARAMETER) ops[i].arg = (uint16_t)num_parameters++;
    if (ops[i].flags & FTL_INST_GUARD && inst->num_sources > 0)
      make_predicate_late(ops, i, b->arch->branch_predicate_latency_cycles);
    if (i > 0 && ops[i].kind == SM_END_LOOP && ops[i - 1].kind == SM_BRANCH) ops[i - 1].loop = ops[i].loop;
  }
  for (int32_t i = 0; i < r->num_insts; i++)
    if (ops[i].kind == SM_BARRIER && b->arch->shared_barrier_defers) defer_barrier(ops, r->num_insts, i);
  count_loads(ops, r->num_insts, b->arch->l1_max_warp_loads);
  if (num_parameters > b->code->num_parameters) b->code->num_parameters = num_parameters;
  ftl_sm_set_stall_counts(ops, r->num_insts, b->code->num_tokens, b->arch);
  lay_out(b->code, ops, r->num_insts, byte);
  ops[r->num_insts] = (sm_op){.kind = SM_END, .special = true, .repeat = 1, .loop = -1, .barrier = -1};
  return FTL_OK;
}

ftl_status ftl_sm_code_build(sm_code *out, const ftl_warp_program *program, const ftl_arch *arch, ftl_arena *arena,
                             ftl_error *error) {
  *out = (sm_code){.num_tokens = 2};
  builder b = {.program = program, .arch = arch, .code = out};
  set_control(b.of);
  set_math(b.of, arch, &program->product);
  set_memory(b.of, arch);
  int64_t num_ops = 0, num_barriers = program->num_roles * 2 * arch->sm_num_barriers;
  for (int32_t r = 0; r < program->num_roles; r++) {
    num_ops += program->roles[r].num_insts + 1;
    if (program->roles[r].num_tokens + 2 > out->num_tokens) out->num_tokens = program->roles[r].num_tokens + 2;
  }
  out->ops = FTL_ARENA_NEW(arena, sm_op, num_ops);
  b.barrier_of = FTL_ARENA_NEW(arena, int16_t, num_barriers);
  if (!out->ops || !b.barrier_of) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an SM's code");
  memset(b.barrier_of, 0xff, sizeof(int16_t) * (size_t)num_barriers);
  out->mma_interval_cycles = (uint32_t)b.of[FTL_OP_MMA].interval;
  out->mma_dispatch_cycles = (uint32_t)program->product.mma_dispatch_cycles;
  int32_t first = 0;
  int64_t begins[FTL_TILE_MAX_ROLES], end = 0;
  for (int32_t r = 0; r < program->num_roles; first += program->roles[r].num_insts + 1, r++) {
    int32_t like = ftl_sm_first_like(program, r);
    int64_t byte = begins[r] = like < r ? begins[like] : end;
    out->first_op[r] = first;
    ftl_status status = build_role(&b, r, &out->ops[first], &byte, error);
    if (status != FTL_OK) return status;
    if (byte > end) end = byte;
  }
  if (b.most_lines > SM_MAX_LINES)
    return ftl_error_set(error, FTL_INFEASIBLE, "a memory instruction of %lld lines: at most %d",
                         (long long)b.most_lines, SM_MAX_LINES);
  return FTL_OK;
}
