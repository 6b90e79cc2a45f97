// Which of two warps of a sub-core issues its mma.syncs, against kernels/measurements/micro_mma_turns.csv (H200).
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../timing/sm/rig.h"
#include "script/arch_loader.h"

// As in the microbenchmark: a product in 16 accumulators by turns; `loads`: operands of four come three loads ahead.
enum { PRODUCTS = 64, ACCUMULATORS = 16, LOADS_AHEAD = 3, FIRST_LOAD = 20 };

static ftl_arch *arch;

static void set_up(void) {
  ftl_error error;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
}

static void add_load(rig *r, int i) { rig_add(r, FTL_OP_LDSM, FIRST_LOAD + i % LOADS_AHEAD, -1)->wavefronts = 4; }

static int add_row(rig *r, bool loads) {
  int first = r->program.roles[r->program.num_roles - 1].num_insts;
  for (int i = 0; loads && i < LOADS_AHEAD; i++, first++) add_load(r, i);
  for (int i = 0; i < PRODUCTS; i++) {
    ftl_warp_inst *inst = rig_add(r, FTL_OP_MMA, 1 + i % ACCUMULATORS, 1 + i % ACCUMULATORS);
    if (loads) inst->sources[inst->num_sources++] = (uint16_t)(FIRST_LOAD + i / 4 % LOADS_AHEAD);
    if (loads && i % 4 == 3) add_load(r, i / 4);
  }
  rig_add(r, FTL_OP_EXIT, -1, -1);
  return first;
}

static int last_product(int first, bool loads) { return first + PRODUCTS - 1 + (loads ? PRODUCTS / 4 - 1 : 0); }

// Branches, as the warp that begins later spins.
static void add_delay(rig *r, int32_t turns) {
  int32_t loop = rig_loop(r, 0, 0, 0);
  r->loops[loop].hi = turns;
  rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;
  rig_end_loop(r, loop);
}

static int64_t turns_of(double cycles) { return lround(fabs(cycles) / (double)(1 + arch->branch_redirect_cycles)); }

static rig *create_rig(int32_t num_warps) {
  rig *r = rig_create(num_warps);
  r->arch = *arch;
  r->arch.sm_code_cache_bytes = 0;
  r->program.product.mma_interval_cycles = (int32_t)arch->tensor_mma_fp32_interval_cycles;
  r->program.product.mma_dispatch_cycles = (int32_t)arch->tensor_mma_dispatch_cycles;
  r->program.product.mma_latency_cycles = (int32_t)arch->tensor_mma_latency_cycles;
  return r;
}

typedef struct pair {
  double first, second;
} pair;

static int32_t add_expr(rig *r, ftl_expr_kind kind, int32_t a, int32_t b) {
  r->exprs[r->tile.num_exprs] = (ftl_expr_node){.kind = kind, .a = a, .b = b};
  return r->tile.num_exprs++;
}

// Two CTAs of four warps: the second's begin their rows later, or the first's.
static pair of_two_ctas(bool loads, double apart) {
  rig *r = create_rig(4);
  r->num_slots = 2;
  int32_t cta = add_expr(r, FTL_EXPR_CTA, 0, 0), is_first = add_expr(r, FTL_EXPR_SUB, rig_const(r, 1), cta);
  add_delay(r, add_expr(r, FTL_EXPR_MUL, rig_const(r, turns_of(apart)), apart < 0 ? is_first : cta));
  int first = add_row(r, loads), last = last_product(first, loads);
  rig_run(r, 2);
  int64_t at[2][2] = {{0}};
  for (int i = 0; i < r->num_issues; i++) {
    const rig_issue *issue = &r->log[i];
    if (issue->warp == 0 && issue->inst == first) at[issue->cta][0] = issue->cycle;
    if (issue->warp == 0 && issue->inst == last) at[issue->cta][1] = issue->cycle;
  }
  rig_destroy(r);
  return (pair){(double)(at[0][1] - at[0][0]), (double)(at[1][1] - at[1][0])};
}

// Of warps 0 and 4.
static pair of_one_cta(bool loads, double apart) {
  rig *r = create_rig(1);
  int32_t none = rig_const(r, 0), turns = rig_const(r, turns_of(apart));
  add_delay(r, apart < 0 ? turns : none);
  int first = add_row(r, loads);
  rig_role(r, 3);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_role(r, 1);
  add_delay(r, apart < 0 ? none : turns);
  int second = add_row(r, loads);
  rig_run(r, 1);
  pair p = {(double)(rig_cycle(r, 0, last_product(first, loads), 0) - rig_cycle(r, 0, first, 0)),
            (double)(rig_cycle(r, 4, last_product(second, loads), 0) - rig_cycle(r, 4, second, 0))};
  rig_destroy(r);
  return p;
}

typedef struct setting {
  bool loads, two_ctas;
  double apart;
} setting;

static bool read_next(FILE *file, setting *s, pair *measured) {
  *measured = (pair){0};
  char line[256], kind[16], ctas[16], metric[16];
  double value;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "mma_turns,%15[^_]_%15[^,],delay_cycles,%*f,%15[^,],%lf", kind, ctas, metric, &value) != 4)
      continue;
    if (strcmp(metric, "first") == 0) measured->first = value;
    if (strcmp(metric, "second") == 0) measured->second = value;
    if (strcmp(metric, "apart") != 0) continue;
    *s = (setting){strcmp(kind, "loads") == 0, strcmp(ctas, "two_ctas") == 0, value};
    return true;
  }
  return false;
}

// One of both is not delayed by the other: within 3 % of `alone`.
static bool one_goes_on(pair p, double alone) { return fmin(p.first, p.second) < 1.03 * alone; }

// Products alone go on until they are done; where one row begins well before the other it is that one. With loads among
// them the two warps of a CTA share on both; those of two CTAs do here, where on the H200 one CTA is served first.
Test(reference_turns, a_row_of_products_goes_on, .init = set_up) {
  FILE *file = fopen(FTL_SOURCE_DIR "/kernels/measurements/micro_mma_turns.csv", "r");
  cr_assert_not_null(file);
  enum {
    MEASURED_ALONE = 462,
    MEASURED_WITH_LOADS = 508,
    ALONE = 378,
    WITH_LOADS = 390,
    MEET = 200,
    BEGINS_FIRST = 50
  };
  setting s;
  pair measured;
  int rows = 0, begun_first = 0, keeps = 0, with_loads = 0;
  while (read_next(file, &s, &measured)) {
    if (fabs(s.apart) > MEET || (s.loads && s.two_ctas)) continue;
    pair p = (s.two_ctas ? of_two_ctas : of_one_cta)(s.loads, s.apart);
    if (s.loads) {
      with_loads++;
      cr_expect_not(one_goes_on(measured, MEASURED_WITH_LOADS), "apart %g", s.apart);
      cr_expect_not(one_goes_on(p, WITH_LOADS), "apart %g: %g and %g", s.apart, p.first, p.second);
      continue;
    }
    rows++;
    cr_expect(one_goes_on(measured, MEASURED_ALONE), "apart %g", s.apart);
    cr_expect(one_goes_on(p, ALONE), "apart %g: %g and %g", s.apart, p.first, p.second);
    if (s.apart < BEGINS_FIRST) continue;
    begun_first++;
    cr_expect_lt(measured.first, 1.03 * MEASURED_ALONE, "apart %g", s.apart);
    keeps += p.first < 1.03 * ALONE;
  }
  fclose(file);
  cr_expect(rows > 30 && with_loads > 15 && begun_first > 15, "%d, %d, %d", rows, with_loads, begun_first);
  cr_expect_eq(keeps, begun_first, "%d of %d", keeps, begun_first);
}
