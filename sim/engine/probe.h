// The first waves of a long launch, as a launch of its own: what finds the clock that its power allows. Of a launch of
// few waves all of it, walked coarsely. Of one whose CTAs differ in length, as causal ones do, a whole period, of
// the longest three, or 32 tiles of each persistent CTA.
#ifndef FTL_ENGINE_PROBE_H
#define FTL_ENGINE_PROBE_H

#include "engine/pipeline.h"

typedef struct ftl_probe {
  ftl_tile_program tile;  // of the launch, with fewer CTAs; shares what it points to
  ftl_warp_program warps;
} ftl_probe;

// `part` becomes the first waves of `whole`, with a plan of its own; it points into `probe`. False where walking them
// would take hardly less than walking all, or where that is soon done.
bool ftl_probe_try_init(ftl_probe *probe, const ftl_pipeline_launch *whole, ftl_pipeline_launch *part);

// What a launch took; of a probe whose CTAs differ in length, what these take of their launch: in its cycles all SMs
// have work, but for an end as long as the probe's, of which they have their share.
int64_t ftl_probe_cycles(const ftl_pipeline_launch *one);

#endif
