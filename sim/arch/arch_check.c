// Rules between keys: what the machine relies on and no single key's range can say.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "arch/arch.h"

typedef struct rule {
  bool (*holds)(const ftl_arch *arch);
  const char *key;  // the one to blame
  const char *text;
  int64_t (*number)(
      const ftl_arch *arch);  // what the product that ends the text comes to; NULL: it ends in none, or in a key
} rule;

static int64_t register_units(const ftl_arch *a) { return a->sm_register_unit * a->sm_num_subcores; }
static int64_t most_threads(const ftl_arch *a) { return 32 * a->sm_max_warps; }
static int64_t tpcs_per_gpc(const ftl_arch *a) { return a->chip_num_sms / a->chip_sms_per_tpc / a->chip_num_gpcs; }
static int64_t most_gpcs(const ftl_arch *a) { return a->chip_num_sms / a->chip_sms_per_tpc; }
static int64_t most_far_gpcs(const ftl_arch *a) { return (1 << a->chip_num_gpcs) - 2; }
// A set of each slice.
static int64_t l2_set_bytes(const ftl_arch *a) { return a->l2_num_slices * a->l2_ways * a->l1_line_bytes; }

#define RULE_FUNCTION(name, condition) \
  static bool name(const ftl_arch *a) { return condition; }

RULE_FUNCTION(sm_clocks, a->clock_sm_min_khz <= a->clock_sm_max_khz)
RULE_FUNCTION(sm_max_step, a->clock_sm_max_khz % a->clock_sm_step_khz == 0)
RULE_FUNCTION(sm_min_step, a->clock_sm_min_khz % a->clock_sm_step_khz == 0)
RULE_FUNCTION(onset, a->clock_onset_begin_us <= a->clock_onset_end_us)
RULE_FUNCTION(power, a->power_static_mw < a->power_limit_mw)
RULE_FUNCTION(gpcs, a->chip_num_gpcs * a->chip_sms_per_tpc <= a->chip_num_sms)
RULE_FUNCTION(single_tpcs, a->chip_num_single_tpcs < tpcs_per_gpc(a))
RULE_FUNCTION(tpcs, a->chip_num_sms % a->chip_sms_per_tpc == 0)
RULE_FUNCTION(subcores, a->sm_max_warps % a->sm_num_subcores == 0)
RULE_FUNCTION(registers, a->sm_num_registers % register_units(a) == 0)
RULE_FUNCTION(cta_threads, a->sm_max_threads_per_cta <= most_threads(a))
RULE_FUNCTION(shared_cta, a->shared_max_bytes_per_cta + a->shared_reserved_bytes_per_cta <= a->shared_bytes_per_sm)
RULE_FUNCTION(shared_l1, a->shared_bytes_per_sm <= a->l1_unified_bytes)
RULE_FUNCTION(shared_width, a->shared_bytes_per_cycle % 32 == 0)
RULE_FUNCTION(l2_slices, a->l2_num_slices % a->l2_num_sides == 0)
RULE_FUNCTION(l2_sets, a->l2_size_bytes % l2_set_bytes(a) == 0)
RULE_FUNCTION(l2_granule, a->l2_side_hash_granule_bytes % a->l1_line_bytes == 0)
RULE_FUNCTION(l2_fill, a->l2_fill_sectors != 3)
RULE_FUNCTION(l2_persisting, a->l2_persisting_max_bytes <= a->l2_size_bytes)
RULE_FUNCTION(far, a->l2_num_sides == 1 || (a->noc_far_bytes_per_cycle > 0 && a->noc_far_cycles > 0))
RULE_FUNCTION(far_gpcs, (a->l2_num_sides > 1) == (a->noc_far_gpcs > 0) && a->noc_far_gpcs <= most_far_gpcs(a))
RULE_FUNCTION(ldmatrix, (a->sm_has_ldmatrix != 0) == (a->tensor_mma_m > 8))
RULE_FUNCTION(tma, !a->sm_has_tma || (a->tma_lines_per_cycle_milli > 0 && a->tma_max_pending_lines > 0))
RULE_FUNCTION(clusters, (a->sm_has_tma != 0) == (a->tma_peer_latency_cycles > 0))
RULE_FUNCTION(wgmma, !a->sm_has_wgmma || (a->tensor_wgmma_fma_per_cycle >= 64 && a->tensor_wgmma_queue_depth > 0))
RULE_FUNCTION(wgmma_tma, !a->sm_has_wgmma || a->sm_has_tma)
RULE_FUNCTION(no_wgmma, a->sm_has_wgmma || a->tensor_wgmma_fma_per_cycle == 0)
RULE_FUNCTION(bursts, a->dram_burst_bytes == 32 || a->dram_burst_bytes == 64 || a->dram_burst_bytes == 128)
RULE_FUNCTION(chunks, a->dram_chunk_bytes % a->l1_line_bytes == 0)
RULE_FUNCTION(rows, a->dram_row_bytes % a->dram_chunk_bytes == 0)
RULE_FUNCTION(ccd, a->dram_tccd_long_cycles >= a->dram_burst_cycles)
RULE_FUNCTION(tras, a->dram_tras_cycles >= a->dram_trcd_cycles)
RULE_FUNCTION(refresh, a->dram_trfc_cycles < a->dram_trefi_cycles)

static const rule rules[] = {
    {sm_clocks, "clock.sm_min_khz", "must be at most clock.sm_max_khz", NULL},
    {sm_max_step, "clock.sm_max_khz", "must be a multiple of clock.sm_step_khz", NULL},
    {sm_min_step, "clock.sm_min_khz", "must be a multiple of clock.sm_step_khz", NULL},
    {onset, "clock.onset_begin_us", "must be at most clock.onset_end_us", NULL},
    {power, "power.static_mw", "must be below power.limit_mw", NULL},
    {gpcs, "chip.num_gpcs", "must leave each GPC a TPC: at most chip.num_sms / chip.sms_per_tpc", most_gpcs},
    {single_tpcs, "chip.num_single_tpcs",
     "must leave the last GPC a TPC for clusters: below chip.num_sms / chip.sms_per_tpc / chip.num_gpcs", tpcs_per_gpc},
    {tpcs, "chip.num_sms", "must be a multiple of chip.sms_per_tpc", NULL},
    {subcores, "sm.max_warps", "must be a multiple of sm.num_subcores", NULL},
    {registers, "sm.num_registers", "must be a multiple of sm.register_unit * sm.num_subcores", register_units},
    {cta_threads, "sm.max_threads_per_cta", "must fit the SM: at most 32 * sm.max_warps", most_threads},
    {shared_cta, "shared.max_bytes_per_cta", "plus shared.reserved_bytes_per_cta must be at most shared.bytes_per_sm",
     NULL},
    {shared_l1, "shared.bytes_per_sm", "must be at most l1.unified_bytes", NULL},
    {shared_width, "shared.bytes_per_cycle", "must be a multiple of 32", NULL},
    {l2_slices, "l2.num_slices", "must be a multiple of l2.num_sides", NULL},
    {l2_sets, "l2.size_bytes", "must be a whole number of sets: a multiple of l2.num_slices * l2.ways * l1.line_bytes",
     l2_set_bytes},
    {l2_granule, "l2.side_hash_granule_bytes", "must be a multiple of l1.line_bytes", NULL},
    {l2_fill, "l2.fill_sectors", "must be 1, 2 or 4", NULL},
    {l2_persisting, "l2.persisting_max_bytes", "must be at most l2.size_bytes", NULL},
    {far, "l2.num_sides", "= 2 needs noc.far_cycles and noc.far_bytes_per_cycle above 0", NULL},
    {far_gpcs, "noc.far_gpcs",
     "must be 0 where l2.num_sides is 1, elsewhere name some GPCs and not all, a bit each: 1 to 2^chip.num_gpcs - 2",
     most_far_gpcs},
    {ldmatrix, "sm.has_ldmatrix",
     "must be 0 with the quad pairs of tensor.mma_m = 8, and 1 elsewhere: no other is lowered", NULL},
    {tma, "sm.has_tma", "= 1 needs tma.lines_per_cycle_milli and tma.max_pending_lines above 0", NULL},
    {clusters, "tma.peer_latency_cycles", "must be above 0 where sm.has_tma is 1, and 0 elsewhere", NULL},
    {wgmma, "sm.has_wgmma", "= 1 needs tensor.wgmma_fma_per_cycle of at least 64 and tensor.wgmma_queue_depth above 0",
     NULL},
    {wgmma_tma, "sm.has_wgmma", "= 1 needs sm.has_tma = 1", NULL},
    {no_wgmma, "tensor.wgmma_fma_per_cycle", "must be 0 where sm.has_wgmma is 0", NULL},
    {bursts, "dram.burst_bytes", "must be 32, 64 or 128: whole sectors of one line", NULL},
    {chunks, "dram.chunk_bytes", "must be a multiple of l1.line_bytes", NULL},
    {rows, "dram.row_bytes", "must be a multiple of dram.chunk_bytes", NULL},
    {ccd, "dram.tccd_long_cycles", "must be at least dram.burst_cycles", NULL},
    {tras, "dram.tras_cycles", "must be at least dram.trcd_cycles", NULL},
    {refresh, "dram.trfc_cycles", "must be below dram.trefi_cycles", NULL},
};

// The keys of the rule that a what-if set, or the user's file as one: they are what a user can change.
static void list_what_ifs(const ftl_arch *arch, const rule *broken, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *key = ftl_arch_key_get(i);
    bool is_of_rule = strcmp(key->name, broken->key) != 0 && strstr(broken->text, key->name) != NULL;
    ftl_origin origin = ftl_arch_origin(arch, i);
    if (!is_of_rule || origin.kind != FTL_ORIGIN_OVERRIDE || used >= size) continue;
    char where[200] = "what-if ";
    if (origin.line > 0) snprintf(where, sizeof where, "%.180s:%d: ", origin.file, origin.line);
    used += (size_t)snprintf(out + used, size - used, "%s%s=%lld", used > 0 ? ", " : where, key->name,
                             (long long)ftl_arch_int(arch, i));
  }
}

// What the text ends in, a product or a key: " = 36096"; "" where it ends in neither.
static void write_number(const ftl_arch *arch, const rule *broken, char *out, size_t size) {
  const char *space = strrchr(broken->text, ' ');
  int key_idx = space != NULL ? ftl_arch_key_find(space + 1) : -1;
  out[0] = '\0';
  if (broken->number == NULL && key_idx < 0) return;
  int64_t number = broken->number != NULL ? broken->number(arch) : ftl_arch_int(arch, key_idx);
  snprintf(out, size, " = %lld", (long long)number);
}

static ftl_status rule_error(const ftl_arch *arch, const rule *broken, ftl_error *error) {
  int key_idx = ftl_arch_key_find(broken->key);
  ftl_origin origin = ftl_arch_origin(arch, key_idx);
  char line[32] = "", number[32], what_ifs[320];
  long long value = ftl_arch_int(arch, key_idx);
  if (origin.line > 0) snprintf(line, sizeof line, ":%d", origin.line);
  write_number(arch, broken, number, sizeof number);
  list_what_ifs(arch, broken, what_ifs, sizeof what_ifs);
  if (what_ifs[0] == '\0' || origin.kind == FTL_ORIGIN_OVERRIDE) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s%s: %s (%lld) %s%s", origin.file, line, broken->key, value,
                         broken->text, number);
  }
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s, %lld in %s%s, %s%s; change it too", what_ifs, broken->key, value,
                       origin.file, line, broken->text, number);
}

ftl_status ftl_arch_check(const ftl_arch *arch, ftl_error *error) {
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *key = ftl_arch_key_get(i);
    if (ftl_arch_is_set(arch, i)) continue;
    if (key->allowed != NULL) {
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s is missing, allowed are %s", arch->name, key->name,
                           key->allowed);
    }
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s is missing, allowed is %lld to %lld (%s)", arch->name, key->name,
                         (long long)key->min, (long long)key->max, key->unit);
  }
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (!rules[i].holds(arch)) return rule_error(arch, &rules[i], error);
  }
  return FTL_OK;
}
