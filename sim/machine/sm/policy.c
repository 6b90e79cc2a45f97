// Greedy policies go on with the warp that issued last; else the oldest, or the youngest: order of arrival on the SM,
// and within a CTA of warp index. Within a CTA the youngest is what Huerta et al. find on Turing to Blackwell
// (Analyzing Modern NVIDIA GPU cores, MICRO 2025, CGGTY). On the H200 the CTA that came first is ahead of those that
// came after it, whatever their slots, and within it the youngest warp (kernels/measurements/micro_warp_order.csv):
// "goy".
#include "machine/sm/policy.h"

#include <string.h>

static bool goes_on(const sm_subcore *sc, uint64_t eligible) { return eligible >> sc->last & 1; }

static int32_t extreme_age(const sm_subcore *sc, uint64_t eligible, bool youngest) {
  int32_t best = __builtin_ctzll(eligible);
  for (eligible &= eligible - 1; eligible; eligible &= eligible - 1) {
    int32_t position = __builtin_ctzll(eligible);
    if ((sc->age[position] > sc->age[best]) == youngest) best = position;
  }
  return best;
}

static int32_t pick_oldest(const sm_subcore *sc, uint64_t eligible) {
  return goes_on(sc, eligible) ? sc->last : extreme_age(sc, eligible, false);
}

static int32_t pick_youngest(const sm_subcore *sc, uint64_t eligible) {
  return goes_on(sc, eligible) ? sc->last : extreme_age(sc, eligible, true);
}

// The first after the one that issued last, by position.
static int32_t pick_next(const sm_subcore *sc, uint64_t eligible) {
  uint64_t after = sc->last < 63 ? eligible >> (sc->last + 1) << (sc->last + 1) : 0;
  return __builtin_ctzll(after ? after : eligible);
}

const sm_policy *ftl_sm_policy_find(const char *name) {
  static const struct {
    const char *name;
    sm_policy policy;
  } policies[] = {{"goy", {pick_oldest, true, true}},
                  {"gto", {pick_oldest, true, false}},
                  {"gty", {pick_youngest, true, false}},
                  {"lrr", {pick_next, false, false}}};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
    if (strcmp(policies[i].name, name) == 0) return &policies[i].policy;
  return NULL;
}
