// Source of both waits and of the freeze: kernels/measurements/control_fields.csv, where the stall counts of a warp's
// instructions are overwritten and another warp multiplies.
#include "machine/sm/operands.h"

enum {
  PIECE_CYCLES = 1,         // of a product's operands: it goes first, and the instruction next
  SPECIAL_MATH_CYCLES = 1,  // that it keeps its pipe longer where it had to wait: 10.2 cycles a MUFU for 8.2
};

// A wgmma takes the register file in turns, and leaves a place for one instruction of fixed latency.
static int64_t cycles_of(const ftl_sm *sm, sm_subcore *sc, const sm_op *op, int64_t now) {
  if (op->pipe >= FTL_SM_PIPE_SFU || !sm_wgmma_runs(sm, now)) return PIECE_CYCLES;
  int64_t at = now > sc->next_place ? now : sc->next_place;
  sc->next_place = at + sm->arch->tensor_wgmma_dispatch_cycles;
  return at - now;
}

// Warps that could issue wait for dispatch, but those for the tensor cores (math_pipe_throttle in Nsight Compute).
static void freeze(sm_subcore *sc, int64_t now, int64_t cycles) {
  sc->thaws = now + 1 + cycles;
  sc->frozen = 0;
  for (uint64_t awake = sc->awake; awake; awake &= awake - 1) {
    int32_t i = __builtin_ctzll(awake);
    int64_t ready = sc->ready[i];
    if (ready > now + 1 && sc->warps[i]->reason == FTL_STALL_WAIT) {
      sc->ready[i] += cycles;
    } else if (ready < sc->thaws && sc->pipe[i] != FTL_SM_PIPE_TENSOR) {
      sc->undispatched[i] += (uint32_t)(sc->thaws - (ready > now ? ready : now + 1));
      sc->frozen |= UINT64_C(1) << i;
    }
  }
}

void ftl_sm_wait_for_operands(const ftl_sm *sm, sm_subcore *sc, const sm_op *op, int64_t now) {
  int64_t cycles = cycles_of(sm, sc, op, now);
  if (cycles == 0) return;
  if (op->pipe <= FTL_SM_PIPE_SFU) {
    sc->pipe_free[op->pipe] += cycles + (op->pipe == FTL_SM_PIPE_SFU ? SPECIAL_MATH_CYCLES : 0);
    sc->pipe_kept[op->pipe] = sc->pipe_free[op->pipe];
  }
  freeze(sc, now, cycles);
}
