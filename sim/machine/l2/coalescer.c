#include "machine/l2/coalescer.h"

void ftl_l2_coalescer_init(ftl_l2_coalescer *coalescer, const ftl_arch *arch) {
  coalescer->window_cycles = arch->l2_coalescer_window_cycles;
  coalescer->max_merges = (uint8_t)arch->l2_coalescer_merges;
  ftl_l2_coalescer_restart(coalescer);
}

void ftl_l2_coalescer_restart(ftl_l2_coalescer *coalescer) {
  for (int i = 0; i < FTL_L2_COALESCER_ENTRIES; i++) coalescer->entries[i] = (ftl_l2_coalescer_entry){0};
}

static bool is_open_for(const ftl_l2_coalescer *coalescer, const ftl_l2_coalescer_entry *entry, uint64_t line,
                        uint8_t sectors, uint16_t sm, int64_t cycle, bool in_flight) {
  if (entry->num_sms == 0 || entry->line != line || entry->num_sms >= coalescer->max_merges) return false;
  if (!in_flight && cycle - entry->data_cycle > coalescer->window_cycles) return false;
  if ((sectors & ~entry->sectors) != 0) return false;
  for (int i = 0; i < entry->num_sms; i++) {
    if (entry->sms[i] == sm) return false;
  }
  return true;
}

bool ftl_l2_coalescer_join(ftl_l2_coalescer *coalescer, uint64_t line, uint8_t sectors, uint16_t sm, int64_t cycle,
                           bool in_flight) {
  ftl_l2_coalescer_entry *entry = ftl_l2_coalescer_entry_of(coalescer, line);
  if (is_open_for(coalescer, entry, line, sectors, sm, cycle, in_flight)) {
    entry->sms[entry->num_sms++] = sm;
    return true;
  }
  *entry = (ftl_l2_coalescer_entry){.line = line, .data_cycle = cycle, .sectors = sectors, .num_sms = 1, .sms = {sm}};
  return false;
}
