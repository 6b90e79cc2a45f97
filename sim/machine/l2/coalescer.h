// Hopper's request coalescer: reads of the same sectors by different SMs within a few cycles make one L2 access.
// Models: entries by line, one coalescer a GPC, a limit of reads an access; an entry takes reads while its data are on
// their way to L2 and for a window after L2 has them (kernels/measurements/micro_coalescer_window_ncu.csv).
// Reads of multicast copies are not given to it (micro_tile_merge_ncu.csv). Numbers: l2.coalescer_merges,
// l2.coalescer_window_cycles; 1024 entries as in Accel-Sim 2.0's SM90_H100, a guess there too.
#ifndef FTL_MACHINE_L2_COALESCER_H
#define FTL_MACHINE_L2_COALESCER_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "arch/arch_limits.h"
#include "machine/l2/hash.h"

enum { FTL_L2_COALESCER_ENTRIES = 1024, FTL_L2_COALESCER_MAX_MERGES = FTL_ARCH_MAX_l2_coalescer_merges };

typedef struct ftl_l2_coalescer_entry {
  uint64_t line;
  int64_t data_cycle;  // when the access read the data array, or its data came; before that, when it began
  uint8_t sectors, num_sms;
  uint16_t sms[FTL_L2_COALESCER_MAX_MERGES];
} ftl_l2_coalescer_entry;

typedef struct ftl_l2_coalescer {
  int64_t window_cycles;
  uint8_t max_merges;
  ftl_l2_coalescer_entry entries[FTL_L2_COALESCER_ENTRIES];
} ftl_l2_coalescer;

// The entry that the line has, or would take from another.
static inline ftl_l2_coalescer_entry *ftl_l2_coalescer_entry_of(ftl_l2_coalescer *coalescer, uint64_t line) {
  return &coalescer->entries[ftl_l2_mix(line) % FTL_L2_COALESCER_ENTRIES];
}

// Without accesses.
void ftl_l2_coalescer_init(ftl_l2_coalescer *coalescer, const ftl_arch *arch);
// Forgets all accesses: cycles begin anew.
void ftl_l2_coalescer_restart(ftl_l2_coalescer *coalescer);

// True: the read joins an access. Else it makes one, which others may join. in_flight: sectors that the read wants are
// on their way to its side of L2.
bool ftl_l2_coalescer_join(ftl_l2_coalescer *coalescer, uint64_t line, uint8_t sectors, uint16_t sm, int64_t cycle,
                           bool in_flight);
// When the access that the last read of the line made reads the data array, at the earliest.
static inline int64_t ftl_l2_coalescer_data_cycle(ftl_l2_coalescer *coalescer, uint64_t line) {
  const ftl_l2_coalescer_entry *entry = ftl_l2_coalescer_entry_of(coalescer, line);
  return entry->line == line ? entry->data_cycle : 0;
}
// Nothing where another line has taken the entry.
static inline void ftl_l2_coalescer_set_data_cycle(ftl_l2_coalescer *coalescer, uint64_t line, int64_t cycle) {
  ftl_l2_coalescer_entry *entry = ftl_l2_coalescer_entry_of(coalescer, line);
  if (entry->line == line) entry->data_cycle = cycle;
}

#endif
