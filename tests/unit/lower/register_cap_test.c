// Where ptxas gives up on 255 registers: kernels of two products with mma.sync whose accumulators alone exceed them.
// Measured and compiled registers: docs/model_lowering.md, "Where the accumulators alone do not fit".
#include <criterion/criterion.h>

#include "../lower_checker/programs.h"

static int32_t registers_on(const char *arch, const char *workload, const char *parameters) {
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, arch, workload, parameters, &error), FTL_OK, "%s", error.message);
  int32_t registers = p.warps->registers_per_thread;
  programs_fini(&p);
  return registers;
}

#define LEAN "heads=8 seqlen=4096 mma=mma copy=cp_async num_stages=1 refill=behind code=lean "
#define PLAIN "heads=8 seqlen=4096 mma=mma copy=cp_async num_stages=1 code=plain "

static int32_t attention(const char *arch, const char *parameters) {
  return registers_on(arch, "flash2_fwd", parameters);
}

// 128 rows of O and S on 2 warps: 128 x 64 / 64 threads = 128 registers each, 256 of 255. With 32 keys 128 and 64.
Test(unit_lower_register_cap, a_role_whose_accumulators_alone_exceed_a_threads_registers_gets_those_of_a_full_sm) {
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2"), 32);
  cr_expect_eq(attention("a100_80", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2"), 32);
  cr_expect_eq(attention("h200", LEAN "head_dim=128 block_m=128 block_n=128 num_warps=4"), 32);
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=128 block_n=32 num_warps=2"), 255);
}

// Plain code keeps 255 registers and spills what exceeds them (131 words a step of 128 x 128 tiles on 4 warps).
Test(unit_lower_register_cap, plain_code_spills_what_exceeds_its_registers) {
  cr_expect_eq(attention("h200", PLAIN "head_dim=64 block_m=128 block_n=64 num_warps=2"), 255);
}

// 48 warps an SM: 40 registers would fill it, ptxas keeps 255. One warp a CTA: 32 CTAs leave 64 registers a thread.
Test(unit_lower_register_cap, chips_and_ctas_that_do_not_fill_an_sm_at_32_registers_keep_theirs) {
  cr_expect_eq(attention("rtx3090", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2"), 255);
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=64 block_n=64 num_warps=1"), 255);
}

// Warps side by side pass P through shared memory; a single product has nothing else live beside its sums.
Test(unit_lower_register_cap, results_that_do_not_become_operands_in_registers_do_not_count) {
  cr_expect_eq(attention("a100_80", LEAN "head_dim=128 block_m=64 block_n=128 num_warps=2 warps_n=2"), 255);
  cr_expect_eq(registers_on("a100_80", "matmul_tiled",
                            "m=4096 n=4096 k=4096 block_m=128 block_n=256 block_k=32 num_warps=4 num_stages=2 mma=mma "
                            "code=lean"),
               255);
}

// A gated linear unit adds two products up side by side, 128 registers each, and reads neither in a product.
Test(unit_lower_register_cap, two_results_of_which_no_product_reads_one_do_not_count) {
  cr_expect_eq(registers_on("a100_80", "glu",
                            "m=4096 n=4096 k=4096 block_m=128 block_n=128 block_k=32 num_warps=4 num_stages=2 mma=mma "
                            "code=lean"),
               255);
}

Test(unit_lower_register_cap, a_cap_that_is_asked_for_stays) {
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2 max_registers=128"), 128);
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2 max_registers=255"), 255);
}

// Two registers would be an address and nothing to load it into.
Test(unit_lower_register_cap, a_cap_is_at_least_what_ptxas_needs) {
  cr_expect_eq(attention("h200", PLAIN "head_dim=64 block_m=64 block_n=32 num_warps=4 max_registers=2"), 24);
  cr_expect_eq(attention("h200", PLAIN "head_dim=64 block_m=64 block_n=32 num_warps=4 max_registers=25"), 25);
}

// 65536 registers for two CTAs of 256 threads are 128 a thread, for three of 128 168, for two of 128 no less than a
// thread can have. Two warps and their like on every sub-core: 8 CTAs of 64 threads have 4 warps a sub-core, 128.
Test(unit_lower_register_cap, ctas_that_the_source_asks_for_share_the_registers) {
#define STEPPED "heads=8 seqlen=4096 mma=mma copy=cp_async num_stages=2 code=stepped head_dim=128 "
  cr_expect_eq(attention("h200", STEPPED "block_m=128 block_n=64 num_warps=8 min_ctas=2"), 128);
  cr_expect_eq(attention("h200", STEPPED "block_m=64 block_n=64 num_warps=4 min_ctas=3"), 168);
  cr_expect_eq(attention("h200", STEPPED "block_m=128 block_n=64 num_warps=4 min_ctas=2"), 255);
  cr_expect_eq(attention("h200", STEPPED "block_m=32 block_n=64 num_warps=2 min_ctas=8"), 128);
  cr_expect_eq(attention("h200", STEPPED "block_m=128 block_n=64 num_warps=8 min_ctas=32"), 24);
  cr_expect_eq(attention("h200", STEPPED "block_m=128 block_n=64 num_warps=8 min_ctas=2 max_registers=96"), 96);
  cr_expect_eq(attention("h200", STEPPED "block_m=128 block_n=64 num_warps=8 min_ctas=2 max_registers=200"), 128);
}

// .minnctapersm 1 is what ptxas lacks where it gives up.
Test(unit_lower_register_cap, a_source_that_asks_for_one_cta_keeps_its_registers) {
  cr_expect_eq(attention("h200", LEAN "head_dim=64 block_m=128 block_n=64 num_warps=2 min_ctas=1"), 255);
}

// A consumer and its producer have what 256 threads twice share; of two consumers setmaxnreg gives 240 to each.
Test(unit_lower_register_cap, roles_that_share_out_an_sms_registers_are_alone_on_it) {
#define SPECIALISED "heads=8 seqlen=4096 head_dim=64 block_n=128 schedule=stages "
  cr_expect_eq(registers_on("h200", "flash3_fwd", SPECIALISED "causal=1 block_m=64 num_warps=4 min_ctas=2"), 128);
  cr_expect_eq(registers_on("h200", "flash3_fwd", SPECIALISED "block_m=128 num_warps=8 min_ctas=1"), 168);
  programs p;
  ftl_error error = {0};
  cr_assert_eq(lower_workload(&p, "h200", "flash3_fwd", SPECIALISED "block_m=128 num_warps=8 min_ctas=2", &error),
               FTL_INFEASIBLE);
  cr_expect_str_eq(
      error.message,
      "min_ctas=2: the registers that setmaxnreg gives to the roles of flash3_fwd fill an SM; allowed is 0 "
      "or 1");
  programs_fini(&p);
}
