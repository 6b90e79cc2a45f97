// Programs drawn at random: what must not change a counter does not.
#include <criterion/criterion.h>
#include <string.h>

#include "rig.h"

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % below;
}

static void add_products(rig *r, uint32_t *state) {
  uint32_t count = 1 + draw(state, 3);
  for (uint32_t i = 0; i < count; i++) {
    ftl_warp_inst *product = rig_add(r, FTL_OP_WGMMA, -1, -1);
    product->arg = (uint16_t)(8 << draw(state, 6));
    product->ring_a = draw(state, 2) ? 0 : FTL_NO_RING;
    product->ring_b = 0;
  }
  rig_add(r, FTL_OP_WGMMA_COMMIT, -1, -1);
  rig_add(r, FTL_OP_WGMMA_WAIT, -1, -1)->arg = (uint16_t)draw(state, 2);
}

static void add_random(rig *r, uint32_t *state, const uint16_t *accesses) {
  static const ftl_opcode plain[] = {FTL_OP_FFMA, FTL_OP_IADD,  FTL_OP_IMAD, FTL_OP_MUFU,
                                     FTL_OP_CVT,  FTL_OP_HFMA2, FTL_OP_MMA};
  static const ftl_opcode shared[] = {FTL_OP_LDS, FTL_OP_LDSM, FTL_OP_STS, FTL_OP_SHFL};
  static const ftl_opcode lines[] = {FTL_OP_LDG, FTL_OP_STG, FTL_OP_CP_ASYNC};
  int32_t token = (int32_t)draw(state, 32), source = (int32_t)draw(state, 40);
  ftl_warp_inst *inst;
  switch (draw(state, 12)) {
    case 0:
      inst = rig_add(r, shared[draw(state, 4)], token, source < 32 ? source : -1);
      inst->wavefronts = (uint16_t)(1 + draw(state, 8));
      break;
    case 1:
      inst = rig_add(r, lines[draw(state, 3)], token, source < 32 ? source : -1);
      inst->access = accesses[draw(state, 4)];
      inst->wavefronts = 2;
      if (draw(state, 2)) inst->flags = FTL_INST_BYPASS_L1;
      break;
    case 2:
      rig_add(r, FTL_OP_CP_COMMIT, -1, -1);
      rig_add(r, FTL_OP_CP_WAIT, -1, -1)->arg = (uint16_t)draw(state, 3);
      return;
    case 3:
      inst = rig_add(r, FTL_OP_BAR_SYNC, -1, -1);
      break;
    case 4:
      if (r->program.roles[0].num_warps % 4 == 0) {
        add_products(r, state);
        return;
      }
      // fall through
    default:
      inst = rig_add(r, plain[draw(state, 7)], token, source < 32 ? source : -1);
      inst->repeat = (uint8_t)(1 + (draw(state, 2) ? draw(state, 24) : 0));
      break;
  }
}

static rig *random_rig(uint32_t seed) {
  static const char *const policies[] = {"goy", "gol", "gto", "gty", "lrr"};
  uint32_t state = seed * 2654435761u + 1;
  int32_t num_warps = (int32_t)(1 + draw(&state, 9));
  rig *r = rig_create(seed % 2 ? num_warps : 4 + num_warps / 5 * 4);  // whole warpgroups may multiply
  r->program.product.mma_dispatch_cycles = (int32_t)(1 + draw(&state, 8));
  r->arch.tensor_wgmma_dispatch_cycles = 1 + draw(&state, 3);
  r->arch.tensor_wgmma_window_cycles = 1 + draw(&state, 40);
  strcpy(r->arch.sm_scheduler, policies[draw(&state, 5)]);
  r->num_slots = 1 + draw(&state, 3);
  r->arch.l1_max_pending_lines = 2 + draw(&state, 20);
  r->arch.l1_max_pending_load_lines = 2 + draw(&state, 40);
  r->arch.l1_max_warp_loads = draw(&state, 5);
  r->arch.l1_warp_load_release_cycles = draw(&state, 80);
  r->arch.mio_lsu_queue_entries = draw(&state, 4);
  r->arch.shared_barrier_defers = draw(&state, 2);
  uint16_t accesses[4];
  for (int i = 0; i < 4; i++) accesses[i] = rig_access(r, (int32_t)draw(&state, 64), (int32_t)(1 + draw(&state, 4)));
  int32_t loop = rig_loop(r, 0, 0, 3);
  rig_add_tile(r);
  int32_t length = (int32_t)(10 + draw(&state, 50));
  for (int32_t i = 0; i < length; i++) add_random(r, &state, accesses);
  rig_add(r, FTL_OP_BRA, -1, -1)->flags = FTL_INST_LOOP_BRANCH;
  rig_end_loop(r, loop);
  rig_add(r, FTL_OP_EXIT, -1, -1);
  return r;
}

typedef struct outcome {
  int64_t end;
  ftl_sm_counters counters;
  int32_t num_requests;
  uint64_t request_times;  // a hash of times and lines
} outcome;

static outcome run(uint32_t seed, bool bulk, bool observe, int64_t window) {
  rig *r = random_rig(seed);
  r->bulk = bulk;
  r->observe = observe;
  r->window = window;
  outcome o = {.end = rig_run(r, (int32_t)r->num_slots)};
  o.counters = *rig_counters(r);
  o.num_requests = r->num_requests;
  for (int32_t i = 0; i < r->num_requests; i++)
    o.request_times = o.request_times * 31 + (uint64_t)r->requests[i].time * 7 + r->requests[i].line;
  rig_destroy(r);
  return o;
}

static void expect_same(uint32_t seed, const outcome *a, const outcome *b) {
  const int64_t *x = (const int64_t *)&a->counters, *y = (const int64_t *)&b->counters;
  cr_assert_eq(a->end, b->end, "seed %u: end %lld, %lld", seed, (long long)a->end, (long long)b->end);
  for (size_t i = 0; i < sizeof a->counters / sizeof *x; i++)
    cr_assert_eq(x[i], y[i], "seed %u: counter %zu is %lld, %lld", seed, i, (long long)x[i], (long long)y[i]);
  cr_assert_eq(a->num_requests, b->num_requests);
  cr_assert_eq(a->request_times, b->request_times);
}

enum { NUM_SEEDS = 300 };

Test(timing_sm_random, runs_as_one_event_change_no_counter) {
  for (uint32_t seed = 0; seed < NUM_SEEDS; seed++) {
    outcome single = run(seed, false, false, 100), bulk = run(seed, true, false, 100);
    expect_same(seed, &single, &bulk);
  }
}

Test(timing_sm_random, the_length_of_an_advance_changes_no_counter) {
  for (uint32_t seed = 0; seed < NUM_SEEDS; seed++) {
    outcome longer = run(seed, true, false, 200), shorter = run(seed, true, false, 7);
    expect_same(seed, &longer, &shorter);
  }
}

Test(timing_sm_random, an_observer_changes_no_counter) {
  for (uint32_t seed = 0; seed < NUM_SEEDS; seed++) {
    outcome seen = run(seed, true, true, 100), unseen = run(seed, true, false, 100);
    expect_same(seed, &seen, &unseen);
  }
}
