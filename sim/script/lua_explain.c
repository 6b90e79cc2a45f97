// ft.explain{…}: a table with the answer, what-ifs and neighbours, and the text of `foretile explain`.

#include <lauxlib.h>

#include "explain/explain.h"
#include "script/lua_module.h"

// Holds an explanation while tables are made of it, so that an error frees it.
static const char *const guard_type = "foretile.explanation";

static int guard_collect(lua_State *lua) {
  ftl_explanation **guard = luaL_checkudata(lua, 1, guard_type);
  ftl_explanation_destroy(*guard);
  *guard = NULL;
  return 0;
}

static ftl_explanation **push_guard(lua_State *lua) {
  ftl_explanation **guard = lua_newuserdatauv(lua, sizeof *guard, 0);
  *guard = NULL;
  if (luaL_newmetatable(lua, guard_type)) {
    lua_pushcfunction(lua, guard_collect);
    lua_setfield(lua, -2, "__gc");
  }
  lua_setmetatable(lua, -2);
  return guard;
}

static void set_string(lua_State *lua, const char *key, const char *value) {
  lua_pushstring(lua, value);
  lua_setfield(lua, -2, key);
}

static void push_case(lua_State *lua, const ftl_explain_case *c) {
  lua_newtable(lua);
  lua_pushboolean(lua, c->feasible);
  lua_setfield(lua, -2, "feasible");
  if (!c->feasible) {
    set_string(lua, "reason", c->reason);
    return;
  }
  ftl_lua_set_number(lua, "time_ns", c->time_ns);
  ftl_lua_set_number(lua, "time_change_pct", c->time_change_pct);
  ftl_lua_set_number(lua, "hbm_bytes", c->hbm_bytes);
  ftl_lua_set_number(lua, "hbm_change_pct", c->hbm_change_pct);
}

static void push_what_ifs(lua_State *lua, const ftl_explanation *e) {
  lua_createtable(lua, e->num_what_ifs, 0);
  for (int i = 0; i < e->num_what_ifs; i++) {
    const ftl_explain_case *c = &e->what_ifs[i];
    push_case(lua, c);
    set_string(lua, "resource", c->name);
    set_string(lua, "change", ftl_text_get(&c->change));
    ftl_lua_set_number(lua, "factor", c->factor);
    if (c->feasible) ftl_lua_set_number(lua, "elasticity", c->elasticity);
    lua_rawseti(lua, -2, i + 1);
  }
}

static void push_neighbours(lua_State *lua, const ftl_explanation *e) {
  lua_createtable(lua, e->num_neighbours, 0);
  for (int i = 0; i < e->num_neighbours; i++) {
    const ftl_explain_case *c = &e->neighbours[i];
    push_case(lua, c);
    set_string(lua, "parameter", c->name);
    set_string(lua, "value", c->value);
    lua_rawseti(lua, -2, i + 1);
  }
}

// The answer moves to a block of Lua's, which counts against the script's memory.
static void push_answer(lua_State *lua, const ftl_explanation *e) {
  ftl_prediction *prediction = ftl_lua_push_block(lua, sizeof *prediction, 0);
  *prediction = e->base.prediction;
  ftl_row row = {.arch = e->arch, .prediction = prediction};
  ftl_lua_push_result(lua, &row, -1);
  lua_remove(lua, -2);
}

static void push_text(lua_State *lua, const ftl_explanation *e) {
  ftl_error error;
  ftl_text *text = ftl_lua_push_text(lua);
  if (ftl_explanation_text(e, text, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  ftl_lua_take_text(lua, text);
}

int ftl_lua_explain(lua_State *lua) {
  ftl_point point;
  ftl_error error;
  ftl_lua_get_point(lua, &point);
  ftl_session *session = ftl_lua_session(lua);
  ftl_explanation **guard = push_guard(lua);
  ftl_status status = ftl_explain(&point, &session->evaluate, guard, &error);
  if (status != FTL_OK) {
    ftl_session_keep(session, status, error.message);
    return ftl_lua_raise(lua, &error);
  }
  lua_newtable(lua);
  push_answer(lua, *guard);
  lua_setfield(lua, -2, "result");
  push_what_ifs(lua, *guard);
  lua_setfield(lua, -2, "what_ifs");
  push_neighbours(lua, *guard);
  lua_setfield(lua, -2, "neighbours");
  push_text(lua, *guard);
  lua_setfield(lua, -2, "text");
  ftl_explanation_destroy(*guard);
  *guard = NULL;
  return 1;
}
