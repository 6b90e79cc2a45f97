#include <math.h>
#include <string.h>

#include <jansson.h>

#include "cli/batch.h"
#include "cli/points.h"

static bool is_list(const char *key) {
  int param = ftl_param_find(key);
  return param >= 0 && ftl_param_get((ftl_param)param)->is_list;
}

// [512, 77] as the command line writes it: 512:77, or none.
static ftl_status list_text(const char *key, const json_t *list, ftl_text *text, ftl_error *error) {
  if (!is_list(key)) return ftl_error_set(error, FTL_BAD_INPUT, "%.64s: one value, not a list", key);
  if (json_array_size(list) == 0) ftl_text_add(text, "none");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *number = json_array_get(list, i);
    if (!json_is_integer(number)) {
      return ftl_error_set(error, FTL_BAD_INPUT, "%.64s: allowed in a list are whole numbers", key);
    }
    ftl_text_add(text, "%s%" JSON_INTEGER_FORMAT, i > 0 ? ":" : "", json_integer_value(number));
  }
  return FTL_OK;
}

static ftl_status value_text(const char *key, const json_t *value, ftl_text *text, ftl_error *error) {
  switch (json_typeof(value)) {
    case JSON_STRING:
      ftl_text_add(text, "%s", json_string_value(value));
      return FTL_OK;
    case JSON_INTEGER:
      ftl_text_add(text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
      return FTL_OK;
    case JSON_REAL: {
      double real = json_real_value(value);
      bool is_whole = real == floor(real) && fabs(real) < 1e15;
      ftl_text_add(text, is_whole ? "%.0f" : "%.15g", real);
      return FTL_OK;
    }
    case JSON_TRUE:
      ftl_text_add(text, "true");
      return FTL_OK;
    case JSON_FALSE:
      ftl_text_add(text, "false");
      return FTL_OK;
    case JSON_ARRAY:
      return list_text(key, value, text, error);
    default:
      return ftl_error_set(error, FTL_BAD_INPUT, "%.64s: allowed are a number, a string, true, false%s", key,
                           is_list(key) ? ", a list of whole numbers" : "");
  }
}

static ftl_status get_name(const json_t *object, const char *key, const char *fallback, const char **out,
                           ftl_error *error) {
  const json_t *value = json_object_get(object, key);
  if (value != NULL && !json_is_string(value)) {
    return ftl_error_set(error, FTL_BAD_INPUT, "\"%s\" must be a string", key);
  }
  *out = value != NULL ? json_string_value(value) : fallback;
  return *out != NULL ? FTL_OK : ftl_error_set(error, FTL_BAD_INPUT, "\"%s\" is missing", key);
}

static ftl_status set_param(const char *key, json_t *value, ftl_spec *spec, ftl_error *error) {
  ftl_text text = {0};
  ftl_status status = value_text(key, value, &text, error);
  if (text.failed) status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %.64s", key);
  if (status == FTL_OK) status = ftl_spec_set_text(spec, key, ftl_text_get(&text), error);
  ftl_text_fini(&text);
  return status;
}

// seqlen comes first, so that a length given by its own name holds wherever it stands.
static ftl_status set_params(json_t *object, const char *detail, ftl_spec *spec, ftl_error *error) {
  const char *key = NULL;
  json_t *value = NULL;
  json_t *both_lengths = json_object_get(object, "seqlen");
  ftl_status status = both_lengths != NULL ? set_param("seqlen", both_lengths, spec, error) : FTL_OK;
  if (status != FTL_OK) return status;
  json_object_foreach(object, key, value) {
    if (strcmp(key, "arch") == 0 || strcmp(key, "workload") == 0 || strcmp(key, "seqlen") == 0) continue;
    status = set_param(key, value, spec, error);
    if (status != FTL_OK) return status;
  }
  if (detail != NULL && json_object_get(object, "detail") == NULL) {
    status = ftl_spec_set_text(spec, "detail", detail, error);
  }
  return status == FTL_OK ? ftl_spec_complete(spec, error) : status;
}

static ftl_status parse_object(ftl_session *session, const ftl_arguments *arguments, json_t *object, ftl_point *out,
                               ftl_error *error) {
  const char *arch = NULL, *workload = NULL;
  ftl_status status = get_name(object, "arch", arguments->arch, &arch, error);
  if (status == FTL_OK) status = get_name(object, "workload", arguments->workload, &workload, error);
  if (status == FTL_OK) status = ftl_spec_init(&out->spec, workload, error);
  if (status == FTL_OK) status = set_params(object, arguments->detail, &out->spec, error);
  if (status == FTL_OK) status = ftl_points_arch(session, arguments, arch, &out->arch, error);
  return status == FTL_OK ? ftl_point_check_gpu(&out->spec, out->arch, error) : status;
}

ftl_status ftl_batch_parse(ftl_session *session, const ftl_arguments *arguments, const char *line, size_t size,
                           ftl_point *out, ftl_error *error) {
  json_error_t json_error;
  json_t *object = json_loadb(line, size, JSON_REJECT_DUPLICATES, &json_error);
  if (object == NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT, "not JSON: column %d: %s", json_error.column, json_error.text);
  }
  ftl_status status =
      json_is_object(object)
          ? parse_object(session, arguments, object, out, error)
          : ftl_error_set(error, FTL_BAD_INPUT, "not a JSON object {\"arch\": ..., \"workload\": ..., ...}");
  json_decref(object);
  return status;
}
