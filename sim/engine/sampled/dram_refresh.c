#include "engine/sampled/dram_refresh.h"

#include <math.h>

#include "base/integer.h"
#include "machine/dram/map.h"

void ftl_dram_refresh_init(ftl_dram_refresh *refresh, const ftl_arch *arch, int64_t sm_khz) {
  ftl_dram_map map = ftl_dram_map_init(arch);
  double sm_cycles = (double)sm_khz / (double)arch->clock_dram_khz;
  *refresh = (ftl_dram_refresh){.chunk_bytes = (int64_t)map.lines_per_chunk * arch->l1_line_bytes,
                                .interval_cycles = sm_cycles * (double)arch->dram_trefi_cycles,
                                .length_cycles = sm_cycles * (double)arch->dram_trfc_cycles};
}

static int64_t num_chunks(const ftl_dram_refresh *refresh, int64_t bytes) {
  return ftl_divide_up(bytes, refresh->chunk_bytes);
}

// Rows lie in chunks of their own, or several in one.
static int64_t chunks_of_tile(const ftl_dram_refresh *refresh, const ftl_tile_run *run) {
  bool are_side_by_side = run->tile_row_bytes > 0;
  int64_t rows = are_side_by_side ? run->num_rows : run->num_rows / run->num_tiles;
  int64_t row_bytes = are_side_by_side ? run->tile_row_bytes : run->place.row_bytes;
  int64_t apart = rows * num_chunks(refresh, row_bytes);
  int64_t together = num_chunks(refresh, (rows - 1) * run->place.row_stride_bytes + row_bytes);
  return apart < together ? apart : together;
}

// A read finds its channel in a refresh that lasts for more than u with the chance (tRFC - u) / tREFI. One asked for s
// before the last delays the tile by t if that is more than s + t; over chunks asked for evenly in S such s the chance
// is, with left = tRFC - t, left^2 / 2S / tREFI in the mean (left - S / 2 beyond S), and none of n delays it by as much
// with exp(-n times that). The mean delay is the integral of the rest over t, here by the midpoints of equal parts.
static double mean_wait(const ftl_dram_refresh *refresh, double chunks, double asking) {
  enum { PARTS = 16 };
  double width = refresh->length_cycles / PARTS, sum = 0;
  for (int32_t part = 0; part < PARTS; part++) {
    double left = (part + 0.5) * width;
    double overlap = left < asking ? left * left / (2 * asking) : left - asking / 2;
    sum += (1 - exp(-chunks * overlap / refresh->interval_cycles)) * width;
  }
  return sum;
}

int64_t ftl_dram_refresh_wait(ftl_dram_refresh *refresh, const ftl_tile_run *run, int64_t asking_cycles) {
  int64_t chunks = chunks_of_tile(refresh, run), slot = (chunks * 7 + asking_cycles) % FTL_DRAM_REFRESH_KNOWN;
  if (refresh->known[slot].chunks != chunks || refresh->known[slot].asking_cycles != asking_cycles) {
    refresh->known[slot].chunks = chunks;
    refresh->known[slot].asking_cycles = asking_cycles;
    refresh->known[slot].wait_cycles = (int64_t)mean_wait(refresh, (double)chunks, (double)asking_cycles);
  }
  return refresh->known[slot].wait_cycles;
}
