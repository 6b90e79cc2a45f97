// The compiler's stall counts: how long after an instruction its warp issues the next one at the earliest. They are
// written for the code alone: results of fixed latency and the warp's own pipes decide, nothing that depends on what
// else runs, and they count from when the instruction before did issue, however late. So a warp that was held up keeps
// its distances, and what it would have found free may be taken by another
// (kernels/measurements/micro_stream_pairs.csv). No HMMA is pending where a block of code ends: its branch stands the
// latency behind the last (of 85 ends of ptxas's code with one in their last 33 cycles 79 do, none sooner).
#include "machine/sm/op.h"

#include <string.h>

#include "machine/sm/pipes.h"

enum { MOST_CYCLES = 15 };  // a field of 4 bits
// What ptxas adds to the latency of an FP32 or ALU result that goes to the other of these pipes, or to a memory
// instruction, and to an HMMA: the least distances in its code are 5 and 7 cycles, where the latency is 4.
enum { TO_OTHER_PIPE_CYCLES = 1, TO_PRODUCT_CYCLES = 3 };

typedef struct plan {
  const ftl_arch *arch;
  int64_t ready[FTL_MAX_TOKENS + 2];     // of results of fixed latency
  uint8_t pipe[FTL_MAX_TOKENS + 2];      // that these come from
  int64_t guards[FTL_MAX_TOKENS + 2];    // when a predicate may guard an instruction; 0: it is none
  int64_t pipe_free[FTL_SM_PIPE_COUNT];  // for this warp
  int64_t issued;                        // the instruction before
  int64_t products_done;                 // the block's last HMMA's result
  // what the code before says of them holds whenever it issued: every warp comes from there, and nothing is later
  bool knows_token[FTL_MAX_TOKENS + 2], knows_pipe[FTL_SM_PIPE_COUNT];
} plan;

// Instructions of the LSU share a way.
static ftl_sm_pipe way_of(const sm_op *op) { return op->pipe == FTL_SM_PIPE_LG ? FTL_SM_PIPE_MIO : op->pipe; }

// Whether nothing that the instruction waits for in its own warp can be later than `at`.
static bool is_known_by(const plan *p, const sm_op *op, int64_t at) {
  ftl_sm_pipe way = way_of(op);
  if (op->special || (way < FTL_SM_PIPE_TMA && (!p->knows_pipe[way] || p->pipe_free[way] > at))) return false;
  for (int i = 0; i < FTL_MAX_SOURCES; i++)
    if (!p->knows_token[op->sources[i]] || p->ready[op->sources[i]] > at) return false;
  return true;
}

static int64_t cycles_across(ftl_sm_pipe from, const sm_op *op) {
  if ((from != FTL_SM_PIPE_FP32 && from != FTL_SM_PIPE_ALU) || op->pipe == from) return 0;
  switch (op->pipe) {
    case FTL_SM_PIPE_FP32:
    case FTL_SM_PIPE_ALU:
    case FTL_SM_PIPE_MIO:
    case FTL_SM_PIPE_LG:
      return TO_OTHER_PIPE_CYCLES;
    case FTL_SM_PIPE_TENSOR:
      return op->kind == SM_WGMMA ? 0 : TO_PRODUCT_CYCLES;
    default:
      return 0;
  }
}

// When the compiler takes a source to be there; 0: it has no fixed latency.
static int64_t source_ready(const plan *p, const sm_op *op, int source) {
  uint16_t token = op->sources[source];
  if (p->ready[token] <= 0) return 0;
  if (p->guards[token] > 0 && ftl_is_guarded_by_predicate(op->opcode, op->arg)) return p->guards[token];
  return p->ready[token] + cycles_across(p->pipe[token], op);
}

static void place(plan *p, sm_op *op) {
  int64_t at = p->issued + 1;
  for (int i = 0; i < FTL_MAX_SOURCES; i++) {
    int64_t ready = source_ready(p, op, i);
    if (ready > at) at = ready;
  }
  if (p->pipe_free[way_of(op)] > at) at = p->pipe_free[way_of(op)];
  if (at > p->issued + MOST_CYCLES) at = p->issued + MOST_CYCLES;
  if ((op->kind == SM_BRANCH || op->kind == SM_JOIN) && p->products_done > at)
    at = p->products_done;  // spread over what stands before it
  op->stall = (uint8_t)(at - p->issued);
  op->stall_covers = is_known_by(p, op, at);
  int64_t interval = way_of(op) == FTL_SM_PIPE_MIO ? p->arch->mio_warp_interval_cycles : op->interval;
  if (op->kind == SM_WGMMA) interval = 0;  // what it waits for is not the compiler's
  p->issued = at + (op->repeat - 1) * interval;
  p->pipe_free[way_of(op)] = p->issued + interval;
  if (op->pipe == FTL_SM_PIPE_TENSOR && op->kind != SM_WGMMA)
    p->products_done = p->issued + (op->latency < UINT8_MAX ? op->latency : UINT8_MAX);
  bool is_fixed = op->kind == SM_FIXED && op->producer == SM_PRODUCER_FIXED;
  for (int i = 0; i < FTL_MAX_SOURCES; i++) p->knows_token[op->sources[i]] = true;  // it has waited for them
  p->ready[op->destination] = is_fixed ? p->issued + op->latency : 0;
  p->pipe[op->destination] = op->pipe;
  bool is_predicate = is_fixed && ftl_sets_predicate(op->opcode, op->arg);
  p->guards[op->destination] = is_predicate ? p->issued + p->arch->branch_predicate_latency_cycles : 0;
  p->knows_token[op->destination] = is_fixed && op->pipe != FTL_SM_PIPE_TENSOR;  // whose operands may be read later
  p->knows_pipe[way_of(op)] = op->kind != SM_WGMMA;
}

static void forget(plan *p, int32_t num_tokens) {
  memset(p->knows_token, false, sizeof p->knows_token);
  memset(p->knows_pipe, false, sizeof p->knows_pipe);
  p->knows_token[num_tokens - 1] = true;  // that of no source
}

void ftl_sm_set_stall_counts(sm_op *ops, int32_t num_ops, int32_t num_tokens, const ftl_arch *arch) {
  plan p = {.arch = arch};
  forget(&p, num_tokens);
  for (int32_t i = 0; i < num_ops; i++) {
    bool ends_block =
        ops[i].kind == SM_LOOP || ops[i].kind == SM_END_LOOP || ops[i].kind == SM_BRANCH || ops[i].kind == SM_JOIN;
    ops[i].stall = 1;
    if (ops[i].kind < SM_LOOP) place(&p, &ops[i]);
    if (ends_block) p = (plan){.arch = arch};
    // a warp may come from elsewhere to what follows a mark, and past what warp 0 alone does
    if (ends_block || ops[i].kind >= SM_LOOP || (ops[i].flags & FTL_INST_WARP0)) forget(&p, num_tokens);
  }
}
