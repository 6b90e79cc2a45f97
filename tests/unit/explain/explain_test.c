// Explanations by the real engine: what bounds a kernel is what it reacts to.
#include <jansson.h>
#include <math.h>

#include "explain/explain.h"
#include "explain/what_if.h"
#include "tests/unit/engine/fixture.h"

static ftl_explanation *explain(const char *arch_name, const char *parameters, int num_threads, ftl_arch **arch) {
  *arch = shipped_arch(arch_name);
  ftl_point point = {.spec = spec_of(parameters), .arch = *arch};
  ftl_evaluate_options options = {.num_threads = num_threads};
  ftl_explanation *e = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_explain(&point, &options, &e, &error), FTL_OK, "%s", error.message);
  return e;
}

static void release(ftl_explanation *e, ftl_arch *arch) {
  ftl_explanation_destroy(e);
  ftl_arch_destroy(arch);
}

// What whole kernels react to is the release build's business, as in tests/thinned.h; explanations of small ones,
// below, are made under the sanitizers too.
#ifndef __SANITIZE_ADDRESS__
static double elasticity_of(const ftl_explanation *e, const char *resource) {
  for (int i = 0; i < e->num_what_ifs; i++)
    if (strcmp(e->what_ifs[i].name, resource) == 0) return e->what_ifs[i].elasticity;
  cr_assert_fail("no what-if %s", resource);
  return NAN;
}

// 268 MB of K and V once, by 256 CTAs: the tensor cores, exponentials and L2's size have no part in it. What is written
// back meanwhile turns channels, however many there are: of half as much K and V that is more of the time.
Test(unit_explain, a_decoding_step_falls_as_hbm_bandwidth_grows_and_with_nothing_else) {
  ftl_arch *arch;
  ftl_explanation *e =
      explain("h200", "flash_decode heads=32 kv_heads=8 batch=16 seqlen_kv=8192 head_dim=128", 2, &arch);
  cr_expect_str_eq(e->base.prediction.bottleneck, "HBM bandwidth");
  cr_expect_str_eq(e->what_ifs[0].name, "hbm_bandwidth");
  double hbm = elasticity_of(e, "hbm_bandwidth");
  cr_expect(hbm > 0.8 && hbm < 1.05, "%g", hbm);
  static const char *const others[] = {"tensor_rate", "mufu_rate", "l2_size", "fp32_rate", "registers"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    cr_expect_lt(fabs(elasticity_of(e, others[i])), 0.05, "%s: %g", others[i], elasticity_of(e, others[i]));
  release(e, arch);
}

// 8 heads of 2048: each byte is used 1000 times.
Test(unit_explain, prefill_falls_as_the_sm_clock_grows_and_not_with_hbm_bandwidth) {
  ftl_arch *arch;
  ftl_explanation *e = explain("h200", "heads=8 seqlen=2048 head_dim=128 num_stages=3", 2, &arch);
  cr_expect_gt(elasticity_of(e, "sm_clock"), 0.85);
  cr_expect_lt(fabs(elasticity_of(e, "hbm_bandwidth")), 0.05);
  cr_expect_gt(elasticity_of(e, "tensor_rate"), elasticity_of(e, "hbm_bandwidth"));
  release(e, arch);
}
#endif

// The largest elasticity first, the fastest neighbour first, what cannot be behind; changes are against the base.
Test(unit_explain, cases_are_ranked_and_say_how_the_time_changes) {
  ftl_arch *arch;
  ftl_explanation *e = explain("a100_80", "heads=4 seqlen=512 head_dim=64 block_m=64", 1, &arch);
  double base_ns = e->base.prediction.metrics.value[FTL_METRIC_time_ns];
  for (int i = 0; i < e->num_what_ifs; i++) {
    const ftl_explain_case *c = &e->what_ifs[i];
    cr_assert(c->feasible, "%s: %s", c->name, c->reason);
    cr_expect_float_eq(c->elasticity, log(base_ns / c->time_ns) / log(c->factor), 1e-9);
    cr_expect_float_eq(c->time_change_pct, 100 * (c->time_ns / base_ns - 1), 1e-9);
    if (i > 0) cr_expect_leq(c->elasticity, e->what_ifs[i - 1].elasticity);
  }
  cr_assert_gt(e->num_neighbours, 5);
  int num_infeasible = 0;
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_explain_case *c = &e->neighbours[i];
    num_infeasible += !c->feasible;
    cr_expect_eq(c->feasible, c->reason[0] == '\0', "%s", c->reason);
    cr_expect(c->feasible ? num_infeasible == 0 : i > 0, "an infeasible neighbour stands before a feasible one");
    if (i > 0 && c->feasible) cr_expect_geq(c->time_ns, e->neighbours[i - 1].time_ns);
  }
  cr_expect_gt(num_infeasible, 0);  // num_warps=8 has 8 rows a warp
  release(e, arch);
}

static json_t *json_of(const char *parameters, int num_threads) {
  ftl_arch *arch;
  ftl_explanation *e = explain("h200", parameters, num_threads, &arch);
  ftl_text text = {0};
  ftl_explanation_json(e, &text);
  json_error_t error;
  json_t *json = json_loads(ftl_text_get(&text), JSON_REJECT_DUPLICATES, &error);
  cr_assert_not_null(json, "%s", error.text);
  ftl_text_fini(&text);
  release(e, arch);
  json_object_del(json, "wall_s");
  return json;
}

Test(unit_explain, the_same_on_any_number_of_threads) {
  json_t *one = json_of("heads=2 seqlen=256 head_dim=64", 1), *four = json_of("heads=2 seqlen=256 head_dim=64", 4);
  cr_expect(json_equal(one, four));
  json_decref(one);
  json_decref(four);
}

static double number(const json_t *object, const char *key) {
  cr_assert(json_is_number(json_object_get(object, key)), "%s", key);
  return json_number_value(json_object_get(object, key));
}

static void check_launch(const json_t *launch, bool is_sum) {
  cr_expect_float_eq(number(launch, "overhead_ns") + number(launch, "idle_ns") + number(launch, "work_ns"),
                     number(launch, "time_ns"), 1e-6);
  cr_expect_eq(json_object_size(json_object_get(launch, "usage_pct")), FTL_RESOURCE_COUNT);
  cr_expect_eq(json_object_get(launch, "occupancy") == NULL, is_sum);
  const json_t *roofline = json_object_get(launch, "roofline");
  cr_expect_leq(number(roofline, "reached_pct"), 100);
  const json_t *stalls = json_object_get(launch, "stalls");
  cr_expect_gt(json_array_size(stalls), 0);
  cr_expect(json_is_string(json_object_get(json_array_get(stalls, 0), "meaning")));
}

// What predict says, and `explain` beside it, for each launch and their sum.
Test(unit_explain, json_is_the_answer_and_a_member_more) {
  json_t *json = json_of("flash_decode heads=8 seqlen_kv=1024 head_dim=64 splits=4", 2);
  cr_expect(json_is_true(json_object_get(json, "feasible")));
  cr_expect_not_null(json_object_get(json, "metrics"));
  const json_t *explain = json_object_get(json, "explain"), *launches = json_object_get(explain, "launches");
  cr_assert_eq(json_array_size(launches), 2);
  double time_ns = 0;
  for (size_t i = 0; i < 2; i++) {
    check_launch(json_array_get(launches, i), false);
    time_ns += number(json_array_get(launches, i), "time_ns");
  }
  check_launch(json_object_get(explain, "sum"), true);
  cr_expect_float_eq(number(json_object_get(explain, "sum"), "time_ns"), time_ns, 1e-6);
  const json_t *what_if = json_array_get(json_object_get(explain, "what_ifs"), 0);
  cr_expect_gt(number(what_if, "factor"), 0);
  number(what_if, "elasticity");
  cr_expect_gt(json_array_size(json_object_get(explain, "neighbours")), 3);
  json_decref(json);
}

// Its neighbours may run: that is what to change.
Test(unit_explain, of_what_cannot_run_are_its_neighbours) {
  json_t *json = json_of("heads=2 seqlen=256 head_dim=128 block_n=512", 1);
  cr_expect(json_is_false(json_object_get(json, "feasible")));
  const json_t *explain = json_object_get(json, "explain");
  cr_expect_null(json_object_get(explain, "what_ifs"));
  const json_t *best = json_array_get(json_object_get(explain, "neighbours"), 0);
  cr_expect_str_eq(json_string_value(json_object_get(best, "parameter")), "num_stages");
  cr_expect(json_is_true(json_object_get(best, "feasible")));
  cr_expect(json_is_null(json_object_get(best, "time_change_pct")));
  json_decref(json);
}
