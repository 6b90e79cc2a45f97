#include "script/arch_model.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "script/arch_source.h"
#include "script/script_file.h"

// Data files are small: a model of ours runs a few thousand instructions.
static const ftl_sandbox_limits model_limits = {
    .max_memory_bytes = 16 << 20, .max_string_bytes = 1 << 20, .max_instructions = 10000000};

// --- values: datasheet(v, "source"), measured(...), guess(...), override(v) ---

typedef enum value_type { VALUE_INT, VALUE_TEXT, VALUE_OTHER } value_type;

// What a wrapper returns: a userdata with user values 1 = the text (TEXT) or description (OTHER), 2 = the source.
typedef struct value_box {
  ftl_origin_kind kind;
  int line;
  value_type type;
  int64_t number;
} value_box;

// Addresses that mark the metatables in the registry. Not names: looking up a name may allocate, and so raise.
static const char value_mark, model_mark;

static void *box_test(lua_State *lua, int index, const char *mark) {
  void *box = lua_touserdata(lua, index);
  if (box == NULL || lua_islightuserdata(lua, index) || !lua_getmetatable(lua, index)) return NULL;
  lua_rawgetp(lua, LUA_REGISTRYINDEX, mark);
  bool same = lua_rawequal(lua, -1, -2);
  lua_pop(lua, 2);
  return same ? box : NULL;
}

static int line_of_caller(lua_State *lua) {
  lua_Debug caller;
  if (!lua_getstack(lua, 1, &caller) || !lua_getinfo(lua, "l", &caller) || caller.currentline < 0) return 0;
  return caller.currentline;
}

// Pushes text or description of the value at index 1.
static void value_read(lua_State *lua, value_box *box) {
  int exact = 0;
  box->number = lua_tointegerx(lua, 1, &exact);
  if (lua_type(lua, 1) == LUA_TNUMBER && exact) {
    box->type = VALUE_INT;
    lua_pushliteral(lua, "");
  } else if (lua_type(lua, 1) == LUA_TSTRING) {
    box->type = VALUE_TEXT;
    lua_pushvalue(lua, 1);
  } else {
    box->type = VALUE_OTHER;
    if (lua_type(lua, 1) == LUA_TNUMBER) {
      lua_pushfstring(lua, "%f, not a whole number", lua_tonumber(lua, 1));
    } else {
      lua_pushfstring(lua, "a %s", luaL_typename(lua, 1));
    }
  }
}

static int wrap(lua_State *lua) {
  ftl_origin_kind kind = (ftl_origin_kind)lua_tointeger(lua, lua_upvalueindex(1));
  lua_settop(lua, 2);
  if (kind == FTL_ORIGIN_OVERRIDE && lua_isnil(lua, 2)) {
    lua_pushliteral(lua, "what-if");
    lua_replace(lua, 2);
  }
  if (lua_type(lua, 2) != LUA_TSTRING || lua_rawlen(lua, 2) == 0) {
    return luaL_error(lua, "%s(value, \"%s\") needs its second argument, a text", ftl_origin_kind_name(kind),
                      kind == FTL_ORIGIN_GUESS ? "why" : "source");
  }
  value_box *box = lua_newuserdatauv(lua, sizeof *box, 2);
  *box = (value_box){.kind = kind, .line = line_of_caller(lua)};
  value_read(lua, box);
  lua_setiuservalue(lua, -2, 1);
  lua_pushvalue(lua, 2);
  lua_setiuservalue(lua, -2, 2);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &value_mark);
  lua_setmetatable(lua, -2);
  return 1;
}

// --- models: die "name" { ... } and product "name" : on "base" { ... } ---

// User values 1 = name, 2 = base, 3 = table.
typedef struct model_box {
  bool is_die;
} model_box;

static const char *check_name(lua_State *lua, int index) {
  const char *name = luaL_checkstring(lua, index);
  size_t size = strlen(name);
  bool fits = size > 0 && size < FTL_ARCH_NAME_BYTES && size == lua_rawlen(lua, index);
  for (const char *c = name; fits && *c != '\0'; c++) {
    fits = islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '_';
  }
  if (!fits) {
    luaL_error(lua, "the name \"%s\" is not 1 to %d lower-case letters, digits and _", name, FTL_ARCH_NAME_BYTES - 1);
  }
  return name;
}

static void push_model(lua_State *lua, bool is_die) {
  check_name(lua, 1);
  model_box *box = lua_newuserdatauv(lua, sizeof *box, 3);
  box->is_die = is_die;
  lua_pushvalue(lua, 1);
  lua_setiuservalue(lua, -2, 1);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &model_mark);
  lua_setmetatable(lua, -2);
}

// The function that takes the table; upvalue 1 is the model.
static int take_table(lua_State *lua) {
  luaL_argexpected(lua, lua_type(lua, 1) == LUA_TTABLE, 1, "a table");
  lua_settop(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_setiuservalue(lua, 1, 3);
  return 1;
}

static int die(lua_State *lua) {
  push_model(lua, true);
  lua_pushcclosure(lua, take_table, 1);
  return 1;
}

static int product(lua_State *lua) {
  push_model(lua, false);
  return 1;
}

static int product_on(lua_State *lua) {
  model_box *box = box_test(lua, 1, &model_mark);
  if (box == NULL || box->is_die) return luaL_error(lua, "write product \"name\" : on \"base\" { ... }");
  luaL_checkstring(lua, 2);
  lua_settop(lua, 2);
  lua_setiuservalue(lua, 1, 2);
  lua_pushcclosure(lua, take_table, 1);
  return 1;
}

// --- the environment of a model file ---

static void push_mark(lua_State *lua, const char *mark) {
  lua_newtable(lua);
  lua_pushliteral(lua, "locked");
  lua_setfield(lua, -2, "__metatable");
  lua_pushvalue(lua, -1);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, mark);
}

static int open_model(lua_State *lua) {
  push_mark(lua, &value_mark);
  push_mark(lua, &model_mark);
  lua_newtable(lua);
  lua_pushcfunction(lua, product_on);
  lua_setfield(lua, -2, "on");
  lua_setfield(lua, -2, "__index");
  for (int kind = FTL_ORIGIN_DATASHEET; kind <= FTL_ORIGIN_OVERRIDE; kind++) {
    lua_pushinteger(lua, kind);
    lua_pushcclosure(lua, wrap, 1);
    lua_setglobal(lua, ftl_origin_kind_name((ftl_origin_kind)kind));
  }
  lua_register(lua, "die", die);
  lua_register(lua, "product", product);
  lua_pushnil(lua);
  lua_setglobal(lua, "print");  // data: nothing to say
  return 0;
}

// --- reading a file ---

// The result at the top of the stack becomes the model's name, base and table, alone on the stack.
static ftl_status model_take(ftl_arch_model *model, ftl_error *error) {
  lua_State *lua = ftl_sandbox_lua(model->sandbox);
  model_box *box = box_test(lua, -1, &model_mark);
  if (box == NULL || lua_getiuservalue(lua, -1, 3) != LUA_TTABLE) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s: must return die \"name\" { ... } or product \"name\" : on \"base\" { ... }", model->path);
  }
  lua_getiuservalue(lua, -2, 1);
  snprintf(model->name, sizeof model->name, "%s", lua_tostring(lua, -1));
  lua_getiuservalue(lua, -3, 2);
  snprintf(model->base, sizeof model->base, "%s", box->is_die ? "" : lua_tostring(lua, -1));
  lua_pop(lua, 2);
  lua_replace(lua, 1);
  lua_settop(lua, 1);
  return FTL_OK;
}

static ftl_status model_check_repeats(const ftl_arch_model *model, ftl_error *error) {
  ftl_arch_source_repeat repeat;
  if (!ftl_arch_source_find_repeat(model->text, model->text_size, &repeat)) return FTL_OK;
  const char *dot = repeat.key[0] != '\0' ? "." : "";
  return ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: %s%s%s is given twice, first in line %d", model->path, repeat.line,
                       repeat.section, dot, repeat.key, repeat.first_line);
}

static ftl_status model_run(ftl_arch_model *model, ftl_error *error) {
  lua_pushcfunction(ftl_sandbox_lua(model->sandbox), open_model);
  ftl_status status = ftl_sandbox_call(model->sandbox, 0, 0, error);
  if (status == FTL_OK) {
    status = ftl_sandbox_run_text(model->sandbox, model->path, model->text, model->text_size, 1, error);
  }
  if (status == FTL_OK) status = model_take(model, error);
  if (status == FTL_OK) status = model_check_repeats(model, error);
  return status;
}

// Takes over `text`.
static ftl_status model_init_taking(ftl_arch_model *model, const char *path, char *text, size_t size,
                                    ftl_error *error) {
  *model = (ftl_arch_model){.path = path, .text = text, .text_size = size};
  ftl_status status = ftl_sandbox_create(&model->sandbox, model_limits, error);
  if (status == FTL_OK) status = model_run(model, error);
  if (status != FTL_OK) ftl_arch_model_fini(model);
  return status;
}

ftl_status ftl_arch_model_init(ftl_arch_model *model, const char *path, ftl_error *error) {
  char *text = NULL;
  size_t size = 0;
  ftl_status status = ftl_script_file_read(path, &text, &size, error);
  return status == FTL_OK ? model_init_taking(model, path, text, size, error) : status;
}

ftl_status ftl_arch_model_init_text(ftl_arch_model *model, const char *path, const char *text, size_t size,
                                    ftl_error *error) {
  char *copy = malloc(size + 1);
  if (copy == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  memcpy(copy, text, size);
  return model_init_taking(model, path, copy, size, error);
}

void ftl_arch_model_fini(ftl_arch_model *model) {
  ftl_sandbox_destroy(model->sandbox);
  free(model->text);
}

// --- applying a table ---

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

static void set_value(application *a, int key_idx, const value_box *box, const char *text, const char *source) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  ftl_origin origin = {.kind = box->kind, .text = source, .line = box->line};
  origin.file = a->model != NULL ? a->model->path : a->where;
  ftl_error fault = {0};
  ftl_status status = FTL_OK;
  if (box->type == VALUE_INT) {
    status = ftl_arch_set_int(a->arch, key_idx, box->number, origin, &fault);
  } else if (box->type == VALUE_TEXT) {
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
  value_box box = {.kind = FTL_ORIGIN_OVERRIDE, .type = VALUE_OTHER};
  char text[80];
  int exact = 0;
  box.number = lua_tointegerx(lua, -1, &exact);
  if (lua_type(lua, -1) == LUA_TNUMBER && exact) {
    box.type = VALUE_INT;
    text[0] = '\0';
  } else if (lua_type(lua, -1) == LUA_TSTRING) {
    box.type = VALUE_TEXT;
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
  value_box *box = a->model != NULL ? box_test(a->lua, -1, &value_mark) : NULL;
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

// The section's table is at the top of the stack.
static void apply_section(application *a, const char *section) {
  lua_State *lua = a->lua;
  if (lua_type(lua, -1) != LUA_TTABLE) {
    add_fault(a, source_line(a, section, ""), "%.64s is a section: write %.64s = { key = value, ... }", section,
              section);
    return;
  }
  lua_pushnil(lua);
  while (lua_next(lua, -2)) {
    if (lua_type(lua, -2) == LUA_TSTRING) {
      apply_value(a, section, lua_tostring(lua, -2));
    } else {
      add_fault(a, source_line(a, section, ""), "%.64s has a value without a key", section);
    }
    lua_pop(lua, 1);
  }
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
