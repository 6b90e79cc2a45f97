// Kernel parameters come through the SM's constant caches: the first that a launch reads on an SM comes latest, the
// first of each other line of 64 bytes sooner, and what is in the SM, for a neighbour in the line or another CTA, still
// has to come to each CTA, 16 bytes at a time; afterwards it is there (micro_cold_start.csv, parameters one after the
// other). A load does not hold its warp: who reads what it loads waits. The n-th load of a role, of 4 words, reads the
// n-th 16 bytes: pointers and sizes lie side by side.
// Not modelled: constants of the compiler's own, descriptors of TMA, parameters that are read again in loops.
// Numbers: constant.launch_miss_cycles, constant.line_miss_cycles, constant.cta_miss_cycles.
#include "machine/sm/state.h"

enum { PIECES_A_LINE = 4 };  // 16 of 64 bytes

bool ftl_sm_parameters_create(ftl_sm *sm) {
  sm_parameters *p = &sm->parameters;
  int32_t num_lines = sm->code.num_parameters / PIECES_A_LINE + 1;
  p->line_at = FTL_ARENA_NEW(&sm->arena, int64_t, num_lines);
  p->piece_at = FTL_ARENA_NEW(&sm->arena, int64_t, sm->config.num_slots * sm->code.num_parameters + 1);
  if (!p->line_at || !p->piece_at) return false;
  p->launch_has_read = sm->config.is_warm;
  for (int32_t i = 0; i < num_lines; i++) p->line_at[i] = sm->config.is_warm ? 0 : SM_NEVER;
  return true;
}

void ftl_sm_parameters_forget(ftl_sm *sm, int32_t slot) {
  int64_t *piece_at = &sm->parameters.piece_at[slot * sm->code.num_parameters];
  for (int32_t i = 0; i < sm->code.num_parameters; i++) piece_at[i] = SM_NEVER;
}

// Asks for a line, of which nobody has: when the piece that is asked for with it comes to the CTA too.
static int64_t fetch_line(ftl_sm *sm, int32_t line, int64_t now) {
  sm_parameters *p = &sm->parameters;
  const ftl_arch *arch = sm->arch;
  p->line_at[line] = now + (p->launch_has_read ? arch->constant_line_miss_cycles : arch->constant_launch_miss_cycles);
  p->launch_has_read = true;
  return p->line_at[line];
}

int64_t ftl_sm_parameter_fetch(ftl_sm *sm, const sm_warp *w, int64_t now) {
  int64_t *piece_at = &sm->parameters.piece_at[w->slot * sm->code.num_parameters + w->op->arg];
  if (*piece_at != SM_NEVER) return *piece_at;
  int32_t line = w->op->arg / PIECES_A_LINE;
  int64_t line_at = sm->parameters.line_at[line];
  if (line_at == SM_NEVER)
    *piece_at = fetch_line(sm, line, now);
  else
    *piece_at = (line_at > now ? line_at : now) + sm->arch->constant_cta_miss_cycles;
  return *piece_at;
}
