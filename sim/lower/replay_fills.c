#include "lower/replay_fills.h"

#include <stdlib.h>
#include <string.h>

ftl_replay_fill *ftl_replay_fill_at(ftl_replay_ring *ring, int64_t fill) {
  if (fill >= ring->num_fills) {
    int64_t wanted = fill + 1 + ring->num_fills;
    ftl_replay_fill *larger = realloc(ring->fills, sizeof *larger * (size_t)wanted);
    if (!larger) return NULL;
    memset(&larger[ring->num_fills], 0, sizeof *larger * (size_t)(wanted - ring->num_fills));
    ring->fills = larger;
    ring->num_fills = wanted;
  }
  return &ring->fills[fill];
}

const char *ftl_replay_may_overwrite(ftl_replay_ring *ring, int64_t fill, const ftl_vector_clock *clock) {
  int64_t before = fill - ring->num_stages;
  if (before < 0 || before >= ring->num_fills) return NULL;
  const ftl_replay_fill *old = &ring->fills[before];
  for (int w = 0; w < FTL_REPLAY_MAX_WARPS; w++) {
    if (old->reading[w] > 0) return "overwrites a stage that a wgmma may still read";
    if (old->read_at[w] > clock->of[w]) return "overwrites a stage that another warp may still read";
    if (old->in_flight[w] > 0) return "overwrites a stage that is still being copied into";
    if (old->copied_at[w] > clock->of[w]) return "overwrites a stage that another warp may still be copying into";
  }
  return NULL;
}

const char *ftl_replay_may_read(ftl_replay_ring *ring, int64_t fill, int32_t warp, const ftl_vector_clock *clock,
                                bool is_covered) {
  int64_t after = fill + ring->num_stages;
  if (after < ring->num_fills && ring->fills[after].begun) return "reads a stage that has been filled again";
  ftl_replay_fill *f = &ring->fills[fill];
  if (f->seen_full[warp]) return NULL;
  if (!is_covered) return "reads a stage before every copy into it was made";
  for (int w = 0; w < FTL_REPLAY_MAX_WARPS; w++) {
    if (f->in_flight[w] > 0) return "reads a stage whose copies have not been waited for";
    if (f->copied_at[w] > clock->of[w]) return "reads a stage that another warp may still be copying into";
  }
  f->seen_full[warp] = true;
  return NULL;
}
