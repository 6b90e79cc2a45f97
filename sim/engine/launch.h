// One launch ready to run: its programs, what fits on an SM, and the conditions under which it runs.
#ifndef FTL_ENGINE_LAUNCH_H
#define FTL_ENGINE_LAUNCH_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/totals.h"
#include "lower/lower.h"

// What L2 holds when a launch starts.
typedef enum ftl_l2_before {
  FTL_L2_PROFILED,  // flushed and invalidated by Nsight Compute, with the dirty lines that it leaves itself
  FTL_L2_FOULED,    // as a 256 MB fill left it, dirty lines included
  FTL_L2_KEPT,      // as the launch before left it
} ftl_l2_before;

typedef struct ftl_launch {
  const ftl_arch *arch;
  const ftl_tile_program *tile;
  const ftl_warp_program *warps;
  ftl_occupancy occupancy;
  ftl_l2_before l2_before;
  int64_t least_read_bytes;   // of DRAM, where L2 has nothing of what the launch reads; 0: nobody knows
  int64_t onset_khz;          // mean clock that the dip at its onset leaves it, where no limit does; 0: it has none
  const atomic_bool *cancel;  // may be NULL
  int num_threads;
  bool no_bulk;
  bool is_probe;  // only its rates matter: a sampled walk may be coarse
} ftl_launch;

enum {
  FTL_FOUL_BYTES = 256 * 1024 * 1024,  // the usual flush buffer of event-timed benchmarks
  // Kernels that only read write back so much, on the H200 and on the H100 with its smaller L2
  // (micro_l2_capacity_ncu.csv).
  FTL_PROFILER_DIRTY_BYTES = 2400000,
};
// What is written to L2 before a launch that does not find it as the one before left it.
int64_t ftl_launch_foul_bytes(const ftl_launch *launch);

// The hit ratio that a user of a persisting window chooses, in 1/1000: the part of its tensors that fits in the
// set-aside, where a line read from both sides of L2 takes two places (CUDA C++ Programming Guide, L2 persistence).
int64_t ftl_launch_hit_ratio_milli(const ftl_launch *launch);

// The number of CTAs that the grid launches: tiles, or for a persistent kernel as many as fit, at most one a tile.
int64_t ftl_launch_num_ctas(const ftl_launch *launch);
// How many of them the fullest SM ever holds: what fits, or what the grid has for it where that is less.
int32_t ftl_launch_most_ctas_per_sm(const ftl_launch *launch);
// Whether the caller wants it to end: it then gives FTL_INTERRUPTED.
bool ftl_launch_is_cancelled(const ftl_launch *launch);

#endif
