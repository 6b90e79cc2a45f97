#include "workloads/spec_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- text to runs ----

typedef struct run {
  int64_t number, times;
} run;

// Reads digits, with a minus where `negative` allows it; false where there are none or they do not fit.
static bool try_number(const char **text, bool negative, int64_t *number) {
  const char *digits = *text + (negative && **text == '-');
  if (digits[strspn(digits, "0123456789")] == digits[0]) return false;
  errno = 0;
  char *end;
  *number = strtoll(*text, &end, 10);
  *text = end;
  return errno == 0;
}

// Reads "512" or "4096x8" and the colon, or comma, after it.
static bool try_run(const char **text, const ftl_param_info *info, run *out) {
  *out = (run){.times = 1};
  if (!try_number(text, true, &out->number) || out->number < info->min || out->number > info->max) return false;
  if (**text == 'x') {
    ++*text;
    if (!try_number(text, false, &out->times) || out->times < 1) return false;
  }
  if (**text == '\0') return true;
  bool goes_on = **text == ':' || **text == ',';
  return goes_on && *++*text != '\0';
}

// ---- runs to canonical text ----

typedef struct writer {
  char text[FTL_SPEC_LIST_BYTES];
  size_t size;
  run last;
  int64_t count;
  bool too_long;
} writer;

static void write_last(writer *w) {
  if (w->last.times == 0 || w->too_long) return;
  size_t room = sizeof w->text - w->size;
  int size = w->last.times == 1 ? snprintf(w->text + w->size, room, "%s%" PRId64, w->size ? ":" : "", w->last.number)
                                : snprintf(w->text + w->size, room, "%s%" PRId64 "x%" PRId64, w->size ? ":" : "",
                                           w->last.number, w->last.times);
  w->too_long = (size_t)size >= room;
  if (!w->too_long) w->size += (size_t)size;
}

static void add_run(writer *w, run next) {
  w->too_long |= next.times > FTL_PARAM_MOST_LISTED - w->count;
  if (w->too_long) return;
  w->count += next.times;
  if (w->last.times > 0 && next.number == w->last.number) {
    w->last.times += next.times;
    return;
  }
  write_last(w);
  w->last = next;
}

// ---- the lists of a specification: for each that is not empty its parameter's number + 1, text, NUL ----

static int64_t hash_of(const char *text) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
  return (int64_t)(hash >> 1 | 1);  // not 0, which is the empty list
}

static char *find(ftl_spec *spec, int tag) {
  char *at = spec->lists;
  while (*at != 0 && *at != tag) at += strlen(at) + 1;
  return at;
}

// Takes a parameter's text out of the lists, which are followed by zeros.
static void remove_text(ftl_spec *spec, int tag) {
  char *at = find(spec, tag);
  if (*at == 0) return;
  size_t size = strlen(at) + 1, after = (size_t)(spec->lists + sizeof spec->lists - at) - size;
  memmove(at, at + size, after);
  memset(at + after, 0, size);
}

ftl_list_outcome ftl_spec_list_set(ftl_spec *spec, ftl_param param, const char *text) {
  const ftl_param_info *info = ftl_param_get(param);
  writer w = {.size = 0};
  bool empty = strcmp(text, "none") == 0;
  if (!empty && *text == '\0') return FTL_LIST_MALFORMED;
  while (!empty && *text != '\0') {
    run next;
    if (!try_run(&text, info, &next)) return FTL_LIST_MALFORMED;
    add_run(&w, next);
  }
  write_last(&w);
  int tag = (int)param + 1;
  ftl_spec changed = *spec;
  remove_text(&changed, tag);
  char *at = find(&changed, 0);
  size_t room = (size_t)(changed.lists + sizeof changed.lists - at);
  if (w.too_long || w.size + 3 > room) return FTL_LIST_TOO_LONG;  // the tag, its NUL, and a 0 after the last
  changed.value[param] = 0;
  if (!empty) {
    *at = (char)tag;
    memcpy(at + 1, w.text, w.size);
    changed.value[param] = hash_of(at + 1);
  }
  *spec = changed;
  return FTL_LIST_SET;
}

const char *ftl_spec_list_text(const ftl_spec *spec, ftl_param param) {
  const char *at = spec->lists;
  while (*at != 0 && *at != (int)param + 1) at += strlen(at) + 1;
  return *at != 0 ? at + 1 : "none";
}

int64_t ftl_spec_list(const ftl_spec *spec, ftl_param param, int32_t *out, int64_t capacity) {
  const char *text = ftl_spec_list_text(spec, param);
  int64_t count = 0;
  run next;
  if (spec->value[param] == 0) return 0;
  while (*text != '\0' && try_run(&text, ftl_param_get(param), &next))
    for (int64_t i = 0; i < next.times; i++, count++)
      if (count < capacity) out[count] = (int32_t)next.number;
  return count;
}

// The run that is smallest, or largest, by its number.
static int64_t extreme(const ftl_spec *spec, ftl_param param, bool largest) {
  const char *text = ftl_spec_list_text(spec, param);
  run next;
  int64_t found = largest ? INT64_MIN : INT64_MAX;
  while (*text != '\0' && try_run(&text, ftl_param_get(param), &next))
    if (largest ? next.number > found : next.number < found) found = next.number;
  return found;
}

int64_t ftl_spec_list_least(const ftl_spec *spec, ftl_param param) { return extreme(spec, param, false); }
int64_t ftl_spec_list_most(const ftl_spec *spec, ftl_param param) { return extreme(spec, param, true); }
