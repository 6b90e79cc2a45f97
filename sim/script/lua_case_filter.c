// Which cases ft.measurements{…} asks for. Everything is read from the script before a file is opened, so that nothing
// that may raise an error runs while one is.
#include <string.h>

#include <lauxlib.h>

#include "script/lua_cases.h"
#include "script/sandbox.h"

enum { MOST_NAMES = 64, MOST_VALUES = 256 };

// Names that the arguments keep alive, or a session.
typedef struct names {
  const char *name[MOST_NAMES];
  int count;
} names;

typedef struct wanted_value {
  int param;  // FTL_PARAM_COUNT: both lengths
  int64_t value;
} wanted_value;

struct ftl_lua_case_filter {
  names archs, workloads, sources, parts;
  wanted_value values[MOST_VALUES];
  int num_values;
};

// --- matching ---

static bool has_name(const names *n, const char *name) {
  for (int i = 0; i < n->count; i++) {
    if (strcmp(n->name[i], name) == 0) return true;
  }
  return n->count == 0;
}

static bool has_value(const ftl_spec *spec, int param, int64_t value) {
  if (param == FTL_PARAM_COUNT)
    return spec->value[FTL_PARAM_seqlen_q] == value && spec->value[FTL_PARAM_seqlen_kv] == value;
  return ftl_spec_takes(spec, (ftl_param)param) && spec->value[param] == value;
}

bool ftl_lua_case_filter_wants(const void *user, const ftl_measured_case *c) {
  const ftl_lua_case_filter *f = user;
  if (!has_name(&f->archs, c->arch) || !has_name(&f->workloads, c->spec.workload->name)) return false;
  if (!has_name(&f->sources, c->source) || !has_name(&f->parts, ftl_part_name(c->part))) return false;
  // The values of one parameter stand together: one of them is enough.
  for (int first = 0, end = 0; first < f->num_values; first = end) {
    bool any = false;
    for (; end < f->num_values && f->values[end].param == f->values[first].param; end++) {
      any = any || has_value(&c->spec, f->values[end].param, f->values[end].value);
    }
    if (!any) return false;
  }
  return true;
}

// --- reading the arguments, at stack index 1 ---

static const char *const keys[] = {"files", "every", "arch", "workload", "source", "part", "seqlen"};
enum { NUM_KEYS = sizeof keys / sizeof *keys };

static bool is_key(const char *key) {
  for (int i = 0; i < NUM_KEYS; i++) {
    if (strcmp(key, keys[i]) == 0) return true;
  }
  return ftl_param_find(key) >= 0;
}

static const char *nearest_key(const char *key) {
  const char *nearest = ftl_param_nearest(key);
  for (int i = 0; i < NUM_KEYS; i++) {
    if (ftl_edit_distance(key, keys[i]) < ftl_edit_distance(key, nearest)) nearest = keys[i];
  }
  return nearest;
}

// Of several unknown keys the first by name is reported: Lua's own order differs from run to run.
static void check_keys(lua_State *lua) {
  const char *unknown = NULL;
  lua_pushnil(lua);
  while (lua_next(lua, 1) != 0) {
    lua_pop(lua, 1);
    if (lua_type(lua, -1) != LUA_TSTRING) luaL_error(lua, "what ft.measurements takes is written name = value");
    const char *key = lua_tostring(lua, -1);
    if (is_key(key)) continue;
    if (unknown == NULL || strcmp(key, unknown) < 0) unknown = key;  // the table keeps it alive
  }
  if (unknown == NULL) return;
  luaL_error(lua,
             "ft.measurements takes files, every, arch, workload, source, part and parameters, not \"%s\"; the nearest "
             "is %s",
             unknown, nearest_key(unknown));
}

// Calls `take` with each value of field `key` at the top of the stack: one value, or a list.
typedef void (*take_value)(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param);

static void each_value(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param, take_value take) {
  int type = lua_getfield(lua, 1, key);
  if (type == LUA_TTABLE) {
    lua_Integer count = (lua_Integer)lua_rawlen(lua, -1);
    if (count == 0) luaL_error(lua, "%s is an empty list", key);
    for (lua_Integer i = 1; i <= count; i++) {
      lua_rawgeti(lua, -1, i);
      take(lua, f, key, param);
      lua_pop(lua, 1);
      ftl_sandbox_charge(lua, 1);
    }
  } else if (type != LUA_TNIL) {
    take(lua, f, key, param);
  }
  lua_pop(lua, 1);
}

static void add_name(lua_State *lua, names *n, const char *key, const char *name) {
  if (n->count == MOST_NAMES) luaL_error(lua, "%s lists more than %d names", key, MOST_NAMES);
  n->name[n->count++] = name;
}

static const char *check_name(lua_State *lua, const char *key) {
  if (lua_type(lua, -1) != LUA_TSTRING) luaL_error(lua, "%s must be a name, not a %s", key, luaL_typename(lua, -1));
  return lua_tostring(lua, -1);
}

static void take_arch(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param) {
  (void)param;
  add_name(lua, &f->archs, key, ftl_lua_to_arch(lua, -1)->name);
}

static void take_workload(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param) {
  (void)param;
  const char *name = check_name(lua, key);
  const ftl_workload *workload = ftl_workload_find(name);
  ftl_spec spec;
  ftl_error error;
  if (workload == NULL && ftl_spec_init(&spec, name, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  add_name(lua, &f->workloads, key, workload->name);
}

static void take_source(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param) {
  (void)param;
  add_name(lua, &f->sources, key, check_name(lua, key));
}

static void take_part(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param) {
  (void)param;
  const char *name = check_name(lua, key);
  bool is_part = false;
  for (int p = 0; p < FTL_PART_COUNT; p++) is_part = is_part || strcmp(name, ftl_part_name((ftl_part)p)) == 0;
  if (!is_part) luaL_error(lua, "part=%s: allowed are calibration, reserved, held-out, independent, yours", name);
  add_name(lua, &f->parts, key, name);
}

// A workload that the value can be read for: the first asked for that takes the parameter, or that there is.
static const char *reader_of(const ftl_lua_case_filter *f, int param) {
  for (int i = 0; i < f->workloads.count; i++) {
    if (ftl_workload_takes(ftl_workload_find(f->workloads.name[i]), (ftl_param)param)) return f->workloads.name[i];
  }
  if (f->workloads.count > 0) return f->workloads.name[0];  // which then says that it does not take it
  for (int i = 0; i < ftl_workload_count(); i++) {
    if (ftl_workload_takes(ftl_workload_get(i), (ftl_param)param)) return ftl_workload_get(i)->name;
  }
  return ftl_workload_get(0)->name;
}

static void take_param(lua_State *lua, ftl_lua_case_filter *f, const char *key, int param) {
  char text[FTL_LUA_VALUE_BYTES];
  ftl_spec spec;
  ftl_error error;
  bool is_both_lengths = param == FTL_PARAM_COUNT;
  int first_param = is_both_lengths ? FTL_PARAM_seqlen_q : param;
  ftl_lua_value_text(lua, -1, key, text);
  ftl_status status = ftl_spec_init(&spec, reader_of(f, first_param), &error);
  if (status == FTL_OK) status = ftl_spec_set_text(&spec, key, text, &error);
  if (status != FTL_OK) ftl_lua_raise(lua, &error);
  if (f->num_values == MOST_VALUES) luaL_error(lua, "more than %d values of parameters", MOST_VALUES);
  f->values[f->num_values++] = (wanted_value){param, spec.value[first_param]};
}

const ftl_lua_case_filter *ftl_lua_push_case_filter(lua_State *lua) {
  check_keys(lua);
  ftl_lua_case_filter *f = lua_newuserdatauv(lua, sizeof *f, 0);
  memset(f, 0, sizeof *f);
  each_value(lua, f, "arch", 0, take_arch);
  each_value(lua, f, "workload", 0, take_workload);
  each_value(lua, f, "source", 0, take_source);
  each_value(lua, f, "part", 0, take_part);
  each_value(lua, f, "seqlen", FTL_PARAM_COUNT, take_param);
  for (int i = 0; i < FTL_PARAM_COUNT; i++) each_value(lua, f, ftl_param_get((ftl_param)i)->name, i, take_param);
  return f;
}
