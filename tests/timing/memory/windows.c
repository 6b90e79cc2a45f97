// How requests are cut into windows must change nothing.
#include <stdlib.h>
#include <string.h>

#include "drive.h"
#include "small_arch.h"

enum { NUM_REQUESTS = 20000 };

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

// Bursts of reads, writes and atomics of all SMs, sorted by time and SM; lines from a range somewhat larger than L2.
static void make_requests(ftl_mem_request *requests) {
  uint64_t state = 1;
  int64_t time = 0;
  int sm = 0;
  for (uint32_t i = 0; i < NUM_REQUESTS; i++) {
    sm += (int)(next_random(&state) % 3);
    if (sm >= 8) {
      sm %= 8;
      time += 1 + (int64_t)(next_random(&state) % 32 == 0 ? next_random(&state) % 700 : next_random(&state) % 6);
    }
    uint64_t line = next_random(&state) % 3000;
    uint8_t sectors = (uint8_t)(1 + next_random(&state) % 15);
    requests[i] = read_of(time, sm, line, sectors, i);
    uint64_t kind = next_random(&state) % 8;
    if (kind == 0) requests[i].kind = FTL_MEM_ATOMIC;
    if (kind == 1 || kind == 2) requests[i].kind = FTL_MEM_WRITE;
    if (kind == 2) requests[i].full_sectors = sectors;
  }
}

static void expect_same_in_any_window(const ftl_arch *arch, int64_t sm_khz) {
  static ftl_mem_request requests[NUM_REQUESTS];
  static int64_t expected[NUM_REQUESTS], replies[NUM_REQUESTS];
  make_requests(requests);
  ftl_memory *memory = create_memory(arch, sm_khz);
  int64_t longest = ftl_memory_max_window_cycles(memory);
  drive_from(memory, 0, requests, NUM_REQUESTS, 0, expected, 8);
  ftl_memory_counters counters = ftl_memory_counters_get(memory);
  ftl_memory_destroy(memory);
  cr_assert_gt(counters.dram_write_bytes, 0);
  cr_assert_gt(counters.dram_row_hits, 0);
  for (uint32_t i = 0; i < NUM_REQUESTS; i++) cr_assert_geq(expected[i], requests[i].time + longest);
  int64_t windows[] = {1, 2, 7, longest / 2, longest - 1};
  for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
    memory = create_memory(arch, sm_khz);
    drive_from(memory, 0, requests, NUM_REQUESTS, windows[w], replies, 8);
    cr_expect_eq(memcmp(expected, replies, sizeof replies), 0, "windows of %ld change replies", (long)windows[w]);
    ftl_memory_counters again = ftl_memory_counters_get(memory);
    cr_expect_eq(memcmp(&counters, &again, sizeof again), 0, "windows of %ld change counters", (long)windows[w]);
    ftl_memory_destroy(memory);
  }
}

Test(timing_memory_windows, any_cut_gives_the_same_replies_and_counters) {
  ftl_arch arch = small_arch();
  expect_same_in_any_window(&arch, 1000000);
}

Test(timing_memory_windows, any_cut_gives_the_same_with_odd_clocks_a_coalescer_and_refresh) {
  ftl_arch arch = small_arch();
  arch.clock_l2_khz = 1605000;
  arch.clock_dram_khz = 2619000;
  arch.dram_num_channels = 3;
  arch.dram_trefi_cycles = 900;
  arch.dram_ecc_inline_milli = 125;
  arch.l2_fill_sectors = 2;
  arch.l2_coalescer_merges = 4;
  arch.l2_coalescer_window_cycles = 8;
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "nru");
  expect_same_in_any_window(&arch, 1755000);
}

Test(timing_memory_windows, a_way_to_dram_of_no_time_keeps_the_order) {
  ftl_arch arch = small_arch();
  arch.dram_controller_cycles = 0;
  arch.dram_tcl_cycles = 1;
  arch.dram_burst_cycles = 1;
  arch.clock_dram_khz = 9000000;
  expect_same_in_any_window(&arch, 1000000);
}

Test(timing_memory_windows, latency_grows_with_load) {
  ftl_arch arch = small_arch();
  static ftl_mem_request requests[2000];
  static int64_t replies[2000];
  double mean[2];
  for (int load = 0; load < 2; load++) {
    ftl_memory *memory = create_memory(&arch, 1000000);
    int64_t interval = load == 0 ? 400 : 20;
    for (int i = 0; i < 2000; i++) requests[i] = read_of(i * interval, i % 8, (uint64_t)i * 37, 15, (uint32_t)i);
    drive_from(memory, 0, requests, 2000, 0, replies, 8);
    mean[load] = 0;
    for (int i = 0; i < 2000; i++) mean[load] += (double)(replies[i] - requests[i].time) / 2000;
    ftl_memory_destroy(memory);
  }
  cr_expect_gt(mean[1], 1.2 * mean[0], "%.0f cycles alone, %.0f under load", mean[0], mean[1]);
}
