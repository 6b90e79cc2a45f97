// ft.predict and ft.explore of a script's kernel. Each choice of its own parameters is built once, whatever the number
// of GPUs and of parameters that every kernel takes.
#include <string.h>

#include <lauxlib.h>

#include "script/lua_kernel.h"
#include "script/lua_module.h"

enum { MAX_CHOICES = FTL_MAX_OWN_PARAMS + FTL_PARAM_COUNT };

// A field with its values: parameter number `param` of the kernel, or of the list if `of_list`. The values are at stack
// index `values`, one, or a list of num_values.
typedef struct choice {
  const char *name;
  int param, values;
  bool of_list, is_list;
  int64_t num_values;
} choice;

typedef struct question {
  lua_State *lua;
  const ftl_lua_kernel *kernel;
  int kernel_index;
  bool lists;  // fields may be lists
  int num_choices;
  choice choices[MAX_CHOICES];
  int64_t num_points;
} question;

static void add_choice(question *q, const char *name, int param, bool of_list) {
  lua_State *lua = q->lua;
  int type = lua_getfield(lua, 1, name);
  if (type == LUA_TNIL) {
    lua_pop(lua, 1);
    return;
  }
  choice c = {.name = name, .param = param, .values = lua_gettop(lua), .of_list = of_list, .num_values = 1};
  if (type == LUA_TTABLE && !q->lists)
    luaL_error(lua, "%s is a list; ft.predict takes one value, ft.explore takes lists", name);
  c.is_list = type == LUA_TTABLE;
  if (c.is_list) c.num_values = (int64_t)lua_rawlen(lua, -1);
  if (c.num_values == 0) luaL_error(lua, "%s is an empty list", name);
  if (c.num_values > FTL_SPACE_MAX_POINTS / q->num_points) {
    luaL_error(lua, "more than %d combinations; split the exploration", FTL_SPACE_MAX_POINTS);
  }
  q->num_points *= c.num_values;
  q->choices[q->num_choices++] = c;
}

// Its own parameters first, by name, so that those of the list advance first and a program serves several points.
static question ask(lua_State *lua, bool lists) {
  static const char *const others[] = {"arch", "workload", "where", NULL};
  luaL_checkstack(lua, MAX_CHOICES + 16, "the parameters of a kernel");
  lua_getfield(lua, 1, "workload");
  question q = {.lua = lua, .kernel = ftl_lua_check_kernel(lua, -1), .lists = lists, .num_points = 1};
  q.kernel_index = lua_gettop(lua);
  ftl_lua_check_kernel_fields(lua, q.kernel, 1, others);
  for (int i = 0; i < q.kernel->num_params; i++) add_choice(&q, q.kernel->params[i].name, i, false);
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    if (ftl_user_kernel_accepts() >> i & 1) add_choice(&q, ftl_param_get((ftl_param)i)->name, i, true);
  return q;
}

// Pushes value number `idx` of a choice.
static void push_choice(const question *q, const choice *c, int64_t idx) {
  if (c->is_list) {
    lua_rawgeti(q->lua, c->values, (lua_Integer)idx + 1);
  } else {
    lua_pushvalue(q->lua, c->values);
  }
}

static int64_t digit_of(const question *q, int choice_idx, int64_t point_idx) {
  for (int i = q->num_choices - 1; i > choice_idx; i--) point_idx /= q->choices[i].num_values;
  return point_idx % q->choices[choice_idx].num_values;
}

static void get_own(const question *q, int64_t point_idx, ftl_own_param *params) {
  memcpy(params, q->kernel->params, sizeof *params * (size_t)q->kernel->num_params);
  for (int i = 0; i < q->num_choices; i++) {
    const choice *c = &q->choices[i];
    if (c->of_list) continue;
    push_choice(q, c, digit_of(q, i, point_idx));
    params[c->param] = ftl_lua_own_param(q->lua, q->kernel, c->param, lua_gettop(q->lua));
    lua_pop(q->lua, 1);
  }
}

static ftl_spec get_spec(const question *q, int64_t point_idx, const ftl_user_kernel *built) {
  lua_State *lua = q->lua;
  ftl_spec spec = ftl_user_kernel_spec(built);
  ftl_error error;
  ftl_status status = FTL_OK;
  const char *detail = ftl_lua_session(lua)->detail;
  if (detail != NULL) status = ftl_spec_set_text(&spec, "detail", detail, &error);
  for (int i = 0; status == FTL_OK && i < q->num_choices; i++) {
    const choice *c = &q->choices[i];
    char text[FTL_LUA_VALUE_BYTES];
    if (!c->of_list) continue;
    push_choice(q, c, digit_of(q, i, point_idx));
    ftl_lua_value_text(lua, lua_gettop(lua), c->name, text);
    status = ftl_spec_set_text(&spec, c->name, text, &error);
    lua_pop(lua, 1);
  }
  if (status == FTL_OK) status = ftl_spec_complete(&spec, &error);
  if (status != FTL_OK) ftl_lua_raise(lua, &error);
  return spec;
}

// --- the points ---

static bool same_own(const ftl_user_kernel *built, const ftl_own_param *params) {
  for (int i = 0; i < built->num_params; i++)
    if (strcmp(built->params[i].text, params[i].text) != 0) return false;
  return true;
}

// A kernel that is not built: what `where` sees.
static ftl_user_kernel unbuilt_kernel(const question *q, const ftl_own_param *params) {
  ftl_user_kernel kernel = {.num_params = q->kernel->num_params};
  memcpy(kernel.name, q->kernel->name, sizeof kernel.name);
  memcpy(kernel.params, params, sizeof *params * (size_t)kernel.num_params);
  return kernel;
}

// Pushes a list of the kernels that are built, and a userdata with the points that `where` keeps, GPU after GPU.
static ftl_point *push_points(question *q, const ftl_arch *const *archs, int num_archs, int64_t *num_points) {
  lua_State *lua = q->lua;
  if (q->num_points > FTL_SPACE_MAX_POINTS / num_archs) {
    luaL_error(lua, "more than %d combinations; split the exploration", FTL_SPACE_MAX_POINTS);
  }
  lua_newtable(lua);
  int kernels = lua_gettop(lua);
  ftl_point *points = ftl_lua_push_block(lua, sizeof *points * (size_t)(q->num_points * num_archs), 0);
  int type = lua_getfield(lua, 1, "where");
  if (type != LUA_TNIL && type != LUA_TFUNCTION) luaL_error(lua, "where must be a function of the parameters");
  ftl_user_kernel *built = NULL;
  int64_t num_kept = 0;
  for (int64_t i = 0; i < q->num_points; i++) {
    ftl_own_param params[FTL_MAX_OWN_PARAMS];
    get_own(q, i, params);
    ftl_user_kernel unbuilt = unbuilt_kernel(q, params);
    ftl_user_kernel_finish(&unbuilt);
    ftl_spec spec = get_spec(q, i, &unbuilt);
    if (!ftl_lua_is_wanted(lua, -1, &spec)) continue;
    if (built == NULL || !same_own(built, params)) {
      built = ftl_lua_build_kernel(lua, q->kernel_index, params);
      lua_rawseti(lua, kernels, (lua_Integer)lua_rawlen(lua, kernels) + 1);
    }
    spec.workload = &built->workload;
    points[num_kept++] = (ftl_point){.spec = spec, .arch = archs[0]};
  }
  lua_pop(lua, 1);
  for (int a = 1; a < num_archs; a++)
    for (int64_t i = 0; i < num_kept; i++)
      points[a * num_kept + i] = (ftl_point){.spec = points[i].spec, .arch = archs[a]};
  for (int64_t i = 0; i < num_kept * num_archs; i++) {
    ftl_error error;
    if (ftl_point_check_gpu(&points[i].spec, points[i].arch, &error) != FTL_OK) ftl_lua_raise(lua, &error);
  }
  *num_points = num_kept * num_archs;
  return points;
}

// Pushes the answers, which keep the kernels at stack index `kernels`.
static ftl_answer *push_answers(lua_State *lua, const ftl_point *points, int64_t num_points, int kernels) {
  ftl_answer *answers = ftl_lua_push_answers(lua, points, num_points);
  lua_pushvalue(lua, kernels);
  lua_setiuservalue(lua, -2, 1);
  return answers;
}

int ftl_lua_kernel_predict(lua_State *lua) {
  const ftl_arch *arch = NULL;
  if (lua_getfield(lua, 1, "where") != LUA_TNIL) return luaL_error(lua, "where is for ft.explore");
  ftl_lua_get_archs(lua, false, &arch);
  question q = ask(lua, false);
  int64_t num_points = 0;
  const ftl_point *points = push_points(&q, &arch, 1, &num_points);
  const ftl_answer *answer = push_answers(lua, points, 1, lua_gettop(lua) - 1);
  ftl_row row = {.arch = arch, .prediction = &answer->prediction};
  ftl_lua_push_result(lua, &row, -1);
  return 1;
}

int ftl_lua_kernel_explore(lua_State *lua) {
  const ftl_arch *archs[FTL_LUA_MAX_ARCHS];
  int num_archs = ftl_lua_get_archs(lua, true, archs);
  question q = ask(lua, true);
  int64_t num_points = 0;
  const ftl_point *points = push_points(&q, archs, num_archs, &num_points);
  const ftl_answer *answers = push_answers(lua, points, num_points, lua_gettop(lua) - 1);
  ftl_row *rows = ftl_lua_push_result_set(lua, num_points, -1);
  for (int64_t i = 0; i < num_points; i++) {
    rows[i] = (ftl_row){.arch = points[i].arch, .prediction = &answers[i].prediction};
  }
  return 1;
}
