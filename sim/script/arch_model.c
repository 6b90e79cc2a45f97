#include "script/arch_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "script/arch_source.h"
#include "script/arch_value.h"
#include "script/script_file.h"

// Data files are small: a model of ours runs a few thousand instructions.
static const ftl_sandbox_limits model_limits = {
    .max_memory_bytes = 16 << 20, .max_string_bytes = 1 << 20, .max_instructions = 10000000};

// --- values: datasheet(v, "source"), measured(...), guess(...), override(v) ---

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

ftl_arch_value *ftl_arch_value_test(lua_State *lua, int index) { return box_test(lua, index, &value_mark); }

static int line_of_caller(lua_State *lua) {
  lua_Debug caller;
  if (!lua_getstack(lua, 1, &caller) || !lua_getinfo(lua, "l", &caller) || caller.currentline < 0) return 0;
  return caller.currentline;
}

// Pushes text or description of the value at index 1.
static void value_read(lua_State *lua, ftl_arch_value *box) {
  int exact = 0;
  box->number = lua_tointegerx(lua, 1, &exact);
  if (lua_type(lua, 1) == LUA_TNUMBER && exact) {
    box->type = FTL_ARCH_VALUE_INT;
    lua_pushliteral(lua, "");
  } else if (lua_type(lua, 1) == LUA_TSTRING) {
    box->type = FTL_ARCH_VALUE_TEXT;
    lua_pushvalue(lua, 1);
  } else {
    box->type = FTL_ARCH_VALUE_OTHER;
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
  ftl_arch_value *box = lua_newuserdatauv(lua, sizeof *box, 2);
  *box = (ftl_arch_value){.kind = kind, .line = line_of_caller(lua)};
  value_read(lua, box);
  lua_setiuservalue(lua, -2, 1);
  lua_pushvalue(lua, 2);
  lua_setiuservalue(lua, -2, 2);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &value_mark);
  lua_setmetatable(lua, -2);
  return 1;
}

// --- models: die "name" { ... }, die "name" : on "die" { ... } and product "name" : on "base" { ... } ---

// User values 1 = name, 2 = base, 3 = table.
typedef struct model_box {
  bool is_die;
  int line, base_line;
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
  *box = (model_box){.is_die = is_die, .line = line_of_caller(lua)};
  lua_pushvalue(lua, 1);
  lua_setiuservalue(lua, -2, 1);
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &model_mark);
  lua_setmetatable(lua, -2);
}

// Gives the model at index 1 the table at index 2, and returns it.
static int take_table(lua_State *lua) {
  luaL_argexpected(lua, lua_type(lua, 2) == LUA_TTABLE, 1, "a table");
  lua_settop(lua, 2);
  lua_setiuservalue(lua, 1, 3);
  return 1;
}

// What `: on "base"` returns, called with the table; upvalue 1 is the model.
static int take_table_on_base(lua_State *lua) {
  lua_settop(lua, 1);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  return take_table(lua);
}

static int die(lua_State *lua) {
  push_model(lua, true);
  return 1;
}

static int product(lua_State *lua) {
  push_model(lua, false);
  return 1;
}

static int model_on(lua_State *lua) {
  model_box *box = box_test(lua, 1, &model_mark);
  if (box == NULL) return luaL_error(lua, "write product \"name\" : on \"base\" { ... }");
  luaL_checkstring(lua, 2);
  box->base_line = line_of_caller(lua);
  lua_settop(lua, 2);
  lua_setiuservalue(lua, 1, 2);
  lua_pushcclosure(lua, take_table_on_base, 1);
  return 1;
}

// die "name" { ... }: a model that is called, and has no base.
static int model_call(lua_State *lua) {
  model_box *box = box_test(lua, 1, &model_mark);
  if (box == NULL || !box->is_die) return luaL_error(lua, "write product \"name\" : on \"base\" { ... }");
  return take_table(lua);
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
  lua_pushcfunction(lua, model_on);
  lua_setfield(lua, -2, "on");
  lua_setfield(lua, -2, "__index");
  lua_pushcfunction(lua, model_call);
  lua_setfield(lua, -2, "__call");
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
    char line[16] = "";
    if (box != NULL) snprintf(line, sizeof line, "%d:", box->line);
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s:%s must return die \"name\" { ... } or product \"name\" : on \"base\" { ... }",
                         model->path, line);
  }
  lua_getiuservalue(lua, -2, 1);
  snprintf(model->name, sizeof model->name, "%s", lua_tostring(lua, -1));
  bool has_base = lua_getiuservalue(lua, -3, 2) == LUA_TSTRING;
  snprintf(model->base, sizeof model->base, "%s", has_base ? lua_tostring(lua, -1) : "");
  model->is_die = box->is_die;
  model->line = box->line;
  model->base_line = box->base_line;
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
