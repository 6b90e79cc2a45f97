// Which GPC and side an SM is on.
#include <criterion/criterion.h>

#include "arch/topology.h"

static ftl_arch h200_arch(void) {
  return (ftl_arch){.chip_num_sms = 132, .chip_num_gpcs = 8, .chip_sms_per_tpc = 2, .noc_far_gpcs = 0x8E};
}

Test(unit_arch_topology, tpcs_are_dealt_to_gpcs_and_gpcs_lie_on_the_side_that_the_mask_says) {
  ftl_arch arch = h200_arch();
  int sms_of_gpc[8] = {0}, sms_of_side[2] = {0};
  for (int sm = 0; sm < 132; sm++) {
    sms_of_gpc[ftl_arch_gpc_of_sm(&arch, sm)]++;
    sms_of_side[ftl_arch_side_of_sm(&arch, sm)]++;
    cr_expect_eq(ftl_arch_gpc_of_sm(&arch, sm), ftl_arch_gpc_of_sm(&arch, sm ^ 1), "the SMs of a TPC stay together");
  }
  // 66 TPCs over 8 GPCs: two GPCs of 9, six of 8; those of 9 are GPCs 0 and 1, one on each side.
  for (int gpc = 0; gpc < 8; gpc++) {
    cr_expect_eq(sms_of_gpc[gpc], gpc < 2 ? 18 : 16);
    cr_expect_eq(sms_of_gpc[gpc], ftl_arch_sms_of_gpc(&arch, gpc));
  }
  cr_expect_eq(sms_of_side[0], 66);
  cr_expect_eq(sms_of_side[1], 66);
  // kernels/measurements/micro_fill_sides.csv: the first SM of each GPC.
  static const int side_of_gpc[8] = {0, 1, 1, 1, 0, 0, 0, 1};
  for (int gpc = 0; gpc < 8; gpc++) cr_expect_eq(ftl_arch_side_of_sm(&arch, 2 * gpc), side_of_gpc[gpc]);
  arch.noc_far_gpcs = 0;
  for (int sm = 0; sm < 132; sm++) cr_expect_eq(ftl_arch_side_of_sm(&arch, sm), 0);
}

// kernels/measurements/micro_launch.csv, placement_1_per_sm and gpc_by_clusters_of_8: SMs that an H200 fills one after
// the other, of the first 64.
Test(unit_arch_topology, the_first_64_sms_of_an_h200_share_gpcs_as_measured) {
  static const int measured[8][8] = {{0, 1, 16, 17, 32, 33, 48, 49},   {2, 3, 18, 19, 34, 35, 50, 51},
                                     {4, 5, 20, 21, 36, 37, 52, 53},   {6, 7, 22, 23, 38, 39, 54, 55},
                                     {8, 9, 24, 25, 40, 41, 56, 57},   {10, 11, 26, 27, 42, 43, 58, 59},
                                     {12, 13, 28, 29, 44, 45, 60, 61}, {14, 15, 30, 31, 46, 47, 62, 63}};
  ftl_arch arch = h200_arch();
  for (int gpc = 0; gpc < 8; gpc++)
    for (int i = 0; i < 8; i++) cr_expect_eq(ftl_arch_gpc_of_sm(&arch, measured[gpc][i]), gpc);
}
