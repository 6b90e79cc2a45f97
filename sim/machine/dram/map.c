#include "machine/dram/map.h"

ftl_dram_map ftl_dram_map_init(const ftl_arch *arch) {
  return (ftl_dram_map){
      .num_channels = (uint32_t)arch->dram_num_channels,
      .num_banks = (uint32_t)(arch->dram_num_bank_groups * arch->dram_banks_per_group),
      .lines_per_chunk = (uint32_t)(arch->dram_chunk_bytes / arch->l1_line_bytes),
      .chunks_per_row = (uint32_t)(arch->dram_row_bytes / arch->dram_chunk_bytes),
  };
}

// A hash of x in [0, n): the finaliser of MurmurHash3 (Appleby), then multiply-shift.
static uint32_t hash_to(uint64_t x, uint32_t n) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdu;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53u;
  x ^= x >> 33;
  return (uint32_t)(((x >> 32) * n) >> 32);
}

static uint32_t rotate(uint64_t number, uint64_t seed, uint32_t n) {
  uint32_t position = (uint32_t)(number % n) + hash_to(seed + 1, n);
  return position < n ? position : position - n;
}

uint32_t ftl_dram_map_first_channel(const ftl_dram_map *map, uint64_t turn) {
  return hash_to(turn + 1, map->num_channels);
}

ftl_dram_place ftl_dram_map_line(const ftl_dram_map *map, uint64_t line) {
  uint64_t chunk = line / map->lines_per_chunk;
  uint64_t chunk_in_channel = chunk / map->num_channels;
  uint64_t row = chunk_in_channel / map->chunks_per_row;
  return (ftl_dram_place){
      .channel = rotate(chunk, chunk_in_channel, map->num_channels),
      .bank = rotate(row, row / map->num_banks, map->num_banks),
      .row = row,
  };
}
