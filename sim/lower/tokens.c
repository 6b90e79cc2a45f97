#include "lower/tokens.h"

enum { NONE = -1 };

typedef struct span {
  int32_t first, last;                 // positions; first is NONE when the value is never live
  int32_t next_starting, next_ending;  // other values that start or end at the same position
  int32_t token;
} span;

typedef struct spans {
  span *of;                    // by value
  int32_t *starting, *ending;  // by position: heads of lists
} spans;

static void cover(span *s, int32_t position) {
  if (s->first == NONE || position < s->first) s->first = position;
  if (s->last == NONE || position > s->last) s->last = position;
}

static void cover_set(span *of, const uint64_t *set, int32_t num_words, int32_t position) {
  for (int32_t w = 0; w < num_words; w++) {
    for (uint64_t bits = set[w]; bits; bits &= bits - 1) cover(&of[w * 64 + __builtin_ctzll(bits)], position);
  }
}

static void find_spans(const ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, span *of) {
  for (int32_t v = 0; v < draft->num_values; v++) of[v] = (span){NONE, NONE, NONE, NONE, NONE};
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    int32_t num_reads = ftl_inst_num_reads(inst);
    for (int32_t k = 0; k < num_reads; k++) cover(&of[ftl_inst_read(draft, inst, k)], i);
    for (int32_t k = 0; k < ftl_inst_num_writes(inst); k++) cover(&of[inst->destination + k], i);
    if (inst->also_awaits != FTL_NO_VALUE) cover(&of[inst->also_awaits], i);
  }
  for (int32_t s = 0; s < flow->num_stretches; s++) {
    size_t row = (size_t)s * (size_t)liveness->num_words;
    cover_set(of, &liveness->live_in[row], liveness->num_words, flow->stretches[s].begin);
    cover_set(of, &liveness->live_out[row], liveness->num_words, flow->stretches[s].end - 1);
  }
}

static void list_by_position(const ftl_draft *draft, spans *all) {
  for (int32_t i = 0; i < draft->num_insts; i++) all->starting[i] = all->ending[i] = NONE;
  for (int32_t v = draft->num_values - 1; v >= 0; v--) {
    span *s = &all->of[v];
    if (s->first == NONE) continue;
    s->next_starting = all->starting[s->first];
    all->starting[s->first] = v;
    s->next_ending = all->ending[s->last];
    all->ending[s->last] = v;
  }
}

// Gives the number of tokens. Frees after it takes, so that no instruction writes a token that it reads.
static int32_t scan(const ftl_draft *draft, spans *all, int32_t *free_tokens) {
  int32_t num_free = 0, num_tokens = 0;
  for (int32_t i = 0; i < draft->num_insts; i++) {
    for (int32_t v = all->starting[i]; v != NONE; v = all->of[v].next_starting)
      all->of[v].token = num_free ? free_tokens[--num_free] : num_tokens++;
    for (int32_t v = all->ending[i]; v != NONE; v = all->of[v].next_ending) free_tokens[num_free++] = all->of[v].token;
  }
  return num_tokens;
}

static void add_source(ftl_warp_inst *inst, int32_t token) {
  for (int32_t k = 0; k < inst->num_sources; k++) {
    if (inst->sources[k] == token) return;
  }
  if (inst->num_sources < FTL_MAX_SOURCES) inst->sources[inst->num_sources++] = (uint16_t)token;
}

// Several destinations are a wgmma's accumulator: WGMMA_WAIT guards it, no token does.
static void number(ftl_draft_inst *inst, const span *of) {
  inst->inst.num_sources = 0;
  inst->inst.destination = FTL_NO_TOKEN;
  if (ftl_inst_num_writes(inst) == 1) {
    int32_t token = of[inst->destination].token;
    inst->inst.destination = (uint16_t)token;
    if ((inst->effects & (FTL_EFFECT_READS_DESTINATION | FTL_EFFECT_CONTINUES)) == FTL_EFFECT_READS_DESTINATION)
      add_source(&inst->inst, token);
  }
  for (int32_t k = 0; k < inst->num_sources && !(inst->effects & FTL_EFFECT_CONTINUES); k++)
    add_source(&inst->inst, of[inst->sources[k]].token);
  int32_t num_read = inst->inst.num_sources;
  if (inst->also_awaits != FTL_NO_VALUE) add_source(&inst->inst, of[inst->also_awaits].token);
  inst->inst.num_awaited = (uint8_t)(inst->inst.num_sources - num_read);
  for (int32_t k = inst->inst.num_sources; k < FTL_MAX_SOURCES; k++) inst->inst.sources[k] = FTL_NO_TOKEN;
}

ftl_status ftl_tokens_assign(ftl_draft *draft, const ftl_flow *flow, const ftl_liveness *liveness, ftl_arena *arena,
                             int32_t *num_tokens, ftl_error *error) {
  spans all = {FTL_ARENA_NEW(arena, span, draft->num_values), FTL_ARENA_NEW(arena, int32_t, draft->num_insts),
               FTL_ARENA_NEW(arena, int32_t, draft->num_insts)};
  int32_t *free_tokens = FTL_ARENA_NEW(arena, int32_t, draft->num_values);
  if (!all.of || !all.starting || !all.ending || !free_tokens)
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  find_spans(draft, flow, liveness, all.of);
  list_by_position(draft, &all);
  *num_tokens = scan(draft, &all, free_tokens);
  if (*num_tokens > FTL_MAX_TOKENS)
    return ftl_error_set(error, FTL_INFEASIBLE, "a warp needs %d values at once, %d can be followed", *num_tokens,
                         FTL_MAX_TOKENS);
  for (int32_t i = 0; i < draft->num_insts; i++) number(&draft->insts[i], all.of);
  return FTL_OK;
}
