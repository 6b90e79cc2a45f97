#include "cli/use.h"

#include "cli/interrupt.h"

static ftl_status check_detail(const char *detail, ftl_error *error) {
  if (detail == NULL || ftl_param_takes(FTL_PARAM_detail, detail)) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "--detail=%.40s: allowed are %s", detail,
                       ftl_param_get(FTL_PARAM_detail)->allowed);
}

ftl_status ftl_use_begin(ftl_use *use, const ftl_arguments *arguments, const char *command, const char *database_path,
                         const char *scenario_path, const char *scenario_text, ftl_error *error) {
  *use = (ftl_use){0};
  ftl_status detail_status = check_detail(arguments->detail, error);
  if (detail_status != FTL_OK) return detail_status;
  ftl_session_init(&use->session);
  ftl_evaluate_options *evaluate = &use->session.evaluate;
  if (database_path != NULL) {
    ftl_status status = ftl_database_open(&use->database, database_path, error);
    if (status == FTL_OK) {
      status = ftl_database_begin_run(use->database, command, scenario_path, scenario_text, &evaluate->run_id, error);
    }
    if (status != FTL_OK) {
      ftl_database_close(use->database);
      return status;
    }
  }
  ftl_interrupt_install();
  ftl_progress_init(&use->progress, arguments->quiet);
  evaluate->database = use->database;
  evaluate->num_threads = (int)arguments->num_jobs;
  evaluate->cancel = ftl_interrupt_flag();
  evaluate->progress = ftl_progress_update;
  evaluate->progress_user = &use->progress;
  use->session.detail = arguments->detail;
  return FTL_OK;
}

static ftl_run_state state_of(ftl_status status) {
  if (status == FTL_OK) return FTL_RUN_STATE_DONE;
  return status == FTL_INTERRUPTED ? FTL_RUN_STATE_INTERRUPTED : FTL_RUN_STATE_FAILED;
}

ftl_status ftl_use_end(ftl_use *use, ftl_status status, ftl_error *error) {
  ftl_progress_clear(&use->progress);
  if (use->database != NULL) {
    ftl_error end_error;
    int64_t run_id = use->session.evaluate.run_id;
    ftl_status end_status = ftl_database_end_run(use->database, run_id, state_of(status), &end_error);
    if (status == FTL_INTERRUPTED) {
      ftl_error_set(error, status, "interrupted; what was finished is in %s, the same command goes on from there",
                    ftl_database_path(use->database));
    }
    if (status == FTL_OK && end_status != FTL_OK) {
      status = end_status;
      *error = end_error;
    }
  }
  ftl_session_fini(&use->session);
  ftl_database_close(use->database);
  return status;
}
