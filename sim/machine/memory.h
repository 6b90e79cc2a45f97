// The memory system: network (NoC), L2 and DRAM wired together, in windows of time.
//
// The engine collects the requests that all SMs made in SM cycles [from, until), sorted by (time, sm, push order), and
// submits them; advance then works out everything that these decide, and gives replies whose times lie at or after
// `until`. The window must not exceed ftl_memory_max_window_cycles. How a stream of requests is cut into windows
// changes no reply and no counter. Models: what noc/, l2/ and dram/ model, hit-on-miss merging, the request coalescer,
// loaded latency. Does not model: finite queues between the parts (the SMs' limits on what they have in flight bound
// them), TLBs. Numbers: noc.*, l2.*, dram.*, clock.* keys; docs/model_noc.md, model_l2.md, model_dram.md.
#ifndef FTL_MACHINE_MEMORY_H
#define FTL_MACHINE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/clock.h"
#include "machine/mem.h"

typedef struct ftl_memory ftl_memory;

typedef struct ftl_memory_counters {
  int64_t dram_read_bytes, dram_write_bytes;  // what crossed the DRAM interface, whole sectors
  int64_t l2_sectors_from_sms;                // lts__t_sectors_srcunit_tex.sum: after the request coalescer
  int64_t l2_read_sectors, l2_write_sectors;  // of these
  int64_t l2_hit_sectors, l2_miss_sectors;    // of these, at the SM's own side (a write counts as a hit; so does a read
                                              // of a sector on its way)
  int64_t l2_fabric_sectors;                  // lookups of traffic between the sides (reads and writes), beside those
  int64_t l2_fabric_hit_sectors;              // of these: present at home
  int64_t coalesced_sectors;                  // served by another SM's request
  int64_t dirty_sectors;                      // left in L2 now
  int64_t dram_row_hits, dram_row_misses;     // column accesses to an open row, and rows opened
  int64_t local_sectors;
} ftl_memory_counters;

// Clean, empty and idle, at SM cycle 0. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_memory_create(ftl_memory **out, const ftl_arch *arch, int64_t sm_khz, ftl_error *error);
void ftl_memory_destroy(ftl_memory *memory);
// The longest window (SM cycles; at least 1) in which no SM can hear of what happens within it.
int64_t ftl_memory_max_window_cycles(const ftl_memory *memory);
// In order, as above: of SM cycles [from, until) of the advance that follows.
void ftl_memory_submit(ftl_memory *memory, const ftl_mem_request *requests, int64_t count);
// `until`: SM cycles, further than the last by no more than the longest window.
void ftl_memory_advance(ftl_memory *memory, int64_t until);
// Replies to all SMs found by the last advance, in the order in which they were found: those of one SM nearly in order
// of time.
const ftl_mem_reply *ftl_memory_replies(const ftl_memory *memory, int64_t *count);
// Data of multicast copies for the other CTAs of their clusters, found by the last advance.
const ftl_mem_message *ftl_memory_messages(const ftl_memory *memory, int64_t *count);
// Every request answered, and every byte that left L2 written to DRAM.
bool ftl_memory_is_idle(const ftl_memory *memory);
// The end of a launch: L2 writes back what is dirty beyond its share.
void ftl_memory_settle(ftl_memory *memory);
// Since it was created or restarted.
ftl_memory_counters ftl_memory_counters_get(const ftl_memory *memory);

// L2 as a write of `bytes` to other tensors before the launch leaves it (l2/tags.h): in a stream another kernel's, and
// behind Nsight Compute's --cache-control all the profiler's own. A new memory's L2 is clean and empty.
void ftl_memory_foul(ftl_memory *memory, int64_t bytes);
// Of the lines that the launch accesses as to be evicted last, thousandths that are: l2/tags.h.
void ftl_memory_set_hit_ratio(ftl_memory *memory, int64_t milli);
// A new launch on the same cache contents: time starts at 0 again, counters too; nothing may be in flight.
void ftl_memory_restart(ftl_memory *memory);

#endif
