// Sets the keys of an arch from a Lua table of sections.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "script/arch_model.h"
#include "script/arch_source.h"
#include "script/arch_value.h"

typedef struct application {
  lua_State *lua;
  ftl_arch *arch;
  const ftl_arch_model *model;  // NULL for a what-if
  const char *where;            // of a what-if
  ftl_error first;              // the fault that stands first in the file
  int first_line;
} application;

static int source_line(const application *a, const char *section, const char *key) {
  return a->model == NULL ? 0 : ftl_arch_source_line(a->model->text, a->model->text_size, section, key);
}

// Lua visits a table in no fixed order: keep the fault with the lowest line, then the lowest text.
static void keep_fault(application *a, int line, const ftl_error *fault) {
  bool none = a->first.status == FTL_OK;
  bool earlier = line < a->first_line || (line == a->first_line && strcmp(fault->message, a->first.message) < 0);
  if (!none && !earlier) return;
  a->first = *fault;
  a->first_line = line;
}

__attribute__((format(printf, 3, 4))) static void add_fault(application *a, int line, const char *format, ...) {
  char text[FTL_ERROR_MESSAGE_BYTES], where[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const char *file = a->model != NULL ? a->model->path : a->where;
  if (line == 0 && a->model != NULL) line = a->model->line;  // somewhere in its table
  if (line > 0) {
    snprintf(where, sizeof where, "%s:%d", file, line);
  } else {
    snprintf(where, sizeof where, "%s", file);
  }
  ftl_error fault;
  ftl_error_set(&fault, FTL_BAD_INPUT, "%s: %s", where, text);
  keep_fault(a, line, &fault);
}

static void allowed_text(const ftl_arch_key *key, char *out, size_t size) {
  if (key->allowed != NULL) {
    snprintf(out, size, "one of %s", key->allowed);
  } else {
    snprintf(out, size, "an integer of %lld to %lld (%s)", (long long)key->min, (long long)key->max, key->unit);
  }
}

static void set_value(application *a, int key_idx, const ftl_arch_value *box, const char *text, const char *source) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  ftl_origin origin = {.kind = box->kind, .text = source, .line = box->line};
  origin.file = a->model != NULL ? a->model->path : a->where;
  ftl_error fault = {0};
  ftl_status status = FTL_OK;
  if (box->type == FTL_ARCH_VALUE_INT) {
    status = ftl_arch_set_int(a->arch, key_idx, box->number, origin, &fault);
  } else if (box->type == FTL_ARCH_VALUE_TEXT) {
    status = ftl_arch_set_text(a->arch, key_idx, text, origin, &fault);
  } else {
    char allowed[160];
    allowed_text(key, allowed, sizeof allowed);
    add_fault(a, box->line, "%s is %.80s, allowed is %s", key->name, text, allowed);
  }
  if (status != FTL_OK) keep_fault(a, box->line, &fault);
}

// A value of a what-if, at the top of the stack. Not value_read: that pushes strings, and so may raise.
static void set_bare(application *a, int key_idx) {
  lua_State *lua = a->lua;
  ftl_arch_value box = {.kind = FTL_ORIGIN_OVERRIDE, .type = FTL_ARCH_VALUE_OTHER};
  char text[80];
  int exact = 0;
  box.number = lua_tointegerx(lua, -1, &exact);
  if (lua_type(lua, -1) == LUA_TNUMBER && exact) {
    box.type = FTL_ARCH_VALUE_INT;
    text[0] = '\0';
  } else if (lua_type(lua, -1) == LUA_TSTRING) {
    box.type = FTL_ARCH_VALUE_TEXT;
    snprintf(text, sizeof text, "%s", lua_tostring(lua, -1));
  } else if (lua_type(lua, -1) == LUA_TNUMBER) {
    snprintf(text, sizeof text, "%.14g, not a whole number", lua_tonumber(lua, -1));
  } else {
    snprintf(text, sizeof text, "a %s", luaL_typename(lua, -1));
  }
  set_value(a, key_idx, &box, text, "what-if");
}

static void bare_fault(application *a, const char *section, const char *key) {
  int line = source_line(a, section, key);
  const char *type = luaL_typename(a->lua, -1);
  if (lua_type(a->lua, -1) == LUA_TNUMBER) {
    add_fault(a, line,
              "%s.%s is a bare number: say where it is from with datasheet(v, \"source\"), measured(v, \"source\"), "
              "guess(v, \"why\") or override(v)",
              section, key);
  } else {
    add_fault(a, line,
              "%s.%s is a %s, allowed are datasheet(v, \"source\"), measured(v, \"source\"), guess(v, \"why\") and "
              "override(v)",
              section, key, type);
  }
}

static void unknown_fault(application *a, int line, const char *section, const char *key) {
  char name[2 * FTL_ARCH_SOURCE_NAME_BYTES + 2];
  snprintf(name, sizeof name, "%.64s.%.64s", section, key);
  add_fault(a, line, "unknown key %s, nearest is %s", name, ftl_arch_key_nearest(name));
}

// The value is at the top of the stack.
static void apply_value(application *a, const char *section, const char *key) {
  char name[2 * FTL_ARCH_SOURCE_NAME_BYTES + 2];
  snprintf(name, sizeof name, "%.64s.%.64s", section, key);
  int key_idx = ftl_arch_key_find(name);
  ftl_arch_value *box = a->model != NULL ? ftl_arch_value_test(a->lua, -1) : NULL;
  if (key_idx < 0) {
    unknown_fault(a, box != NULL ? box->line : source_line(a, section, key), section, key);
  } else if (a->model == NULL) {
    set_bare(a, key_idx);
  } else if (box == NULL) {
    bare_fault(a, section, key);
  } else {
    lua_getiuservalue(a->lua, -1, 1);
    lua_getiuservalue(a->lua, -2, 2);
    set_value(a, key_idx, box, lua_tostring(a->lua, -2), lua_tostring(a->lua, -1));
    lua_pop(a->lua, 2);
  }
}

// NULL where there is a section of that name, else the section of the nearest one.
static const char *nearest_section(const char *section, char out[FTL_ARCH_SOURCE_NAME_BYTES]) {
  int least = INT32_MAX;
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const char *key = ftl_arch_key_get(i)->name;
    char name[FTL_ARCH_SOURCE_NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "."), key);
    int distance = ftl_edit_distance(section, name);
    if (distance == 0) return NULL;
    if (distance >= least) continue;
    least = distance;
    memcpy(out, name, sizeof name);
  }
  return out;
}

// The section's table is at the top of the stack.
static void apply_section(application *a, const char *section) {
  lua_State *lua = a->lua;
  if (lua_type(lua, -1) != LUA_TTABLE) {
    add_fault(a, source_line(a, section, ""), "%.64s is a section: write %.64s = { key = value, ... }", section,
              section);
    return;
  }
  bool is_empty = true;
  lua_pushnil(lua);
  while (lua_next(lua, -2)) {
    is_empty = false;
    if (lua_type(lua, -2) == LUA_TSTRING) {
      apply_value(a, section, lua_tostring(lua, -2));
    } else {
      add_fault(a, source_line(a, section, ""), "%.64s has a value without a key", section);
    }
    lua_pop(lua, 1);
  }
  char name[FTL_ARCH_SOURCE_NAME_BYTES];
  const char *nearest = is_empty ? nearest_section(section, name) : NULL;  // else its keys are unknown
  if (nearest != NULL)
    add_fault(a, source_line(a, section, ""), "unknown section %.64s, nearest is %s", section, nearest);
}

// `index` is absolute.
static ftl_status apply(application *a, int index, ftl_error *error) {
  lua_State *lua = a->lua;
  if (!lua_checkstack(lua, 10)) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", a->arch->name);
  lua_pushnil(lua);
  while (lua_next(lua, index)) {
    if (lua_type(lua, -2) == LUA_TSTRING) {
      apply_section(a, lua_tostring(lua, -2));
    } else {
      add_fault(a, 0, "a model's table holds sections: write { section = { key = value, ... }, ... }");
    }
    lua_pop(lua, 1);
  }
  if (a->first.status == FTL_OK) return FTL_OK;
  return ftl_error_set(error, a->first.status, "%s", a->first.message);
}

ftl_status ftl_arch_model_apply(const ftl_arch_model *model, ftl_arch *arch, ftl_error *error) {
  application a = {.lua = ftl_sandbox_lua(model->sandbox), .arch = arch, .model = model};
  return apply(&a, 1, error);
}

ftl_status ftl_arch_what_if_apply(lua_State *lua, int index, const char *where, ftl_arch *arch, ftl_error *error) {
  if (lua_type(lua, index) != LUA_TTABLE) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: a what-if is a table { section = { key = value, ... }, ... }",
                         where);
  }
  application a = {.lua = lua, .arch = arch, .where = where};
  return apply(&a, lua_absindex(lua, index), error);
}
