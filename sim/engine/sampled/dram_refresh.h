// How long the last line of a tile from DRAM waits because a channel refreshes.
// Models: channels that refresh by turns (machine/dram/channel.c), so that some always do; a tile lies in chunks on
// many channels, asked for one after the other, and is there when the last of them is. Does not model: reads that queue
// behind those that a refresh held up; bank conflicts. Numbers: dram.trefi_cycles, dram.trfc_cycles.
#ifndef FTL_ENGINE_SAMPLED_DRAM_REFRESH_H
#define FTL_ENGINE_SAMPLED_DRAM_REFRESH_H

#include "arch/arch.h"
#include "engine/sampled/cursor.h"

enum { FTL_DRAM_REFRESH_KNOWN = 64 };

typedef struct ftl_dram_refresh {
  int64_t chunk_bytes;
  double interval_cycles, length_cycles;  // SM cycles
  struct {
    int64_t chunks, asking_cycles, wait_cycles;
  } known[FTL_DRAM_REFRESH_KNOWN];  // what was worked out before
} ftl_dram_refresh;

// For an SM clock of sm_khz.
void ftl_dram_refresh_init(ftl_dram_refresh *refresh, const ftl_arch *arch, int64_t sm_khz);
// SM cycles in the mean, for a tile of the run that its SM asks for in `asking_cycles`.
int64_t ftl_dram_refresh_wait(ftl_dram_refresh *refresh, const ftl_tile_run *run, int64_t asking_cycles);

#endif
