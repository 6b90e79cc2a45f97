#include "cli/points.h"

#include <stdlib.h>
#include <string.h>

#include "script/arch_loader.h"

enum { MAX_ARCHS = 64 };

ftl_status ftl_points_arch(ftl_session *session, const ftl_arguments *arguments, const char *name, const ftl_arch **out,
                           ftl_error *error) {
  ftl_status status = ftl_session_arch(session, name, out, error);
  if (status != FTL_OK || arguments->num_sets == 0) return status;
  ftl_arch *changed = NULL;
  status = ftl_arch_create_what_if(*out, arguments->sets, arguments->num_sets, &changed, error);
  return status != FTL_OK ? status : ftl_session_take_arch(session, changed, out, error);
}

// Calls `add` with each part of "a,b,c" (the whole text where `lists` is false).
typedef ftl_status (*add_function)(void *user, const char *part, ftl_error *error);

static ftl_status for_each_part(const char *text, bool lists, add_function add, void *user, ftl_error *error) {
  ftl_status status = FTL_OK;
  bool more = true;
  while (status == FTL_OK && more) {
    size_t size = lists ? strcspn(text, ",") : strlen(text);
    char *part = strndup(text, size);
    if (part == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
    status = add(user, part, error);
    free(part);
    more = text[size] == ',';
    text += size + 1;
  }
  return status;
}

// What was refused as one value is said to be several, where it is.
static ftl_status name_list(ftl_status status, const char *name, const char *value, ftl_error *error) {
  if (status != FTL_BAD_INPUT || strchr(value, ',') == NULL) return status;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.64s: one value; foretile explore takes several", name, value);
}

// --- GPUs ---

typedef struct arch_list {
  ftl_session *session;
  const ftl_arguments *arguments;
  const ftl_arch *archs[MAX_ARCHS];
  int num_archs;
} arch_list;

// The session has each model once, so the same model twice is the same pointer; two models of one name may be compared.
static ftl_status add_arch(void *user, const char *name, ftl_error *error) {
  arch_list *list = user;
  if (name[0] == '\0') return ftl_error_set(error, FTL_BAD_INPUT, "--arch: an empty name between commas");
  if (list->num_archs == MAX_ARCHS)
    return ftl_error_set(error, FTL_BAD_INPUT, "--arch lists more than %d GPUs", MAX_ARCHS);
  const ftl_arch *arch = NULL;
  ftl_status status = ftl_points_arch(list->session, list->arguments, name, &arch, error);
  if (status != FTL_OK) return status;
  for (int i = 0; i < list->num_archs; i++) {
    if (list->archs[i] == arch) return ftl_error_set(error, FTL_BAD_INPUT, "--arch lists %s twice", arch->name);
  }
  list->archs[list->num_archs++] = arch;
  return FTL_OK;
}

// --- parameters ---

typedef struct values {
  ftl_space *space;
  const char *name;
} values;

static ftl_status add_value(void *user, const char *value, ftl_error *error) {
  values *v = user;
  return ftl_space_add(v->space, v->name, value, error);
}

static ftl_status add_argument(ftl_space *space, const char *argument, bool lists, ftl_error *error) {
  const char *equals = strchr(argument, '=');
  if (equals == NULL || equals == argument) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%.64s: expected KEY=VALUE", argument);
  }
  char *name = strndup(argument, (size_t)(equals - argument));
  if (name == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  values v = {.space = space, .name = name};
  ftl_status status = for_each_part(equals + 1, lists, add_value, &v, error);
  if (!lists) status = name_list(status, name, equals + 1, error);
  if (status == FTL_OK && !lists && ftl_space_num_points(space) > 1) {
    status = ftl_error_set(error, FTL_BAD_INPUT, "%s is given twice", name);
  }
  free(name);
  return status;
}

static bool gives_detail(const ftl_arguments *arguments) {
  for (int i = 0; i < arguments->num_positional; i++) {
    if (strncmp(arguments->positional[i], "detail=", strlen("detail=")) == 0) return true;
  }
  return false;
}

static bool is_both_lengths(const char *argument) { return strncmp(argument, "seqlen=", strlen("seqlen=")) == 0; }

// seqlen comes first, so that a length given by its own name holds wherever it stands.
static ftl_status fill_space(ftl_space *space, const ftl_arguments *arguments, bool lists, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; status == FTL_OK && i < arguments->num_positional; i++) {
      const char *argument = arguments->positional[i];
      if (is_both_lengths(argument) == (pass == 0)) status = add_argument(space, argument, lists, error);
    }
  }
  if (status == FTL_OK && arguments->detail != NULL && !gives_detail(arguments)) {
    status = ftl_space_add(space, "detail", arguments->detail, error);
  }
  return status;
}

// --- points ---

static ftl_status make_points(const ftl_space *space, const arch_list *list, ftl_points *out, ftl_error *error) {
  int64_t per_arch = ftl_space_num_points(space);
  if (per_arch > FTL_SPACE_MAX_POINTS / list->num_archs) {
    return ftl_error_set(error, FTL_BAD_INPUT, "more than %d combinations; split the exploration",
                         FTL_SPACE_MAX_POINTS);
  }
  out->points = calloc((size_t)(per_arch * list->num_archs), sizeof *out->points);
  if (out->points == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_status status = FTL_OK;
  bool any_well_formed = false;
  for (int a = 0; a < list->num_archs; a++) {
    for (int64_t i = 0; status == FTL_OK && i < per_arch; i++) {
      ftl_point *point = &out->points[out->num_points++];
      status = ftl_point_make(space, i, list->archs[a], point, error);
      any_well_formed = any_well_formed || ftl_point_is_well_formed(point);
    }
  }
  if (status != FTL_OK || any_well_formed) return status;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s", out->points[0].contradiction);
}

static ftl_status check_present(const ftl_arguments *arguments, const char *command, ftl_error *error) {
  if (arguments->arch == NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s needs --arch; foretile arch list shows the GPUs", command);
  }
  if (arguments->workload == NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s needs --workload; foretile workload list shows them", command);
  }
  return FTL_OK;
}

ftl_status ftl_points_make(ftl_session *session, const ftl_arguments *arguments, const char *command, bool lists,
                           ftl_points *out, ftl_error *error) {
  *out = (ftl_points){0};
  arch_list list = {.session = session, .arguments = arguments};
  ftl_space space = {0};
  ftl_status status = check_present(arguments, command, error);
  if (status == FTL_OK) status = for_each_part(arguments->arch, lists, add_arch, &list, error);
  bool is_name = arguments->arch != NULL && strchr(arguments->arch, '/') == NULL;
  if (!lists && is_name) status = name_list(status, "--arch", arguments->arch, error);
  if (status == FTL_OK) status = ftl_space_init(&space, arguments->workload, error);
  if (status == FTL_OK) status = fill_space(&space, arguments, lists, error);
  if (status == FTL_OK) status = make_points(&space, &list, out, error);
  ftl_space_fini(&space);
  return status;
}

void ftl_points_fini(ftl_points *points) {
  free(points->points);
  *points = (ftl_points){0};
}
