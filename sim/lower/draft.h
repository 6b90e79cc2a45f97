// Between instruction selection and scheduling: one role's instructions in program order, on virtual values.
//
// select/*.c writes drafts; schedule.c orders each straight-line stretch under the register budget, registers.c finds
// liveness, the register count and spills, tokens.c turns virtual values into dependency tokens.
//
// A virtual value is a group of registers of one thread that is read and written as a whole (an accumulator fragment of
// an mma's n8 tile: 4 registers; a packed A fragment: 4; a row maximum: 1; an address: 1 or 2). It may be written more
// than once (accumulators, addresses): program order of its reads and writes is kept (RAW, WAR, WAW).
#ifndef FTL_LOWER_DRAFT_H
#define FTL_LOWER_DRAFT_H

#include "arch/arch.h"
#include "base/arena.h"
#include "lower/warp_program.h"

enum { FTL_NO_VALUE = -1, FTL_DRAFT_MAX_SOURCES = 4 };
// Operands of 64 and 128 bits lie at multiples of their size: ptxas names so many registers more than are live at once
// (the median of 22 kernels, docs/model_schedule.md).
enum { FTL_DRAFT_ALIGNMENT_REGISTERS = 7 };

enum {
  FTL_EFFECT_MEMORY = 1,  // reads or writes shared or global memory, or an async group: keeps its order against fences
  FTL_EFFECT_FENCE =
      2,  // barrier, wait, ring protocol, wgmma fence/commit/wait: keeps its order against memory and fences
  FTL_EFFECT_PINNED = 4,             // loop control and branches: ends a straight-line stretch
  FTL_EFFECT_READS_DESTINATION = 8,  // accumulators: destination is also a source
  FTL_EFFECT_CHAIN = 16,      // among CHAIN instructions of a stretch program order is kept (async copies of one group)
  FTL_EFFECT_AHEAD = 32,      // a fragment's load: stays as far ahead of its products as the program has it
  FTL_EFFECT_CONTINUES = 64,  // a further part of a run whose first part has waited for the operands of all
  FTL_EFFECT_AMID = 128,      // a copy among products that no wait of this step waits for
  FTL_EFFECT_ONCE = 256,      // LOOP: stands for a condition, and runs once at most
};

typedef struct ftl_draft_inst {
  ftl_warp_inst inst;        // destination and sources unset (filled from below by tokens.c)
  int32_t destination;       // virtual value or FTL_NO_VALUE
  int32_t num_destinations;  // > 1: the values destination .. destination+n-1 are all written (and read, with
                             // READS_DESTINATION): the fragments of a WGMMA's accumulator, whose end is guarded by
                             // WGMMA_WAIT (a PINNED instruction) and not by a token. 0 and 1: one value
  int32_t sources[FTL_DRAFT_MAX_SOURCES];
  uint8_t num_sources;
  uint16_t effects;
  int32_t also_awaits;            // value that it waits for without reading it (scoreboards.h); FTL_NO_VALUE
  int32_t first_wait, num_waits;  // WGMMA_WAIT: values in draft->waits that it settles (set by ftl_waits_find)
} ftl_draft_inst;

typedef struct ftl_draft_value {
  int16_t num_registers;    // per thread
  int16_t recompute_insts;  // ALU instructions that compute it again (addresses, constants); 0: it has to be spilled
  bool is_kept;             // worked out once, before the loops that read it
  bool is_reserve;          // registers set aside: nothing is in them
  bool is_apart;            // of these, for an operand beside what it is packed from, which is read behind its product
  bool is_read_late;        // an accumulator that something reads when something else has (slab_turns.h)
} ftl_draft_value;

typedef struct ftl_draft {
  ftl_draft_inst *insts;
  ftl_draft_value *values;
  int32_t *waits;
  int32_t num_insts, capacity_insts, num_values, capacity_values, num_waits, capacity_waits;
  ftl_product product;     // what its products multiply: their timing
  bool buffers_fragments;  // its source has two sets of fragments, as CUTLASS
  bool fragments_early;    // ldmatrix stands farther ahead of its product than it takes
  bool fragments_near;     // nearer: two products ahead
  int32_t crowded_above;   // live registers beyond which a fragment is loaded right before its product; 0: never
  bool failed;             // out of memory, reported once by ftl_draft_finish
  ftl_draft_inst sink;     // what ftl_draft_add gives when memory is out
} ftl_draft;

// A zeroed draft is an empty one. ftl_draft_add presets no destination, sources, access, token and ring; its result is
// valid until the next call.
int32_t ftl_draft_value_add(ftl_draft *draft, int32_t num_registers, int32_t recompute_insts);
ftl_draft_inst *ftl_draft_add(ftl_draft *draft, ftl_opcode opcode, int32_t repeat);  // never NULL (a sink when failed)
void ftl_draft_fini(ftl_draft *draft);

typedef struct ftl_draft_result {
  int32_t registers_per_thread;  // as the compiler would report, at most the cap
  int32_t ordered_registers;     // the same without those that alignment leaves empty where it takes all there are
  int32_t spilled_registers;     // per thread
  int32_t reloaded_registers;    // of these, the kept ones: stored once, before the loops
  int32_t num_tokens;
  int32_t wgmma_registers;  // per thread, that its wgmmas hold at once (wgmma_pressure.h)
} ftl_draft_result;

// Orders, spills and numbers the draft in place: on return inst.destination and inst.sources hold tokens, spill code
// (STL/LDL with local accesses appended through `add_local_access`) is in. Positions change: whoever keeps indices (the
// loops' begin and end) looks for them afterwards.
// `cap`: registers a thread may have. The instructions between PINNED or loop instructions are one stretch each.
typedef uint16_t (*ftl_add_local_access)(void *context, int32_t slot, int32_t num_registers);
FTL_MUST_USE ftl_status ftl_draft_finish(ftl_draft *draft, const ftl_arch *arch, int32_t cap,
                                         ftl_add_local_access add_local_access, void *context, ftl_draft_result *out,
                                         ftl_error *error);

#endif
