#include "explain/what_if.h"

#include <inttypes.h>
#include <math.h>

#include "workloads/open_tiles.h"

enum { MAX_KEYS = 7, KHZ_PER_MHZ = 1000 };

// How a key says how much there is of a resource.
typedef enum amount {
  MORE,          // the number is the amount: bytes a cycle, registers
  LESS,          // the number is a time
  AS_MUCH_MORE,  // grows by as many as the first key
  WHOLE_TPCS,    // SMs
} amount;

typedef struct key_change {
  const char *key;
  amount kind;
} key_change;

typedef struct what_if {
  const char *name, *doc;
  double factor;
  enum { ALWAYS, WITH_MMA, WITH_WGMMA } when;
  key_change keys[MAX_KEYS];  // the first decides the factor; none: the clock that the launch holds
} what_if;

// Rates and latencies by a quarter, near enough for an elasticity; capacities twice, since their effect comes in steps.
// shared.bytes_per_cycle also twice: a wavefront of 128 bytes takes whole cycles.
static const what_if what_ifs[] = {
    {"hbm_bandwidth", "channels of device memory", 1.25, ALWAYS, {{"dram.num_channels", MORE}}},
    {"l2_bandwidth", "bytes a cycle of an L2 slice", 1.25, ALWAYS, {{"l2.slice_bytes_per_cycle", MORE}}},
    {"network_bandwidth",
     "ports of SMs and GPCs, and the link between L2's sides",
     1.25,
     ALWAYS,
     {{"noc.sm_read_bytes_per_cycle", MORE},
      {"noc.sm_write_bytes_per_cycle", MORE},
      {"noc.gpc_read_bytes_per_cycle", MORE},
      {"noc.far_bytes_per_cycle", MORE}}},
    {"l2_size", "L2 capacity, by more ways", 2, ALWAYS, {{"l2.ways", MORE}, {"l2.size_bytes", MORE}}},
    {"memory_latency",
     "unloaded way to L2 and HBM and back, shorter",
     1.25,
     ALWAYS,
     {{"noc.request_cycles", LESS},
      {"noc.reply_cycles", LESS},
      {"noc.far_cycles", LESS},
      {"l2.hit_cycles", LESS},
      {"dram.controller_cycles", LESS}}},
    {"sm_clock", "SM clock that the launches hold", 1.25, ALWAYS, {{NULL, MORE}}},
    {"power_limit",
     "watts that the board may take",
     1.25,
     ALWAYS,
     {{"power.limit_mw", MORE}, {"power.burst_limit_mw", MORE}}},
    {"num_sms", "SMs alone: L2, HBM and watts as they are", 1.25, ALWAYS, {{"chip.num_sms", WHOLE_TPCS}}},
    {"tensor_rate", "multiply-adds a cycle of wgmma", 1.25, WITH_WGMMA, {{"tensor.wgmma_fma_per_cycle", MORE}}},
    {"tensor_rate",
     "interval of mma.sync, shorter",
     1.25,
     WITH_MMA,
     {{"tensor.mma_fp32_interval_cycles", LESS}, {"tensor.mma_dispatch_cycles", LESS}}},
    {"register_ports",
     "places for operands beside a wgmma, sooner",
     2,
     WITH_WGMMA,
     {{"tensor.wgmma_dispatch_cycles", LESS}}},
    {"mufu_rate", "interval of MUFU, shorter", 1.25, ALWAYS, {{"sfu.interval_cycles", LESS}}},
    {"fp32_rate", "interval of FP32 math", 1.25, ALWAYS, {{"fp32.interval_cycles", LESS}}},
    {"alu_rate",
     "intervals of integer math, maxima and conversions",
     1.25,
     ALWAYS,
     {{"alu.interval_cycles", LESS}, {"cvt.interval_cycles", LESS}}},
    {"math_latency",
     "dependent-issue latency of all math pipes",
     1.25,
     ALWAYS,
     {{"fp32.latency_cycles", LESS},
      {"alu.latency_cycles", LESS},
      {"imad.latency_cycles", LESS},
      {"cvt.latency_cycles", LESS},
      {"sfu.latency_cycles", LESS},
      {"tensor.mma_latency_cycles", LESS},
      {"tensor.wgmma_tail_cycles", LESS}}},
    {"mio_rate",
     "intervals of memory instructions",
     1.25,
     ALWAYS,
     {{"mio.issue_interval_cycles", LESS}, {"mio.warp_interval_cycles", LESS}}},
    {"shared_bandwidth", "bytes a cycle of shared memory", 2, ALWAYS, {{"shared.bytes_per_cycle", MORE}}},
    {"shared_latency",
     "loads, shuffles and barriers in shared memory, sooner",
     1.25,
     ALWAYS,
     {{"shared.load_latency_cycles", LESS},
      {"shared.ldmatrix_latency_cycles", LESS},
      {"shared.shuffle_latency_cycles", LESS},
      {"shared.barrier_latency_cycles", LESS},
      {"shared.mbarrier_latency_cycles", LESS}}},
    {"shared_size",
     "shared memory of an SM, and what a CTA may have",
     2,
     ALWAYS,
     {{"shared.bytes_per_sm", MORE}, {"shared.max_bytes_per_cta", MORE}, {"l1.unified_bytes", AS_MUCH_MORE}}},
    {"registers", "registers of an SM; a thread has 255 at most", 2, ALWAYS, {{"sm.num_registers", MORE}}},
    {"launch_overhead", "start and drain of a launch, shorter", 1.25, ALWAYS, {{"launch.overhead_ns", LESS}}},
};

int ftl_num_what_ifs(void) { return sizeof what_ifs / sizeof *what_ifs; }
const char *ftl_what_if_name(int what_if_idx) { return what_ifs[what_if_idx].name; }
const char *ftl_what_if_doc(int what_if_idx) { return what_ifs[what_if_idx].doc; }

static int64_t rounded(double value) { return (int64_t)floor(value + 0.5); }

static int64_t to_multiple(double value, int64_t unit) { return rounded(value / (double)unit) * unit; }

// The key's value with `factor` as much of what it stands for; another than the old one if there is room.
static int64_t grown(const ftl_arch *arch, const key_change *change, double factor, int64_t first_growth) {
  int key_idx = ftl_arch_key_find(change->key);
  int64_t old = ftl_arch_int(arch, key_idx), value = old;
  switch (change->kind) {
    case MORE:
      value = rounded((double)old * factor);
      break;
    case LESS:
      value = rounded((double)old / factor);
      if (value == old && old > 1) value = factor > 1 ? old - 1 : old + 1;
      break;
    case AS_MUCH_MORE:
      value = old + first_growth;
      break;
    case WHOLE_TPCS:
      value = to_multiple((double)old * factor, arch->chip_sms_per_tpc);
      break;
  }
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  return value < key->min ? key->min : value > key->max ? key->max : value;
}

static double factor_of(amount kind, int64_t old, int64_t value) {
  return kind == LESS ? (double)old / (double)value : (double)value / (double)old;
}

static ftl_status change_keys(const what_if *w, double asked, ftl_arch *arch, ftl_text *change, double *factor,
                              ftl_error *error) {
  ftl_origin origin = {.kind = FTL_ORIGIN_OVERRIDE, .text = "what-if", .file = "what-if"};
  int64_t first_growth = 0;
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < MAX_KEYS && w->keys[i].key != NULL; i++) {
    int key_idx = ftl_arch_key_find(w->keys[i].key);
    int64_t old = ftl_arch_int(arch, key_idx), value = grown(arch, &w->keys[i], asked, first_growth);
    if (value == old && i == 0) break;  // no more of the resource, whatever else could change
    if (value == old) continue;         // nothing to shorten, or what this chip has not
    if (i == 0) {
      first_growth = value - old;
      *factor = factor_of(w->keys[i].kind, old, value);
    }
    ftl_text_add(change, "%s%s %" PRId64 " -> %" PRId64, change->size > 0 ? "; " : "", w->keys[i].key, old, value);
    status = ftl_arch_set_int(arch, key_idx, value, origin, error);
  }
  return status;
}

// An interval of one cycle cannot be shorter; how much hangs on it shows as well when it is longer.
static double factor_to_ask(const what_if *w, const ftl_arch *arch) {
  bool is_least = w->keys[0].kind == LESS && ftl_arch_int(arch, ftl_arch_key_find(w->keys[0].key)) == 1;
  return is_least ? 0.5 : w->factor;
}

static bool has_resource(const what_if *w, const ftl_point *base, const ftl_prediction *answer) {
  bool has_mma = ftl_spec_takes(&base->spec, FTL_PARAM_mma);
  bool is_wgmma = has_mma && answer->spec.value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  if (w->when != ALWAYS) return is_wgmma == (w->when == WITH_WGMMA);
  return w->keys[0].key == NULL || ftl_arch_int(base->arch, ftl_arch_key_find(w->keys[0].key)) > 0;
}

static ftl_status make_clock(const what_if *w, const ftl_prediction *answer, ftl_point *out, ftl_text *change,
                             double *factor, ftl_error *error) {
  double old_mhz = answer->metrics.value[FTL_METRIC_sm_clock_mhz];
  int64_t mhz = rounded(old_mhz * w->factor);
  *factor = (double)mhz / old_mhz;
  ftl_text_add(change, "clock_mhz %.0f -> %" PRId64 ", whatever its power", old_mhz, mhz);
  return ftl_spec_set_int(&out->spec, "clock_mhz", mhz, error);
}

ftl_status ftl_what_if_make(int what_if_idx, const ftl_point *base, const ftl_prediction *answer, bool *applies,
                            ftl_point *out, ftl_arch **arch, ftl_text *change, double *factor, ftl_error *error) {
  const what_if *w = &what_ifs[what_if_idx];
  *arch = NULL;
  *out = *base;
  // The kernel stays: with more room tiles that gave way would be the defaults again, another kernel.
  ftl_spec_take_tiles(&out->spec, &answer->spec);
  *factor = 1;
  *applies = has_resource(w, base, answer);
  if (!*applies) return FTL_OK;
  if (w->keys[0].key == NULL) return make_clock(w, answer, out, change, factor, error);
  ftl_arch *copy = ftl_arch_create_copy(base->arch);
  if (copy == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a what-if");
  ftl_status status = change_keys(w, factor_to_ask(w, base->arch), copy, change, factor, error);
  if (status == FTL_OK) status = ftl_arch_check(copy, error);
  *applies = status != FTL_OK || *factor != 1;
  if (status != FTL_OK || !*applies) {
    ftl_arch_destroy(copy);
    return status;
  }
  *arch = copy;
  out->arch = copy;
  return FTL_OK;
}
