// Pairs of instruction streams on one SM against kernels/measurements/micro_stream_pairs.csv (H200): when the first of
// two warps of a sub-core ends, of the CTA that came first or of the lower index in one CTA. The code is what ran
// there.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../timing/sm/rig.h"
#include "script/arch_loader.h"

enum { MAX_STREAMS = 24, MAX_INSTS = 400, MAX_READS = 4, NUM_TOKENS = 264, MIN_CYCLES = 8000, MAX_VARIANT = 96 };

typedef struct stream {
  char name[32];
  int32_t num_insts;
  struct {
    ftl_opcode opcode;
    int32_t writes, reads[MAX_READS], num_reads;
  } insts[MAX_INSTS];
  double alone;  // cycles of a round, measured
} stream;

static stream streams[MAX_STREAMS];
static int32_t num_streams;
static ftl_arch *arch;

static ftl_opcode opcode_named(const char *name) {
  static const struct {
    const char *name;
    ftl_opcode opcode;
  } classes[] = {{"FFMA", FTL_OP_FFMA}, {"FMNMX", FTL_OP_FMNMX}, {"MUFU", FTL_OP_MUFU}, {"CVT", FTL_OP_CVT},
                 {"IADD", FTL_OP_IADD}, {"ISETP", FTL_OP_ISETP}, {"BRA", FTL_OP_BRA},   {"MMA", FTL_OP_MMA},
                 {"LDSM", FTL_OP_LDSM}, {"MOV", FTL_OP_MOV},     {"NOP", FTL_OP_NOP}};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (strcmp(classes[i].name, name) == 0) return classes[i].opcode;
  cr_assert_fail("no class %s", name);
  return FTL_OP_NOP;
}

static void read_code(void) {
  FILE *file = fopen(FTL_SOURCE_DIR "/tests/reference/streams/code.txt", "r");
  cr_assert_not_null(file);
  char line[128];
  stream *s = NULL;
  while (fgets(line, sizeof line, file)) {
    if (line[0] == '#') continue;
    if (!s || s->num_insts == s->alone) {  // `alone` counts what is to come until it is measured
      cr_assert_lt(num_streams, MAX_STREAMS);
      s = &streams[num_streams++];
      cr_assert_eq(sscanf(line, "%31s %lf", s->name, &s->alone), 2);
      continue;
    }
    char name[16];
    int at = 0, step = 0, i = s->num_insts++;
    cr_assert_eq(sscanf(line, "%15s %d%n", name, &s->insts[i].writes, &at), 2);
    s->insts[i].opcode = opcode_named(name);
    for (int reg; sscanf(line + at, "%d%n", &reg, &step) == 1; at += step) {
      cr_assert_lt(s->insts[i].num_reads, MAX_READS);
      s->insts[i].reads[s->insts[i].num_reads++] = reg;
    }
  }
  fclose(file);
}

// Of the rows' variant and x; NAN: no such row.
static double measured(const char *variant, int which) {
  FILE *file = fopen(FTL_SOURCE_DIR "/kernels/measurements/micro_stream_pairs.csv", "r");
  cr_assert_not_null(file);
  char line[256], key[128];
  double value = NAN;
  int length = snprintf(key, sizeof key, "stream_pairs,%s,which,%d,ended,", variant, which);
  while (isnan(value) && fgets(line, sizeof line, file))
    if (strncmp(line, key, (size_t)length) == 0) value = atof(line + length);
  fclose(file);
  return value;
}

static void set_up(void) {
  ftl_error error;
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", "h200", &arch, &error), FTL_OK, "%s", error.message);
  read_code();
  for (int32_t i = 0; i < num_streams; i++) {
    char variant[MAX_VARIANT];
    snprintf(variant, sizeof variant, "alone_%.31s", streams[i].name);
    streams[i].alone = measured(variant, 0);
    cr_assert(streams[i].alone > 0, "%s", streams[i].name);
  }
}

static int32_t add_expr(rig *r, ftl_expr_kind kind, int32_t a, int32_t b) {
  r->exprs[r->tile.num_exprs] = (ftl_expr_node){.kind = kind, .a = a, .b = b};
  return r->tile.num_exprs++;
}

static void add_rounds(rig *r, const stream *s, int32_t rounds) {
  int32_t loop = rig_loop(r, 0, 0, 0);
  r->loops[loop].hi = rounds;
  for (int32_t i = 0; i < s->num_insts; i++) {
    ftl_warp_inst *inst = rig_add(r, s->insts[i].opcode, s->insts[i].writes, -1);
    for (int32_t k = 0; k < s->insts[i].num_reads; k++)
      inst->sources[inst->num_sources++] = (uint16_t)s->insts[i].reads[k];
    if (s->insts[i].opcode == FTL_OP_LDSM) inst->wavefronts = 4;  // .x4: 8 rows of 16 bytes each
    if (s->insts[i].opcode == FTL_OP_BRA) inst->flags |= FTL_INST_LOOP_BRANCH;
  }
  rig_end_loop(r, loop);
}

// As the benchmark: the second stream's rounds would last 1.6 times as long as the first's.
static int32_t rounds_of(const stream *s, bool is_second) {
  return (int32_t)(MIN_CYCLES * (is_second ? 1.6 : 1) / s->alone) + 1;
}

static rig *create_rig(void) {
  rig *r = rig_create(4);
  r->arch = *arch;
  r->bulk = true;
  r->observe = false;
  r->program.roles[0].num_tokens = NUM_TOKENS;
  r->program.product.mma_interval_cycles = (int32_t)arch->tensor_mma_fp32_interval_cycles;
  r->program.product.mma_dispatch_cycles = (int32_t)arch->tensor_mma_dispatch_cycles;
  r->program.product.mma_latency_cycles = (int32_t)arch->tensor_mma_latency_cycles;
  return r;
}

// Cycles of a round until the first has ended, of two CTAs: both have the code of both streams and run their own.
static double first_of_ctas(const stream *first, const stream *second) {
  rig *r = create_rig();
  r->num_slots = 2;
  int32_t cta = add_expr(r, FTL_EXPR_CTA, 0, 0), is_first = add_expr(r, FTL_EXPR_SUB, rig_const(r, 1), cta);
  int32_t rounds = rounds_of(first, false);
  add_rounds(r, first, add_expr(r, FTL_EXPR_MUL, rig_const(r, rounds), is_first));
  add_rounds(r, second, add_expr(r, FTL_EXPR_MUL, rig_const(r, rounds_of(second, true)), cta));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 2);
  double cycles = (double)r->end_cycle[0] / rounds;
  rig_destroy(r);
  return cycles;
}

static double alone(const stream *s) {
  rig *r = create_rig();
  int32_t rounds = rounds_of(s, false);
  add_rounds(r, s, rig_const(r, rounds));
  rig_add(r, FTL_OP_EXIT, -1, -1);
  rig_run(r, 1);
  double cycles = (double)r->end_cycle[0] / rounds;
  rig_destroy(r);
  return cycles;
}

Test(reference_streams, a_stream_alone_takes_what_it_takes, .init = set_up) {
  double sum = 0;
  for (int32_t i = 0; i < num_streams; i++) sum += fabs(alone(&streams[i]) / streams[i].alone - 1);
  cr_expect_lt(sum / num_streams, 0.03, "%.2f %%", 100 * sum / num_streams);
}

static bool has_products(const stream *s) {
  for (int32_t i = 0; i < s->num_insts; i++)
    if (s->insts[i].opcode == FTL_OP_MMA) return true;
  return false;
}

// Of the pairs of which one stream at least has mma.syncs, or none has.
static double mean_error(bool products) {
  double sum = 0;
  int32_t count = 0;
  for (int32_t a = 0; a < num_streams; a++)
    for (int32_t b = 0; b < num_streams; b++) {
      if ((has_products(&streams[a]) || has_products(&streams[b])) != products) continue;
      char variant[MAX_VARIANT];
      snprintf(variant, sizeof variant, "ctas_%.31s_%.31s", streams[a].name, streams[b].name);
      sum += fabs(first_of_ctas(&streams[a], &streams[b]) / measured(variant, 0) - 1);
      count++;
    }
  return sum / count;
}

// What the first CTA's warp loses to another stream in the CTA after it.
Test(reference_streams, the_first_of_two_ctas_ends_as_on_the_h200, .init = set_up, .timeout = 120) {
  double error = mean_error(false);
  cr_expect_lt(error, 0.07, "%.2f %%", 100 * error);
}

Test(reference_streams, the_first_of_two_ctas_ends_so_beside_products_too, .init = set_up, .timeout = 120) {
  double error = mean_error(true);
  cr_expect_lt(error, 0.1, "%.2f %%", 100 * error);
}
