// Source of both waits and of the freeze: kernels/measurements/control_fields.csv, where the stall counts of a warp's
// instructions are overwritten and another warp multiplies.
#include "machine/sm/operands.h"

enum { PIECE_CYCLES = 1 };  // of a product's operands: it goes first, and the instruction next

// A wgmma takes the register file in turns. In each of a turn's first cycles others may read a register.
static int64_t next_read(const ftl_sm *sm, int64_t cycle) {
  int64_t turn = sm->arch->tensor_wgmma_dispatch_cycles, phase = cycle % turn;
  return phase < sm->arch->tensor_wgmma_open_cycles ? cycle : cycle + turn - phase;
}

// An instruction of fixed latency waits for the first of its reads; what comes next for all.
static int64_t cycles_of(ftl_sm *sm, sm_subcore *sc, const sm_op *op, int32_t reads, int64_t now) {
  if (op->pipe >= FTL_SM_PIPE_SFU || !sm_wgmma_runs(sm, now)) return PIECE_CYCLES;
  if (op->wide) {
    ftl_sm_gmma_take(sm, sc, sm->arch->tensor_wgmma_wide_taken_cycles, now);
    sc->reads_until = now + sm->arch->tensor_wgmma_wide_cycles;
    return sm->arch->tensor_wgmma_wide_cycles - 1;
  }
  int64_t at = next_read(sm, now > sc->reads_until ? now : sc->reads_until);
  sc->reads_until = at + 1;
  for (int32_t i = 1; i < reads; i++) sc->reads_until = next_read(sm, sc->reads_until) + 1;
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

void ftl_sm_wait_for_operands(ftl_sm *sm, sm_subcore *sc, const sm_op *op, int32_t reads, int64_t now) {
  int64_t cycles = cycles_of(sm, sc, op, reads, now);
  if (cycles == 0) return;
  if (op->pipe <= FTL_SM_PIPE_SFU && !op->wide) {
    sc->pipe_free[op->pipe] += cycles + (op->pipe == FTL_SM_PIPE_SFU ? sm->arch->sfu_kept_cycles : 0);
    sc->pipe_kept[op->pipe] = sc->pipe_free[op->pipe];
  }
  freeze(sc, now, cycles);
}
