// Runs a Lua scenario with the module `foretile` in a sandbox. docs/scenarios.md describes the module.
#ifndef FTL_SCRIPT_SCENARIO_H
#define FTL_SCRIPT_SCENARIO_H

#include "base/status.h"
#include "script/sandbox.h"
#include "script/session.h"

// The script may require modules of its folder (sandbox.h). It sees `args` as the global table `arg` (arg[0] is its
// path). FTL_BAD_INPUT "file:line: …" for its faults and limits, FTL_IO_FAILED, FTL_INTERRUPTED; FTL_RUN_FAILED when a
// prediction failed, even if the script caught that.
FTL_MUST_USE ftl_status ftl_scenario_run(ftl_session *session, const char *path, const char *const *args, int num_args,
                                         ftl_sandbox_limits limits, ftl_error *error);
// The same for a text that is in memory, which has no modules.
FTL_MUST_USE ftl_status ftl_scenario_run_text(ftl_session *session, const char *name, const char *text, size_t size,
                                              ftl_sandbox_limits limits, ftl_error *error);

#endif
