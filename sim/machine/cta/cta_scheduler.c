#include "machine/cta/cta_scheduler.h"

#include <stdlib.h>

#include "arch/topology.h"
#include "base/check.h"

struct ftl_cta_scheduler {
  const ftl_arch *arch;
  int64_t num_ctas, next_cta;
  int32_t ctas_per_sm, num_sms;
  int32_t fill_position;  // index into the placement sequence, over all rounds
  int32_t *order;         // SMs in placement order
  int64_t *gpc_free;      // cycle from which each GPC may start another CTA
};

// GPC after GPC, in each all its SMs (seen on H200: kernels/measurements/micro_launch.csv; there the first GPC changes
// from launch to launch, here it is always the first).
static void order_fill(const ftl_arch *arch, int32_t *order) {
  int32_t count = 0, num_sms = (int32_t)arch->chip_num_sms;
  for (int32_t gpc = 0; gpc < arch->chip_num_gpcs; gpc++)
    for (int32_t sm = 0; sm < num_sms; sm++)
      if (ftl_arch_gpc_of_sm(arch, sm) == gpc) order[count++] = sm;
  FTL_CHECK(count == num_sms, "placement order covers %d of %d SMs", count, num_sms);
}

ftl_status ftl_cta_scheduler_create(ftl_cta_scheduler **out, const ftl_arch *arch, int64_t num_ctas,
                                    int32_t ctas_per_sm, ftl_error *error) {
  *out = NULL;
  ftl_cta_scheduler *scheduler = calloc(1, sizeof *scheduler);
  if (!scheduler) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the CTA scheduler");
  scheduler->arch = arch;
  scheduler->num_ctas = num_ctas;
  scheduler->ctas_per_sm = ctas_per_sm;
  scheduler->num_sms = (int32_t)arch->chip_num_sms;
  scheduler->order = calloc((size_t)scheduler->num_sms, sizeof *scheduler->order);
  scheduler->gpc_free = calloc((size_t)arch->chip_num_gpcs, sizeof *scheduler->gpc_free);
  if (!scheduler->order || !scheduler->gpc_free) {
    ftl_cta_scheduler_destroy(scheduler);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the CTA scheduler");
  }
  order_fill(arch, scheduler->order);
  *out = scheduler;
  return FTL_OK;
}

void ftl_cta_scheduler_destroy(ftl_cta_scheduler *scheduler) {
  if (!scheduler) return;
  free(scheduler->order);
  free(scheduler->gpc_free);
  free(scheduler);
}

// A CTA starts no earlier than `cycle`, and one interval after the last start in its GPC.
static ftl_cta_start start_on(ftl_cta_scheduler *scheduler, int32_t sm, int32_t slot, int64_t cycle) {
  int64_t *gpc_free = &scheduler->gpc_free[ftl_arch_gpc_of_sm(scheduler->arch, sm)];
  if (*gpc_free > cycle) cycle = *gpc_free;
  *gpc_free = cycle + scheduler->arch->launch_cta_interval_cycles;
  return (ftl_cta_start){.cta = scheduler->next_cta++, .cycle = cycle, .sm = sm, .slot = slot};
}

bool ftl_cta_scheduler_try_fill(ftl_cta_scheduler *scheduler, ftl_cta_start *start) {
  int32_t slot = scheduler->fill_position / scheduler->num_sms;
  if (slot >= scheduler->ctas_per_sm || scheduler->next_cta >= scheduler->num_ctas) return false;
  int32_t sm = scheduler->order[scheduler->fill_position % scheduler->num_sms];
  scheduler->fill_position++;
  *start = start_on(scheduler, sm, slot, 0);
  return true;
}

bool ftl_cta_scheduler_try_refill(ftl_cta_scheduler *scheduler, int32_t sm, int32_t slot, int64_t cycle,
                                  ftl_cta_start *start) {
  if (scheduler->next_cta >= scheduler->num_ctas) return false;
  *start = start_on(scheduler, sm, slot, cycle + scheduler->arch->launch_cta_start_cycles);
  return true;
}

int64_t ftl_cta_scheduler_num_left(const ftl_cta_scheduler *scheduler) {
  return scheduler->num_ctas - scheduler->next_cta;
}

void ftl_cta_scheduler_skip(ftl_cta_scheduler *scheduler, int64_t num_ctas) {
  FTL_CHECK(num_ctas >= 0 && num_ctas <= ftl_cta_scheduler_num_left(scheduler), "cannot skip %lld CTAs",
            (long long)num_ctas);
  scheduler->next_cta += num_ctas;
}
