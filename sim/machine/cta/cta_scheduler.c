#include "machine/cta/cta_scheduler.h"

#include <stdlib.h>

#include "arch/arch_limits.h"
#include "arch/topology.h"
#include "base/check.h"

enum { MAX_CTAS_PER_SM = FTL_ARCH_MAX_sm_max_ctas, MAX_SMS = FTL_ARCH_MAX_chip_num_sms };
_Static_assert(MAX_CTAS_PER_SM <= 32, "an SM's free slots are the bits of a word");

struct ftl_cta_scheduler {
  const ftl_arch *arch;
  int64_t num_ctas, next_cta;
  int64_t full_rounds;  // rounds of the first fill for which the grid has enough CTAs
  int32_t ctas_per_sm, cluster_ctas, num_sms;
  int32_t fill_position;  // index into the placement sequence, over all rounds
  int32_t num_places;     // clusters of a round
  int32_t *order;         // SMs in placement order, GPC by GPC
  int32_t *first_sm;      // of each place of a round: where its SMs begin in `order`
  int32_t *last_round;    // the same of the places that the grid's rest takes, where it fills no round
  int32_t *first_of_gpc;  // where a GPC's SMs begin in `order`; num_gpcs + 1
  uint32_t *free_slots;   // per SM, a bit each: left by CTAs, while clusters wait for room
  int64_t *gpc_free;      // cycle from which each GPC may start another CTA
};

// Of a GPC's single TPCs, its last ones.
static bool is_single(const ftl_cta_scheduler *scheduler, int32_t gpc, int32_t sm_in_gpc) {
  return sm_in_gpc >= ftl_arch_sms_for_clusters(scheduler->arch, gpc, FTL_CTA_MAX_CLUSTER);
}

static void add_places_of_gpc(ftl_cta_scheduler *scheduler, int32_t gpc, bool of_single_tpcs) {
  int32_t cluster = scheduler->cluster_ctas, num_sms = ftl_arch_sms_for_clusters(scheduler->arch, gpc, cluster);
  for (int32_t in_gpc = 0; in_gpc + cluster <= num_sms; in_gpc += cluster)
    if (is_single(scheduler, gpc, in_gpc) == of_single_tpcs)
      scheduler->first_sm[scheduler->num_places++] = scheduler->first_of_gpc[gpc] + in_gpc;
}

// Single TPCs first, then GPC after GPC, in each all its SMs (seen on H200: kernels/measurements/micro_launch.csv,
// micro_grid_placement.csv; there the first GPC changes from launch to launch, here it is always the first). A round
// gives each cluster as many SMs in a row of one GPC as it has CTAs; single TPCs get only clusters that fit on one.
static void order_fill(ftl_cta_scheduler *scheduler) {
  const ftl_arch *arch = scheduler->arch;
  int32_t count = 0;
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++) {
    scheduler->first_of_gpc[gpc] = count;
    for (int32_t sm = 0; sm < scheduler->num_sms; sm++)
      if (ftl_arch_gpc_of_sm(arch, sm) == gpc) scheduler->order[count++] = sm;
  }
  scheduler->first_of_gpc[arch->chip_num_gpcs] = count;
  FTL_CHECK(count == scheduler->num_sms, "placement order covers %d of %d SMs", count, scheduler->num_sms);
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++) add_places_of_gpc(scheduler, gpc, true);
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++) add_places_of_gpc(scheduler, gpc, false);
}

// When a place has its turn in a round that is not full: single TPCs first, then the first TPC of every GPC, the second
// of every GPC and so on, and when all TPCs have a CTA their other SMs (kernels/measurements/micro_grid_placement.csv).
static int32_t turn_of(const ftl_cta_scheduler *scheduler, int32_t first_sm) {
  const ftl_arch *arch = scheduler->arch;
  int32_t gpc = ftl_arch_gpc_of_sm(arch, scheduler->order[first_sm]);
  int32_t in_gpc = first_sm - scheduler->first_of_gpc[gpc], tpc_sms = (int32_t)arch->chip_sms_per_tpc;
  if (is_single(scheduler, gpc, in_gpc)) return 0;
  int32_t rank_in_tpc = scheduler->cluster_ctas < tpc_sms ? in_gpc % tpc_sms : 0;
  return 1 + rank_in_tpc * scheduler->num_sms + in_gpc;
}

// The places whose turn comes before the grid is used up, in the order of a full round: a smaller grid has CTAs on
// every GPC.
static void order_last_round(ftl_cta_scheduler *scheduler) {
  int32_t num_places = scheduler->num_places, turns[MAX_SMS];
  int64_t num_clusters = scheduler->num_ctas / scheduler->cluster_ctas, count = 0;
  scheduler->full_rounds = num_clusters / num_places;
  for (int32_t i = 0; i < num_places; i++) turns[i] = turn_of(scheduler, scheduler->first_sm[i]);
  for (int32_t i = 0; i < num_places; i++) {
    int64_t before = 0;
    for (int32_t other = 0; other < num_places; other++)
      before += turns[other] < turns[i] || (turns[other] == turns[i] && other < i);
    if (before < num_clusters % num_places) scheduler->last_round[count++] = scheduler->first_sm[i];
  }
}

static bool allocate(ftl_cta_scheduler *scheduler) {
  size_t num_sms = (size_t)scheduler->num_sms, num_gpcs = (size_t)scheduler->arch->chip_num_gpcs;
  scheduler->order = calloc(num_sms, sizeof *scheduler->order);
  scheduler->first_sm = calloc(num_sms, sizeof *scheduler->first_sm);
  scheduler->last_round = calloc(num_sms, sizeof *scheduler->last_round);
  scheduler->first_of_gpc = calloc(num_gpcs + 1, sizeof *scheduler->first_of_gpc);
  scheduler->free_slots = calloc(num_sms, sizeof *scheduler->free_slots);
  scheduler->gpc_free = calloc(num_gpcs, sizeof *scheduler->gpc_free);
  return scheduler->order && scheduler->first_sm && scheduler->last_round && scheduler->first_of_gpc &&
         scheduler->free_slots && scheduler->gpc_free;
}

ftl_status ftl_cta_scheduler_create(ftl_cta_scheduler **out, const ftl_arch *arch, int64_t num_ctas,
                                    int32_t ctas_per_sm, int32_t cluster_ctas, ftl_error *error) {
  *out = NULL;
  ftl_cta_scheduler *scheduler = calloc(1, sizeof *scheduler);
  if (!scheduler) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the CTA scheduler");
  scheduler->arch = arch;
  scheduler->num_ctas = num_ctas;
  scheduler->ctas_per_sm = ctas_per_sm;
  scheduler->cluster_ctas = cluster_ctas;
  scheduler->num_sms = (int32_t)arch->chip_num_sms;
  FTL_CHECK(cluster_ctas >= 1 && cluster_ctas <= FTL_CTA_MAX_CLUSTER && num_ctas % cluster_ctas == 0 &&
                ctas_per_sm <= MAX_CTAS_PER_SM,
            "clusters of %d CTAs, %lld in all, %d an SM", cluster_ctas, (long long)num_ctas, ctas_per_sm);
  if (!allocate(scheduler)) {
    ftl_cta_scheduler_destroy(scheduler);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the CTA scheduler");
  }
  order_fill(scheduler);
  order_last_round(scheduler);
  *out = scheduler;
  return FTL_OK;
}

void ftl_cta_scheduler_destroy(ftl_cta_scheduler *scheduler) {
  if (!scheduler) return;
  free(scheduler->order);
  free(scheduler->first_sm);
  free(scheduler->last_round);
  free(scheduler->first_of_gpc);
  free(scheduler->free_slots);
  free(scheduler->gpc_free);
  free(scheduler);
}

int64_t ftl_cta_num_resident(const ftl_arch *arch, int32_t ctas_per_sm, int32_t cluster_ctas) {
  int64_t num_sms = 0;
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++)
    num_sms += ftl_arch_sms_for_clusters(arch, gpc, cluster_ctas) / cluster_ctas * cluster_ctas;
  return num_sms * ctas_per_sm;
}

// The next cluster starts on these SMs no earlier than `cycle`; its GPC starts a CTA an interval, and the CTAs of a
// cluster begin together, with the last.
static int32_t start_on(ftl_cta_scheduler *scheduler, const int32_t *sms, const int32_t *slots, int64_t cycle,
                        ftl_cta_start *starts) {
  int64_t *gpc_free = &scheduler->gpc_free[ftl_arch_gpc_of_sm(scheduler->arch, sms[0])];
  int64_t interval = scheduler->arch->launch_cta_interval_cycles;
  if (*gpc_free > cycle) cycle = *gpc_free;
  cycle += (scheduler->cluster_ctas - 1) * interval;
  *gpc_free = cycle + interval;
  for (int32_t i = 0; i < scheduler->cluster_ctas; i++)
    starts[i] = (ftl_cta_start){.cta = scheduler->next_cta++, .cycle = cycle, .sm = sms[i], .slot = slots[i]};
  return scheduler->cluster_ctas;
}

int32_t ftl_cta_scheduler_fill(ftl_cta_scheduler *scheduler, ftl_cta_start starts[FTL_CTA_MAX_CLUSTER]) {
  int32_t slot = scheduler->fill_position / scheduler->num_places, slots[FTL_CTA_MAX_CLUSTER];
  if (slot >= scheduler->ctas_per_sm || scheduler->next_cta >= scheduler->num_ctas) return 0;
  const int32_t *places = slot < scheduler->full_rounds ? scheduler->first_sm : scheduler->last_round;
  int32_t first = places[scheduler->fill_position % scheduler->num_places];
  scheduler->fill_position++;
  for (int32_t i = 0; i < scheduler->cluster_ctas; i++) slots[i] = slot;
  return start_on(scheduler, &scheduler->order[first], slots, 0, starts);
}

int32_t ftl_cta_scheduler_refill(ftl_cta_scheduler *scheduler, int32_t sm, int32_t slot, int64_t cycle,
                                 ftl_cta_start starts[FTL_CTA_MAX_CLUSTER]) {
  if (scheduler->next_cta >= scheduler->num_ctas) return 0;
  scheduler->free_slots[sm] |= 1u << slot;
  int32_t gpc = ftl_arch_gpc_of_sm(scheduler->arch, sm), count = 0;
  int32_t sms[FTL_CTA_MAX_CLUSTER], slots[FTL_CTA_MAX_CLUSTER];
  for (int32_t i = scheduler->first_of_gpc[gpc]; i < scheduler->first_of_gpc[gpc + 1]; i++) {
    if (scheduler->free_slots[scheduler->order[i]] == 0 || count == scheduler->cluster_ctas) continue;
    sms[count] = scheduler->order[i];
    slots[count] = __builtin_ctz(scheduler->free_slots[sms[count]]);
    count++;
  }
  if (count < scheduler->cluster_ctas) return 0;
  for (int32_t i = 0; i < count; i++) scheduler->free_slots[sms[i]] &= ~(1u << slots[i]);
  return start_on(scheduler, sms, slots, cycle + scheduler->arch->launch_cta_start_cycles, starts);
}

int64_t ftl_cta_scheduler_num_left(const ftl_cta_scheduler *scheduler) {
  return scheduler->num_ctas - scheduler->next_cta;
}

void ftl_cta_scheduler_skip(ftl_cta_scheduler *scheduler, int64_t num_ctas) {
  FTL_CHECK(num_ctas >= 0 && num_ctas <= ftl_cta_scheduler_num_left(scheduler), "cannot skip %lld CTAs",
            (long long)num_ctas);
  scheduler->next_cta += num_ctas;
}
