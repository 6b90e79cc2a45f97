// Where a line lies in DRAM: channel, bank, row.
// Models: chunks dealt to the channels by a rotation that a hash chooses, fair for any number of channels;
//   consecutive chunks of a channel fill a row, consecutive rows change the bank and the bank group.
// Does not model: the real, unpublished mapping; a tie between L2 sides and channels.
// Numbers: dram.num_channels, chunk_bytes, row_bytes, num_bank_groups, banks_per_group.
#ifndef FTL_MACHINE_DRAM_MAP_H
#define FTL_MACHINE_DRAM_MAP_H

#include <stdint.h>

#include "arch/arch.h"

typedef struct ftl_dram_map {
  uint32_t num_channels, num_banks;
  uint32_t lines_per_chunk, chunks_per_row;
} ftl_dram_map;

typedef struct ftl_dram_place {
  uint32_t channel, bank;  // bank b is in group b mod num_bank_groups
  uint64_t row;            // unique in the channel, not only in the bank
} ftl_dram_place;

ftl_dram_map ftl_dram_map_init(const ftl_arch *arch);
// Of the turn'th round of chunks, from chunk turn * num_channels on: where its first one lies. Those behind it lie in
// the channels behind that, and on from channel 0.
uint32_t ftl_dram_map_first_channel(const ftl_dram_map *map, uint64_t turn);
ftl_dram_place ftl_dram_map_line(const ftl_dram_map *map, uint64_t line);

#endif
