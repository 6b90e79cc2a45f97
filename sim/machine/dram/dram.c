#include "machine/dram/dram.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/sectors.h"
#include "machine/dram/channel.h"
#include "machine/dram/map.h"

struct ftl_dram {
  ftl_dram_map map;
  uint32_t num_channels;
  int64_t until;  // of the last advance
  uint32_t num_entries;
  ftl_dram_shared shared;
  ftl_dram_channel *channels;
  ftl_dram_bank *banks;  // of all channels
};

// Room for `num_entries` requests; the ones added are free.
static bool reserve_entries(ftl_dram *dram, uint32_t num_entries) {
  ftl_dram_shared *shared = &dram->shared;
  ftl_dram_entry *entries = realloc(shared->entries, num_entries * sizeof *entries);
  if (entries == NULL) return false;
  shared->entries = entries;
  ftl_dram_done *done = realloc(shared->done, num_entries * sizeof *done);
  if (done == NULL) return false;
  shared->done = done;
  for (uint32_t i = num_entries; i > dram->num_entries; i--) {
    entries[i - 1].next = shared->free_entry;
    shared->free_entry = i - 1;
  }
  dram->num_entries = num_entries;
  return true;
}

ftl_status ftl_dram_create(ftl_dram **out, const ftl_arch *arch, ftl_error *error) {
  *out = NULL;
  ftl_dram *dram = calloc(1, sizeof *dram);
  if (dram == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the DRAM model");
  dram->map = ftl_dram_map_init(arch);
  dram->num_channels = (uint32_t)arch->dram_num_channels;
  dram->shared.timing = ftl_dram_timing_init(arch);
  dram->shared.free_entry = FTL_DRAM_NONE;
  uint32_t num_banks = dram->shared.timing.num_banks;
  dram->channels = calloc(dram->num_channels, sizeof *dram->channels);
  dram->banks = calloc((size_t)dram->num_channels * num_banks, sizeof *dram->banks);
  uint32_t num_entries = dram->num_channels * (uint32_t)arch->dram_queue_entries * 4;
  if (dram->channels == NULL || dram->banks == NULL || !reserve_entries(dram, num_entries)) {
    ftl_dram_destroy(dram);
    return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the DRAM model");
  }
  for (uint32_t c = 0; c < dram->num_channels; c++) dram->channels[c].banks = &dram->banks[c * num_banks];
  ftl_dram_restart(dram);
  *out = dram;
  return FTL_OK;
}

void ftl_dram_destroy(ftl_dram *dram) {
  if (dram == NULL) return;
  free(dram->banks);
  free(dram->channels);
  free(dram->shared.done);
  free(dram->shared.entries);
  free(dram);
}

void ftl_dram_restart(ftl_dram *dram) {
  FTL_CHECK(ftl_dram_is_idle(dram), "dram: restarted with %lld requests pending", (long long)dram->shared.num_pending);
  dram->until = 0;
  dram->shared.num_done = 0;
  dram->shared.counters = (ftl_dram_counters){0};
  for (uint32_t c = 0; c < dram->num_channels; c++) {
    ftl_dram_channel_reset(&dram->channels[c], &dram->shared.timing, c, dram->num_channels);
  }
}

static uint8_t num_bursts(const ftl_dram *dram, uint8_t sectors) {
  int64_t sectors_per_burst = dram->shared.timing.burst_bytes / FTL_SECTOR_BYTES;
  uint8_t burst_mask = (uint8_t)((1 << sectors_per_burst) - 1);
  uint8_t bursts = 0;
  for (int s = 0; s < 4; s += (int)sectors_per_burst) {
    if ((sectors >> s & burst_mask) != 0) bursts++;
  }
  return bursts;
}

void ftl_dram_push(ftl_dram *dram, const ftl_dram_request *request) {
  ftl_dram_shared *shared = &dram->shared;
  FTL_CHECK(request->arrival_cycle >= dram->until, "dram: a request for cycle %lld comes after cycle %lld is over",
            (long long)request->arrival_cycle, (long long)dram->until);
  if (shared->free_entry == FTL_DRAM_NONE) {
    // Writes wait without bound where reads keep the channels busy, so the number to reserve is not known beforehand.
    FTL_CHECK(reserve_entries(dram, dram->num_entries * 2), "dram: no memory for %u requests", dram->num_entries * 2);
  }
  uint32_t index = shared->free_entry;
  ftl_dram_entry *entry = &shared->entries[index];
  shared->free_entry = entry->next;
  ftl_dram_place place = ftl_dram_map_line(&dram->map, request->line);
  *entry = (ftl_dram_entry){.since = request->arrival_cycle,
                            .row = place.row,
                            .cookie = request->cookie,
                            .bank = (uint8_t)place.bank,
                            .num_bursts = num_bursts(dram, request->sectors),
                            .num_sectors = (uint8_t)ftl_num_sectors(request->sectors)};
  shared->num_pending++;
  ftl_dram_channel_push(&dram->channels[place.channel], shared, index, request->is_write);
}

const ftl_dram_done *ftl_dram_advance(ftl_dram *dram, int64_t until, int64_t *count) {
  dram->shared.num_done = 0;
  dram->until = until;
  if (dram->shared.num_pending > 0) {
    for (uint32_t c = 0; c < dram->num_channels; c++)
      ftl_dram_channel_advance(&dram->channels[c], &dram->shared, until);
  }
  *count = dram->shared.num_done;
  return dram->shared.done;
}

bool ftl_dram_is_idle(const ftl_dram *dram) { return dram->shared.num_pending == 0; }
int64_t ftl_dram_num_pending(const ftl_dram *dram) { return dram->shared.num_pending; }
ftl_dram_counters ftl_dram_counters_get(const ftl_dram *dram) { return dram->shared.counters; }
