// Sweeps of a buffer over L2 against what was measured; docs/model_l2.md gives the sources.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "machine/l2/tags.h"

static ftl_arch l2_arch(double mib, int64_t sides, int64_t slices, int64_t ways, const char *replacement) {
  ftl_arch arch = {.l1_line_bytes = 128,
                   .l2_size_bytes = (int64_t)(mib * 1048576),
                   .l2_num_sides = sides,
                   .l2_num_slices = slices,
                   .l2_ways = ways,
                   .l2_side_hash_granule_bytes = 4096,
                   .l2_fill_sectors = 2,
                   .l2_max_dirty_milli = 1000,
                   .l2_busy_dirty_milli = 1000};
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "%s", replacement);
  return arch;
}

enum { BOTH_SIDES = -1, ANY_SIDE = -2, LINES_PER_CHUNK = 256 };

// DRAM reads per line and pass when a buffer is read over and over: every line by both sides, or each chunk by a side
// that a coin chooses in every pass. Only sampled sets, so that the test takes a second.
static double reads_per_line(const ftl_arch *arch, double bytes, int readers, int32_t log2_sample) {
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, arch, log2_sample, &error), FTL_OK);
  uint64_t coin = 88172645463325252u;
  int64_t reads = 0, lines = 0;
  enum { PASSES = 12, COUNTED = 6 };
  for (int pass = 0; pass < PASSES; pass++) {
    for (uint64_t line = 0; line < (uint64_t)(bytes / 128); line++) {
      if (line % LINES_PER_CHUNK == 0) {
        coin ^= coin << 13;
        coin ^= coin >> 7;
        coin ^= coin << 17;
      }
      if (!ftl_l2_tags_in_sample(tags, line)) continue;
      int32_t first = readers == ANY_SIDE ? (int32_t)(coin >> 20 & 1) : 0;
      int32_t last = readers == BOTH_SIDES ? (int32_t)arch->l2_num_sides - 1 : first;
      for (int32_t side = first; side <= last; side++) {
        bool missed = ftl_l2_tags_read(tags, line, 15, side, FTL_L2_EVICT_NORMAL).dram_read_sectors != 0;
        if (pass >= PASSES - COUNTED) reads += missed;
      }
      if (pass >= PASSES - COUNTED) lines++;
    }
  }
  ftl_l2_tags_destroy(tags);
  return (double)reads / (double)lines;
}

typedef struct point {
  double megabytes, measured, tolerance;
} point;

static void expect_sweep(const char *part, const ftl_arch *arch, const point *points, int count) {
  for (int i = 0; i < count; i++) {
    double reads = reads_per_line(arch, points[i].megabytes * 1e6, BOTH_SIDES, 3);
    cr_expect_float_eq(reads, points[i].measured, points[i].tolerance,
                       "%s at %.1f MB: %.2f reads a line, measured %.2f", part, points[i].megabytes, reads,
                       points[i].measured);
  }
}

// All SMs sweep one buffer; DRAM counters of gpu-benches' gpu-cache. On two-sided parts half the capacity is what
// counts.
Test(timing_l2_capacity, a_buffer_shared_by_all_sms_falls_out_of_a100_at_half_its_l2) {
  ftl_arch arch = l2_arch(40, 2, 80, 16, "lru");
  expect_sweep("A100", &arch, (point[]){{19.5, 0.0, 0.03}, {22.8, 0.87, 0.08}, {31.0, 0.97, 0.05}}, 3);
}

Test(timing_l2_capacity, a_buffer_shared_by_all_sms_falls_out_of_h100_at_half_its_l2) {
  ftl_arch arch = l2_arch(50, 2, 80, 20, "lru");
  expect_sweep("H100", &arch, (point[]){{22.8, 0.0, 0.02}, {26.6, 0.23, 0.12}, {31.0, 1.0, 0.02}}, 3);
}

// In order and in step (kernels/measurements/micro_l2_replacement_ncu.csv, all_cycle): 94 slices of 512 sets of ten
// lines, 5 of them a line and its replica.
Test(timing_l2_capacity, a_buffer_shared_by_all_sms_falls_out_of_h200_set_by_set) {
  ftl_arch arch = l2_arch(58.75, 2, 94, 10, "lru");
  const double mib = 1.048576;
  expect_sweep("H200", &arch,
               (point[]){{26 * mib, 0.0, 0.01},
                         {30 * mib, 0.301, 0.06},
                         {31 * mib, 0.476, 0.06},
                         {32 * mib, 0.722, 0.06},
                         {34 * mib, 1.0, 0.01}},
               5);
}

Test(timing_l2_capacity, a_buffer_shared_by_all_sms_fills_the_whole_l2_of_v100) {
  ftl_arch arch = l2_arch(6, 1, 64, 16, "lru");
  expect_sweep("V100", &arch, (point[]){{5.5, 0.0, 0.02}, {6.5, 0.77, 0.2}, {7.6, 1.0, 0.02}}, 3);
}

// gpu-l2-cache on RTX 4090 and L40: fractions of the capacity, and the miss rate that the bandwidth implies.
Test(timing_l2_capacity, a_cyclic_sweep_of_ad102_loses_all_within_a_tenth_beyond_its_l2) {
  ftl_arch arch = l2_arch(72, 1, 48, 16, "lru");
  double fractions[] = {0.95, 1.00, 1.055, 1.12, 1.23}, measured[] = {0.02, 0.38, 0.77, 0.79, 0.96}, error = 0;
  for (int i = 0; i < 5; i++) {
    double reads = reads_per_line(&arch, fractions[i] * (double)arch.l2_size_bytes, BOTH_SIDES, 3);
    error += fabs(reads - measured[i]) / 5;
  }
  cr_expect_lt(error, 0.12, "mean error %.3f", error);
}

// gpu-l2-cache on A100: each block reads its chunk from whatever SM it runs on. The measured miss rates are DRAM
// bandwidth over the bandwidth seen, which holds from where DRAM is the limit: the point below (F/C = 0.75) is an upper
// bound.
Test(timing_l2_capacity, private_data_read_from_a_random_side_fall_out_of_a100_gradually) {
  ftl_arch arch = l2_arch(40, 2, 80, 16, "nru");
  double fractions[] = {0.825, 0.90, 0.99, 1.075, 1.175, 1.29, 1.41};
  double measured[] = {0.52, 0.62, 0.76, 0.855, 0.92, 0.96, 0.98}, error = 0;
  for (int i = 0; i < 7; i++) {
    double reads = reads_per_line(&arch, fractions[i] * (double)arch.l2_size_bytes, ANY_SIDE, 3);
    error += fabs(reads - measured[i]) / 7;
  }
  cr_expect_lt(error, 0.03, "mean error %.3f", error);
  cr_expect_lt(reads_per_line(&arch, 0.75 * (double)arch.l2_size_bytes, ANY_SIDE, 3), 0.47);
}

Test(timing_l2_capacity, a_sample_of_the_sets_behaves_as_the_whole) {
  ftl_arch arch = l2_arch(50, 2, 80, 20, "nru");
  for (double megabytes = 24; megabytes < 60; megabytes += 12) {
    double whole = reads_per_line(&arch, megabytes * 1e6, ANY_SIDE, 0);
    double sample = reads_per_line(&arch, megabytes * 1e6, ANY_SIDE, 6);
    cr_expect_float_eq(sample, whole, 0.02, "%.0f MB: %.3f of all sets, %.3f of a sample", megabytes, whole, sample);
  }
}

Test(timing_l2_capacity, a_sample_holds_its_share_of_every_run_of_lines) {
  ftl_arch arch = l2_arch(50, 2, 80, 20, "lru");
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, &arch, 4, &error), FTL_OK);
  for (uint64_t run = 0; run < 100; run++) {
    int sampled = 0;
    for (uint64_t i = 0; i < 4096; i++) sampled += ftl_l2_tags_in_sample(tags, run * 100000 + i);
    cr_expect(sampled > 256 - 40 && sampled < 256 + 40, "%d of 4096 lines at 1/16", sampled);
  }
  ftl_l2_tags_destroy(tags);
}

// Lines of DRAM that `side` reads of a buffer.
static int64_t misses_of(ftl_l2_tags *tags, double first_mib, double mib, int32_t side) {
  const double mib_lines = 8192;
  int64_t misses = 0;
  for (uint64_t line = (uint64_t)(first_mib * mib_lines); line < (uint64_t)((first_mib + mib) * mib_lines); line++)
    if (ftl_l2_tags_in_sample(tags, line))
      misses += ftl_l2_tags_read(tags, line, 15, side, FTL_L2_EVICT_NORMAL).dram_read_sectors != 0;
  return misses;
}

typedef struct turn_plan {
  double cold_mib;
  bool again;    // side 1 goes on reading the hot buffer
  int32_t last;  // the side that reads it at the end
  double measured_mib;
} turn_plan;

// Of 8 MiB that both sides have read what is given up when side 0 has read cold_mib of others, an eighth at a time: in
// MiB.
static double given_up_mib(const ftl_arch *arch, turn_plan turns) {
  enum { LOG2_SAMPLE = 3, ROUNDS = 8, HOT_MIB = 8 };
  const double cold_from_mib = 1024;
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, arch, LOG2_SAMPLE, &error), FTL_OK);
  int64_t lines = misses_of(tags, 0, HOT_MIB, 0), again = misses_of(tags, 0, HOT_MIB, 1);
  for (int round = 0; round < ROUNDS; round++) {
    double part = turns.cold_mib / ROUNDS;
    (void)misses_of(tags, cold_from_mib + round * part, part, 0);
    if (turns.again) again += misses_of(tags, 0, HOT_MIB, 1);
  }
  again += misses_of(tags, 0, HOT_MIB, turns.last);
  ftl_l2_tags_destroy(tags);
  return (double)again * HOT_MIB / (double)lines;
}

// A side that reads its replicas keeps nothing at their homes: what the other side's SM has streamed over comes from
// DRAM for it, though the replicas are there (kernels/measurements/micro_l2_side_reuse_ncu.csv, both_a, once_a and
// once_b). Half of the lines have their home on either side. To a tenth of the 8 MiB, where L2 is just full.
Test(timing_l2_capacity, what_one_side_reads_on_is_given_up_by_the_other) {
  ftl_arch arch = l2_arch(58.75, 2, 94, 20, "lru");
  const turn_plan all[] = {{16, true, 0, 0.01},  {24, true, 0, 2.55},  {32, true, 0, 4.02},  {96, true, 0, 4.02},
                           {24, false, 0, 2.54}, {48, false, 0, 6.37}, {64, false, 0, 8.07}, {32, false, 1, 0.03},
                           {48, false, 1, 7.02}, {64, false, 1, 8.01}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    double mib = given_up_mib(&arch, all[i]);
    cr_expect_float_eq(mib, all[i].measured_mib, 0.8, "case %d: %.2f MiB, measured %.2f", (int)i, mib,
                       all[i].measured_mib);
  }
}
