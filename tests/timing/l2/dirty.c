// How much may be dirty, against kernels/measurements/micro_dirty_residue_ncu.csv (H200, and an H100 beside it).
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/l2/tags.h"

enum { MIB = 1048576, LINE_BYTES = 128, CHUNK_LINES = 64 };

static ftl_arch h200_l2(void) {
  ftl_arch arch = {.l1_line_bytes = 128,
                   .l2_size_bytes = (int64_t)94 * 640 * 1024,
                   .l2_num_sides = 2,
                   .l2_num_slices = 94,
                   .l2_ways = 20,
                   .l2_side_hash_granule_bytes = 4096,
                   .l2_fill_sectors = 2,
                   .l2_max_dirty_milli = 475,
                   .l2_busy_dirty_milli = 562};
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "lru");
  return arch;
}

// kernels/measurements/h100/micro_dirty_residue_ncu.csv and arch_models/h100_sxm.lua.
static ftl_arch h100_l2(void) {
  ftl_arch arch = h200_l2();
  arch.l2_num_slices = 80;
  arch.l2_size_bytes = (int64_t)80 * 640 * 1024;
  arch.l2_max_dirty_milli = 471;
  return arch;
}

typedef struct traffic {
  double mib;
  int passes;
  bool is_copy;
  bool at_home;  // each write is by the home's side: no replicas
  double read_after_mib;
  double dirty_before_mib;
} traffic;

// A CTA of 512 threads takes 8 KiB chunks, the same ones in every pass; which side its SM is on is a matter of chance.
static int32_t side_of_chunk(uint64_t line) {
  uint64_t x = line / CHUNK_LINES * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  return (int32_t)(x * 0xBF58476D1CE4E5B9u >> 40 & 1);
}

// MiB that DRAM is given.
static double written_mib(ftl_arch arch, traffic t) {
  enum { LOG2_SAMPLE = 3 };
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, &arch, LOG2_SAMPLE, &error), FTL_OK);
  uint64_t lines = (uint64_t)(t.mib * MIB / LINE_BYTES), lines_after = (uint64_t)(t.read_after_mib * MIB / LINE_BYTES);
  int64_t sectors = 0;
  ftl_l2_tags_foul(tags, (int64_t)(t.dirty_before_mib * MIB));
  for (int pass = 0; pass < t.passes; pass++) {
    for (uint64_t line = 0; line < lines; line++) {
      int32_t side = side_of_chunk(line);
      uint64_t from = line + (1u << 22);
      if (t.is_copy && ftl_l2_tags_in_sample(tags, from))
        sectors += ftl_l2_tags_read(tags, from, 15, side, FTL_L2_EVICT_NORMAL).dram_write_sectors;
      if (ftl_l2_tags_in_sample(tags, line))
        sectors += ftl_l2_tags_write(tags, line, 15, 15, t.at_home ? ftl_l2_tags_place(tags, line).home_side : side,
                                     FTL_L2_EVICT_NORMAL)
                       .dram_write_sectors;
    }
  }
  for (uint64_t line = 1u << 23; line < (1u << 23) + lines_after; line++)
    if (ftl_l2_tags_in_sample(tags, line))
      sectors += ftl_l2_tags_read(tags, line, 15, side_of_chunk(line), FTL_L2_EVICT_NORMAL).dram_write_sectors;
  sectors += ftl_l2_tags_settle(tags);
  ftl_l2_tags_destroy(tags);
  return (double)(sectors << LOG2_SAMPLE) * 32 / MIB;
}

static void expect_written_by(ftl_arch arch, traffic t, double measured_mib, double tolerance_mib) {
  double mib = written_mib(arch, t);
  cr_expect_float_eq(mib, measured_mib, tolerance_mib, "%.0f MiB, %d passes%s: %.2f MiB go to DRAM, measured %.2f",
                     t.mib, t.passes, t.is_copy ? ", copied" : "", mib, measured_mib);
}

static void expect_written(traffic t, double measured_mib, double tolerance_mib) {
  expect_written_by(h200_l2(), t, measured_mib, tolerance_mib);
}

// What the profiler leaves dirty before a launch of several passes: kernels that only read write it back.
#define PROFILER_MIB 2.29

Test(timing_l2_dirty, nearly_half_of_l2_stays_dirty_after_pure_writes) {
  double mib[] = {16, 24, 28, 32, 40, 64, 128, 200};
  double measured[] = {0, 0.59, 2.49, 6.23, 14.24, 38.33, 102.42, 174.50};
  for (int i = 0; i < 8; i++)
    expect_written((traffic){.mib = mib[i], .passes = 1, .dirty_before_mib = PROFILER_MIB}, measured[i], 0.6);
}

Test(timing_l2_dirty, the_same_bytes_of_the_profiler_and_nearly_the_same_share_stay_in_the_smaller_l2_of_an_h100) {
  double mib[] = {12, 20, 24, 28, 32, 40, 64, 128, 200};
  double measured[] = {0, 0.55, 2.57, 6.32, 10.42, 18.70, 42.89, 106.75, 178.78};
  for (int i = 0; i < 9; i++) {
    traffic t = {.mib = mib[i], .passes = 1, .dirty_before_mib = PROFILER_MIB};
    expect_written_by(h100_l2(), t, measured[i], 0.6);
  }
}

Test(timing_l2_dirty, bytes_that_are_written_again_go_to_dram_where_their_share_of_the_ways_is_exceeded) {
  double mib[] = {24, 36, 40, 48, 56}, measured[] = {1.53, 25.53, 40.76, 75.43, 106.17};
  for (int i = 0; i < 5; i++)
    expect_written((traffic){.mib = mib[i], .passes = 3, .at_home = true, .dirty_before_mib = PROFILER_MIB},
                   measured[i], i == 0 ? 1.2 : 0.15 * measured[i]);
}

// At the speed of DRAM and of the link, as micro_dirty_residue_ncu.csv copies: as if far writes left no replicas.
Test(timing_l2_dirty, a_fast_copy_leaves_what_lru_keeps_of_its_writes) {
  double mib[] = {20, 28, 32, 40, 64, 128, 200}, measured[] = {1.89, 7.80, 11.17, 18.47, 42.43, 106.93, 179.28};
  for (int i = 0; i < 7; i++) {
    traffic t = {.mib = mib[i], .passes = 1, .is_copy = true, .at_home = true, .dirty_before_mib = PROFILER_MIB};
    expect_written(t, measured[i], i == 0 ? 1.8 : 0.9);
  }
}

// kernels/measurements/micro_write_back_ncu.csv, copied_slowly and copied, one pass of the profiler. A line read takes
// 1.5 places in the mean and a line written as many, as far SMs leave replicas: 58.75 / 3 MiB stay. Were a write to
// take one place, 58.75 / 2.5 would, and 3 MiB fewer be written.
Test(timing_l2_dirty, a_slow_copy_leaves_what_lru_keeps_beside_the_replicas) {
  double mib[] = {12, 16, 20, 24, 28, 64}, measured[] = {0, 0, 0.97, 3.56, 7.27, 43.94};
  for (int i = 0; i < 6; i++) expect_written((traffic){.mib = mib[i], .passes = 1, .is_copy = true}, measured[i], 1.3);
}

// written_slowly_read_slowly of the same file: 16 MiB with their replicas are 24, which go as 1.5 times what is read
// comes beside them.
Test(timing_l2_dirty, what_was_written_goes_as_others_are_read) {
  double mib[] = {16, 20, 24}, measured[] = {0.18, 0.54, 1.83};
  for (int i = 0; i < 3; i++)
    expect_written((traffic){.mib = 16, .passes = 1, .read_after_mib = mib[i]}, measured[i], 0.4);
}

// One set of 16 ways: 9 may be dirty while it is written (565/1000 of 16 = 9.04), 7 stay (440/1000 of 16 = 7.04).
Test(timing_l2_dirty, the_tenth_dirty_line_of_a_set_writes_one_back_and_seven_stay_at_the_end) {
  ftl_arch arch = h200_l2();
  arch.l2_size_bytes = 16 * 128;
  arch.l2_ways = 16;
  arch.l2_max_dirty_milli = 440;
  arch.l2_busy_dirty_milli = 565;
  arch.l2_num_sides = arch.l2_num_slices = 1;
  arch.l2_side_hash_granule_bytes = 128;
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, &arch, 0, &error), FTL_OK);
  for (uint64_t line = 0; line < 9; line++)
    cr_expect_eq(ftl_l2_tags_write(tags, line, 3, 3, 0, FTL_L2_EVICT_NORMAL).num_writebacks, 0);
  cr_expect_eq(ftl_l2_tags_write(tags, 4, 12, 12, 0, FTL_L2_EVICT_NORMAL).num_writebacks, 0, "it is dirty already");
  ftl_l2_outcome tenth = ftl_l2_tags_write(tags, 9, 3, 3, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(tenth.num_writebacks, 1);
  cr_expect_neq(tenth.writebacks[0], 9, "not the line that was just written");
  cr_expect_eq(tenth.dram_write_sectors, tenth.writebacks[0] == 4 ? 4 : 2);
  cr_expect_eq(ftl_l2_tags_read(tags, tenth.writebacks[0], 3, 0, FTL_L2_EVICT_NORMAL).hit_sectors, 3,
               "it stays, clean");
  int64_t dirty = ftl_l2_tags_dirty_sectors(tags);
  cr_expect_eq(dirty, 20 + 2 - tenth.dram_write_sectors);
  int64_t settled = ftl_l2_tags_settle(tags);
  cr_expect(settled >= 4 && settled <= 6, "two lines of two sectors, one of which may be line 4 with four");
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), dirty - settled);
  cr_expect_eq(ftl_l2_tags_settle(tags), 0);
  ftl_l2_tags_destroy(tags);
}
