// Reading and writing a specification. The rules between parameters are in spec_rules.c.
#include "workloads/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/implied.h"
#include "workloads/spec_list.h"
#include "workloads/spec_rules.h"
#include "workloads/user_kernel.h"

static bool is_bool(const ftl_param_info *info) { return strcmp(info->unit, "bool") == 0; }

static bool is_both_lengths(const char *name) { return strcmp(name, "seqlen") == 0; }

static ftl_status not_allowed(const ftl_spec *spec, const char *name, const char *text, int param, ftl_error *error) {
  char allowed[FTL_PARAM_TEXT_BYTES];
  const ftl_param_info *info = ftl_param_get((ftl_param)param);
  if (is_bool(info)) return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.40s: allowed are true, false, 1, 0", name, text);
  ftl_workload_allowed(spec->workload, (ftl_param)param, allowed);
  if (info->allowed) return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.40s: allowed are %s", name, text, allowed);
  if (info->is_real)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.40s: allowed is a number from %s%s%s", name, text, allowed,
                         info->unit[0] ? " " : "", info->unit);
  return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.40s: allowed is a whole number from %lld to %lld%s%s", name, text,
                       (long long)info->min, (long long)info->max, info->unit[0] ? " " : "", info->unit);
}

static ftl_status not_known(const ftl_spec *spec, const char *name, ftl_error *error) {
  const char *nearest = ftl_workload_param_nearest(spec->workload, name), *workload = spec->workload->name;
  if (nearest != NULL)
    return ftl_error_set(error, FTL_BAD_INPUT, "unknown parameter %.40s; the nearest is %s", name, nearest);
  return ftl_error_set(error, FTL_BAD_INPUT, "unknown parameter %.40s; foretile workload show %s lists those of %s",
                       name, workload, workload);
}

// Matrix products named as QK^T is: queries are rows of A, keys columns of B, a head's elements what is summed over.
static int of_product(const ftl_spec *spec, int param) {
  static const struct {
    ftl_param attention, product;
  } alike[] = {
      {FTL_PARAM_seqlen_q, FTL_PARAM_m}, {FTL_PARAM_seqlen_kv, FTL_PARAM_n}, {FTL_PARAM_head_dim, FTL_PARAM_k}};
  for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
    if (param == (int)alike[i].attention && !ftl_spec_takes(spec, alike[i].attention) &&
        ftl_spec_takes(spec, alike[i].product))
      return (int)alike[i].product;
  return param;
}

static ftl_status find_param(const ftl_spec *spec, const char *name, int *param, ftl_error *error) {
  *param = is_both_lengths(name) ? FTL_PARAM_seqlen_q : of_product(spec, ftl_param_find(name));
  if (*param < 0) return not_known(spec, name, error);
  if (!ftl_spec_takes(spec, (ftl_param)*param) && is_both_lengths(name) && ftl_spec_takes(spec, FTL_PARAM_seqlen_kv))
    return ftl_error_set(
        error, FTL_BAD_INPUT,
        "%s does not take the parameter seqlen, which sets queries and keys alike; give seqlen_kv, its "
        "keys: the queries follow from what it does",
        spec->workload->name);
  return FTL_OK;
}

bool ftl_spec_takes_name(const ftl_spec *spec, const char *name) {
  int param = of_product(spec, ftl_param_find(name));
  return param >= 0 && ftl_spec_takes(spec, (ftl_param)param);
}

static ftl_status not_taken(const ftl_spec *spec, const char *name, int param, ftl_error *error) {
  const char *implied = ftl_workload_implied(spec->workload, (ftl_param)param), *workload = spec->workload->name;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%s does not take the parameter %s%s%s; foretile workload show %s lists its own", workload, name,
                       implied ? " but as " : "", implied ? implied : "", workload);
}

// ---- setting ----

static void store(ftl_spec *spec, int param, int64_t value) {
  spec->value[param] = value;
  spec->given |= (ftl_param_set)1 << param;
}

// Index of text among "a|b|c"; -1: none.
static int allowed_index(const char *allowed, const char *text) {
  size_t size = strlen(text);
  for (int idx = 0;; idx++) {
    size_t word = strcspn(allowed, "|");
    if (word == size && memcmp(allowed, text, size) == 0) return idx;
    if (allowed[word] == '\0') return -1;
    allowed += word + 1;
  }
}

bool ftl_param_takes(ftl_param param, const char *text) {
  const char *allowed = ftl_param_get(param)->allowed;
  return allowed != NULL && allowed_index(allowed, text) >= 0;
}

// Digits with an optional minus, nothing else; false when it is not, or does not fit.
static bool parse_int(const char *text, int64_t *value) {
  const char *digits = text[0] == '-' ? text + 1 : text;
  if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0') return false;
  errno = 0;
  *value = strtoll(text, NULL, 10);
  return errno == 0;
}

// A finite decimal number ("0.1", "1e-3"), rounded to whole units; false where it is none.
static bool parse_real(const char *text, int64_t *value) {
  const double most = 1e9;  // in units below 2^63
  char *end;
  if (text[0] == '\0' || text[strspn(text, "-.0123456789e")] != '\0') return false;
  double number = strtod(text, &end);
  if (*end != '\0' || !(fabs(number) <= most)) return false;
  *value = llround(number * FTL_PARAM_UNITS_PER_ONE);
  return true;
}

static bool parse_bool(const char *text, int64_t *value) {
  *value = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
  return *value == 1 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool parse(const ftl_param_info *info, const char *text, int64_t *value) {
  if (info->allowed) {
    *value = allowed_index(info->allowed, text);
    return *value >= 0;
  }
  if (is_bool(info)) return parse_bool(text, value);
  bool is_number = info->is_real ? parse_real(text, value) : parse_int(text, value);
  return is_number && *value >= info->min && *value <= info->max;
}

static ftl_status set_list(ftl_spec *spec, ftl_param param, const char *text, ftl_error *error) {
  const ftl_param_info *info = ftl_param_get(param);
  switch (ftl_spec_list_set(spec, param, text)) {
    case FTL_LIST_SET:
      spec->given |= (ftl_param_set)1 << param;
      return FTL_OK;
    case FTL_LIST_TOO_LONG:
      return ftl_error_set(error, FTL_BAD_INPUT, "%s=%.40s...: allowed are %d numbers in %d characters", info->name,
                           text, FTL_PARAM_MOST_LISTED, FTL_SPEC_LIST_BYTES - 3);
    default:
      return ftl_error_set(error, FTL_BAD_INPUT,
                           "%s=%.40s: allowed are whole numbers from %lld to %lld, as 512:4096x8:77, or none",
                           info->name, text, (long long)info->min, (long long)info->max);
  }
}

ftl_status ftl_spec_set_text(ftl_spec *spec, const char *name, const char *text, ftl_error *error) {
  int param;
  ftl_status status = find_param(spec, name, &param, error);
  if (status != FTL_OK) return status;
  if (!ftl_spec_takes(spec, (ftl_param)param))
    return ftl_workload_implies(spec->workload, (ftl_param)param, text) ? FTL_OK : not_taken(spec, name, param, error);
  int64_t value;
  const ftl_param_info *info = ftl_param_get((ftl_param)param);
  if (info->is_list) return set_list(spec, (ftl_param)param, text, error);
  if (!parse(info, text, &value)) return not_allowed(spec, name, text, param, error);
  store(spec, param, value);
  if (is_both_lengths(name)) store(spec, FTL_PARAM_seqlen_kv, value);
  return FTL_OK;
}

ftl_status ftl_spec_set_int(ftl_spec *spec, const char *name, int64_t value, ftl_error *error) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, value);
  return ftl_spec_set_text(spec, name, text, error);
}

static void list_workloads(char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < ftl_workload_count() && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", ftl_workload_get(i)->name);
}

ftl_status ftl_spec_init(ftl_spec *spec, const char *workload_name, ftl_error *error) {
  *spec = (ftl_spec){.workload = ftl_workload_find(workload_name)};
  if (spec->workload) return FTL_OK;
  char known[320];
  list_workloads(known, sizeof known);
  return ftl_error_set(error, FTL_BAD_INPUT, "unknown workload %.40s; known are %s", workload_name, known);
}

// ---- completing ----

static ftl_status fill_default(ftl_spec *spec, int param, ftl_error *error) {
  const ftl_param_info *info = ftl_param_get((ftl_param)param);
  spec->value[param] = info->default_value;
  if (info->default_value == FTL_PARAM_SAME_AS_HEADS) spec->value[param] = spec->value[FTL_PARAM_heads];
  if (info->default_value == FTL_PARAM_SAME_AS_HEAD_DIM) spec->value[param] = spec->value[FTL_PARAM_head_dim];
  if (info->default_value != FTL_PARAM_REQUIRED) return FTL_OK;
  if (param == FTL_PARAM_seqlen_q && spec->workload->decodes) {
    spec->value[param] = 1;
    return FTL_OK;
  }
  return ftl_error_set(error, FTL_BAD_INPUT, "%s needs %s, %lld to %lld%s%s: %s", spec->workload->name, info->name,
                       (long long)info->min, (long long)info->max, info->unit[0] ? " " : "", info->unit, info->doc);
}

void ftl_spec_set_default(ftl_spec *spec, ftl_param param, int64_t value) {
  if ((spec->given >> param & 1) == 0) spec->value[param] = value;
}

static int64_t store_unless_given(ftl_spec *spec, ftl_param param, int64_t value) {
  if ((spec->given >> param & 1) == 0) store(spec, (int)param, value);
  return spec->value[param];
}

// Packed sequences have their own lengths and no other; a cache of keys may have room for more than the longest.
static ftl_status complete_seqlen(ftl_spec *spec, int64_t longest, ftl_error *error) {
  bool packed = spec->workload->packs_queries;
  int64_t keys = store_unless_given(spec, FTL_PARAM_seqlen_kv, longest);
  int64_t queries = packed ? store_unless_given(spec, FTL_PARAM_seqlen_q, longest) : longest;
  if (packed && keys == queries && keys != longest)
    return ftl_error_set(error, FTL_BAD_INPUT, "seqlen=%lld: the longest of lengths is %lld", (long long)keys,
                         (long long)longest);
  const ftl_param params[] = {FTL_PARAM_seqlen_q, FTL_PARAM_seqlen_kv};
  const int64_t given[] = {queries, keys};
  for (int i = 0; i < 2; i++)
    if (packed ? given[i] != longest : given[i] < longest)
      return ftl_error_set(error, FTL_BAD_INPUT, "%s=%lld: the longest of lengths is %lld",
                           ftl_param_get(params[i])->name, (long long)given[i], (long long)longest);
  return FTL_OK;
}

// What a list of lengths says of the sizes of the batch. They then count as given.
static ftl_status complete_lengths(ftl_spec *spec, ftl_error *error) {
  if (!ftl_spec_takes(spec, FTL_PARAM_lengths) || spec->value[FTL_PARAM_lengths] == 0) return FTL_OK;
  int64_t count = ftl_spec_list(spec, FTL_PARAM_lengths, NULL, 0);
  int64_t longest = ftl_spec_list_most(spec, FTL_PARAM_lengths);
  int64_t batch = store_unless_given(spec, FTL_PARAM_batch, count);
  if (batch != count)
    return ftl_error_set(error, FTL_BAD_INPUT, "batch=%lld: lengths has %lld", (long long)batch, (long long)count);
  return complete_seqlen(spec, longest, error);
}

ftl_status ftl_spec_complete(ftl_spec *spec, ftl_error *error) {
  ftl_status lengths_status = complete_lengths(spec, error);
  if (lengths_status != FTL_OK) return lengths_status;
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i) || (spec->given >> i & 1) != 0) continue;
    ftl_status status = fill_default(spec, i, error);
    if (status != FTL_OK) return status;
  }
  if (spec->workload->set_defaults) spec->workload->set_defaults(spec);
  // That schedule has one buffer each by definition; a number that the user gave is not overruled.
  if (spec->value[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED) ftl_spec_set_default(spec, FTL_PARAM_num_stages, 1);
  return spec->workload->user_kernel ? FTL_OK : ftl_spec_check_rules(spec, error);
}

// ---- element types ----

ftl_dtype ftl_spec_dtype(const ftl_spec *spec) {
  static const ftl_dtype dtypes[] = {
      [FTL_SPEC_FP16] = FTL_FP16,         [FTL_SPEC_BF16] = FTL_BF16,         [FTL_SPEC_TF32] = FTL_TF32,
      [FTL_SPEC_FP8_E4M3] = FTL_FP8_E4M3, [FTL_SPEC_FP8_E5M2] = FTL_FP8_E5M2, [FTL_SPEC_INT8] = FTL_INT8,
      [FTL_SPEC_INT4] = FTL_INT4X2};
  return dtypes[spec->value[FTL_PARAM_dtype]];
}

ftl_dtype ftl_spec_acc_dtype(const ftl_spec *spec) {
  static const ftl_dtype dtypes[] = {
      [FTL_SPEC_ACC_FP32] = FTL_FP32, [FTL_SPEC_ACC_FP16] = FTL_FP16, [FTL_SPEC_ACC_INT32] = FTL_INT32};
  return dtypes[spec->value[FTL_PARAM_acc_dtype]];
}

// ---- writing ----

static const char *enum_text(const char *allowed, int64_t idx, char *buffer, size_t size) {
  for (; idx > 0; idx--) allowed += strcspn(allowed, "|") + 1;
  snprintf(buffer, size, "%.*s", (int)strcspn(allowed, "|"), allowed);
  return buffer;
}

double ftl_spec_real(const ftl_spec *spec, ftl_param param) {
  return (double)spec->value[param] / FTL_PARAM_UNITS_PER_ONE;
}

const char *ftl_spec_text(const ftl_spec *spec, ftl_param param, char *buffer) {
  enum { BUFFER_BYTES = 32 };
  const ftl_param_info *info = ftl_param_get(param);
  if (info->is_list) return ftl_spec_list_text(spec, param);
  if (info->allowed) return enum_text(info->allowed, spec->value[param], buffer, BUFFER_BYTES);
  if (is_bool(info))
    snprintf(buffer, BUFFER_BYTES, "%s", spec->value[param] ? "true" : "false");
  else if (info->is_real)
    snprintf(buffer, BUFFER_BYTES, "%.13g", ftl_spec_real(spec, param));
  else
    snprintf(buffer, BUFFER_BYTES, "%" PRId64, spec->value[param]);
  return buffer;
}

void ftl_spec_canonical(const ftl_spec *spec, ftl_text *out) {
  char value[32];
  ftl_text_add(out, "%s", spec->workload->name);
  const ftl_user_kernel *kernel = spec->workload->user_kernel;
  if (kernel) {
    ftl_text_add(out, "%s", kernel->num_params > 0 ? " " : "");
    ftl_user_kernel_write_params(kernel, out);
    ftl_text_add(out, " program=%016" PRIx64, kernel->identity);
  }
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i)) continue;
    ftl_text_add(out, " %s=%s", ftl_param_get((ftl_param)i)->name, ftl_spec_text(spec, (ftl_param)i, value));
  }
}
