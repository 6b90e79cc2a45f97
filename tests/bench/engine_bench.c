// One prediction, measured: prints its warp instructions and its seconds as a JSON object.
// usage: engine_bench ARCH WORKLOAD [threads=N] [events=each] [stop=programs] KEY=VALUE ...
// events=each: no run of instructions is one event. stop=programs: nothing but what comes before a simulation.
// The list of cases is in tests/bench/run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/predict.h"
#include "script/arch_loader.h"

typedef struct request {
  ftl_spec spec;
  ftl_predict_options options;
  bool only_programs;
} request;

static ftl_status read_argument(request *r, char *argument, ftl_error *error) {
  char *value = strchr(argument, '=');
  if (!value) return ftl_error_set(error, FTL_BAD_INPUT, "%s: must be KEY=VALUE", argument);
  if (strcmp(argument, "events=each") == 0) {
    r->options.no_bulk = true;
  } else if (strcmp(argument, "stop=programs") == 0) {
    r->only_programs = true;
  } else if (strncmp(argument, "threads=", 8) == 0) {
    r->options.num_threads = atoi(value + 1);
    if (r->options.num_threads < 1) return ftl_error_set(error, FTL_BAD_INPUT, "%s: must be 1 or more", argument);
  } else {
    *value = '\0';
    return ftl_spec_set_text(&r->spec, argument, value + 1, error);
  }
  return FTL_OK;
}

static ftl_status make_programs(const request *r, const ftl_arch *arch, ftl_error *error) {
  ftl_tile_program *tile = NULL;
  ftl_warp_program *warps = NULL;
  ftl_status status = ftl_predict_programs(&r->spec, arch, 0, &tile, &warps, error);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  return status;
}

static ftl_status predict(const request *r, const ftl_arch *arch, ftl_error *error) {
  ftl_prediction p;
  ftl_status status = ftl_predict(&r->spec, arch, &r->options, &p, error);
  if (status != FTL_OK) return status;
  if (!p.feasible) return ftl_error_set(error, FTL_INFEASIBLE, "%s", p.reason);
  printf("{\"warp_insts\": %.0f, \"wall_s\": %.4f}\n", p.metrics.value[FTL_METRIC_insts], p.wall_s);
  return FTL_OK;
}

static ftl_status run(int argc, char **argv, ftl_arch **arch, ftl_error *error) {
  request r = {0};
  if (argc < 3) return ftl_error_set(error, FTL_BAD_INPUT, "usage: engine_bench ARCH WORKLOAD KEY=VALUE ...");
  ftl_status status = ftl_arch_load(FTL_SOURCE_DIR "/arch_models", argv[1], arch, error);
  if (status == FTL_OK) status = ftl_spec_init(&r.spec, argv[2], error);
  for (int i = 3; i < argc && status == FTL_OK; i++) status = read_argument(&r, argv[i], error);
  if (status == FTL_OK) status = ftl_spec_complete(&r.spec, error);
  if (status != FTL_OK) return status;
  return r.only_programs ? make_programs(&r, *arch, error) : predict(&r, *arch, error);
}

int main(int argc, char **argv) {
  ftl_error error = {0};
  ftl_arch *arch = NULL;
  ftl_status status = run(argc, argv, &arch, &error);
  ftl_arch_destroy(arch);
  if (status == FTL_OK) return 0;
  fprintf(stderr, "engine_bench: %s\n", error.message);
  return 2;
}
