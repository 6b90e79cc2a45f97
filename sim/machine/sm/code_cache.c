// The SM's instruction cache: least recently used lines of 128 bytes. As a warp comes to a line the next one is asked
// for, which takes a fixed time: code that issues slower than that never waits, code that does not waits for each line
// (micro_instruction_fetch.csv: FFMAs of one warp on each sub-core 2.4 cycles apart for 1, those that depend on each
// other 4.05 for 4.04). Lines come through a port of the SM's, from a level that the SMs of a GPC share. Where all of
// them fetch at places of their own that level gives each a line in code_share_cycles, and the SM waits for none while
// it asks for fewer: it is taken to be like the others over a while, and may be ahead of its share by
// FTL_SM_CODE_AHEAD_LINES, for which they have not asked. Where they ask for more, those that follow others catch up
// until they take the same lines, and each gets one in code_convoy_cycles. Where all CTAs run every loop as often SMs
// are taken to stay in step: one group of warps a SM, all SMs at one place (micro_instruction_fetch.csv,
// 1_group_all_sms), takes what it takes on one SM, and so, it is assumed, do several groups whose places repeat on
// every SM. What a launch does not bring along, its first 64 KiB, comes from memory when an SM first asks. Not here:
// code beyond that level (128 KiB) takes 46 cycles a line. Numbers: sm.code_cache_bytes, code_miss_cycles,
// code_port_cycles, code_share_cycles, code_convoy_cycles, code_launch_bytes, code_cold_cycles.
#include "machine/sm/state.h"

// Where CTA follows CTA, the code that fits is where the last one left it, all of it has been fetched from memory, and
// the SM is no more ahead of its share.
bool ftl_sm_code_cache_create(ftl_sm *sm) {
  sm_code_cache *cache = &sm->code_cache;
  int32_t num_lines = sm->code.num_lines;
  cache->lines = FTL_ARENA_NEW(&sm->arena, sm_code_line, num_lines + 1);
  if (!cache->lines) return false;
  cache->capacity = (int32_t)(sm->arch->sm_code_cache_bytes / SM_CODE_LINE_BYTES);
  cache->uses = 1;
  if (!sm->config.is_warm) cache->share_free = -FTL_SM_CODE_AHEAD_LINES * sm->arch->sm_code_share_cycles;
  cache->fits = num_lines <= cache->capacity;
  cache->lines[num_lines].last_use = 1;
  int64_t launched = sm->arch->sm_code_launch_bytes / SM_CODE_LINE_BYTES;
  for (int32_t i = 0; i < num_lines; i++)
    cache->lines[i].is_near = sm->config.is_warm || !sm->config.is_code_far || i < launched;
  if (!sm->config.is_warm || !cache->fits) return true;
  for (int32_t i = 0; i < num_lines; i++) cache->lines[i].last_use = 1;
  cache->num_held = num_lines;
  return true;
}

static void evict(ftl_sm *sm) {
  sm_code_line *lines = sm->code_cache.lines, *oldest = NULL;
  for (int32_t i = 0; i < sm->code.num_lines; i++)
    if (lines[i].last_use && (!oldest || lines[i].last_use < oldest->last_use)) oldest = &lines[i];
  oldest->last_use = 0;
  sm->code_cache.num_held--;
}

static void ask(ftl_sm *sm, int32_t index, int64_t now) {
  sm_code_cache *cache = &sm->code_cache;
  sm_code_line *line = &cache->lines[index];
  if (line->last_use != 0) return;
  if (cache->num_held == cache->capacity) evict(sm);
  cache->num_held++;
  const ftl_arch *arch = sm->arch;
  int64_t share = arch->sm_code_share_cycles;
  bool has_share = sm->config.ctas_alike || cache->share_free <= now;
  cache->port_free =
      sm_later(cache->port_free, now) + (has_share ? arch->sm_code_port_cycles : arch->sm_code_convoy_cycles);
  cache->share_free =
      has_share ? sm_later(cache->share_free, now - FTL_SM_CODE_AHEAD_LINES * share) + share : now + share;
  int64_t takes = line->is_near ? arch->sm_code_miss_cycles : arch->sm_code_cold_cycles;
  line->there_at = sm_later(now + takes, cache->port_free);
  line->is_near = true;
  line->last_use = ++cache->uses;
}

// A run issues an instruction a cycle at the most, and waits where it comes to a line that is not there yet: it begins
// as much later.
int64_t ftl_sm_code_fetch(ftl_sm *sm, const sm_op *op, int64_t now) {
  enum { LINE_INSTS = SM_CODE_LINE_BYTES / 16 };
  sm_code_cache *cache = &sm->code_cache;
  if (cache->capacity == 0) return now;
  int64_t begin = now;
  for (int32_t i = 0; i < op->num_lines; i++) {
    sm_code_line *line = &cache->lines[op->line + i];
    int64_t passed = (int64_t)i * LINE_INSTS;
    ask(sm, op->line + i, now + passed);
    line->last_use = ++cache->uses;
    ask(sm, op->line + i + 1, now + passed);
    begin = sm_later(begin, line->there_at - passed);
  }
  return begin;
}
