// Expected numbers: the CUDA occupancy calculator's rules worked out by hand.
#include <criterion/criterion.h>

#include "lower/lower.h"
#include "lower/occupancy_steps.h"

static ftl_arch a100(void) {
  return (ftl_arch){.sm_max_ctas = 32,
                    .sm_max_warps = 64,
                    .sm_num_registers = 65536,
                    .sm_register_unit = 256,
                    .sm_num_subcores = 4,
                    .sm_num_barriers = 16,
                    .shared_bytes_per_sm = 164 * 1024,
                    .shared_reserved_bytes_per_cta = 1024,
                    .shared_unit_bytes = 128};
}

static ftl_occupancy occupancy(const ftl_arch *arch, int32_t warps, int32_t registers, int32_t shared_bytes) {
  ftl_warp_program program = {
      .num_warps = warps, .registers_per_thread = registers, .shared_bytes = shared_bytes, .num_barriers = 1};
  return ftl_occupancy_of(&program, arch);
}

Test(unit_lower_occupancy, registers_are_allocated_to_warps_in_units_of_256) {
  ftl_arch arch = a100();
  cr_expect_eq(occupancy(&arch, 4, 255, 0).ctas_per_sm, 2);  // 255 * 32 -> 8192 a warp; 2 warps a sub-core
  cr_expect_eq(occupancy(&arch, 4, 168, 0).ctas_per_sm, 3);  // 5376 a warp: 3
  cr_expect_eq(occupancy(&arch, 4, 169, 0).ctas_per_sm, 2);  // 5632 a warp: 2
  cr_expect_eq(occupancy(&arch, 8, 64, 0).ctas_per_sm, 4);
  cr_expect_eq(occupancy(&arch, 8, 64, 0).limited_by, FTL_LIMIT_REGISTERS);
}

Test(unit_lower_occupancy, warps_of_all_ctas_are_dealt_to_the_sub_cores) {
  ftl_arch arch = a100();
  // 40 registers: 1280 a warp, 12 warps a sub-core, 48: eight CTAs of 6 warps, though no one of them fills sub-cores
  cr_expect_eq(occupancy(&arch, 6, 40, 0).limits[FTL_LIMIT_REGISTERS], 8);
  // Measured on an H200, whose rules are these (kernels/measurements/micro_occupancy.csv)
  cr_expect_eq(occupancy(&arch, 1, 92, 0).ctas_per_sm, 20);  // 3072 a warp: 5 warps a sub-core, 20
  cr_expect_eq(occupancy(&arch, 2, 92, 0).ctas_per_sm, 10);
  cr_expect_eq(occupancy(&arch, 3, 92, 0).ctas_per_sm, 6);
  cr_expect_eq(occupancy(&arch, 9, 56, 0).ctas_per_sm, 4);  // 1792 a warp: 9 warps a sub-core, 36
}

Test(unit_lower_occupancy, shared_memory_counts_the_drivers_reserve) {
  ftl_arch arch = a100();
  cr_expect_eq(occupancy(&arch, 4, 32, 48 * 1024).ctas_per_sm, 3);  // 164 / 49
  cr_expect_eq(occupancy(&arch, 4, 32, 81 * 1024).ctas_per_sm, 2);  // 164 / 82
  cr_expect_eq(occupancy(&arch, 4, 32, 81 * 1024 + 1).ctas_per_sm, 1);
  cr_expect_eq(occupancy(&arch, 4, 32, 81 * 1024).limited_by, FTL_LIMIT_SHARED);
  cr_expect_eq(occupancy(&arch, 4, 32, 164 * 1024).ctas_per_sm, 0);
}

Test(unit_lower_occupancy, warps_and_ctas_are_limits_of_their_own) {
  ftl_arch arch = a100();
  cr_expect_eq(occupancy(&arch, 16, 32, 0).ctas_per_sm, 4);
  cr_expect_eq(occupancy(&arch, 1, 16, 0).ctas_per_sm, 32);
  cr_expect_eq(occupancy(&arch, 1, 16, 0).limited_by, FTL_LIMIT_CTAS);
  arch.sm_max_warps = 32;  // Turing
  cr_expect_eq(occupancy(&arch, 16, 32, 0).ctas_per_sm, 2);
  cr_expect_eq(occupancy(&arch, 16, 32, 0).limited_by, FTL_LIMIT_WARPS);
}

Test(unit_lower_occupancy, more_barriers_than_a_cta_may_name_do_not_fit) {
  ftl_arch arch = a100();
  ftl_warp_program program = {.num_warps = 4, .registers_per_thread = 32, .num_barriers = 17};
  ftl_occupancy o = ftl_occupancy_of(&program, &arch);
  cr_expect_eq(o.ctas_per_sm, 0);
  cr_expect_eq(o.limited_by, FTL_LIMIT_BARRIERS);
}

Test(unit_lower_occupancy, the_fewest_registers_are_those_of_as_many_ctas_as_warps_and_ctas_allow) {
  ftl_arch arch = a100();
  cr_expect_eq(ftl_fewest_registers(&arch, 4), 32);   // 16 CTAs: 65536 / 64 / 32
  cr_expect_eq(ftl_fewest_registers(&arch, 3), 32);   // 21 CTAs, 16 warps a sub-core
  cr_expect_eq(ftl_fewest_registers(&arch, 24), 40);  // two CTAs, 12 warps a sub-core: 42, in units of 8
  cr_expect_eq(ftl_fewest_registers(&arch, 1), 64);   // 32 CTAs
}

Test(unit_lower_occupancy, steps_of_registers_end_where_warps_allow_no_more_ctas) {
  ftl_arch arch = a100();
  cr_expect_eq(ftl_next_occupancy_step(&arch, 4, 169), 168);  // 3 CTAs: 65536 / 12 / 32 = 170, in units of 8
  cr_expect_eq(ftl_next_occupancy_step(&arch, 4, 168), 128);
  cr_expect_eq(ftl_next_occupancy_step(&arch, 4, 33), 32);  // 16 CTAs, 64 warps
  cr_expect_eq(ftl_next_occupancy_step(&arch, 4, 32), 0);
}

Test(unit_lower_occupancy, steps_of_ctas_that_do_not_fill_the_sub_cores) {
  ftl_arch arch = a100();
  // 2 warps: 32 CTAs, the most that warps and CTAs allow, have 16 warps a sub-core: 16384 / 16 / 32
  cr_expect_eq(ftl_next_occupancy_step(&arch, 2, 33), 32);
  cr_expect_eq(ftl_next_occupancy_step(&arch, 2, 32), 0);
  // 6 warps: 5 CTAs are 30 warps, 8 on the fullest sub-core: 64; 6 CTAs are 36, 9 on each: 56
  cr_expect_eq(ftl_next_occupancy_step(&arch, 6, 80), 64);
  cr_expect_eq(ftl_next_occupancy_step(&arch, 6, 64), 56);
}

Test(unit_lower_occupancy, registers_that_cost_no_cta_are_those_of_all_warps_together) {
  ftl_arch arch = a100();
  arch.chip_compute_capability = 90;
  // 32 CTAs of 2 warps at 32 registers: what ptxas gives the kernel that combines splits at head_dim 64
  cr_expect_eq(ftl_registers_taken(&arch, 2, 19), 32);
}
