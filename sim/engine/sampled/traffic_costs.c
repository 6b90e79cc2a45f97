#include "engine/sampled/traffic_costs.h"

#include "base/sectors.h"

// a * b / c without overflow, rounded up.
static int64_t scaled_up(int64_t a, int64_t b, int64_t c) {
  return (int64_t)(((__extension__(__int128) a) * b + c - 1) / c);
}

void ftl_traffic_latencies(const ftl_arch *arch, int64_t sm_khz, int64_t *hit_cycles, int64_t *far_cycles,
                           int64_t *miss_cycles) {
  int64_t hit = arch->noc_request_cycles + arch->l2_hit_cycles + arch->noc_reply_cycles;
  *hit_cycles = scaled_up(hit, sm_khz, arch->clock_l2_khz);
  *far_cycles = arch->l2_num_sides > 1 ? scaled_up(2 * arch->noc_far_cycles, sm_khz, arch->clock_l2_khz) : 0;
  int64_t dram = arch->dram_trcd_cycles + arch->dram_tcl_cycles + arch->dram_burst_cycles;
  *miss_cycles = scaled_up(arch->dram_controller_cycles, sm_khz, arch->clock_l2_khz) +
                 scaled_up(dram, sm_khz, arch->clock_dram_khz);
}

int64_t ftl_traffic_refreshing_latency(const ftl_arch *arch, int64_t sm_khz) {
  int64_t hit, far, miss;
  ftl_traffic_latencies(arch, sm_khz, &hit, &far, &miss);
  int64_t unloaded = hit + far + miss, refresh = arch->dram_trfc_cycles * sm_khz / arch->clock_dram_khz;
  return unloaded + (refresh < unloaded ? refresh : unloaded / 2);
}

// Of a sector through something that passes `bytes_per_cycle` of a clock of `khz`.
static int64_t sector_ticks(int64_t bytes_per_cycle, int64_t khz, int64_t sm_khz) {
  return bytes_per_cycle > 0 ? scaled_up(FTL_SECTOR_BYTES * FTL_TICKS_PER_CYCLE, sm_khz, bytes_per_cycle * khz) : 0;
}

// Of a sector that an SM takes in: TMA and cp.async, which pass L1, are bound by the network, loads by L1 too.
static int64_t sm_sector_ticks(const ftl_launch *launch, int64_t sm_khz) {
  int64_t network = sector_ticks(launch->arch->noc_sm_read_bytes_per_cycle, launch->arch->clock_l2_khz, sm_khz);
  int64_t l1 = sector_ticks(launch->arch->l1_fill_bytes_per_cycle, sm_khz, sm_khz);
  bool past_l1 = launch->warps->copy == FTL_COPY_TMA || launch->warps->copy == FTL_COPY_CP_ASYNC;
  return past_l1 || network > l1 ? network : l1;
}

// Of a sector that an SM asks for.
static int64_t ask_sector_ticks(const ftl_launch *launch) {
  const ftl_arch *arch = launch->arch;
  int64_t sectors = arch->l1_line_bytes / FTL_SECTOR_BYTES;
  if (launch->warps->copy == FTL_COPY_TMA && arch->tma_lines_per_cycle_milli > 0)
    return scaled_up(FTL_TICKS_PER_CYCLE, 1000, sectors * arch->tma_lines_per_cycle_milli);
  return scaled_up(FTL_TICKS_PER_CYCLE, FTL_SECTOR_BYTES, arch->l1_bytes_per_cycle);
}

static void set_intake_costs(ftl_traffic *traffic, int64_t sm_khz) {
  const ftl_arch *arch = traffic->arch;
  int64_t l2 = sector_ticks(arch->l2_num_slices * arch->l2_slice_intake_bytes_per_cycle, arch->clock_l2_khz, sm_khz);
  traffic->store_cost = traffic->add_cost =
      (ftl_store_intake){.l2_ticks = l2, .sm_ticks = sector_ticks(arch->l1_store_bytes_per_cycle, sm_khz, sm_khz)};
  traffic->read_request_ticks = l2 * arch->l2_read_request_bytes / arch->l1_line_bytes;
  traffic->waiting_stores_ticks = l2 * arch->chip_num_sms * arch->noc_store_buffer_bytes / FTL_SECTOR_BYTES;
}

static void scale_cost(ftl_store_intake *cost, const ftl_arch *arch, ftl_stored_parts parts) {
  int64_t sent = parts.sectors + parts.masks * arch->l1_byte_mask_sectors, once = parts.bytes / FTL_SECTOR_BYTES;
  if (once == 0 || sent <= once) return;
  cost->l2_ticks = scaled_up(cost->l2_ticks, sent, once);
  cost->sm_ticks = scaled_up(cost->sm_ticks, sent, once);
}

void ftl_traffic_set_store_costs(ftl_traffic *traffic, ftl_stored_parts stored, ftl_stored_parts added) {
  scale_cost(&traffic->store_cost, traffic->arch, stored);
  scale_cost(&traffic->add_cost, traffic->arch, added);
}

void ftl_traffic_set_costs(ftl_traffic *traffic, const ftl_launch *launch, const ftl_dram_rate *rate) {
  const ftl_arch *arch = traffic->arch;
  int64_t sm_khz = traffic->sm_khz;
  ftl_traffic_latencies(arch, sm_khz, &traffic->hit_latency_cycles, &traffic->far_latency_cycles,
                        &traffic->miss_latency_cycles);
  // Half of the lines come by way of the other side, the last ones too.
  traffic->miss_latency_cycles += traffic->far_latency_cycles;
  ftl_dram_refresh_init(&traffic->refresh, arch, sm_khz);
  traffic->l2_sector_ticks = sector_ticks(ftl_arch_l2_bytes_per_cycle(arch), arch->clock_l2_khz, sm_khz);
  set_intake_costs(traffic, sm_khz);
  traffic->sm_sector_ticks = sm_sector_ticks(launch, sm_khz);
  traffic->ask_sector_ticks = ask_sector_ticks(launch);
  traffic->gpc_sector_ticks = sector_ticks(arch->noc_gpc_read_bytes_per_cycle, arch->clock_l2_khz, sm_khz);
  if (arch->l2_num_sides > 1)
    traffic->far_sector_ticks = sector_ticks(2 * arch->noc_far_bytes_per_cycle, arch->clock_l2_khz, sm_khz);
  // A sector read and one written take what two sectors of a copy take.
  traffic->dram_read_ticks = scaled_up(FTL_SECTOR_BYTES * FTL_TICKS_PER_CYCLE, sm_khz, rate->read_bytes_per_s / 1000);
  traffic->dram_write_ticks =
      scaled_up(2 * FTL_SECTOR_BYTES * FTL_TICKS_PER_CYCLE, sm_khz, rate->copy_bytes_per_s / 1000) -
      traffic->dram_read_ticks;
  traffic->coalescer_window_ticks =
      scaled_up(arch->l2_coalescer_window_cycles * FTL_TICKS_PER_CYCLE, sm_khz, arch->clock_l2_khz);
}

int64_t ftl_traffic_scale(const ftl_traffic *traffic, int64_t sampled) {
  if (traffic->tiles.sampled_sectors == 0) return 0;
  return scaled_up(sampled, traffic->tiles.total_sectors, traffic->tiles.sampled_sectors);
}

int64_t ftl_traffic_dram_read_sectors(const ftl_traffic *traffic) {
  const ftl_traffic_counts *counts = &traffic->counts;
  if (counts->new_looked_up_sectors == 0) return ftl_traffic_scale(traffic, counts->dram_read_sectors);
  return scaled_up(counts->new_dram_read_sectors, counts->new_sectors, counts->new_looked_up_sectors) +
         ftl_traffic_scale(traffic, counts->dram_read_sectors - counts->new_dram_read_sectors);
}

int64_t ftl_traffic_dram_write_sectors(const ftl_traffic *traffic) {
  return ftl_traffic_scale(traffic, traffic->counts.dram_write_sectors) +
         ftl_l2_tags_scale(traffic->tags, traffic->counts.settled_sectors);
}

int64_t ftl_traffic_dram_cycles(const ftl_traffic *traffic) {
  int64_t read = ftl_traffic_dram_read_sectors(traffic);
  int64_t written = ftl_traffic_dram_write_sectors(traffic);
  return scaled_up(read, traffic->dram_read_ticks, FTL_TICKS_PER_CYCLE) +
         scaled_up(written, traffic->dram_write_ticks, FTL_TICKS_PER_CYCLE);
}
