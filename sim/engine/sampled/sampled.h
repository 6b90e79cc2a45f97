// Detail level `sampled`: one SM in detail, the GPU as tile steps, L2 on a sample of its sets, equal heads skipped.
#ifndef FTL_ENGINE_SAMPLED_SAMPLED_H
#define FTL_ENGINE_SAMPLED_SAMPLED_H

#include "engine/launch.h"
#include "engine/work.h"
#include "machine/l2/tags.h"

// True when the program has the form that sampling knows (loops of tiles, at one place in another loop).
bool ftl_sampled_is_possible(const ftl_launch *launch);
// True when its iterations are walked in groups: where a run takes long.
bool ftl_sampled_is_long(const ftl_launch *launch);

// Runs one launch at sm_khz. With l2_before == FTL_L2_KEPT, *tags is L2 as the launch before left it, else *tags is
// NULL. On FTL_OK *tags is L2 as this launch leaves it; the caller destroys it in any case.
FTL_MUST_USE ftl_status ftl_sampled_run(const ftl_launch *launch, const ftl_static_work *work, int64_t sm_khz,
                                        ftl_l2_tags **tags, ftl_totals *out, ftl_error *error);

#endif
