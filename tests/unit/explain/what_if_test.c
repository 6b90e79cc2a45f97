// Each what-if changes the keys of one resource, on every chip to a model that keeps the rules between keys.
#include "explain/what_if.h"
#include "tests/unit/engine/fixture.h"
#include "workloads/open_tiles.h"

typedef struct made {
  bool applies;
  ftl_point point;
  ftl_arch *arch;
  ftl_text change;
  double factor;
} made;

static int find(const char *name, int skip) {
  for (int i = 0; i < ftl_num_what_ifs(); i++)
    if (strcmp(ftl_what_if_name(i), name) == 0 && skip-- == 0) return i;
  cr_assert_fail("no what-if %s", name);
  return -1;
}

// An answer as far as what-ifs look at it.
static ftl_prediction answer_with(int64_t mma) {
  ftl_prediction answer = {.feasible = true, .spec = spec_of("heads=1 seqlen=64 head_dim=64")};
  answer.spec.value[FTL_PARAM_mma] = mma;
  answer.metrics.value[FTL_METRIC_sm_clock_mhz] = 1800;
  return answer;
}

static made make(int what_if_idx, const ftl_arch *arch, int64_t mma) {
  made m = {0};
  ftl_error error = {0};
  ftl_prediction answer = answer_with(mma);
  ftl_point base = {.spec = spec_of("heads=1 seqlen=64 head_dim=64"), .arch = arch};
  ftl_status status =
      ftl_what_if_make(what_if_idx, &base, &answer, &m.applies, &m.point, &m.arch, &m.change, &m.factor, &error);
  cr_assert_eq(status, FTL_OK, "%s on %s: %s", ftl_what_if_name(what_if_idx), arch->name, error.message);
  return m;
}

static void release(made *m) {
  ftl_arch_destroy(m->arch);
  ftl_text_fini(&m->change);
}

static int num_changed_keys(const ftl_arch *a, const ftl_arch *b) {
  int count = 0;
  for (int i = 0; i < ftl_arch_num_keys(); i++)
    count += ftl_arch_key_get(i)->allowed == NULL && ftl_arch_int(a, i) != ftl_arch_int(b, i);
  return count;
}

Test(unit_explain_what_if, every_one_makes_a_valid_model_of_every_chip_and_says_what_it_changed) {
  ftl_arch_list archs;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load_all(FTL_SOURCE_DIR "/arch_models", &archs, &error), FTL_OK, "%s", error.message);
  for (int a = 0; a < archs.num_archs; a++) {
    for (int i = 0; i < ftl_num_what_ifs(); i++) {
      made m = make(i, archs.archs[a], FTL_SPEC_MMA_MMA);
      bool is_clock = strcmp(ftl_what_if_name(i), "sm_clock") == 0;
      cr_expect_eq(m.arch != NULL, m.applies && !is_clock, "%s", ftl_what_if_name(i));
      if (m.arch != NULL) {
        int num_said = 0;
        for (const char *c = ftl_text_get(&m.change); *c != '\0'; c++) num_said += *c == '>';
        cr_expect_eq(num_said, num_changed_keys(archs.archs[a], m.arch), "%s", ftl_text_get(&m.change));
        cr_expect_eq(m.point.arch, m.arch);
      }
      cr_expect(!m.applies || m.factor > 1.1 || m.factor == 0.5, "%s on %s by %g", ftl_what_if_name(i),
                archs.archs[a]->name, m.factor);
      release(&m);
    }
  }
  ftl_arch_list_fini(&archs);
}

// 188 channels and a quarter more are 235; all else stays.
Test(unit_explain_what_if, hbm_bandwidth_is_channels) {
  ftl_arch *h200 = shipped_arch("h200");
  made m = make(find("hbm_bandwidth", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(m.arch->dram_num_channels, 235);
  cr_expect_eq(num_changed_keys(h200, m.arch), 1);
  cr_expect_eq(m.factor, 1.25);
  cr_expect_str_eq(ftl_text_get(&m.change), "dram.num_channels 188 -> 235");
  release(&m);
  ftl_arch_destroy(h200);
}

// As many sets as before: the rule of l2.size_bytes holds because the ways grow with it.
Test(unit_explain_what_if, twice_the_l2_is_twice_the_ways) {
  ftl_arch *h200 = shipped_arch("h200");
  made m = make(find("l2_size", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(m.arch->l2_ways, 2 * h200->l2_ways);
  cr_expect_eq(m.arch->l2_size_bytes, 2 * h200->l2_size_bytes);
  cr_expect_eq(m.factor, 2);
  release(&m);
  ftl_arch_destroy(h200);
}

// L1 keeps what shared memory leaves of the unified array: 262144 - 233472 bytes.
Test(unit_explain_what_if, more_shared_memory_takes_nothing_from_l1) {
  ftl_arch *h200 = shipped_arch("h200");
  made m = make(find("shared_size", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(m.arch->shared_bytes_per_sm, 2 * h200->shared_bytes_per_sm);
  cr_expect_eq(m.arch->shared_max_bytes_per_cta, 2 * h200->shared_max_bytes_per_cta);
  cr_expect_eq(m.arch->l1_unified_bytes - m.arch->shared_bytes_per_sm, 28672);
  release(&m);
  ftl_arch_destroy(h200);
}

// 128 x 64 tiles of head_dim 128 became 128 x 32 on a T4. With twice the room the default would fit, and be another
// kernel.
Test(unit_explain_what_if, tiles_that_gave_way_stay_as_they_are) {
  ftl_arch *t4 = shipped_arch("t4");
  ftl_point base = {.spec = spec_of("heads=1 seqlen=64 head_dim=128"), .arch = t4};
  ftl_prediction answer = answer_with(FTL_SPEC_MMA_MMA);
  answer.spec = base.spec;
  answer.spec.value[FTL_PARAM_block_n] = 32;
  for (int i = 0; i < ftl_num_what_ifs(); i++) {
    made m = {0};
    ftl_error error = {0};
    ftl_status status =
        ftl_what_if_make(i, &base, &answer, &m.applies, &m.point, &m.arch, &m.change, &m.factor, &error);
    cr_assert_eq(status, FTL_OK, "%s: %s", ftl_what_if_name(i), error.message);
    if (m.applies) {
      cr_expect_eq(m.point.spec.value[FTL_PARAM_block_n], 32, "%s", ftl_what_if_name(i));
      cr_expect_not(ftl_spec_leaves_tiles_open(&m.point.spec), "%s", ftl_what_if_name(i));
    }
    release(&m);
  }
  ftl_arch_destroy(t4);
}

// 8 cycles over 1.25 are 6.4, so 6, and a third more; 2 over 1.25 round to 2 again, so 1; 1 can only be made 2.
Test(unit_explain_what_if, intervals_are_whole_cycles_and_the_factor_is_what_became_of_it) {
  ftl_arch *h200 = shipped_arch("h200");
  made mufu = make(find("mufu_rate", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(mufu.arch->sfu_interval_cycles, 6);
  cr_expect_float_eq(mufu.factor, 8.0 / 6, 1e-12);
  made alu = make(find("alu_rate", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(alu.arch->alu_interval_cycles, 1);
  cr_expect_eq(alu.factor, 2);
  made fp32 = make(find("fp32_rate", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(fp32.arch->fp32_interval_cycles, 2);
  cr_expect_eq(fp32.factor, 0.5);
  release(&mufu);
  release(&alu);
  release(&fp32);
  ftl_arch_destroy(h200);
}

Test(unit_explain_what_if, the_tensor_rate_is_that_of_the_instruction_that_the_kernel_uses) {
  ftl_arch *h200 = shipped_arch("h200");
  made wgmma = make(find("tensor_rate", 0), h200, FTL_SPEC_MMA_WGMMA);
  made mma = make(find("tensor_rate", 1), h200, FTL_SPEC_MMA_MMA);
  cr_expect_eq(wgmma.arch->tensor_wgmma_fma_per_cycle, 2560);
  cr_expect_eq(mma.arch->tensor_mma_fp32_interval_cycles, 5);
  cr_expect_eq(mma.arch->tensor_wgmma_fma_per_cycle, 2048);
  cr_expect_not(make(find("tensor_rate", 0), h200, FTL_SPEC_MMA_MMA).applies);
  cr_expect_not(make(find("tensor_rate", 1), h200, FTL_SPEC_MMA_WGMMA).applies);
  release(&wgmma);
  release(&mma);
  ftl_arch_destroy(h200);
}

// With as many ways as a model may have: twice the bytes alone would be twice the sets, another resource.
Test(unit_explain_what_if, a_resource_at_its_limit_is_left_out_with_all_its_keys) {
  ftl_arch *h200 = shipped_arch("h200");
  h200->l2_ways = ftl_arch_key_get(ftl_arch_key_find("l2.ways"))->max;
  made m = make(find("l2_size", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_not(m.applies);
  cr_expect_null(m.arch);
  cr_expect_str_empty(ftl_text_get(&m.change));
  release(&m);
  ftl_arch_destroy(h200);
}

// 132 SMs and a quarter are 165: 166 with whole TPCs.
Test(unit_explain_what_if, sms_come_in_whole_tpcs) {
  ftl_arch *h200 = shipped_arch("h200");
  made m = make(find("num_sms", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_eq(m.arch->chip_num_sms, 166);
  release(&m);
  ftl_arch_destroy(h200);
}

// Held by the launch, on the model as it is.
Test(unit_explain_what_if, the_clock_is_a_quarter_above_what_the_launch_held) {
  ftl_arch *h200 = shipped_arch("h200");
  made m = make(find("sm_clock", 0), h200, FTL_SPEC_MMA_WGMMA);
  cr_expect_null(m.arch);
  cr_expect_eq(m.point.arch, h200);
  cr_expect_eq(m.point.spec.value[FTL_PARAM_clock_mhz], 2250);
  cr_expect_eq(m.factor, 1.25);
  release(&m);
  ftl_arch_destroy(h200);
}
