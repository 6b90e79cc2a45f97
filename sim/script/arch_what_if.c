// Changed copies of an arch.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <lua.h>

#include "script/arch_loader.h"
#include "script/arch_model.h"

static ftl_arch *copy_as_what_if(const ftl_arch *base) {
  ftl_arch *copy = ftl_arch_create_copy(base);
  if (copy == NULL) return NULL;
  size_t size = strlen(copy->name);
  bool marked = size > 0 && copy->name[size - 1] == '*';
  if (!marked && size + 1 < sizeof copy->name) strcpy(copy->name + size, "*");
  return copy;
}

static ftl_status finish(ftl_arch *arch, ftl_status status, ftl_arch **out, ftl_error *error) {
  if (status == FTL_OK) status = ftl_arch_check(arch, error);
  if (status == FTL_OK) {
    *out = arch;
  } else {
    ftl_arch_destroy(arch);
  }
  return status;
}

static ftl_status set_value(ftl_arch *arch, int key_idx, const char *value, ftl_error *error) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  ftl_origin origin = {.kind = FTL_ORIGIN_OVERRIDE, .text = "what-if", .file = "what-if"};
  char *end = NULL;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  bool is_number = *value != '\0' && *end == '\0' && errno == 0;
  if (is_number && key->allowed == NULL) return ftl_arch_set_int(arch, key_idx, number, origin, error);
  return ftl_arch_set_text(arch, key_idx, value, origin, error);
}

static ftl_status apply_pair(ftl_arch *arch, const char *pair, ftl_error *error) {
  char name[64];
  const char *equals = strchr(pair, '=');
  if (equals == NULL || equals == pair || equals - pair >= (ptrdiff_t)sizeof name) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "what-if: \"%.60s\" is not section.key=value, as l2.size_bytes=123207680", pair);
  }
  memcpy(name, pair, (size_t)(equals - pair));
  name[equals - pair] = '\0';
  int key_idx = ftl_arch_key_find(name);
  if (key_idx >= 0) return set_value(arch, key_idx, equals + 1, error);
  return ftl_error_set(error, FTL_BAD_INPUT, "what-if: unknown key %s, nearest is %s", name,
                       ftl_arch_key_nearest(name));
}

// None of two values of a key is the one that was meant.
static ftl_status check_once(const char *const *pairs, int num_pairs, ftl_error *error) {
  for (int i = 1; i < num_pairs; i++) {
    size_t size = strcspn(pairs[i], "=");
    for (int k = 0; k < i; k++)
      if (strcspn(pairs[k], "=") == size && memcmp(pairs[k], pairs[i], size) == 0)
        return ftl_error_set(error, FTL_BAD_INPUT, "what-if: %.*s is set twice, as %.40s and %.40s", (int)size,
                             pairs[i], pairs[k] + size + (pairs[k][size] != '\0'),
                             pairs[i] + size + (pairs[i][size] != '\0'));
  }
  return FTL_OK;
}

ftl_status ftl_arch_create_what_if(const ftl_arch *base, const char *const *pairs, int num_pairs, ftl_arch **out,
                                   ftl_error *error) {
  *out = NULL;
  ftl_arch *arch = copy_as_what_if(base);
  if (arch == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "what-if: out of memory");
  ftl_status status = check_once(pairs, num_pairs, error);
  for (int i = 0; i < num_pairs && status == FTL_OK; i++) status = apply_pair(arch, pairs[i], error);
  return finish(arch, status, out, error);
}

ftl_status ftl_arch_create_what_if_lua(const ftl_arch *base, lua_State *lua, int index, const char *where,
                                       ftl_arch **out, ftl_error *error) {
  *out = NULL;
  ftl_arch *arch = copy_as_what_if(base);
  if (arch == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", where);
  return finish(arch, ftl_arch_what_if_apply(lua, index, where, arch, error), out, error);
}
