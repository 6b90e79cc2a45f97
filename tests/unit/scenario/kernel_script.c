#include "kernel_script.h"

#include <string.h>

#include <criterion/criterion.h>

ftl_status run_with(const char *script, ftl_evaluate_options evaluate, ftl_sandbox_limits limits, ftl_error *error) {
  ftl_session session;
  ftl_session_init(&session);
  session.evaluate = evaluate;
  ftl_status status = ftl_scenario_run_text(&session, "test.lua", script, strlen(script), limits, error);
  ftl_session_fini(&session);
  return status;
}

static ftl_status run(const char *script, ftl_error *error) {
  return run_with(script, (ftl_evaluate_options){.num_threads = 1}, ftl_sandbox_limits_default(), error);
}

void passes(const char *script) {
  ftl_error error = {0};
  cr_assert_eq(run(script, &error), FTL_OK, "%s\n%s", error.message, script);
}

void fails(const char *script, const char *expected) {
  ftl_error error = {0};
  cr_assert_eq(run(script, &error), FTL_BAD_INPUT, "not refused: %s", script);
  cr_assert(strstr(error.message, expected) != NULL, "\"%s\" does not say \"%s\"", error.message, expected);
}

void fail_all(const refusal *refusals, size_t count) {
  for (size_t i = 0; i < count; i++) fails(refusals[i].script, refusals[i].error);
}
