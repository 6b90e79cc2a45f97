#include "script/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/arch_loader.h"

typedef struct ftl_session_entry {
  char *asked;  // name or file that it was loaded as; NULL for a what-if
  uint64_t hash;
  ftl_arch *arch;
} ftl_session_entry;

void ftl_session_init(ftl_session *session) {
  *session = (ftl_session){.evaluate = {.num_threads = 1}, .status = FTL_OK};
}

void ftl_session_fini(ftl_session *session) {
  for (int i = 0; i < session->num_archs; i++) {
    free(session->archs[i].asked);
    ftl_arch_destroy(session->archs[i].arch);
  }
  free(session->archs);
  session->archs = NULL;
  session->num_archs = 0;
}

// Takes `arch` and `asked`, also on failure.
static ftl_status add_arch(ftl_session *session, ftl_arch *arch, char *asked, ftl_error *error) {
  ftl_session_entry *archs = NULL;
  ftl_status status = FTL_OK;
  if (session->num_archs >= FTL_SESSION_MAX_ARCHS) {
    status = ftl_error_set(error, FTL_BAD_INPUT, "more than %d arch models in one run", FTL_SESSION_MAX_ARCHS);
  } else {
    archs = realloc(session->archs, sizeof *archs * (size_t)(session->num_archs + 1));
    if (archs == NULL) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an arch model");
  }
  if (status != FTL_OK) {
    ftl_arch_destroy(arch);
    free(asked);
    return status;
  }
  session->archs = archs;
  archs[session->num_archs++] = (ftl_session_entry){.asked = asked, .hash = ftl_arch_hash(arch), .arch = arch};
  return FTL_OK;
}

ftl_status ftl_session_arch(ftl_session *session, const char *name_or_file, const ftl_arch **out, ftl_error *error) {
  *out = NULL;
  for (int i = 0; i < session->num_archs; i++) {
    const char *asked = session->archs[i].asked;
    if (asked != NULL && strcmp(asked, name_or_file) == 0) {
      *out = session->archs[i].arch;
      return FTL_OK;
    }
  }
  ftl_arch *arch = NULL;
  ftl_status status = ftl_arch_load(NULL, name_or_file, &arch, error);
  if (status != FTL_OK) return status;
  char *asked = strdup(name_or_file);
  if (asked == NULL) {
    ftl_arch_destroy(arch);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for an arch model");
  }
  status = add_arch(session, arch, asked, error);
  if (status == FTL_OK) *out = arch;
  return status;
}

ftl_status ftl_session_take_arch(ftl_session *session, ftl_arch *arch, const ftl_arch **out, ftl_error *error) {
  *out = NULL;
  uint64_t hash = ftl_arch_hash(arch);
  for (int i = 0; i < session->num_archs; i++) {
    const ftl_session_entry *known = &session->archs[i];
    if (known->hash == hash && strcmp(known->arch->name, arch->name) == 0) {
      ftl_arch_destroy(arch);
      *out = known->arch;
      return FTL_OK;
    }
  }
  ftl_status status = add_arch(session, arch, NULL, error);
  if (status == FTL_OK) *out = arch;
  return status;
}

void ftl_session_keep(ftl_session *session, ftl_status status, const char *message) {
  if (session->status != FTL_OK) return;
  session->status = status;
  snprintf(session->message, sizeof session->message, "%s", message);
}

// Some contradictions show when a kernel is built. As those of point_make they are infeasible where another point is
// not.
static void settle_contradictions(const ftl_point *points, int64_t num_points, ftl_answer *answers) {
  bool any_is_possible = false;
  for (int64_t i = 0; i < num_points; i++)
    any_is_possible |= ftl_point_is_well_formed(&points[i]) && answers[i].status == FTL_OK;
  for (int64_t i = 0; any_is_possible && i < num_points; i++) {
    ftl_answer *answer = &answers[i];
    if (answer->status != FTL_BAD_INPUT) continue;
    answer->status = FTL_OK;
    answer->prediction = (ftl_prediction){.spec = points[i].spec};
    snprintf(answer->prediction.reason, sizeof answer->prediction.reason, "%s", answer->message);
  }
}

// What is wrong with a point; of bad input the message names the parameters.
static ftl_status point_error(const ftl_point *point, const ftl_answer *answer, ftl_error *error) {
  if (answer->status == FTL_BAD_INPUT) return ftl_error_set(error, FTL_BAD_INPUT, "%s", answer->message);
  ftl_text spec = {0};
  ftl_spec_canonical(&point->spec, &spec);
  ftl_status status = ftl_error_set(error, answer->status, "%.200s (%s on %s)", answer->message, ftl_text_get(&spec),
                                    point->arch->name);
  ftl_text_fini(&spec);
  return status;
}

ftl_status ftl_session_evaluate(ftl_session *session, const ftl_point *points, int64_t num_points, ftl_answer *answers,
                                ftl_error *error) {
  ftl_error local;
  ftl_status status = ftl_evaluate(points, num_points, &session->evaluate, answers, &local);
  if (status == FTL_OK) settle_contradictions(points, num_points, answers);
  for (int64_t i = 0; status == FTL_OK && i < num_points; i++)
    if (answers[i].status != FTL_OK) status = point_error(&points[i], &answers[i], &local);
  if (status == FTL_OK) return FTL_OK;
  if (error != NULL) *error = local;
  ftl_session_keep(session, status, local.message);
  return status;
}
