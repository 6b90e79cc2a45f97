// What instructions may leave the order in which they are written without more registers than that order needs.
//
// A stretch is placed from its end. As long as each instruction is the last of those that are left, registers are those
// of the written order. An instruction that goes before its turn (later in the program) lengthens the lives of what it
// reads over those that it passes, and shortens that of its result: it may, if each of them still fits.
#ifndef FTL_LOWER_TURNS_H
#define FTL_LOWER_TURNS_H

#include "lower/registers.h"

typedef struct ftl_turns {
  const ftl_draft *draft;
  const ftl_draft_inst *first;  // of the stretch
  int32_t *pressure;            // by node: registers needed there, if all that are left stand in the written order
  bool *placed;                 // by node
  int32_t last;                 // of those that are left; -1: none
} ftl_turns;

bool ftl_turns_init(ftl_turns *turns, const ftl_draft *draft, int32_t max_nodes, ftl_arena *arena);

// `live_out`: the values live after the stretch; becomes those before it. Gives the most registers that it needs.
int32_t ftl_turns_start(ftl_turns *turns, const ftl_draft_inst *first, int32_t num_nodes, uint64_t *live_out,
                        int32_t num_words);

// Whether `node` may be placed next: those left need at most `limit` registers then. `live`: before what is placed.
bool ftl_turns_allow(const ftl_turns *turns, const uint64_t *live, int32_t node, int32_t limit);
void ftl_turns_take(ftl_turns *turns, const uint64_t *live, int32_t node);

#endif
