// Whole predictions: simulated warp instructions per second in `full`, seconds of `sampled`, peak memory.
// usage: engine_bench [NAME [full|sampled]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/predict.h"
#include "script/arch_loader.h"

typedef struct bench_case {
  const char *name, *arch, *parameters;
} bench_case;

#define TILES "head_dim=128 block_m=128 block_n=64 num_warps=8 "
static const bench_case cases[] = {
    {"v100", "v100", "heads=16 seqlen=1024 head_dim=128 block_m=64 block_n=64 num_warps=4 num_stages=1"},
    {"t4", "t4", "heads=16 seqlen=1024 head_dim=128 block_m=64 block_n=32 num_warps=4 num_stages=1"},
    {"a100", "a100_80", "heads=16 seqlen=2048 " TILES},
    {"rtx4090", "rtx4090", "heads=16 seqlen=2048 " TILES},
    {"h200_mma", "h200", "heads=16 seqlen=2048 mma=mma " TILES},
    {"h200_wgmma", "h200", "heads=16 seqlen=2048 " TILES},
    {"long", "h200", "heads=8 seqlen=65536 " TILES},
};

static int fail(const ftl_error *error) {
  fprintf(stderr, "engine_bench: %s\n", error->message);
  return 2;
}

// The clock is held, so that one run of the machine is measured.
static int run_case(const bench_case *c, const char *detail) {
  ftl_error error = {0};
  ftl_arch *arch = NULL;
  ftl_spec spec;
  char text[256], *rest = text, *pair;
  snprintf(text, sizeof text, "%s clock_mhz=1400 detail=%s", c->parameters, detail);
  if (ftl_arch_load(FTL_SOURCE_DIR "/arch_models", c->arch, &arch, &error) != FTL_OK) return fail(&error);
  if (ftl_spec_init(&spec, "flash2_fwd", &error) != FTL_OK) return fail(&error);
  while ((pair = strtok_r(rest, " ", &rest))) {
    char *value = strchr(pair, '=');
    *value++ = '\0';
    if (ftl_spec_set_text(&spec, pair, value, &error) != FTL_OK) return fail(&error);
  }
  ftl_prediction p;
  if (ftl_spec_complete(&spec, &error) != FTL_OK || ftl_predict(&spec, arch, NULL, &p, &error) != FTL_OK)
    return fail(&error);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double insts = p.metrics.value[FTL_METRIC_insts];
  printf("%-12s %-8s %8.2f s %8.1f M warp instructions", c->name, detail, p.wall_s, insts / 1e6);
  if (strcmp(detail, "full") == 0) printf(" %6.1f M/s", insts / p.wall_s / 1e6);
  printf("  peak memory so far %ld MB\n", usage.ru_maxrss / 1024);
  ftl_arch_destroy(arch);
  return 0;
}

int main(int argc, char **argv) {
  int status = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases && status == 0; i++) {
    if (argc > 1 && strcmp(argv[1], "all") != 0 && strcmp(argv[1], cases[i].name) != 0) continue;
    bool is_long = strcmp(cases[i].name, "long") == 0;
    if (argc < 3 || strcmp(argv[2], "sampled") == 0) status = run_case(&cases[i], "sampled");
    if (status == 0 && !is_long && (argc < 3 || strcmp(argv[2], "full") == 0)) status = run_case(&cases[i], "full");
  }
  return status;
}
