// A small two-sided GPU with round numbers, so that the tests can derive every cycle. All clocks run at 1 GHz.
#ifndef FTL_TESTS_TIMING_MEMORY_SMALL_ARCH_H
#define FTL_TESTS_TIMING_MEMORY_SMALL_ARCH_H

#include <stdio.h>

#include "arch/arch.h"

static inline ftl_arch small_arch(void) {
  ftl_arch arch = {0};
  // SMs 0, 2, 4, 6 are in GPC 0 on side 0; SMs 1, 3, 5, 7 in GPC 1 on side 1.
  arch.chip_num_sms = 8;
  arch.chip_num_gpcs = 2;
  arch.chip_sms_per_tpc = 1;
  arch.clock_l2_khz = 1000000;
  arch.clock_dram_khz = 1000000;
  arch.l1_line_bytes = 128;
  arch.l1_sector_bytes = 32;
  arch.l1_byte_mask_sectors = 1;
  arch.l1_max_pending_lines = 64;
  arch.l1_max_pending_load_lines = 64;
  arch.tma_max_pending_lines = 0;
  arch.noc_request_cycles = 10;
  arch.noc_reply_cycles = 30;
  arch.noc_far_cycles = 7;
  arch.noc_sm_read_bytes_per_cycle = 64;
  arch.noc_sm_write_bytes_per_cycle = 32;
  arch.noc_gpc_read_bytes_per_cycle = 1024;
  arch.noc_far_bytes_per_cycle = 256;
  arch.noc_far_gpcs = 2;
  arch.l2_size_bytes = 256 * 1024;
  arch.l2_num_sides = 2;
  arch.l2_num_slices = 4;
  arch.l2_ways = 4;
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "lru");
  arch.l2_slice_bytes_per_cycle = 128;
  arch.l2_sustained_milli = 1000;
  arch.l2_slice_intake_bytes_per_cycle = 128;
  arch.l2_read_request_bytes = 0;
  arch.l2_hit_cycles = 20;
  arch.l2_side_hash_granule_bytes = 4096;
  arch.l2_fill_sectors = 1;
  arch.l2_max_dirty_milli = 1000;
  arch.l2_busy_dirty_milli = 1000;
  arch.l2_coalescer_merges = 1;
  arch.l2_coalescer_window_cycles = 0;
  arch.dram_num_channels = 1;
  arch.dram_burst_bytes = 32;
  arch.dram_burst_cycles = 2;
  arch.dram_num_bank_groups = 2;
  arch.dram_banks_per_group = 2;
  arch.dram_row_bytes = 1024;
  arch.dram_chunk_bytes = 512;
  arch.dram_trcd_cycles = 12;
  arch.dram_trp_cycles = 13;
  arch.dram_tras_cycles = 40;
  arch.dram_tcl_cycles = 14;
  arch.dram_tccd_long_cycles = 4;
  arch.dram_trrd_cycles = 5;
  arch.dram_twtr_cycles = 6;
  arch.dram_trtw_cycles = 3;
  arch.dram_trefi_cycles = 100000;
  arch.dram_trfc_cycles = 50;
  arch.dram_queue_entries = 16;
  arch.dram_most_bypasses = 32;
  arch.dram_controller_cycles = 40;
  return arch;
}

#endif
