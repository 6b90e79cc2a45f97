// The shipped models against measured bandwidths, reads alone and copies.
#include <criterion/criterion.h>
#include <math.h>

#include "machine/dram/dram.h"
#include "script/arch_loader.h"

enum { READS = 100, COPY = 50 };

static double sustained_gb_per_s(const char *name, int32_t read_percent) {
  ftl_arch *arch;
  ftl_error error;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  int64_t bytes_per_s;
  cr_assert_eq(ftl_dram_sustained(arch, read_percent, &bytes_per_s, &error), FTL_OK, "%s", error.message);
  ftl_arch_destroy(arch);
  return (double)bytes_per_s * 1e-9;
}

// kernels/measurements/micro_dram_bandwidth.csv, 8 GiB: 4567 GB/s read, 3970 copied.
Test(timing_dram_measured, an_h200_reads_and_copies_within_three_percent_of_what_was_measured) {
  double reads = sustained_gb_per_s("h200", READS), copy = sustained_gb_per_s("h200", COPY);
  cr_expect_lt(fabs(reads / 4566.86 - 1), 0.03, "reads: %.0f GB/s", reads);
  cr_expect_lt(fabs(copy / 3970.18 - 1), 0.03, "copies: %.0f GB/s", copy);
}

// kernels/measurements/micro_dram_mixture.csv, the best of four grids: of what reads alone carry there, 4498 GB/s. Two
// reads to three writes (3654) are 4 % slower on the chip, writes alone (4337) 4 % (docs/model_dram.md).
Test(timing_dram_measured, mixtures_of_an_h200_are_within_three_percent_of_what_was_measured) {
  static const struct {
    int reads, writes;
    double gb_per_s;
  } rows[] = {{16, 1, 4286.86}, {8, 1, 4328.94}, {4, 1, 4189.88}, {3, 1, 4164.18}, {2, 1, 4038.84},
              {3, 2, 3970.47},  {1, 1, 3947.67}, {1, 2, 3782.35}, {1, 4, 3564.96}};
  double reads = sustained_gb_per_s("h200", READS);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int32_t percent = (100 * rows[i].reads + (rows[i].reads + rows[i].writes) / 2) / (rows[i].reads + rows[i].writes);
    double share = sustained_gb_per_s("h200", percent) / reads, measured = rows[i].gb_per_s / 4498.24;
    cr_expect_lt(fabs(share / measured - 1), 0.03, "%d reads to %d writes: %.3f, measured %.3f", rows[i].reads,
                 rows[i].writes, share, measured);
  }
}

// kernels/measurements/h100/micro_dram_bandwidth.csv, 8 GiB: 3093 GB/s read, 2818 copied (gpu-benches: 0.95 and 0.87 to
// 0.89 of 3350).
Test(timing_dram_measured, an_h100_reads_and_copies_within_three_percent_of_what_was_measured) {
  double reads = sustained_gb_per_s("h100_sxm", READS), copy = sustained_gb_per_s("h100_sxm", COPY);
  cr_expect_lt(fabs(reads / 3093.43 - 1), 0.03, "reads: %.0f GB/s", reads);
  cr_expect_lt(fabs(copy / 2817.69 - 1), 0.03, "copies: %.0f GB/s", copy);
}

// gpu-benches: V100 867 of 900 GB/s read, 809 scaled; A100 80 GB 0.92 to 0.97 and 0.90 to 0.93 of 2039. GDDR6 is left
// out: copies reach 0.94 to 0.96 there, the model 0.87 (docs/model_dram.md).
Test(timing_dram_measured, parts_with_hbm_are_within_three_percent_of_published_bandwidths) {
  static const struct {
    const char *name;
    double read_from, read_to, copy_from, copy_to;
  } parts[] = {{"v100", 867, 867, 809, 809}, {"a100_80", 0.92 * 2039, 0.97 * 2039, 0.90 * 2039, 0.93 * 2039}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    double reads = sustained_gb_per_s(parts[i].name, READS), copy = sustained_gb_per_s(parts[i].name, COPY);
    cr_expect(reads > 0.97 * parts[i].read_from && reads < 1.03 * parts[i].read_to, "%s reads: %.0f GB/s",
              parts[i].name, reads);
    cr_expect(copy > 0.97 * parts[i].copy_from && copy < 1.03 * parts[i].copy_to, "%s copies: %.0f GB/s", parts[i].name,
              copy);
  }
}
