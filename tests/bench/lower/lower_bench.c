// Prints, for some bodies of flash2_fwd, the host time of a lowering and what it made of them.
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/lower_options.h"
#include "lower/lower.h"
#include "script/arch_loader.h"
#include "tests/spec_words.h"
#include "workloads/spec.h"

enum { ROUNDS = 5 };

typedef struct point {
  const char *arch, *copy, *mma;
  int head_dim, block_m, block_n, num_warps, num_stages;
} point;

static const point points[] = {
    {"v100", "ldg", "mma", 128, 64, 64, 4, 1},          {"t4", "ldg", "mma", 64, 64, 64, 4, 2},
    {"a100_80", "cp_async", "mma", 128, 64, 64, 4, 2},  {"a100_80", "cp_async", "mma", 128, 128, 64, 4, 2},
    {"a100_80", "cp_async", "mma", 256, 128, 64, 4, 1}, {"h200", "tma", "wgmma", 128, 128, 128, 8, 2},
    {"h200", "tma", "wgmma", 128, 128, 128, 4, 2},
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static ftl_status make_spec(ftl_spec *spec, const point *p, ftl_error *error) {
  ftl_status status = ftl_spec_init(spec, "flash2_fwd", error);
  if (status == FTL_OK) status = ftl_spec_set_text(spec, "copy", p->copy, error);
  if (status == FTL_OK) status = ftl_spec_set_text(spec, "mma", p->mma, error);
  const struct {
    const char *name;
    int value;
  } values[] = {{"heads", 32},
                {"seqlen", 4096},
                {"causal", 1},
                {"head_dim", p->head_dim},
                {"block_m", p->block_m},
                {"block_n", p->block_n},
                {"num_warps", p->num_warps},
                {"num_stages", p->num_stages}};
  for (size_t i = 0; i < sizeof values / sizeof *values && status == FTL_OK; i++)
    status = ftl_spec_set_int(spec, values[i].name, values[i].value, error);
  if (status == FTL_OK) status = ftl_spec_complete(spec, error);
  if (status == FTL_OK) spec_use_bare_code(spec);
  return status;
}

static ftl_status lower_once(const ftl_spec *spec, const ftl_tile_program *tile, const ftl_arch *arch,
                             ftl_warp_program **out, double *ms, ftl_error *error) {
  double start = now_ms();
  ftl_status status = ftl_lower(tile, arch, ftl_lower_options_of(spec), out, error);
  *ms = now_ms() - start;
  return status;
}

static ftl_status measure(const point *p, const ftl_arch *arch, ftl_error *error) {
  ftl_spec spec;
  ftl_tile_program *launches[FTL_MAX_LAUNCHES] = {NULL};
  int num_launches;
  ftl_status status = make_spec(&spec, p, error);
  if (status == FTL_OK) status = spec.workload->build(&spec, launches, &num_launches, error);
  double best_ms = 1e9;
  for (int i = 0; i < ROUNDS && status == FTL_OK; i++) {
    ftl_warp_program *warps = NULL;
    double ms;
    status = lower_once(&spec, launches[0], arch, &warps, &ms, error);
    if (ms < best_ms) best_ms = ms;
    if (status == FTL_OK && i == ROUNDS - 1)
      printf(
          "%-8s d%-3d %3dx%-3d %d warps %d stages %-8s %-5s: %5d instructions, %3d registers, %3d spilled, %3d tokens, "
          "%.2f ms\n",
          p->arch, p->head_dim, p->block_m, p->block_n, p->num_warps, p->num_stages, p->copy, p->mma, warps->num_insts,
          warps->registers_per_thread, warps->spill_registers, warps->roles[0].num_tokens, best_ms);
    ftl_warp_program_destroy(warps);
  }
  for (int i = 0; i < FTL_MAX_LAUNCHES; i++) ftl_tile_program_destroy(launches[i]);
  return status;
}

int main(void) {
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    ftl_error error = {0};
    ftl_arch *arch = NULL;
    ftl_status status = ftl_arch_load(FTL_SOURCE_DIR "/arch_models", points[i].arch, &arch, &error);
    if (status == FTL_OK) status = measure(&points[i], arch, &error);
    if (status != FTL_OK) fprintf(stderr, "%s: %s\n", points[i].arch, error.message);
    ftl_arch_destroy(arch);
  }
  return 0;
}
