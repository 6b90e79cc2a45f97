// The channel model against measured bandwidths: read-only streams reach 0.92 to 0.98 of the peak, copies 0.84 to 0.93
// (gpu-benches on V100, A100, H100, GH200). Timing values as in GPGPU-Sim's and Accel-Sim's configurations of these
// parts.
#include <criterion/criterion.h>

#include "machine/dram/dram.h"
#include "machine/dram/map.h"

static ftl_arch hbm(int64_t khz, int64_t channels, int64_t trcd, int64_t tras, int64_t trrd) {
  return (ftl_arch){.l1_line_bytes = 128,
                    .clock_dram_khz = khz,
                    .dram_num_channels = channels,
                    .dram_burst_bytes = 32,
                    .dram_burst_cycles = 2,
                    .dram_num_bank_groups = 4,
                    .dram_banks_per_group = 4,
                    .dram_row_bytes = 1024,
                    .dram_chunk_bytes = 512,
                    .dram_trcd_cycles = trcd,
                    .dram_trp_cycles = trcd,
                    .dram_tras_cycles = tras,
                    .dram_tcl_cycles = trcd,
                    .dram_tccd_long_cycles = 4,
                    .dram_trrd_cycles = trrd,
                    .dram_twtr_cycles = trcd / 2,
                    .dram_trtw_cycles = khz * 5 / 100000,   // 50 ns, as an H200
                    .dram_trefi_cycles = khz * 39 / 10000,  // 3.9 us
                    .dram_trfc_cycles = khz * 12 / 100000,  // 120 ns
                    .dram_queue_entries = 64,
                    .dram_most_bypasses = 32};
}

static double efficiency(const ftl_arch *arch, int32_t read_percent) {
  int64_t bytes_per_second;
  ftl_error error;
  cr_assert_eq(ftl_dram_sustained(arch, read_percent, &bytes_per_second, &error), FTL_OK);
  double peak = (double)(arch->dram_num_channels * arch->dram_burst_bytes * arch->clock_dram_khz) * 1000 /
                (double)arch->dram_burst_cycles;
  return (double)bytes_per_second / peak;
}

Test(timing_dram_sustained, read_streams_and_copies_reach_what_was_measured) {
  ftl_arch parts[] = {hbm(877000, 64, 12, 28, 3), hbm(1512000, 80, 22, 50, 7), hbm(1563000, 192, 19, 45, 6)};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    double reads = efficiency(&parts[i], 100), copy = efficiency(&parts[i], 50);
    cr_expect(reads >= 0.90 && reads <= 0.98, "part %zu reads at %.3f of its peak", i, reads);
    cr_expect(copy >= 0.82 && copy <= 0.93, "part %zu copies at %.3f of its peak", i, copy);
    cr_expect_lt(copy, reads);
  }
}

// Queues that hold more than the lines by which shorter ones are measured: no less than those of 64 entries give.
Test(timing_dram_sustained, long_queues_have_time_to_fill_and_to_empty) {
  ftl_arch arch = hbm(877000, 8, 12, 28, 3);
  double of_64 = efficiency(&arch, 100);
  for (int64_t entries = 600; entries <= 2400; entries *= 2) {
    arch.dram_queue_entries = entries;
    double of_more = efficiency(&arch, 100);
    cr_expect(of_more >= of_64 - 0.01 && of_more <= 1, "%ld entries: %.3f of peak, %.3f with 64", (long)entries,
              of_more, of_64);
  }
}

Test(timing_dram_sustained, ecc_in_the_memory_costs_its_share) {
  ftl_arch arch = hbm(877000, 8, 12, 28, 3);
  double without = efficiency(&arch, 100);
  arch.dram_ecc_inline_milli = 125;
  cr_expect_float_eq(efficiency(&arch, 100), without / 1.125, 0.02);
}

Test(timing_dram_sustained, lines_spread_evenly_over_any_number_of_channels_for_any_stride) {
  int64_t counts[] = {6, 11, 12, 40, 64, 96, 188};
  uint64_t strides[] = {1, 2, 4, 8, 12, 64, 96, 1024, 4096};
  for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
    for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++) {
      ftl_arch arch = hbm(1000000, counts[c], 12, 28, 3);
      ftl_dram_map map = ftl_dram_map_init(&arch);
      int64_t hits[188] = {0}, num_lines = counts[c] * 20000, most = 0;
      for (int64_t i = 0; i < num_lines; i++) hits[ftl_dram_map_line(&map, (uint64_t)i * strides[s]).channel]++;
      for (int64_t i = 0; i < counts[c]; i++) most = hits[i] > most ? hits[i] : most;
      // A stride that visits channels at random has a deviation of 1/sqrt(20000) = 0.7 % (blocks of 4 lines: 1.4 %).
      cr_expect_lt((double)most, 1.06 * 20000, "%ld channels, stride %lu: the busiest has %ld", (long)counts[c],
                   (unsigned long)strides[s], (long)most);
    }
  }
}
