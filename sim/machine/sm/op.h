// A static instruction as the SM wants it: every number that the program and the arch model decide, found once.
#ifndef FTL_MACHINE_SM_OP_H
#define FTL_MACHINE_SM_OP_H

#include <stdint.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "lower/warp_program.h"

// What an instruction does when it issues; from LOOP on, when the warp comes to it (these never issue).
typedef enum sm_kind {
  SM_FIXED,      // a pipe of the sub-core with fixed latency
  SM_PARAMETER,  // the same, when the kernel's parameters are there
  SM_SHARED,     // MIO instruction that is done with the SM's data pipe
  SM_GLOBAL,     // MIO instruction that makes lines
  SM_CP_COMMIT,
  SM_CP_WAIT,
  SM_WGMMA,
  SM_WGMMA_WAIT,
  SM_TMA,
  SM_TMA_STORE_WAIT,
  SM_PROXY_FENCE,
  SM_BARRIER,
  SM_BARRIER_ARRIVE,
  SM_MBAR_ACQUIRE,
  SM_MBAR_EXPECT,
  SM_MBAR_WAIT,
  SM_MBAR_RELEASE,
  SM_TILE_ASK,
  SM_TILE_WAIT,
  SM_BRANCH,
  SM_JOIN,
  SM_SLOT,  // nothing but the issue slot
  SM_EXIT,
  SM_LOOP,
  SM_END_LOOP,
  SM_TILE,
  SM_WGMMA_COMMIT,
  SM_MBAR_ADVANCE,
  SM_MARK,  // for the checker only
  SM_END,   // after the last instruction of a role
} sm_kind;

enum { SM_CODE_LINE_BYTES = 128 };

// Why a token is not ready yet, in the low bits of a token word (see warp.h).
enum { SM_PRODUCER_FIXED, SM_PRODUCER_SHARED, SM_PRODUCER_GLOBAL, SM_PRODUCER_PARAMETER };

typedef struct sm_op {
  uint8_t kind, pipe, repeat, flags;
  uint16_t interval, latency;         // WGMMA: issue cost, cycles of math
  uint8_t stall;                      // cycles after the instruction before, at least (stall_counts.c)
  uint8_t stall_covers;               // the stall is all that it waits for: no token or pipe of its warp's is later
  uint8_t dispatch;                   // cycles of its sub-core's dispatch; 0: has its own way to its operands
  uint8_t first_reads, reads;         // registers that the first of a run reads beside a wgmma, and each later one
  uint8_t freezes;                    // its sub-core, while it waits for them
  uint8_t wide;                       // a 64-bit product: see operands.c
  uint16_t destination;               // token; a word that nobody reads where there is none
  uint16_t sources[FTL_MAX_SOURCES];  // tokens; a word that is always ready where there is none
  uint8_t producer;                   // SM_PRODUCER_* of the destination
  uint8_t throttle;                   // ftl_stall while the pipe is what it waits for
  uint8_t defers;                     // BARRIER: the warp goes on up to the next instruction that is held
  uint8_t held;                       // by a barrier behind which it stands
  uint8_t special;    // the warp has to look before it waits for it: pseudo, warp 0 only, or waits for more than tokens
  uint8_t bulk;       // a run of it may be one event
  uint8_t num_lines;  // of code that a warp enters when it comes to it; a run is as many instructions
  uint16_t line;      // the first of them
  uint16_t data_cycles;   // on the SM's data pipe; WGMMA: of operand reads
  uint16_t extra_cycles;  // beyond `latency`: wavefronts after the first, conflicts; WGMMA: reads without a free cycle
  uint16_t access, arg;   // arg of PARAMETER: which 16 bytes
  uint16_t shared_wavefronts, bank_conflicts;  // what it adds to these counters
  uint8_t opcode;
  uint8_t is_store;    // waits for the store port
  uint8_t is_load;     // LDG, LDL
  uint8_t scoreboard;  // LDG: on which it counts, from 1 on; 0: on none that is shared
  uint8_t awaits;      // scoreboards, a bit each
  uint8_t counts;      // LDG of a role that has more of them than a warp may have on their way
  uint16_t max_lines;  // SM_GLOBAL: at most this many lines a time
  int16_t loop;        // LOOP, END_LOOP and the branch before it: index; else -1
  int16_t barrier;     // BARRIER, BARRIER_ARRIVE: dense index within the CTA
  uint8_t meeting;     // BARRIER, BARRIER_ARRIVE: warps that end a phase
  uint8_t priority;    // ftl_l2_priority of what an access moves
  int32_t inst;        // in ftl_warp_program.insts
} sm_op;

typedef struct sm_code {
  sm_op *ops;  // of role r from first_op[r] on: num_insts and an SM_END
  int32_t first_op[FTL_TILE_MAX_ROLES];
  int32_t num_tokens;    // words a warp needs, the two of sm_op included
  int32_t num_barriers;  // dense barriers of a CTA
  int32_t gate_lines;    // the most lines of any instruction
  uint32_t mma_interval_cycles, mma_dispatch_cycles;
  int32_t num_lines;       // of code
  int32_t num_parameters;  // of 16 bytes, that any role reads
} sm_code;

// FTL_INFEASIBLE when the program needs what the chip does not have; FTL_NO_MEMORY. `arena` owns the arrays.
FTL_MUST_USE ftl_status ftl_sm_code_build(sm_code *out, const ftl_warp_program *program, const ftl_arch *arch,
                                          ftl_arena *arena, ftl_error *error);

// Of a role's instructions in their order.
void ftl_sm_set_stall_counts(sm_op *ops, int32_t num_ops, int32_t num_tokens, const ftl_arch *arch);

#endif
