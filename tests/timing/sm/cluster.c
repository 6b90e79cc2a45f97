// CTAs of a cluster that share loads: two SMs side by side, with a memory of fixed latency that serves multicast.
#include <criterion/criterion.h>

#include "rig.h"

enum { PAIR = 2, LATENCY = 200, PEER_LATENCY = 50, WINDOW = 50, MAX_LOG = 256 };

typedef struct pair_issue {
  int64_t cycle;
  int32_t sm, warp;
  const ftl_warp_inst *inst;
} pair_issue;

typedef struct pair {
  rig *r;  // its program, arch and requests
  ftl_sm *sms[PAIR];
  struct pair_log {
    struct pair *p;
    int32_t sm;
  } logs[PAIR];
  pair_issue issues[MAX_LOG];
  int32_t num_issues;
} pair;

// Role 0: a producer warp; role 1: a consumer warp. `fills` tiles of four lines through a ring of `stages`, loaded by
// two CTAs together.
static rig *shared_pipeline(int32_t fills, int32_t stages) {
  rig *r = rig_create(1);
  r->arch.tma_peer_latency_cycles = PEER_LATENCY;
  uint16_t access = rig_access(r, 0, 4);
  rig_ring(r, stages, 1);
  r->program.rings[0].multicast = (ftl_multicast){2, 1};
  r->tile.cluster_ctas = 2;
  int32_t loop = rig_loop(r, 0, 0, fills);               // 0
  rig_add_tile(r);                                       // 1
  rig_add(r, FTL_OP_MBAR_ACQUIRE, -1, -1)->arg = 0;      // 2
  rig_add(r, FTL_OP_MBAR_EXPECT, -1, -1)->arg = 0;       // 3
  rig_add(r, FTL_OP_TMA_LOAD, -1, -1)->access = access;  // 4
  rig_add(r, FTL_OP_MBAR_ADVANCE, -1, -1)->arg = 0;      // 5
  rig_end_loop(r, loop);                                 // 6
  rig_add(r, FTL_OP_EXIT, -1, -1);                       // 7
  rig_role(r, 1);
  loop = rig_loop(r, 1, 0, fills);                   // 0
  rig_add(r, FTL_OP_MBAR_WAIT, -1, -1)->arg = 0;     // 1
  rig_add(r, FTL_OP_FFMA, 0, -1);                    // 2
  rig_add(r, FTL_OP_MBAR_RELEASE, -1, -1)->arg = 0;  // 3
  rig_end_loop(r, loop);                             // 4
  rig_add(r, FTL_OP_EXIT, -1, -1);                   // 5
  return r;
}

static void log_issue(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                      const ftl_warp_inst *inst) {
  (void)slot, (void)cta;
  struct pair_log *log = context;
  cr_assert_lt(log->p->num_issues, MAX_LOG);
  log->p->issues[log->p->num_issues++] = (pair_issue){.cycle = cycle, .sm = log->sm, .warp = warp, .inst = inst};
}

// What the SMs asked for in a window: to the one that asked, and to those that get it too.
static void answer(pair *p, int32_t sm) {
  int32_t count;
  const ftl_mem_request *requests = ftl_sm_requests(p->sms[sm], &count);
  for (int32_t i = 0; i < count; i++) {
    p->r->requests[p->r->num_requests++] = requests[i];
    ftl_sm_deliver(p->sms[sm],
                   &(ftl_mem_reply){.time = requests[i].time + LATENCY, .transaction = requests[i].transaction});
    for (int32_t k = 0; requests[i].peers && k < requests[i].peers->count; k++) {
      ftl_mem_message line = {.time = requests[i].time + LATENCY,
                              .cluster = requests[i].peers->cluster,
                              .to = requests[i].peers->peers[k],
                              .stage = requests[i].stage,
                              .kind = FTL_MEM_PEER_LINE};
      ftl_sm_receive(p->sms[line.to.sm], &line);
    }
  }
  const ftl_mem_message *messages = ftl_sm_messages(p->sms[sm], &count);
  for (int32_t i = 0; i < count; i++) ftl_sm_receive(p->sms[messages[i].to.sm], &messages[i]);
}

// CTA i runs on SM i from starts[i] on.
static void run_pair(pair *p, const int64_t starts[PAIR]) {
  ftl_error error;
  static const ftl_mem_peer members[PAIR] = {{.sm = 0}, {.sm = 1}};
  for (int32_t i = 0; i < PAIR; i++) {
    ftl_sm_config config = {.arch = &p->r->arch, .program = &p->r->program, .sm_idx = i, .num_slots = 1};
    cr_assert_eq(ftl_sm_create(&p->sms[i], &config, &error), FTL_OK, "%s", error.message);
    p->logs[i] = (struct pair_log){p, i};
    ftl_sm_observe(p->sms[i], log_issue, &p->logs[i]);
    ftl_sm_launch(p->sms[i], 0, i, starts[i]);
  }
  for (int32_t i = 0; i < PAIR; i++) ftl_sm_join(p->sms[i], 0, members);
  for (int64_t now = 0; ftl_sm_is_busy(p->sms[0]) || ftl_sm_is_busy(p->sms[1]); now += WINDOW) {
    cr_assert_lt(now, 100000, "stuck");
    for (int32_t i = 0; i < PAIR; i++) ftl_sm_advance(p->sms[i], now + WINDOW);
    for (int32_t i = 0; i < PAIR; i++) answer(p, i);
  }
}

static void pair_fini(pair *p) {
  for (int32_t i = 0; i < PAIR; i++) ftl_sm_destroy(p->sms[i]);
  rig_destroy(p->r);
}

// The cycle in which the instruction with that index of the role's code issued on an SM, n-th time from 0.
static int64_t cycle_of(const pair *p, int32_t sm, int32_t role, int32_t inst, int32_t nth) {
  const ftl_warp_inst *wanted = &p->r->insts[p->r->program.roles[role].first_inst + inst];
  for (int32_t i = 0; i < p->num_issues; i++)
    if (p->issues[i].sm == sm && p->issues[i].inst == wanted && nth-- == 0) return p->issues[i].cycle;
  return -1;
}

// TMA_LOAD issues at 11 (tma.c). Each copies two of the four lines, at 51 and 52; on both SMs two lines come at 251 and
// two at 252, are written a cycle each, the last at 255, and the consumer goes on at 265: the whole tile for both, each
// line asked for once.
Test(timing_sm_cluster, each_copies_its_share_and_both_get_the_tile) {
  pair p = {.r = shared_pipeline(1, 2)};
  run_pair(&p, (int64_t[]){0, 0});
  cr_assert_eq(p.r->num_requests, 4);
  for (int32_t i = 0; i < 4; i++) {
    cr_expect_eq(p.r->requests[i].time, 51 + i % 2);
    cr_expect_eq(p.r->requests[i].sm, i / 2);
    cr_expect_eq(p.r->requests[i].line, (uint64_t)(2 * i), "rows are 256 bytes apart");
  }
  for (int32_t sm = 0; sm < 2; sm++) cr_expect_eq(cycle_of(&p, sm, 1, 2, 0), 265, "SM %d", sm);
  pair_fini(&p);
}

// CTA 1 starts 100 cycles later. Its lines come at 351 and 352: CTA 0's tile is full with the last, written at 353, and
// its consumer goes on at 363.
Test(timing_sm_cluster, a_stage_is_full_when_the_lines_of_all_have_come) {
  pair p = {.r = shared_pipeline(1, 2)};
  run_pair(&p, (int64_t[]){0, 100});
  for (int32_t sm = 0; sm < 2; sm++) cr_expect_eq(cycle_of(&p, sm, 1, 2, 0), 363, "SM %d", sm);
  pair_fini(&p);
}

// A ring of one stage: both consumers go on at 265, release at 266; the other's arrival takes 50 more: 316. The
// producers pass their ACQUIRE 10 later, at 326; alone it would be 276.
Test(timing_sm_cluster, a_stage_is_free_when_the_readers_of_all_have_released_it) {
  pair p = {.r = shared_pipeline(2, 1)};
  run_pair(&p, (int64_t[]){0, 0});
  for (int32_t sm = 0; sm < 2; sm++) cr_expect_eq(cycle_of(&p, sm, 0, 3, 1), 326, "SM %d", sm);
  pair_fini(&p);
}

// The slower of two readers decides for both producers: its release at 364 reaches the other SM at 414, and the
// other's, of the same cycle, comes to it then too.
Test(timing_sm_cluster, the_slowest_reader_of_a_cluster_holds_up_all_producers) {
  pair p = {.r = shared_pipeline(2, 1)};
  run_pair(&p, (int64_t[]){0, 100});
  for (int32_t sm = 0; sm < 2; sm++) cr_expect_eq(cycle_of(&p, sm, 0, 3, 1), 424, "SM %d", sm);
  pair_fini(&p);
}

// An SM alone copies for both at twice the rate: lines at 51, 51, 52, 52; and takes as long as each of the two does.
Test(timing_sm_cluster, an_sm_alone_takes_the_time_of_one_of_two) {
  rig *r = shared_pipeline(2, 1);
  r->is_alone = true;
  rig_run(r, 1);
  cr_assert_eq(r->num_requests, 8);
  for (int32_t i = 0; i < 4; i++) cr_expect_eq(r->requests[i].time, 51 + i / 2);
  cr_expect_eq(rig_cycle(r, 1, 2, 0), 265);
  cr_expect_eq(rig_cycle(r, 0, 3, 1), 326);
  rig_destroy(r);
}
