// Greedy policies go on with the warp that issued last; else the oldest, or the youngest: order of arrival on the SM,
// and within a CTA of warp index. Within a CTA the youngest is what Huerta et al. find on Turing to Blackwell
// (Analyzing Modern NVIDIA GPU cores, MICRO 2025, CGGTY). On the H200 the CTA that came first goes first, whatever pipe
// its warps wait for, and warps of a CTA that do the same end together (kernels/measurements/micro_stream_pairs.csv,
// micro_scheduler.csv): greedy from one cycle to the next, and over two for a while, and in a row of mma.syncs; then of
// the oldest CTA the longest waiting.
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

// Its warp had the pipe last, and has issued nothing since.
static bool follows_a_product(const sm_subcore *sc, int32_t position) {
  return sc->pipe[position] == FTL_SM_PIPE_TENSOR && sc->pipe_taker[FTL_SM_PIPE_TENSOR] == position &&
         sc->warps[position]->last_pipe == FTL_SM_PIPE_TENSOR;
}

// In the cycle before, or two cycles before and its code lets nobody else go first. ptxas marks stall counts of three
// cycles and more, and of those of two in a row every sixth, as places to go to another warp; but for mma.syncs, whose
// count is what their pipe takes: one behind another goes on as soon as it is free (micro_mma_turns.csv).
static bool has_just_issued(const sm_subcore *sc, uint64_t eligible) {
  if (!goes_on(sc, eligible)) return false;
  int64_t distance = sc->eligible_at - sc->last_issue;
  if (distance == 1 || (distance == 2 && sm_paced(sc) < SM_YIELD_INSTS - 1)) return true;
  return follows_a_product(sc, sc->last) && sc->eligible_at == sc->pipe_free[FTL_SM_PIPE_TENSOR];
}

// Of mma.syncs the one that follows the last, whoever has issued something else meanwhile, then the one that has waited
// longest, for its pipe too; else by CTA, and within it by how long the instruction has waited.
static bool goes_before(const sm_subcore *sc, int32_t a, int32_t b) {
  bool are_products = sc->pipe[a] == FTL_SM_PIPE_TENSOR && sc->pipe[b] == FTL_SM_PIPE_TENSOR;
  bool are_of_one_cta = sc->warps[a]->slot == sc->warps[b]->slot;
  if (are_products && follows_a_product(sc, a) != follows_a_product(sc, b)) return follows_a_product(sc, a);
  if ((are_of_one_cta || are_products) && sc->ready[a] != sc->ready[b]) return sc->ready[a] < sc->ready[b];
  return sc->age[a] < sc->age[b];
}

static int32_t pick_longest_waiting(const sm_subcore *sc, uint64_t eligible) {
  if (has_just_issued(sc, eligible)) return sc->last;
  int32_t best = __builtin_ctzll(eligible);
  for (eligible &= eligible - 1; eligible; eligible &= eligible - 1) {
    int32_t position = __builtin_ctzll(eligible);
    if (goes_before(sc, position, best)) best = position;
  }
  return best;
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
  } policies[] = {{"goy", {pick_oldest, SM_NEVER, true, false}},
                  {"gol", {pick_longest_waiting, 1, true, true}},
                  {"gto", {pick_oldest, SM_NEVER, false, false}},
                  {"gty", {pick_youngest, SM_NEVER, false, false}},
                  {"lrr", {pick_next, 0, false, false}}};
  for (size_t i = 0; i < sizeof policies / sizeof *policies; i++)
    if (strcmp(policies[i].name, name) == 0) return &policies[i].policy;
  return NULL;
}
