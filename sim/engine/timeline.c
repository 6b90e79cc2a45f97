// A Chrome-trace / Perfetto timeline of one SM: a track a warp, a slice an instruction, over a window of cycles.
#include <errno.h>
#include <string.h>

#include "arch/arch_limits.h"
#include "base/integer.h"
#include "engine/predict.h"
#include "engine/sampled/lone_sm.h"
#include "engine/sampled/traffic.h"

enum { MAX_SLICES = 2000000, MAX_CTAS = FTL_ARCH_MAX_sm_max_ctas, KHZ_PER_MHZ = 1000 };

typedef struct timeline {
  FILE *out;
  int64_t from, until, khz, num_slices;
  int64_t cut_cycle;  // from which on slices are left out; 0: none are
  int32_t num_warps;
} timeline;

// Trace times are microseconds; a cycle at khz is 1000/khz of one.
static double us_of(const timeline *t, int64_t cycle) { return (double)cycle * 1000.0 / (double)t->khz; }

static void on_issue(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta, const ftl_warp_inst *inst) {
  timeline *t = context;
  if (cycle < t->from || cycle >= t->until || t->cut_cycle > 0) return;
  if (t->num_slices++ >= MAX_SLICES) {
    t->cut_cycle = cycle;
    return;
  }
  fprintf(t->out,
          ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"%s\",\"args\":{\"cycle\":%lld,"
          "\"cta\":%lld}}",
          (int)slot, (int)warp, us_of(t, cycle), us_of(t, 1), ftl_opcode_name(inst->opcode), (long long)cycle,
          (long long)cta);
}

static void write_names(const timeline *t, int32_t num_ctas) {
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    fprintf(t->out, "%s{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"CTA slot %d\"}}",
            slot ? ",\n" : "", (int)slot, (int)slot);
    for (int32_t warp = 0; warp < t->num_warps; warp++)
      fprintf(t->out,
              ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"warp %d\"}}",
              (int)slot, (int)warp, (int)warp);
  }
}

// The CTAs that the first SM would hold at first, each a round of SMs apart.
static int32_t choose_ctas(const ftl_warp_program *warps, const ftl_arch *arch, int64_t *ctas) {
  int32_t count = 0, fit = ftl_occupancy_of(warps, arch).ctas_per_sm;
  while (count < fit && count < MAX_CTAS && count * arch->chip_num_sms < warps->tile->num_ctas) {
    ctas[count] = count * arch->chip_num_sms;
    count++;
  }
  return count;
}

static ftl_status write_run(timeline *t, const ftl_warp_program *warps, const ftl_arch *arch, ftl_error *error) {
  int64_t ctas[MAX_CTAS], starts[MAX_CTAS] = {0}, ends[MAX_CTAS] = {0}, hit, far, miss;
  int32_t num_ctas = choose_ctas(warps, arch, ctas);
  if (num_ctas < 1) return ftl_error_set(error, FTL_INFEASIBLE, "no CTA fits on an SM of %s", arch->name);
  t->num_warps = warps->num_warps;
  ftl_traffic_latencies(arch, t->khz, &hit, &far, &miss);
  // Tiles are handed out by stride, also those that a counter would hand out.
  int64_t resident = ftl_smaller(num_ctas * arch->chip_num_sms, warps->tile->num_ctas);
  ftl_sm_config config = {.arch = arch,
                          .program = warps,
                          .num_slots = num_ctas,
                          .ctas_alike = ftl_warp_program_has_ctas_alike(warps),
                          .persistent_stride = warps->tile->persistent ? resident : 0};
  ftl_sm_counters counters;
  ftl_lone_latency latency = {.near_cycles = hit, .far_cycles = hit, .last_cycles = hit, .local_cycles = hit};
  fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", t->out);
  write_names(t, num_ctas);
  ftl_lone_ctas run = {.num_slots = num_ctas, .num_rounds = 1, .cta = ctas, .start = starts, .end = ends};
  ftl_status status = ftl_lone_sm_run(&config, t->khz, latency, &run, on_issue, t, &counters, error);
  fputs("\n]", t->out);
  if (t->cut_cycle > 0)
    fprintf(t->out, ",\"otherData\":{\"cut\":\"at cycle %lld: %d instructions are written at most\"}",
            (long long)t->cut_cycle, MAX_SLICES);
  fputs("}\n", t->out);
  return status;
}

ftl_status ftl_timeline_write(FILE *out, const ftl_spec *spec, const ftl_arch *arch, int launch_idx, int64_t from_cycle,
                              int64_t until_cycle, ftl_error *error) {
  ftl_tile_program *tile;
  ftl_warp_program *warps;
  ftl_status status = ftl_predict_programs(spec, arch, launch_idx, &tile, &warps, error);
  if (status != FTL_OK) return status;
  int64_t held_khz = spec->value[FTL_PARAM_clock_mhz] * KHZ_PER_MHZ;
  timeline t = {
      .out = out, .from = from_cycle, .until = until_cycle, .khz = held_khz ? held_khz : arch->clock_sm_max_khz};
  status = write_run(&t, warps, arch, error);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  if (status == FTL_OK && (fflush(out) != 0 || ferror(out)))
    status = ftl_error_set(error, FTL_IO_FAILED, "the timeline cannot be written: %s", strerror(errno));
  return status;
}
