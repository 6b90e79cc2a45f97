// How much of a grid is walked, and how finely: after how many CTAs it repeats, and how many iterations of a loop one
// event stands for.
//
// A group of iterations asks for its tiles at once, spread over the time that it takes. What that blurs is the order in
// which CTAs touch L2 within a group, so a group's tiles stay a small part of L2, and a CTA's longest loop keeps enough
// groups for CTAs to drift apart and for causal ones to differ in length.
#ifndef FTL_ENGINE_SAMPLED_WALK_PLAN_H
#define FTL_ENGINE_SAMPLED_WALK_PLAN_H

#include "engine/launch.h"
#include "engine/sampled/segments.h"

typedef struct ftl_walk_plan {
  int64_t stride;  // tiles between those of one CTA of a persistent kernel, else 0
  int64_t period;  // tiles after which the work comes again, several waves long; 0: never, or persistent
  int64_t group;   // iterations that one event stands for, a power of two
  int64_t steps;   // about so many events are walked
  int64_t asks;    // and so many times they ask for the tiles of an access
  int64_t pieces;  // of straight code of a CTA: steps and asks of each one that is walked, at the least
  bool is_stream;  // no two CTAs of a period read the same
  bool is_even;    // no CTA iterates much more often than the mean
  // Added by ftl_sampled_try_plan:
  int64_t tile_lines;   // of its smallest tile, of which the sample of L2 holds some
  int64_t moved_bytes;  // by all CTAs, to and from L1
} ftl_walk_plan;

// Without what ftl_sampled_try_plan adds.
ftl_walk_plan ftl_walk_plan_make(const ftl_launch *launch, const ftl_segments *segments);

#endif
