// The fills of a ring's stages during a replay: who copied into them, who has read them, and when on each warp's clock.
//
// Time is a vector clock: warp w's component counts its own events, the others are the latest events of the other warps
// that a barrier or mbarrier has ordered before. "Warp w knows event t of warp p" is clock[w][p] >= t.
#ifndef FTL_LOWER_REPLAY_FILLS_H
#define FTL_LOWER_REPLAY_FILLS_H

#include "lower/coverage.h"

enum { FTL_REPLAY_MAX_WARPS = 32 };
typedef struct ftl_vector_clock {
  int32_t of[FTL_REPLAY_MAX_WARPS];
} ftl_vector_clock;

typedef struct ftl_replay_fill {
  bool begun;                // something was copied into it
  bool expected, committed;  // mbarrier rings: producer's arrival; end of its copies
  int32_t num_releases;
  ftl_vector_clock committed_at, released_at;  // joined over the arrivals
  int32_t in_flight[FTL_REPLAY_MAX_WARPS];     // asynchronous copies that the warp has not waited for
  int32_t copied_at[FTL_REPLAY_MAX_WARPS];     // the warp's time when its last copy was complete; 0: none
  int32_t reading[FTL_REPLAY_MAX_WARPS];       // wgmmas of the warp that may still read
  int32_t read_at[FTL_REPLAY_MAX_WARPS];       // its last finished read; 0: none
  bool seen_full[FTL_REPLAY_MAX_WARPS];        // the warp's first read found it complete
} ftl_replay_fill;

typedef struct ftl_replay_ring {
  ftl_replay_fill *fills;
  int64_t num_fills;
  int32_t num_stages;
} ftl_replay_ring;

static inline void ftl_clock_join(ftl_vector_clock *into, const ftl_vector_clock *from) {
  for (int w = 0; w < FTL_REPLAY_MAX_WARPS; w++)
    if (from->of[w] > into->of[w]) into->of[w] = from->of[w];
}

// Fill `fill`, made if it is new; NULL when memory is out. Valid until the next call for the ring.
ftl_replay_fill *ftl_replay_fill_at(ftl_replay_ring *ring, int64_t fill);

// Whether a warp that knows `clock` may copy into fill `fill`: everyone has finished with the one before in its stage.
// NULL, or what is wrong.
const char *ftl_replay_may_overwrite(ftl_replay_ring *ring, int64_t fill, const ftl_vector_clock *clock);
// Whether warp `warp` may read fill `fill`.
const char *ftl_replay_may_read(ftl_replay_ring *ring, int64_t fill, int32_t warp, const ftl_vector_clock *clock,
                                bool is_covered);

#endif
