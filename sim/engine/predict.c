#include "engine/predict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/answer.h"
#include "engine/lower_options.h"
#include "engine/pipeline.h"
#include "engine/power.h"
#include "workloads/code_form.h"
#include "workloads/open_tiles.h"

enum { MAX_CTAS = 1 << 24 };  // each is looked at a few times, even by sampled
enum { KHZ_PER_MHZ = 1000 };

typedef struct programs {
  ftl_tile_program *tiles[FTL_MAX_LAUNCHES];
  ftl_warp_program *warps[FTL_MAX_LAUNCHES];
  int num_launches;
} programs;

static void programs_fini(programs *p) {
  for (int i = 0; i < FTL_MAX_LAUNCHES; i++) {
    ftl_warp_program_destroy(p->warps[i]);
    ftl_tile_program_destroy(p->tiles[i]);
  }
  *p = (programs){0};
}

// Whether a parameter decides a kernel's size, and says more than one named before it.
static bool names_size(const ftl_spec *spec, ftl_param param) {
  if (!ftl_spec_takes(spec, param)) return false;
  return param != FTL_PARAM_head_dim_v || spec->value[param] != spec->value[FTL_PARAM_head_dim];
}

// Lowering knows a kernel by its name; a user knows it by the parameters that decide its size.
static void name_by_parameters(const ftl_spec *spec, ftl_error *error) {
  static const ftl_param sizes[] = {FTL_PARAM_block_m, FTL_PARAM_block_n, FTL_PARAM_num_stages, FTL_PARAM_head_dim,
                                    FTL_PARAM_head_dim_v};
  if (error->subject_bytes == 0) return;
  ftl_error plain = *error;
  ftl_text text = {0};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char value[32];
    if (names_size(spec, sizes[i]))
      ftl_text_add(&text, "%s%s=%s", text.size ? " " : "", ftl_param_get(sizes[i])->name,
                   ftl_spec_text(spec, sizes[i], value));
  }
  if (text.size && !text.failed)
    (void)ftl_error_set(error, plain.status, "%s%s", ftl_text_get(&text), plain.message + plain.subject_bytes);
  ftl_text_fini(&text);
}

// Every launch declares what is in memory while it runs.
static ftl_status check_memory(const programs *p, const ftl_arch *arch, ftl_error *error) {
  for (int i = 0; i < p->num_launches; i++) {
    int64_t bytes = 0;
    for (int32_t k = 0; k < p->tiles[i]->num_tensors; k++) bytes += p->tiles[i]->tensors[k].size_bytes;
    if (bytes > arch->dram_size_bytes)
      return ftl_error_set(error, FTL_INFEASIBLE,
                           "%s: tensors of %" PRId64 " bytes; %s has %" PRId64 " bytes of memory", p->tiles[i]->name,
                           bytes, arch->name, arch->dram_size_bytes);
  }
  return FTL_OK;
}

static ftl_status try_programs(ftl_spec *spec, const ftl_arch *arch, programs *p, ftl_error *error) {
  ftl_lower_options options = ftl_lower_options_of(spec);
  ftl_status status = ftl_lower_resolve(arch, &options, error);
  if (status != FTL_OK) return status;
  spec->value[FTL_PARAM_copy] = options.copy;
  spec->value[FTL_PARAM_mma] = options.mma;
  spec->shared_bytes_per_cta = arch->shared_max_bytes_per_cta;
  ftl_spec_resolve_code(spec, arch);
  if (spec->workload->resolve) spec->workload->resolve(spec, arch);
  options = ftl_lower_options_of(spec);
  status = spec->workload->build(spec, p->tiles, &p->num_launches, error);
  if (status == FTL_OK) status = check_memory(p, arch, error);
  for (int i = 0; status == FTL_OK && i < p->num_launches; i++)
    if ((status = ftl_lower(p->tiles[i], arch, options, &p->warps[i], error)) == FTL_INFEASIBLE)
      name_by_parameters(spec, error);
  if (status != FTL_OK) programs_fini(p);
  return status;
}

static bool has_mma_sync_form(const ftl_spec *spec) {
  return spec->workload->needs_wgmma == NULL || !spec->workload->needs_wgmma(spec);
}

// Builds and lowers. mma=auto takes wgmma where the chip has it and the configuration allows it, else mma.sync, of
// which it then has to have a form: else wgmma's reason is the one to tell.
static ftl_status make_form(ftl_spec *spec, const ftl_arch *arch, programs *p, ftl_error *error) {
  const ftl_spec open = *spec;  // with what is `auto`
  *p = (programs){0};
  ftl_status status = try_programs(spec, arch, p, error);
  bool was_wgmma = open.value[FTL_PARAM_mma] == FTL_SPEC_MMA_AUTO && spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  if (status != FTL_INFEASIBLE || !was_wgmma || !has_mma_sync_form(spec)) return status;
  *spec = open;
  spec->value[FTL_PARAM_mma] = FTL_SPEC_MMA_MMA;
  return try_programs(spec, arch, p, error);
}

// A few registers cost less than narrower tiles, which take 0.79 to 1.26 times as long as tiles that spill 2 to 23, and
// 0.43 to 1.08 times as long as those that spill 26 to 186 (27 launches of 2048 keys on six GPUs, as predicted).
static bool spills_much(const programs *p) {
  enum { FEW_REGISTERS = 24 };
  for (int i = 0; i < p->num_launches; i++)
    if (p->warps[i]->spill_registers > FEW_REGISTERS) return true;
  return false;
}

// The next of the smaller tiles, from *smaller on, that the GPU takes; FTL_INFEASIBLE where none does.
static ftl_status make_smaller(ftl_spec *smaller, const ftl_spec *general, const ftl_arch *arch, ftl_spec *spec,
                               programs *p, ftl_error *error) {
  while (ftl_spec_narrow_tiles(smaller, general)) {
    ftl_spec tried = *smaller;
    ftl_error of_smaller;
    ftl_status status = make_form(&tried, arch, p, &of_smaller);
    if (status == FTL_INFEASIBLE || status == FTL_BAD_INPUT) continue;
    *spec = tried;
    if (status != FTL_OK) *error = of_smaller;
    return status;
  }
  return FTL_INFEASIBLE;
}

// Of the tiles from *smaller on that as many warps compute, the first that spills little takes the place of those that
// spill much, where there is one.
static ftl_status make_without_spills(ftl_spec *smaller, const ftl_spec *general, const ftl_arch *arch, ftl_spec *spec,
                                      programs *p, ftl_error *error) {
  ftl_status status = FTL_OK;
  while (status == FTL_OK) {
    ftl_spec tried;
    programs other = {0};
    status = make_smaller(smaller, general, arch, &tried, &other, error);
    bool is_found = status == FTL_OK && !spills_much(&other);
    bool is_other_kernel = status == FTL_OK && tried.value[FTL_PARAM_num_warps] != spec->value[FTL_PARAM_num_warps];
    if (is_found && !is_other_kernel) {
      programs_fini(p);
      *p = other;
      *spec = tried;
      return FTL_OK;
    }
    programs_fini(&other);
    if (is_other_kernel) return FTL_OK;
  }
  if (status == FTL_INFEASIBLE) return FTL_OK;
  programs_fini(p);
  return status;
}

// Tiles that the user left open become smaller where the GPU has no room for them, or where their sums and operands do
// not fit the registers of a thread and those of smaller ones do. Where none fit, the reason is that of the general
// defaults. A cap on registers that the user gave is meant.
static ftl_status make_programs(ftl_spec *spec, const ftl_arch *arch, programs *p, ftl_error *error) {
  const ftl_spec general = *spec;
  ftl_spec smaller = general;
  ftl_status status = make_form(spec, arch, p, error);
  if (!ftl_spec_leaves_tiles_open(&general)) return status;
  if (status == FTL_INFEASIBLE) status = make_smaller(&smaller, &general, arch, spec, p, error);
  bool has_cap = general.value[FTL_PARAM_max_registers] > 0 || general.value[FTL_PARAM_min_ctas] > 0;
  bool spills_on_purpose = has_cap || general.workload->keeps_spilling_tiles;
  if (status != FTL_OK || spills_on_purpose || !spills_much(p)) return status;
  return make_without_spills(&smaller, &general, arch, spec, p, error);
}

static ftl_pipeline_caches caches_of(const ftl_spec *spec, int num_launches) {
  int64_t cache = spec->value[FTL_PARAM_cache];
  bool stream = spec->value[FTL_PARAM_conditions] == FTL_CONDITIONS_STREAM;
  return (ftl_pipeline_caches){
      .fouled = stream,
      .warm = cache == FTL_CACHE_WARM,
      .chain = num_launches > 1 && (cache == FTL_CACHE_CHAIN || (cache == FTL_CACHE_AUTO && stream))};
}

// Whether every kernel reads at least its compulsory bytes: not one of a user, which may leave out what it could load
// of its tensors, nor one with queries that see no key, which count and are skipped: above a band of keys, or in rows
// of blocks that a mask may leave empty.
static bool reads_all_that_counts(const ftl_spec *spec) {
  bool is_banded = spec->value[FTL_PARAM_causal] != 0 || spec->value[FTL_PARAM_window] != 0;
  bool all_see = !is_banded || spec->value[FTL_PARAM_seqlen_q] <= spec->value[FTL_PARAM_seqlen_kv];
  if (spec->value[FTL_PARAM_mask] == FTL_MASK_BITS) all_see = false;
  return all_see && spec->workload->user_kernel == NULL;
}

static ftl_status init_pipeline(ftl_pipeline *pipeline, const programs *p, const ftl_spec *spec, const ftl_arch *arch,
                                const ftl_predict_options *options, ftl_error *error) {
  *pipeline = (ftl_pipeline){
      .num_launches = p->num_launches,
      .caches = caches_of(spec, p->num_launches),
      .full = spec->value[FTL_PARAM_detail] == FTL_DETAIL_FULL,
      .num_in_a_row = spec->value[FTL_PARAM_conditions] == FTL_CONDITIONS_STREAM ? FTL_POWER_STREAM_LAUNCHES : 1,
      .held_khz = spec->value[FTL_PARAM_clock_mhz] * KHZ_PER_MHZ};
  for (int i = 0; i < p->num_launches; i++) {
    if (p->tiles[i]->num_ctas > MAX_CTAS)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s: %lld CTAs; at most %d can be simulated", p->tiles[i]->name,
                           (long long)p->tiles[i]->num_ctas, MAX_CTAS);
    ftl_occupancy occupancy = ftl_occupancy_of(p->warps[i], arch);
    if (occupancy.ctas_per_sm < 1)
      return ftl_error_set(error, FTL_INFEASIBLE, "%s: no CTA fits on an SM of %s", p->tiles[i]->name, arch->name);
    ftl_launch *launch = &pipeline->launches[i].launch;
    *launch = (ftl_launch){.arch = arch, .tile = p->tiles[i], .warps = p->warps[i], .occupancy = occupancy};
    if (reads_all_that_counts(spec)) launch->least_read_bytes = ftl_compulsory_bytes_of(p->tiles[i]).read;
    launch->num_threads = options && options->num_threads > 0 ? options->num_threads : 1;
    launch->no_bulk = options && options->no_bulk;
    launch->cancel = options ? options->cancel : NULL;
    pipeline->launches[i].work = ftl_static_work_of(p->warps[i], ftl_launch_num_ctas(launch));
  }
  return FTL_OK;
}

static int longest_launch(const ftl_pipeline *pipeline) {
  int longest = 0;
  for (int i = 1; i < pipeline->num_launches; i++)
    if (pipeline->launches[i].totals.cycles > pipeline->launches[longest].totals.cycles) longest = i;
  return longest;
}

// A sum is wrong by at most the sum of what its terms are wrong by.
static void combine_bounds(const ftl_pipeline *pipeline, ftl_prediction *out) {
  double cycles = 0, wrong_cycles = 0, bytes = 0, wrong_bytes = 0;
  for (int i = 0; i < pipeline->num_launches; i++) {
    const ftl_totals *totals = &pipeline->launches[i].totals;
    double hbm = (double)(totals->memory.dram_read_bytes + totals->memory.dram_write_bytes);
    cycles += (double)totals->cycles;
    wrong_cycles += (double)totals->cycles * totals->error_bound_cycles_pct;
    bytes += hbm;
    wrong_bytes += hbm * totals->error_bound_hbm_bytes_pct;
  }
  out->error_bound_cycles_pct = cycles > 0 ? wrong_cycles / cycles : 0;
  out->error_bound_hbm_bytes_pct = bytes > 0 ? wrong_bytes / bytes : 0;
}

static void fill_answer(const ftl_pipeline *pipeline, const ftl_arch *arch, ftl_prediction *out) {
  out->num_kernels = pipeline->num_launches;
  for (int i = 0; i < pipeline->num_launches; i++) {
    const ftl_pipeline_launch *one = &pipeline->launches[i];
    ftl_kernel_answer *kernel = &out->kernels[i];
    memcpy(kernel->name, one->launch.tile->name, sizeof kernel->name);
    ftl_answer_metrics(&one->launch, &one->totals, &one->work, &kernel->metrics);
    if (i > 0) kernel->metrics.value[FTL_METRIC_stream_time_ns] += (double)arch->launch_gap_ns;
    ftl_answer_usage(&one->launch, &one->totals, &one->work, kernel->usage_pct);
    kernel->bottleneck = ftl_answer_bottleneck(&one->launch, &one->totals, kernel->usage_pct);
  }
  combine_bounds(pipeline, out);
  ftl_answer_combine(out->kernels, out->num_kernels, &out->metrics);
  out->longest_kernel = longest_launch(pipeline);
  snprintf(out->bottleneck, sizeof out->bottleneck, "%s",
           ftl_bottleneck_name(out->kernels[out->longest_kernel].bottleneck));
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static ftl_status run(const ftl_arch *arch, const ftl_predict_options *options, ftl_prediction *out, ftl_error *error) {
  programs p;
  ftl_pipeline pipeline;
  ftl_status status = make_programs(&out->spec, arch, &p, error);
  if (status == FTL_OK) status = init_pipeline(&pipeline, &p, &out->spec, arch, options, error);
  if (status == FTL_OK) status = ftl_pipeline_run(&pipeline, error);
  if (status == FTL_OK) fill_answer(&pipeline, arch, out);
  programs_fini(&p);
  return status;
}

ftl_status ftl_predict(const ftl_spec *spec, const ftl_arch *arch, const ftl_predict_options *options,
                       ftl_prediction *out, ftl_error *error) {
  double start_s = now_s();
  ftl_error own;
  if (!error) error = &own;
  memset(out, 0, sizeof *out);
  out->spec = *spec;
  ftl_status status = run(arch, options, out, error);
  out->feasible = status == FTL_OK;
  if (status == FTL_INFEASIBLE) {
    memcpy(out->reason, error->message, sizeof out->reason);
    status = FTL_OK;
  }
  out->wall_s = now_s() - start_s;
  return status;
}

ftl_status ftl_predict_programs(const ftl_spec *spec, const ftl_arch *arch, int launch_idx, ftl_tile_program **tile,
                                ftl_warp_program **warps, ftl_error *error) {
  *tile = NULL;
  *warps = NULL;
  programs p;
  ftl_spec resolved = *spec;
  ftl_status status = make_programs(&resolved, arch, &p, error);
  if (status != FTL_OK) return status;
  if (launch_idx < 0 || launch_idx >= p.num_launches) {
    int count = p.num_launches;
    programs_fini(&p);
    return ftl_error_set(error, FTL_BAD_INPUT, "launch %d: %s has launches 0 to %d", launch_idx, spec->workload->name,
                         count - 1);
  }
  *tile = p.tiles[launch_idx];
  *warps = p.warps[launch_idx];
  p.tiles[launch_idx] = NULL;
  p.warps[launch_idx] = NULL;
  programs_fini(&p);
  return FTL_OK;
}
