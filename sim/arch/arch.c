#include "arch/arch.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"

static const ftl_arch_key keys[] = {
#define FTL_ARCH_INT(section, key, unit, min, max, doc) \
  {#section "." #key, unit, doc, NULL, min, max, (uint32_t)offsetof(ftl_arch, section##_##key)},
#define FTL_ARCH_NAME(section, key, allowed, doc) \
  {#section "." #key, "", doc, allowed, 0, 0, (uint32_t)offsetof(ftl_arch, section##_##key)},
#include "arch/arch_keys.def"
#undef FTL_ARCH_INT
#undef FTL_ARCH_NAME
};

enum { NUM_KEYS = (int)(sizeof keys / sizeof keys[0]) };

// origins[i].text == NULL: key i is not set.
struct ftl_arch_origins {
  ftl_origin by_key[NUM_KEYS];
  ftl_arena texts;
};

int ftl_arch_num_keys(void) { return NUM_KEYS; }

const ftl_arch_key *ftl_arch_key_get(int key_idx) {
  FTL_CHECK(key_idx >= 0 && key_idx < NUM_KEYS, "arch: no key %d", key_idx);
  return &keys[key_idx];
}

int64_t ftl_arch_int(const ftl_arch *arch, int key_idx) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  FTL_CHECK(key->allowed == NULL, "arch: %s is a name, not an integer", key->name);
  int64_t value;
  memcpy(&value, (const char *)arch + key->offset, sizeof value);
  return value;
}

const char *ftl_arch_text(const ftl_arch *arch, int key_idx) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  FTL_CHECK(key->allowed != NULL, "arch: %s is an integer, not a name", key->name);
  return (const char *)arch + key->offset;
}

ftl_origin ftl_arch_origin(const ftl_arch *arch, int key_idx) {
  FTL_CHECK(ftl_arch_is_set(arch, key_idx), "arch: %s: %s is not set", arch->name, keys[key_idx].name);
  return arch->origins->by_key[key_idx];
}

bool ftl_arch_is_set(const ftl_arch *arch, int key_idx) {
  ftl_arch_key_get(key_idx);
  return arch->origins->by_key[key_idx].text != NULL;
}

ftl_arch *ftl_arch_create(const char *name, const char *die) {
  ftl_arch *arch = calloc(1, sizeof *arch);
  struct ftl_arch_origins *origins = calloc(1, sizeof *origins);
  if (arch == NULL || origins == NULL) {
    free(arch);
    free(origins);
    return NULL;
  }
  arch->origins = origins;
  snprintf(arch->name, sizeof arch->name, "%s", name);
  snprintf(arch->die, sizeof arch->die, "%s", die);
  return arch;
}

void ftl_arch_destroy(ftl_arch *arch) {
  if (arch == NULL) return;
  ftl_arena_fini(&arch->origins->texts);
  free(arch->origins);
  free(arch);
}

static const char *arena_copy(ftl_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = ftl_arena_alloc(arena, size);
  return copy == NULL ? NULL : memcpy(copy, text, size);
}

// False when memory is out; the key is then not set.
static bool origin_set(ftl_arch *arch, int key_idx, ftl_origin origin) {
  ftl_origin *slot = &arch->origins->by_key[key_idx];
  const char *text = arena_copy(&arch->origins->texts, origin.text != NULL ? origin.text : "");
  const char *file = arena_copy(&arch->origins->texts, origin.file != NULL ? origin.file : "?");
  if (text == NULL || file == NULL) {
    slot->text = NULL;
    return false;
  }
  *slot = (ftl_origin){.kind = origin.kind, .text = text, .file = file, .line = origin.line};
  return true;
}

ftl_arch *ftl_arch_create_copy(const ftl_arch *arch) {
  ftl_arch *copy = ftl_arch_create(arch->name, arch->die);
  if (copy == NULL) return NULL;
  struct ftl_arch_origins *origins = copy->origins;
  *copy = *arch;
  copy->origins = origins;
  for (int i = 0; i < NUM_KEYS; i++) {
    if (ftl_arch_is_set(arch, i) && !origin_set(copy, i, ftl_arch_origin(arch, i))) {
      ftl_arch_destroy(copy);
      return NULL;
    }
  }
  return copy;
}

ftl_status ftl_arch_become_die(ftl_arch *arch, const char *name, ftl_error *error) {
  for (int i = 0; i < NUM_KEYS; i++) {
    ftl_origin *origin = &arch->origins->by_key[i];
    if (origin->text == NULL || origin->kind != FTL_ORIGIN_MEASURED) continue;
    char text[FTL_ERROR_MESSAGE_BYTES];
    snprintf(text, sizeof text, "measured on %s: %s", arch->die, origin->text);
    origin->kind = FTL_ORIGIN_GUESS;
    origin->text = arena_copy(&arch->origins->texts, text);
    if (origin->text == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", name);
  }
  snprintf(arch->name, sizeof arch->name, "%s", name);
  snprintf(arch->die, sizeof arch->die, "%s", name);
  return FTL_OK;
}

const char *ftl_origin_kind_name(ftl_origin_kind kind) {
  static const char *const names[] = {"datasheet", "measured", "guess", "override"};
  FTL_CHECK((unsigned)kind < sizeof names / sizeof names[0], "arch: no origin kind %d", (int)kind);
  return names[kind];
}

// "h200.lua:12" or, where no line is known, "what-if".
static void origin_where(ftl_origin origin, char *out, size_t size) {
  const char *file = origin.file != NULL ? origin.file : "?";
  if (origin.line > 0) {
    snprintf(out, size, "%s:%d", file, origin.line);
  } else {
    snprintf(out, size, "%s", file);
  }
}

ftl_status ftl_arch_set_int(ftl_arch *arch, int key_idx, int64_t value, ftl_origin origin, ftl_error *error) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  char where[256];
  origin_where(origin, where, sizeof where);
  if (key->allowed != NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s is a number (%lld), allowed are the names %s", where, key->name,
                         (long long)value, key->allowed);
  }
  if (value < key->min || value > key->max) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s = %lld is out of range, allowed is %lld to %lld (%s)", where,
                         key->name, (long long)value, (long long)key->min, (long long)key->max, key->unit);
  }
  memcpy((char *)arch + key->offset, &value, sizeof value);
  if (!origin_set(arch, key_idx, origin)) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", where);
  return FTL_OK;
}

// Whether value is one of "a|b|c".
static bool name_allowed(const char *allowed, const char *value) {
  size_t size = strlen(value);
  for (const char *at = allowed; size > 0 && at != NULL; at = strchr(at, '|')) {
    if (*at == '|') at++;
    if (strncmp(at, value, size) == 0 && (at[size] == '|' || at[size] == '\0')) return true;
  }
  return false;
}

ftl_status ftl_arch_set_text(ftl_arch *arch, int key_idx, const char *value, ftl_origin origin, ftl_error *error) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  char where[256];
  origin_where(origin, where, sizeof where);
  if (key->allowed == NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s: %s is the text \"%.60s\", allowed is an integer of %lld to %lld (%s)", where, key->name,
                         value, (long long)key->min, (long long)key->max, key->unit);
  }
  if (strchr(value, '|') != NULL || !name_allowed(key->allowed, value)) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: %s = \"%.60s\", allowed are %s", where, key->name, value,
                         key->allowed);
  }
  snprintf((char *)arch + key->offset, FTL_ARCH_NAME_BYTES, "%s", value);
  if (!origin_set(arch, key_idx, origin)) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", where);
  return FTL_OK;
}

int64_t ftl_arch_l2_bytes_per_cycle(const ftl_arch *arch) {
  return arch->l2_num_slices * arch->l2_slice_bytes_per_cycle * arch->l2_sustained_milli / 1000;
}
