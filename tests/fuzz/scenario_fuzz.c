// A scenario with small limits, and an engine that answers at once.
#include <stdlib.h>

#include "script/scenario.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ftl_session session;
  ftl_error error;
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.max_memory_bytes = 4 << 20;
  limits.max_string_bytes = 1 << 18;
  limits.max_instructions = 20000;
  ftl_session_init(&session);
  ftl_status status = ftl_scenario_run_text(&session, "fuzz.lua", (const char *)data, size, limits, &error);
  ftl_session_fini(&session);
  if (status != FTL_OK && error.message[0] == '\0') abort();
  return 0;
}
