// Whatever the parameters: a configuration is refused with a reason, or lowered to a program that the checker proves
// and that fits the chip, and what is predicted of it obeys what holds for every kernel.
//
// Specifications are drawn at random, the same in every run: numbers of heads and tokens that fill tiles or do not,
// and every parameter that a workload takes with some chance.
#include "fixture.h"

#include <math.h>

#include "lower/checker.h"
#include "lower/lower.h"

enum { LOWERED_SPECS = 450, PREDICTED_SPECS = 150 };

static uint64_t next_random(uint64_t *state) {  // splitmix64
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static int below(uint64_t *state, int count) { return (int)(next_random(state) % (uint64_t)count); }

// One of the words of "a|b|c".
static void pick_word(uint64_t *state, const char *words, char *out, size_t out_bytes) {
  int count = 1;
  for (const char *c = words; *c; c++) count += *c == '|';
  for (int skip = below(state, count); skip > 0; skip--) words = strchr(words, '|') + 1;
  snprintf(out, out_bytes, "%.*s", (int)strcspn(words, "|"), words);
}

// Chances in percent. Enumerations that are not here: any word that the workload allows, with OTHER_PCT.
enum { ALWAYS = 100, OTHER_PCT = 8 };
static const struct {
  const char *name;
  int chance_pct;
  const char *words;
} choices[] = {
    {"batch", 40, "1|2|3"},
    {"heads", ALWAYS, "4|8"},
    {"kv_heads", 30, "1|2|4"},
    {"seqlen_q", ALWAYS, "1|7|64|100|128|300|512"},
    {"seqlen_kv", ALWAYS, "1|15|64|100|200|512|777"},
    {"head_dim", ALWAYS, "16|32|40|64|64|72|96|128|128|160|192|248|256"},
    {"head_dim_v", 20, "16|24|64|72|128|256|512"},
    {"head_dim_multiple", 10, "32|64|128"},
    {"m", ALWAYS, "1|7|64|200|512"},
    {"n", ALWAYS, "1|8|64|100|520"},
    {"k", ALWAYS, "8|64|100|256|1000"},
    {"block_m", 35, "16|32|48|64|96|128|192|256"},
    {"block_n", 35, "8|16|32|40|64|96|112|128|176|256"},
    {"block_k", 35, "16|32|48|64|128"},
    {"num_warps", 35, "1|2|3|4|8|12|16"},
    {"num_stages", 35, "1|2|3|4|5"},
    {"causal", 40, "true"},
    {"window", 15, "1|17|128|100000"},
    {"dropout_p", 10, "0.1|0.5|0.99"},
    {"splits", 30, "1|2|3|5"},
    {"max_registers", 10, "32|64|128|200"},
    {"persistent", 15, "true"},
    {"tile_reverse", 10, "true"},
    {"tile_strip", 10, "1|3"},
    {"groups_n", 10, "2"},
    {"warps_n", 10, "2|4"},
    {"head_order", 5, "heads_first|sequences_first"},
    {"transpose_a", 20, "true"},
    {"transpose_b", 20, "true"},
    {"transpose_c", 10, "true"},
    {"fused", 20, "false"},
    {"overlap", 10, "false"},
    {"padding_mask", 10, "true"},
    {"page_size", 30, "1|16|40|64|256"},
    {"prefix", 5, "1|16"},
    {"lengths", 15, "1:7:100|64x3|500:1:15:128"},
    {"kv_group_size", 10, "16|32|64"},
    {"mask_steps", 20, "window|blocks|all|unrolled"},
    {"q_stages", 20, "2"},
    {"mask_block", 5, "64|128|256"},
    {"mask_width", 5, "1|2"},
    {"sparq_r", 30, "16|48"},
    {"sparq_k", 30, "1|64|200"},
    {"sparq_local", 20, "1|32"},
};
// `full` has golden runs; a cache that is warm reads less than what is needed once, and a pass is the workload's.
static const char *left_alone[] = {"detail", "cache", "conditions", "pass"};

static bool is_left_alone(const char *name) {
  for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone; i++)
    if (strcmp(left_alone[i], name) == 0) return true;
  return false;
}

// False: this parameter stays open.
static bool draw_value(uint64_t *state, const ftl_workload *workload, ftl_param param, char *out, size_t out_bytes) {
  const ftl_param_info *info = ftl_param_get(param);
  if (!ftl_workload_takes(workload, param) || is_left_alone(info->name)) return false;
  for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
    if (strcmp(choices[i].name, info->name) != 0) continue;
    int chance = param == FTL_PARAM_seqlen_q && workload->decodes ? 0 : choices[i].chance_pct;
    if (below(state, 100) >= chance) return false;
    pick_word(state, choices[i].words, out, out_bytes);
    return true;
  }
  if (info->allowed == NULL || below(state, 100) >= OTHER_PCT) return false;
  char allowed[FTL_PARAM_TEXT_BYTES];
  pick_word(state, ftl_workload_allowed(workload, param, allowed), out, out_bytes);
  return true;
}

// False: refused, by a line that is not empty.
static bool draw_spec(uint64_t *state, ftl_spec *spec, ftl_text *text) {
  const ftl_workload *workload = ftl_workload_get(below(state, ftl_workload_count()));
  ftl_error error = {0};
  ftl_status status = ftl_spec_init(spec, workload->name, &error);
  ftl_text_add(text, "%s", workload->name);
  for (int param = 0; param < FTL_PARAM_COUNT; param++) {
    char value[32];
    if (!draw_value(state, workload, (ftl_param)param, value, sizeof value)) continue;
    const char *name = ftl_param_get((ftl_param)param)->name;
    ftl_text_add(text, " %s=%s", name, value);
    if (status == FTL_OK) status = ftl_spec_set_text(spec, name, value, &error);
  }
  if (status == FTL_OK) status = ftl_spec_complete(spec, &error);
  if (status == FTL_OK) return true;
  cr_expect_eq(status, FTL_BAD_INPUT, "%s", ftl_text_get(text));
  cr_expect_gt(strlen(error.message), 0, "%s", ftl_text_get(text));
  return false;
}

enum { NUM_CHIPS = 8 };
static const char *chips[NUM_CHIPS] = {"h200", "h100_pcie", "a100_80", "rtx3090", "rtx4090", "t4", "v100", "h200"};

typedef struct draws {
  uint64_t state;
  ftl_arch *archs[NUM_CHIPS];
  const ftl_arch *arch;
  ftl_spec spec;
  ftl_text text;  // chip, workload and parameters, as they would be typed
} draws;

static draws draws_begin(uint64_t seed) {
  draws d = {.state = seed};
  for (int i = 0; i < NUM_CHIPS; i++) d.archs[i] = shipped_arch(chips[i]);
  return d;
}

static bool draws_next(draws *d) {
  d->arch = d->archs[below(&d->state, NUM_CHIPS)];
  ftl_text_fini(&d->text);
  d->text = (ftl_text){0};
  ftl_text_add(&d->text, "%s ", d->arch->name);
  return draw_spec(&d->state, &d->spec, &d->text);
}

static void draws_end(draws *d) {
  ftl_text_fini(&d->text);
  for (int i = 0; i < NUM_CHIPS; i++) ftl_arch_destroy(d->archs[i]);
}

static void expect_that_it_fits(const draws *d, const ftl_warp_program *warps) {
  const ftl_arch *arch = d->arch;
  const char *what = ftl_text_get(&d->text);
  int64_t ctas = ftl_occupancy_of(warps, arch).ctas_per_sm, cap = d->spec.value[FTL_PARAM_max_registers];
  cr_expect_gt(warps->registers_per_thread, 0, "%s", what);
  cr_expect_leq(warps->registers_per_thread, arch->sm_max_registers_per_thread, "%s", what);
  if (cap > 0) cr_expect_leq(warps->registers_per_thread, cap, "%s", what);
  cr_expect_leq(ctas * warps->num_warps, arch->sm_max_warps, "%s", what);
  cr_expect_leq(ctas * warps->num_warps * 32 * warps->registers_per_thread, arch->sm_num_registers, "%s", what);
  cr_expect_leq(ctas * warps->shared_bytes, arch->shared_bytes_per_sm, "%s", what);
}

// False: refused with a reason, or `launch` is beyond the last one.
static bool check_launch(const draws *d, int launch) {
  const char *what = ftl_text_get(&d->text);
  ftl_tile_program *tile = NULL;
  ftl_warp_program *warps = NULL;
  ftl_error error = {0};
  ftl_status status = ftl_predict_programs(&d->spec, d->arch, launch, &tile, &warps, &error);
  if (status != FTL_OK) {
    cr_expect(status == FTL_INFEASIBLE || status == FTL_BAD_INPUT, "%s: %s", what, error.message);
    cr_expect_gt(strlen(error.message), 0, "%s", what);
    return false;
  }
  expect_that_it_fits(d, warps);
  cr_expect_eq(ftl_checker_prove(warps, 0, &error), FTL_OK, "%s: %s", what, error.message);
  cr_expect_eq(ftl_checker_prove(warps, tile->num_ctas - 1, &error), FTL_OK, "%s: %s", what, error.message);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  return true;
}

Test(unit_engine_any_spec, is_refused_with_a_reason_or_lowered_and_proved) {
  draws d = draws_begin(1);
  int num_lowered = 0;
  for (int i = 0; i < LOWERED_SPECS; i++) {
    if (!draws_next(&d)) continue;
    num_lowered += check_launch(&d, 0);
    (void)check_launch(&d, 1);
  }
  cr_expect_gt(num_lowered, LOWERED_SPECS / 4);  // else the draws say little
  draws_end(&d);
}

static void expect_percentage(double value, const char *name, const char *what) {
  cr_expect_leq(value, 100.0001, "%s: %s is %g", what, name, value);
}

static void check_metrics(const ftl_metrics *metrics, const char *what) {
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    const ftl_metric_info *info = ftl_metric_get((ftl_metric)i);
    cr_expect(isfinite(metrics->value[i]) && metrics->value[i] >= 0, "%s: %s is %g", what, info->name,
              metrics->value[i]);
    if (strcmp(info->unit, "%") == 0) expect_percentage(metrics->value[i], info->name, what);
  }
}

// Rows of Q that see no key count as needed, though unfused kernels do not read them.
static bool needs_all_that_counts(const ftl_spec *spec) {
  bool all_see = spec->value[FTL_PARAM_causal] == 0 && spec->value[FTL_PARAM_window] == 0;
  return all_see || spec->value[FTL_PARAM_seqlen_q] <= spec->value[FTL_PARAM_seqlen_kv];
}

// Cold: what is needed is read from DRAM, and L2 fetches nothing but what SMs ask for and what comes with it.
static void check_kernel(const draws *d, const ftl_kernel_answer *kernel, double wrong_bytes_pct) {
  const double *value = kernel->metrics.value;
  const char *what = ftl_text_get(&d->text);
  double least = value[FTL_METRIC_compulsory_read] * (1 - wrong_bytes_pct / 100);
  if (needs_all_that_counts(&d->spec))
    cr_expect_geq(value[FTL_METRIC_dram_read], least, "%s: %s reads %g of %g bytes", what, kernel->name,
                  value[FTL_METRIC_dram_read], value[FTL_METRIC_compulsory_read]);
  double fetched = 32 * value[FTL_METRIC_l2_sectors] * (double)d->arch->l2_fill_sectors;
  double most = fetched * (1 + (double)d->arch->dram_ecc_inline_milli / 1000);
  cr_expect_leq(value[FTL_METRIC_dram_read], most * (1 + wrong_bytes_pct / 100), "%s: %s reads %g bytes, at most %g",
                what, kernel->name, value[FTL_METRIC_dram_read], most);
  cr_expect_leq(value[FTL_METRIC_tensor_insts], value[FTL_METRIC_insts], "%s: %s", what, kernel->name);
  // Every cycle of every warp has a reason; ratios are to issues.
  double reasons = 0, issued_pct = value[FTL_METRIC_issue_pct] * (double)d->arch->sm_num_subcores;
  for (int i = FTL_METRIC_stall_selected; i <= FTL_METRIC_stall_sleeping; i++) reasons += value[i];
  double warps = value[FTL_METRIC_warps_pct] * (double)d->arch->sm_max_warps / issued_pct;
  cr_expect_float_eq(reasons, warps, warps * 1e-3, "%s: %s has reasons for %g of %g cycles", what, kernel->name,
                     reasons, warps);
}

Test(unit_engine_any_spec, is_refused_with_a_reason_or_predicted_within_what_always_holds) {
  draws d = draws_begin(2);
  int num_predicted = 0;
  for (int i = 0; i < PREDICTED_SPECS; i++) {
    if (!draws_next(&d)) continue;
    const char *what = ftl_text_get(&d.text);
    ftl_prediction p;
    ftl_error error = {0};
    ftl_status status = ftl_predict(&d.spec, d.arch, NULL, &p, &error);
    cr_expect(status == FTL_OK || status == FTL_BAD_INPUT, "%s: %s", what, error.message);
    if (!p.feasible) {
      cr_expect_gt(strlen(status == FTL_OK ? p.reason : error.message), 0, "%s", what);
      continue;
    }
    num_predicted++;
    check_metrics(&p.metrics, what);
    double insts = 0;
    for (int k = 0; k < p.num_kernels; k++) {
      check_metrics(&p.kernels[k].metrics, what);
      check_kernel(&d, &p.kernels[k], p.error_bound_hbm_bytes_pct);
      insts += p.kernels[k].metrics.value[FTL_METRIC_insts];
    }
    cr_expect_eq(p.metrics.value[FTL_METRIC_insts], insts, "%s", what);
  }
  cr_expect_gt(num_predicted, PREDICTED_SPECS / 4);
  draws_end(&d);
}
