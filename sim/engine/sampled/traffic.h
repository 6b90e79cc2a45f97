// What tile loads and stores do to L2 and DRAM, on a sample of L2's sets, and how long a load takes.
// Models: L2 contents exactly on the sampled sets (l2/tags.h); L2, what it takes in, side-to-side and DRAM bandwidth as
//   servers of the whole chip, and of what single tiles read each DRAM channel; loads that wait for a fill in flight;
//   the request coalescer between requests of whole tiles.
// Does not model: imbalance between slices, bank conflicts in DRAM (its sustained bandwidth is measured on the channel
//   model instead).
// Numbers: noc.*, l2.* and dram.* keys.
#ifndef FTL_ENGINE_SAMPLED_TRAFFIC_H
#define FTL_ENGINE_SAMPLED_TRAFFIC_H

#include "arch/arch_limits.h"
#include "engine/launch.h"
#include "engine/sampled/cursor.h"
#include "engine/sampled/dram_channels.h"
#include "engine/sampled/dram_refresh.h"
#include "engine/sampled/late_uses.h"
#include "engine/sampled/tile_lines.h"
#include "engine/sampled/time_units.h"
#include "machine/memory.h"

typedef struct ftl_traffic_counts {
  int64_t asked_sectors, store_sectors, coalesced_sectors;  // exact, whole tiles
  int64_t atomic_sectors;                                   // exact, of store_sectors
  int64_t store_bytes;                                      // exact, of stores that are no atomics
  int64_t l1_hit_sectors;                                   // exact, of loads into registers; not among those asked
  int64_t looked_up_sectors, hit_sectors, far_sectors;      // reads in the sample
  int64_t stored_in_sample;
  int64_t dram_read_sectors, dram_write_sectors;         // in the sample
  int64_t settled_sectors;                               // in the sample: written when the launch is over
  int64_t new_sectors;                                   // exact, of loads of tiles that were not loaded before
  int64_t new_looked_up_sectors, new_dram_read_sectors;  // of these, in the sample
  int64_t load_latency_cycles, num_loads;                // sum and number
} ftl_traffic_counts;

enum { FTL_MAX_GPCS = FTL_ARCH_MAX_chip_num_gpcs };

// Where an SM sits.
typedef struct ftl_sm_home {
  int32_t gpc, side;
} ftl_sm_home;

// Something that all requests for its bandwidth share.
typedef struct ftl_traffic_server {
  int64_t free_ticks;   // when it has passed all that was asked of it
  int64_t asked_ticks;  // when the last of that was asked; of the slices' intake, the last store
} ftl_traffic_server;

// Requests that find alike what they ask for.
typedef enum ftl_traffic_kind {
  FTL_TRAFFIC_FIRST,  // load of a tile that was not loaded before
  FTL_TRAFFIC_AGAIN,
  FTL_TRAFFIC_STORE,
  FTL_TRAFFIC_KINDS
} ftl_traffic_kind;

// Where the sectors of a request are that are in the sample.
typedef struct ftl_traffic_found {
  int64_t asked, far, missed, dram_written;
} ftl_traffic_found;

// What stores take of L2's intake, of their SM's port, and of DRAM by what they displace.
typedef struct ftl_store_intake {
  int64_t l2_ticks, sm_ticks, dram_ticks;
  int64_t dram_written;  // sectors of these
} ftl_store_intake;

typedef struct ftl_traffic {
  const ftl_arch *arch;
  ftl_l2_tags *tags;
  ftl_tile_lines tiles;
  ftl_late_uses late;
  int64_t sm_khz;
  int64_t hit_latency_cycles, far_latency_cycles;  // SM cycles, unloaded: far on top of hit
  int64_t miss_latency_cycles;  // on top of hit: of a tile from DRAM, whose last lines have the other side for home
  ftl_dram_channels channels;   // what its last lines wait on top of that: of a tile by itself
  ftl_dram_refresh refresh;     // of runs of tiles, for refreshes alone
  bool is_in_groups;            // the walk is, of iterations: too long to look at each channel
  int64_t l2_sector_ticks, far_sector_ticks;
  int64_t read_request_ticks;                 // of L2's intake, for a sector read
  ftl_store_intake store_cost, add_cost;      // of a sector as the launch stores it, or adds to it: in parts perhaps
  int64_t waiting_stores_ticks;               // for what waits in the SMs and holds up no CTA
  int64_t dram_read_ticks, dram_write_ticks;  // of a sector; of one written, with what it costs the reads around it
  int64_t ask_sector_ticks, sm_sector_ticks, gpc_sector_ticks;
  ftl_traffic_server l2, intake, far, dram, gpc[FTL_MAX_GPCS];
  ftl_sm_home *homes;  // per SM
  int64_t coalescer_window_ticks;
  ftl_traffic_counts counts;
  ftl_traffic_found found[FTL_TRAFFIC_KINDS];  // by the last request that has some
} ftl_traffic;

enum { FTL_SAMPLED_LINES = 4 };  // of the smallest tile

// Contents of L2 for a launch whose smallest tile has that many lines: the sample is as thin as leaves a few of them.
FTL_MUST_USE ftl_status ftl_traffic_create_tags(ftl_l2_tags **out, const ftl_arch *arch, int64_t smallest_tile_lines,
                                                ftl_error *error);
// `tags` are borrowed and stay as the launch leaves them.
FTL_MUST_USE ftl_status ftl_traffic_init(ftl_traffic *traffic, const ftl_launch *launch, int64_t sm_khz,
                                         ftl_l2_tags *tags, ftl_error *error);
void ftl_traffic_fini(ftl_traffic *traffic);
// Unloaded latencies for the step times: an L2 hit, a DRAM read.
void ftl_traffic_latencies(const ftl_arch *arch, int64_t sm_khz, int64_t *hit_cycles, int64_t *far_cycles,
                           int64_t *miss_cycles);
// Of a line from DRAM that waits for a whole refresh as well, but for no longer than half of what it takes else.
int64_t ftl_traffic_refreshing_latency(const ftl_arch *arch, int64_t sm_khz);

// How long a tile takes to arrive. The two differ in kind: more requests in flight hide latency, not queueing.
typedef struct ftl_traffic_wait {
  int64_t latency_cycles;              // SM cycles: of L2 or DRAM, unloaded, or what is left of a fill in flight
  int64_t queue_ticks;                 // waiting for bandwidth beyond what the SM takes to take it in
  int64_t asking_ticks, intake_ticks;  // in which the SM asks for a tile; in which it takes one in
  ftl_tile_marks marks;
} ftl_traffic_wait;

// A CTA on `sm` loads a run of tiles, the first at now_ticks, the last span_ticks later. The queueing is that
// of the last, the latency the mean over the tiles. False when memory is out.
bool ftl_traffic_try_load(ftl_traffic *traffic, const ftl_tile_run *run, int64_t span_ticks, int32_t sm,
                          int64_t now_ticks, ftl_traffic_wait *wait);
// Requests that wait.
typedef struct ftl_traffic_waiting {
  ftl_tile_marks marks;
  int32_t sm;
  int64_t made_ticks, due_ticks;  // when they were made, and when the SM would have taken them in
  int64_t served_ticks;           // marks up to here wait no more
} ftl_traffic_waiting;

// Requests that wait side by side are served side by side, not one after the other: by how much what others have asked
// of the marked servers by now delays these (ticks). They end before the last of the others by as much as they
// were made before it.
int64_t ftl_traffic_overtaken(const ftl_traffic *traffic, const ftl_traffic_waiting *waiting);
// Atomics are worked out at L2, which first reads from DRAM what it does not have. What L2 has to take in for it is
// added to *intake.
bool ftl_traffic_try_store(ftl_traffic *traffic, const ftl_tile_run *run, int32_t sm, bool is_atomic, int64_t now_ticks,
                           ftl_store_intake *intake);
// An SM hands on stores that its own port has passed at end_ticks: when L2 has taken all but what may wait in the SM
// (ticks), no sooner than that.
int64_t ftl_traffic_take_stores(ftl_traffic *traffic, const ftl_store_intake *intake, int64_t end_ticks);
// The same of stores handed on at made_ticks that would be taken at end_ticks, by what others have stored since: side
// by side.
int64_t ftl_traffic_stores_taken(const ftl_traffic *traffic, int64_t made_ticks, int64_t end_ticks);
// What an SM sent to L2 for `bytes` that it wrote, or added to.
typedef struct ftl_stored_parts {
  int64_t bytes, sectors, masks;
} ftl_stored_parts;
// Of stores and of atomics as those. Until it is called they send each sector once.
void ftl_traffic_set_store_costs(ftl_traffic *traffic, ftl_stored_parts stored, ftl_stored_parts added);

// Makes the uses of L2 that were put off, for who asks its contents himself.
void ftl_traffic_settle(ftl_traffic *traffic);
// Spills made L2 write back that many sectors of the sample.
void ftl_traffic_spill(ftl_traffic *traffic, int64_t written_sectors, int64_t now_ticks);

// sampled count -> whole L2, by the share of all sectors seen that the sample holds.
int64_t ftl_traffic_scale(const ftl_traffic *traffic, int64_t sampled);
// Sectors that DRAM has given. Of tiles that were loaded for the first time, whose sectors are known, the share that
// missed in the sample: a cold L2 has to fetch them all, however many lines of them the sample has.
int64_t ftl_traffic_dram_read_sectors(const ftl_traffic *traffic);
// Those written: for what the launch's tiles displace by the share of them that the sample holds, and what L2 writes
// back behind it by the share of its sets, whoever wrote that. The lines of a launch that moves little may all lie in
// the sample, or none, and are not what L2 is dirty with.
int64_t ftl_traffic_dram_write_sectors(const ftl_traffic *traffic);
// SM cycles that DRAM needs for all of it.
int64_t ftl_traffic_dram_cycles(const ftl_traffic *traffic);

#endif
