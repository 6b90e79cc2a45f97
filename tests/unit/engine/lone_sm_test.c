// How the lines of a tile come to an SM that is alone.
#include "engine/sampled/lone_sm.h"

#include "engine/sampled/traffic.h"
#include "fixture.h"

enum { SM_KHZ = 1200000 };

static void expect(const ftl_arch *arch, int64_t latency, int64_t near, int64_t far) {
  ftl_lone_latency l = ftl_lone_latency_of(arch, SM_KHZ, latency);
  cr_expect_eq(l.near_cycles, near, "%lld: near %lld, not %lld", (long long)latency, (long long)l.near_cycles,
               (long long)near);
  cr_expect_eq(l.far_cycles, far, "%lld: far %lld, not %lld", (long long)latency, (long long)l.far_cycles,
               (long long)far);
  cr_expect_eq(l.last_cycles, latency);
  int64_t hit, crossing, miss;
  ftl_traffic_latencies(arch, SM_KHZ, &hit, &crossing, &miss);
  cr_expect_eq(l.local_cycles, hit, "lines of local memory are in L2 whatever tiles are waited for");
}

// Half of the lines have their home on the SM's side: they save the crossing there and back, once the tile takes so
// long. A refresh holds up the last lines alone; what is late by more queues, and all of it.
Test(unit_engine_lone_sm, lines_come_by_their_side_and_the_last_ones_wait_for_refreshes) {
  ftl_arch *arch = shipped_arch("h200");
  int64_t hit, far, miss, refreshing = ftl_traffic_refreshing_latency(arch, SM_KHZ);
  ftl_traffic_latencies(arch, SM_KHZ, &hit, &far, &miss);
  int64_t unloaded = hit + far + miss;
  cr_assert(far > 10 && refreshing > unloaded);
  expect(arch, hit - 10, hit - 10, hit - 10);
  expect(arch, hit, hit, hit);
  expect(arch, hit + 10, hit, hit + 10);
  expect(arch, hit + far, hit, hit + far);
  expect(arch, unloaded, unloaded - far, unloaded);
  expect(arch, unloaded + 1, unloaded - far, unloaded);
  expect(arch, refreshing, unloaded - far, unloaded);
  expect(arch, refreshing + 1, refreshing + 1 - far, refreshing + 1);
  ftl_arch_destroy(arch);
}

// L2 of one side: all lines come together, but for those that wait for a refresh.
Test(unit_engine_lone_sm, one_side_has_no_other) {
  ftl_arch *arch = shipped_arch("rtx4090");
  int64_t hit, far, miss;
  ftl_traffic_latencies(arch, SM_KHZ, &hit, &far, &miss);
  cr_assert_eq(far, 0);
  expect(arch, hit + 10, hit + 10, hit + 10);
  expect(arch, hit + miss, hit + miss, hit + miss);
  expect(arch, hit + miss + 1, hit + miss, hit + miss);
  ftl_arch_destroy(arch);
}
