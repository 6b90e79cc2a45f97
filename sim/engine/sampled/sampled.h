// Detail level `sampled`: one SM in detail, the GPU as tile steps, L2 on a sample of its sets, equal heads skipped.
#ifndef FTL_ENGINE_SAMPLED_SAMPLED_H
#define FTL_ENGINE_SAMPLED_SAMPLED_H

#include "engine/sampled/walk_plan.h"
#include "engine/work.h"
#include "machine/l2/tags.h"

// A tile, or a launch of a chain, that moves less than this share of what the busiest one does may be missed by the
// sample of L2 now and then.
enum { FTL_SAMPLED_LEAST_SHARE = 8 };

// False when the program has not the form that sampling knows (loops of tiles, at one place in another loop). The plan
// is the launch's at any clock; to find where the grid repeats takes long enough to do it once.
bool ftl_sampled_try_plan(const ftl_launch *launch, ftl_walk_plan *plan);

// Runs one launch at sm_khz. With l2_before == FTL_L2_KEPT, *tags is L2 as the launch before left it, else *tags is
// NULL. On FTL_OK *tags is L2 as this launch leaves it; the caller destroys it in any case.
FTL_MUST_USE ftl_status ftl_sampled_run(const ftl_launch *launch, ftl_walk_plan plan, const ftl_static_work *work,
                                        int64_t sm_khz, ftl_l2_tags **tags, ftl_totals *out, ftl_error *error);

#endif
