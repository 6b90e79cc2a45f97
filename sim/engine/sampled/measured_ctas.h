// Which CTAs the SM that is run in detail has.
#ifndef FTL_ENGINE_SAMPLED_MEASURED_CTAS_H
#define FTL_ENGINE_SAMPLED_MEASURED_CTAS_H

#include "engine/launch.h"
#include "engine/sampled/segments.h"

enum { FTL_MAX_REPRESENTATIVES = 4 };

// The CTA that stands for all first: of those that repeat the loops that most repeat, the one with most kinds of
// iterations, and most of them or nearly so where a grid is long (the last in launch order among equals). Then others,
// each chosen so by the loops that none before it runs and that it repeats: CTAs may have loops of their own (the last
// keys end inside a tile, and nothing else is masked). Returns how many, at least 1.
int32_t ftl_measured_ctas_representatives(const ftl_segments *segments, const ftl_warp_program *program,
                                          int64_t ctas[FTL_MAX_REPRESENTATIVES]);

// The representative and those that share an SM with it, into ctas[num_ctas]: about a round of SMs apart in launch
// order, nearer where the grid is too small for that. They are different ones as far as the grid has them, or they
// would find each other's tiles in L1, and have its loops as far as ones that do are near: what an iteration takes
// where CTAs share the SM is what it takes while all of them run its loop.
void ftl_measured_ctas_sharing(const ftl_launch *launch, const ftl_segments *segments, int64_t representative,
                               int32_t num_ctas, int64_t *ctas);

// A CTA that runs no loop, as of the keys of which a split has none, where the representative does; -1: none is found.
int64_t ftl_measured_ctas_bare(const ftl_segments *segments, const ftl_warp_program *program, int64_t representative);

// A distance between tiles of a persistent CTA of which the two before the representative have its loops too; 0: none
// is near.
int64_t ftl_measured_ctas_distance(const ftl_launch *launch, const ftl_segments *segments, int64_t representative);

#endif
