// Sets of measured cases: what ft.measurements gives.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "report/case_table.h"
#include "script/lua_cases.h"
#include "script/sandbox.h"

static const char *const set_type = "foretile.case_set";

typedef struct case_set {
  int64_t num_cases;
  const ftl_case *cases[];  // of the store
} case_set;

ftl_lua_case *ftl_lua_push_case_store(lua_State *lua, int64_t num_cases) {
  return ftl_lua_push_block(lua, sizeof(ftl_lua_case) * (size_t)(num_cases > 0 ? num_cases : 1), 1);
}

const ftl_case **ftl_lua_push_case_set(lua_State *lua, int64_t num_cases, int store) {
  store = lua_absindex(lua, store);
  case_set *set = lua_newuserdatauv(lua, sizeof *set + sizeof *set->cases * (size_t)num_cases, 1);
  set->num_cases = num_cases;
  lua_pushvalue(lua, store);
  lua_setiuservalue(lua, -2, 1);
  luaL_setmetatable(lua, set_type);
  return set->cases;
}

static case_set *check_set(lua_State *lua) { return luaL_checkudata(lua, 1, set_type); }

// Pushes an empty set of the store of the one at 1, with room for as many.
static case_set *push_part(lua_State *lua, int64_t most) {
  lua_getiuservalue(lua, 1, 1);
  ftl_lua_push_case_set(lua, most, -1);
  lua_remove(lua, -2);
  case_set *part = lua_touserdata(lua, -1);
  part->num_cases = 0;
  return part;
}

static void push_case(lua_State *lua, const ftl_case *c) {
  lua_getiuservalue(lua, 1, 1);
  ftl_lua_push_case(lua, ftl_lua_case_of(c), -1);
  lua_remove(lua, -2);
}

// --- predictions ---

// arch: a name or a model that stands in for the measured one; detail.
static void check_options(lua_State *lua, int options) {
  luaL_checktype(lua, options, LUA_TTABLE);
  const char *unknown = NULL;
  lua_pushnil(lua);
  while (lua_next(lua, options) != 0) {
    lua_pop(lua, 1);
    const char *key = lua_type(lua, -1) == LUA_TSTRING ? lua_tostring(lua, -1) : "[a number]";
    if (strcmp(key, "arch") == 0 || strcmp(key, "detail") == 0) continue;
    if (unknown == NULL || strcmp(key, unknown) < 0) unknown = key;  // the table keeps it alive
  }
  if (unknown != NULL) luaL_error(lua, ":predict takes arch and detail, not \"%s\"", unknown);
}

static const ftl_arch *get_arch(lua_State *lua, int options) {
  if (options == 0) return NULL;
  const ftl_arch *arch = lua_getfield(lua, options, "arch") != LUA_TNIL ? ftl_lua_to_arch(lua, -1) : NULL;
  lua_pop(lua, 1);
  return arch;
}

// Left on the stack where it is the script's.
static const char *get_detail(lua_State *lua, int options) {
  const char *detail = ftl_lua_session(lua)->detail;
  if (options == 0) return detail;
  int type = lua_getfield(lua, options, "detail");
  if (type != LUA_TNIL && type != LUA_TSTRING)
    luaL_error(lua, "detail must be a name, not a %s", lua_typename(lua, type));
  return type == LUA_TSTRING ? lua_tostring(lua, -1) : detail;
}

static void make_point(lua_State *lua, const ftl_measured_case *c, const ftl_arch *arch, const char *detail,
                       ftl_point *out) {
  ftl_error error;
  out->contradiction[0] = '\0';
  out->spec = c->spec;
  out->arch = arch;
  ftl_status status = arch != NULL ? FTL_OK : ftl_session_arch(ftl_lua_session(lua), c->arch, &out->arch, &error);
  if (status == FTL_OK && detail != NULL) status = ftl_spec_set_text(&out->spec, "detail", detail, &error);
  if (status != FTL_OK) ftl_lua_raise(lua, &error);
}

void ftl_lua_push_predicted(lua_State *lua, int set_index, int options) {
  const case_set *set = lua_touserdata(lua, set_index);
  int top = lua_gettop(lua);
  int64_t count = set->num_cases;
  if (options != 0) check_options(lua, options);
  const ftl_arch *arch = get_arch(lua, options);
  const char *detail = get_detail(lua, options);
  ftl_point *points = ftl_lua_push_block(lua, sizeof *points * (size_t)(count > 0 ? count : 1), 0);
  for (int64_t i = 0; i < count; i++) {
    make_point(lua, &set->cases[i]->measured_case, arch, detail, &points[i]);
    ftl_sandbox_charge(lua, 10);
  }
  const ftl_answer *answers = ftl_lua_push_answers(lua, points, count);
  int owner = lua_gettop(lua);
  ftl_lua_case *cases = ftl_lua_push_case_store(lua, count);
  lua_pushvalue(lua, owner);
  lua_setiuservalue(lua, -2, 1);
  const ftl_case **predicted = ftl_lua_push_case_set(lua, count, -1);
  for (int64_t i = 0; i < count; i++) {
    cases[i] = (ftl_lua_case){.one = *set->cases[i], .arch = points[i].arch};
    cases[i].one.status = FTL_OK;
    cases[i].one.prediction = &answers[i].prediction;
    predicted[i] = &cases[i].one;
  }
  lua_replace(lua, top + 1);
  lua_settop(lua, top + 1);
}

static int set_predict(lua_State *lua) {
  check_set(lua);
  lua_settop(lua, 2);
  ftl_lua_push_predicted(lua, 1, lua_isnil(lua, 2) ? 0 : 2);
  return 1;
}

// The set at 1, predicted if it was not; it replaces it.
static const case_set *predicted_set(lua_State *lua) {
  const case_set *set = check_set(lua);
  for (int64_t i = 0; i < set->num_cases; i++) {
    if (set->cases[i]->prediction != NULL) continue;
    ftl_lua_push_predicted(lua, 1, 0);
    lua_replace(lua, 1);
    return check_set(lua);
  }
  return set;
}

// --- comparison ---

// A list: what c:compare() gives of each, with the case.
static int set_compare(lua_State *lua) {
  lua_settop(lua, 1);
  const case_set *set = predicted_set(lua);
  lua_createtable(lua, (int)set->num_cases, 0);
  for (int64_t i = 0; i < set->num_cases; i++) {
    ftl_lua_push_comparison(lua, set->cases[i]);
    push_case(lua, set->cases[i]);
    lua_setfield(lua, -2, "case");
    lua_rawseti(lua, -2, (lua_Integer)i + 1);
    ftl_sandbox_charge(lua, 50);
  }
  return 1;
}

static void push_statistics(lua_State *lua, ftl_quantity quantity, const ftl_error_statistics *s) {
  const char *unit = ftl_quantity_unit(quantity);
  lua_createtable(lua, 0, 8);
  ftl_lua_set_number(lua, "cases", (double)s->count);
  ftl_lua_set_number(lua, "mean", s->mean);
  if (strcmp(unit, "%") == 0) ftl_lua_set_number(lua, "mape", s->mean);
  ftl_lua_set_number(lua, "median", s->median);
  ftl_lua_set_number(lua, "p90", s->p90);
  ftl_lua_set_number(lua, "max", s->max);
  ftl_lua_set_number(lua, "bias", s->bias);
  lua_pushstring(lua, unit);
  lua_setfield(lua, -2, "unit");
}

static ftl_error_statistics statistics_of(const case_set *set, ftl_quantity quantity, double *errors) {
  int64_t count = 0;
  for (int64_t i = 0; i < set->num_cases; i++) {
    count += ftl_case_error(set->cases[i], quantity, &errors[count]);
  }
  return ftl_error_statistics_make(errors, count);
}

static ftl_quantity check_quantity(lua_State *lua, const char *name) {
  int quantity = ftl_quantity_find(name);
  if (quantity < 0) {
    luaL_error(lua, "nothing that is compared is called \"%s\"; the nearest is %s", name, ftl_quantity_nearest(name));
  }
  return (ftl_quantity)quantity;
}

// :summary() of all that any case has, by name; :summary("hbm") of one, nil where no case has it.
static int set_summary(lua_State *lua) {
  lua_settop(lua, 2);
  const char *name = luaL_optstring(lua, 2, NULL);
  ftl_quantity only = name != NULL ? check_quantity(lua, name) : FTL_QUANTITY_COUNT;
  const case_set *set = predicted_set(lua);
  double *errors = lua_newuserdatauv(lua, sizeof *errors * (size_t)(set->num_cases + 1), 0);
  if (name == NULL) lua_newtable(lua);
  for (int q = 0; q < FTL_QUANTITY_COUNT; q++) {
    if (name != NULL && q != (int)only) continue;
    ftl_error_statistics s = statistics_of(set, (ftl_quantity)q, errors);
    ftl_sandbox_charge(lua, 10 * set->num_cases);
    if (name == NULL && s.count == 0) continue;
    if (s.count == 0) return 0;
    push_statistics(lua, (ftl_quantity)q, &s);
    if (name == NULL) lua_setfield(lua, -2, ftl_quantity_id((ftl_quantity)q));
  }
  return 1;
}

// As in the lines of `validate --json`; without an order there is no rho.
static void push_choice(lua_State *lua, const ftl_choice *c) {
  lua_createtable(lua, 0, 5);
  push_case(lua, c->first);
  lua_setfield(lua, -2, "case");
  ftl_lua_set_number(lua, "cases", (double)c->num_cases);
  ftl_lua_set_number(lua, "rho", c->rho);
  ftl_lua_set_number(lua, "best_pct", c->best_pct);
  ftl_lua_set_number(lua, "best_of_3_pct", c->best3_pct);
}

// Into the table at the top.
static void set_choice_summary(lua_State *lua, const ftl_choice *choices, int64_t count) {
  ftl_choice_summary s = ftl_choices_summary(choices, count);
  ftl_lua_set_number(lua, "rho_mean", s.rho_mean);
  ftl_lua_set_number(lua, "rho_least", s.rho_least);
  ftl_lua_set_number(lua, "best_mean_pct", s.best_mean_pct);
  ftl_lua_set_number(lua, "best_least_pct", s.best_least_pct);
  ftl_lua_set_number(lua, "best_of_3_mean_pct", s.best3_mean_pct);
  ftl_lua_set_number(lua, "best_of_3_least_pct", s.best3_least_pct);
}

// :choices(): a list, worst first, of how well each shape's block sizes, warps and stages are ranked, and over all.
static int set_choices(lua_State *lua) {
  lua_settop(lua, 1);
  const case_set *set = predicted_set(lua);
  size_t most = (size_t)(set->num_cases / FTL_CHOICE_MIN_CASES);
  ftl_choice *choices = lua_newuserdatauv(lua, sizeof *choices * (most + 1), 0);
  ftl_sandbox_charge(lua, 50 * set->num_cases);
  int64_t count = 0;
  ftl_error error;
  if (ftl_cases_choices(set->cases, set->num_cases, choices, &count, &error) != FTL_OK) {
    return ftl_lua_raise(lua, &error);
  }
  lua_createtable(lua, (int)count, 6);
  for (int64_t i = 0; i < count; i++) {
    push_choice(lua, &choices[i]);
    lua_rawseti(lua, -2, (lua_Integer)i + 1);
  }
  if (count > 0) set_choice_summary(lua, choices, count);
  return 1;
}

// --- sets from sets ---

static int set_filter(lua_State *lua) {
  const case_set *set = check_set(lua);
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  lua_settop(lua, 2);
  case_set *part = push_part(lua, set->num_cases);
  for (int64_t i = 0; i < set->num_cases; i++) {
    lua_pushvalue(lua, 2);
    push_case(lua, set->cases[i]);
    lua_call(lua, 1, 1);
    if (lua_toboolean(lua, -1)) part->cases[part->num_cases++] = set->cases[i];
    lua_pop(lua, 1);
  }
  return 1;
}

static int set_top(lua_State *lua) {
  const case_set *set = check_set(lua);
  lua_Integer count = luaL_checkinteger(lua, 2);
  luaL_argcheck(lua, count >= 0, 2, "a number of cases, 0 or more");
  case_set *part = push_part(lua, set->num_cases);
  while (part->num_cases < count && part->num_cases < set->num_cases) {
    part->cases[part->num_cases] = set->cases[part->num_cases];
    part->num_cases++;
  }
  return 1;
}

typedef struct sized {
  double size;  // infinite: there is no error, which is the worst
  int64_t idx;
} sized;

static int compare_sized(const void *a, const void *b) {
  const sized *x = a, *y = b;
  if (x->size != y->size) return x->size < y->size ? 1 : -1;
  return (x->idx > y->idx) - (x->idx < y->idx);
}

// :worst("hbm"): by the size of its error; :worst(): of cycles and time. Worst first, cases without an error before.
static int set_worst(lua_State *lua) {
  lua_settop(lua, 2);
  const char *name = luaL_optstring(lua, 2, NULL);
  ftl_quantity quantity = name != NULL ? check_quantity(lua, name) : FTL_QUANTITY_COUNT;
  const case_set *set = predicted_set(lua);
  sized *order = lua_newuserdatauv(lua, sizeof *order * (size_t)(set->num_cases + 1), 0);
  for (int64_t i = 0; i < set->num_cases; i++) {
    const ftl_case *c = set->cases[i];
    double error = name == NULL ? ftl_case_size(c) : 0;
    bool has_error = name != NULL ? ftl_case_error(c, quantity, &error) : error >= 0;
    order[i] = (sized){has_error ? fabs(error) : (double)INFINITY, i};
  }
  if (set->num_cases > 1) qsort(order, (size_t)set->num_cases, sizeof *order, compare_sized);
  ftl_sandbox_charge(lua, 20 * set->num_cases);
  case_set *worst = push_part(lua, set->num_cases);
  for (int64_t i = 0; i < set->num_cases; i++) worst->cases[worst->num_cases++] = set->cases[order[i].idx];
  return 1;
}

// --- text ---

static int read_columns(lua_State *lua, ftl_case_column *columns) {
  luaL_checktype(lua, 2, LUA_TTABLE);
  lua_Unsigned count = lua_rawlen(lua, 2);
  luaL_argcheck(lua, count >= 1 && count <= FTL_CASE_MOST_COLUMNS, 2, "a list of 1 to 64 column names");
  for (int i = 0; i < (int)count; i++) {
    ftl_error error;
    if (lua_rawgeti(lua, 2, i + 1) != LUA_TSTRING) {
      luaL_error(lua, "column %d must be a name, not a %s", i + 1, luaL_typename(lua, -1));
    }
    if (ftl_case_column_find(lua_tostring(lua, -1), &columns[i], &error) != FTL_OK) ftl_lua_raise(lua, &error);
    lua_pop(lua, 1);
  }
  return (int)count;
}

static int set_table(lua_State *lua) {
  const case_set *set = check_set(lua);
  ftl_case_column columns[FTL_CASE_MOST_COLUMNS];
  int count = lua_isnoneornil(lua, 2) ? ftl_case_columns_default(set->cases, set->num_cases, columns)
                                      : read_columns(lua, columns);
  ftl_sandbox_charge(lua, 100 * set->num_cases);
  ftl_error error;
  ftl_text *text = ftl_lua_push_text(lua);
  ftl_status status = ftl_cases_table(set->cases, set->num_cases, columns, count, text, &error);
  if (status != FTL_OK) return ftl_lua_raise(lua, &error);
  ftl_lua_take_text(lua, text);
  return 1;
}

static int set_tostring(lua_State *lua) {
  lua_settop(lua, 1);
  return set_table(lua);
}

// --- access ---

static int each_next(lua_State *lua) {
  const case_set *set = check_set(lua);
  lua_Integer i = luaL_checkinteger(lua, 2);
  if (i < 0 || i >= set->num_cases) return 0;
  lua_pushinteger(lua, i + 1);
  push_case(lua, set->cases[i]);
  return 2;
}

static int set_each(lua_State *lua) {
  check_set(lua);
  lua_pushcfunction(lua, each_next);
  lua_pushvalue(lua, 1);
  lua_pushinteger(lua, 0);
  return 3;
}

static int set_length(lua_State *lua) {
  lua_pushinteger(lua, check_set(lua)->num_cases);
  return 1;
}

static int set_index(lua_State *lua) {
  const case_set *set = check_set(lua);
  if (!lua_isinteger(lua, 2)) return ftl_lua_method(lua, "a set of measured cases");
  lua_Integer i = lua_tointeger(lua, 2);
  if (i < 1 || i > set->num_cases) return 0;
  push_case(lua, set->cases[i - 1]);
  return 1;
}

void ftl_lua_open_case_set(lua_State *lua) {
  const luaL_Reg functions[] = {{"__len", set_length}, {"__tostring", set_tostring}, {NULL, NULL}};
  const luaL_Reg methods[] = {{"predict", set_predict}, {"compare", set_compare},
                              {"summary", set_summary}, {"choices", set_choices},
                              {"filter", set_filter},   {"top", set_top},
                              {"worst", set_worst},     {"table", set_table},
                              {"each", set_each},       {NULL, NULL}};
  luaL_newmetatable(lua, set_type);
  luaL_setfuncs(lua, functions, 0);
  lua_newtable(lua);
  luaL_setfuncs(lua, methods, 0);
  lua_pushcclosure(lua, set_index, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_pop(lua, 1);
}
