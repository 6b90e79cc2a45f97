// string.find, match, gmatch and gsub, as lstrlib.c of Lua 5.4 has them (Copyright 1994-2022 Lua.org, PUC-Rio, MIT
// licence), with patterns that count their steps.
#include <ctype.h>
#include <lauxlib.h>
#include <string.h>

#include "script/pattern.h"
#include "script/sandbox_internal.h"

static size_t start_offset(lua_Integer init, size_t size) {
  if (init > 0) return (size_t)init - 1;
  if (init == 0 || init < -(lua_Integer)size) return 0;
  return size - (size_t)-init;
}

static const char *find_plain(ftl_pattern_matcher *m, const char *s, const char *what, size_t size) {
  if (size == 0) return s;
  for (; (size_t)(m->text_end - s) >= size; s++) {
    const char *hit = memchr(s, what[0], (size_t)(m->text_end - s) - size + 1);
    ftl_pattern_count_steps(
        m, 1 + (int64_t)((hit != NULL ? hit - s : m->text_end - s) + (ptrdiff_t)size) / FTL_SANDBOX_BYTES_PER_STEP);
    if (hit == NULL) return NULL;
    if (memcmp(hit, what, size) == 0) return hit;
    s = hit;
  }
  return NULL;
}

static bool is_plain(const char *pattern, size_t size) {
  return strlen(pattern) == size && strpbrk(pattern, "^$*+?.([%-") == NULL;
}

static int push_plain(ftl_pattern_matcher *m, const char *s, const char *what, size_t size) {
  const char *hit = find_plain(m, s, what, size);
  if (hit == NULL) return 0;
  lua_pushinteger(m->lua, hit - m->text + 1);
  lua_pushinteger(m->lua, hit - m->text + (ptrdiff_t)size);
  return 2;
}

static int push_first_match(ftl_pattern_matcher *m, const char *s, const char *pattern, bool find) {
  bool anchor = pattern < m->pattern_end && *pattern == '^';
  for (; s <= m->text_end; s++) {
    const char *end = ftl_pattern_match(m, s, pattern + anchor);
    if (end != NULL && !find) return ftl_pattern_push_captures(m, s, end);
    if (end != NULL) {
      lua_pushinteger(m->lua, s - m->text + 1);
      lua_pushinteger(m->lua, end - m->text);
      return ftl_pattern_push_captures(m, NULL, NULL) + 2;
    }
    if (anchor) break;
  }
  return 0;
}

static int find_or_match(lua_State *lua, bool find) {
  size_t text_size = 0, pattern_size = 0;
  const char *text = luaL_checklstring(lua, 1, &text_size);
  const char *pattern = luaL_checklstring(lua, 2, &pattern_size);
  size_t start = start_offset(luaL_optinteger(lua, 3, 1), text_size);
  int num_results = 0;
  if (start <= text_size) {
    ftl_pattern_matcher m;
    ftl_pattern_init(&m, lua, text, text_size, pattern + pattern_size);
    bool plain = find && (lua_toboolean(lua, 4) || is_plain(pattern, pattern_size));
    num_results =
        plain ? push_plain(&m, text + start, pattern, pattern_size) : push_first_match(&m, text + start, pattern, find);
    ftl_pattern_charge_rest(&m);
  }
  if (num_results > 0) return num_results;
  luaL_pushfail(lua);
  return 1;
}

static int string_find(lua_State *lua) { return find_or_match(lua, true); }
static int string_match(lua_State *lua) { return find_or_match(lua, false); }

// Upvalues: text, pattern, offset of the next search, end offset of the last match (-1 for none).
static int gmatch_next(lua_State *lua) {
  size_t text_size = 0, pattern_size = 0;
  const char *text = lua_tolstring(lua, lua_upvalueindex(1), &text_size);
  const char *pattern = lua_tolstring(lua, lua_upvalueindex(2), &pattern_size);
  lua_Integer last_end = lua_tointeger(lua, lua_upvalueindex(4));
  ftl_pattern_matcher m;
  ftl_pattern_init(&m, lua, text, text_size, pattern + pattern_size);
  for (const char *s = text + lua_tointeger(lua, lua_upvalueindex(3)); s <= m.text_end; s++) {
    const char *end = ftl_pattern_match(&m, s, pattern);
    if (end == NULL || end - text == last_end) continue;
    lua_pushinteger(lua, end - text);
    lua_copy(lua, -1, lua_upvalueindex(3));
    lua_copy(lua, -1, lua_upvalueindex(4));
    lua_pop(lua, 1);
    ftl_pattern_charge_rest(&m);
    return ftl_pattern_push_captures(&m, s, end);
  }
  ftl_pattern_charge_rest(&m);
  return 0;
}

static int string_gmatch(lua_State *lua) {
  size_t text_size = 0;
  luaL_checklstring(lua, 1, &text_size);
  luaL_checkstring(lua, 2);
  size_t start = start_offset(luaL_optinteger(lua, 3, 1), text_size);
  lua_settop(lua, 2);
  lua_pushinteger(lua, (lua_Integer)(start > text_size ? text_size + 1 : start));
  lua_pushinteger(lua, -1);
  lua_pushcclosure(lua, gmatch_next, 4);
  return 1;
}

// --- gsub ---

static void add_template(ftl_pattern_matcher *m, luaL_Buffer *buffer, const char *s, const char *end) {
  size_t size = 0;
  const char *template = lua_tolstring(m->lua, 3, &size);
  for (size_t i = 0; i < size; i++) {
    if (template[i] != '%') {
      luaL_addchar(buffer, template[i]);
      continue;
    }
    i++;
    char c = i < size ? template[i] : '\0';
    if (c == '%') {
      luaL_addchar(buffer, '%');
    } else if (c == '0') {
      luaL_addlstring(buffer, s, (size_t)(end - s));
    } else if (isdigit((unsigned char)c)) {
      ftl_pattern_push_capture(m, c - '1', s, end);
      luaL_tolstring(m->lua, -1, NULL);
      lua_remove(m->lua, -2);
      luaL_addvalue(buffer);
    } else {
      luaL_error(m->lua, "invalid use of '%%' in replacement string");
    }
  }
}

// Adds the replacement of the match s..end.
static void add_value(ftl_pattern_matcher *m, luaL_Buffer *buffer, const char *s, const char *end, int type) {
  lua_State *lua = m->lua;
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(lua, 3);
    lua_call(lua, ftl_pattern_push_captures(m, s, end), 1);
  } else if (type == LUA_TTABLE) {
    ftl_pattern_push_capture(m, 0, s, end);
    lua_gettable(lua, 3);
  } else {
    add_template(m, buffer, s, end);
    return;
  }
  if (!lua_toboolean(lua, -1)) {
    lua_pop(lua, 1);
    luaL_addlstring(buffer, s, (size_t)(end - s));
  } else if (!lua_isstring(lua, -1)) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  } else {
    luaL_addvalue(buffer);
  }
}

static int string_gsub(lua_State *lua) {
  size_t text_size = 0, pattern_size = 0;
  const char *s = luaL_checklstring(lua, 1, &text_size);
  const char *pattern = luaL_checklstring(lua, 2, &pattern_size);
  const char *pattern_end = pattern + pattern_size;
  const char *last_end = NULL;
  int type = lua_type(lua, 3);
  lua_Integer max_count = luaL_optinteger(lua, 4, (lua_Integer)text_size + 1), count = 0;
  bool anchor = pattern_size > 0 && *pattern == '^';
  luaL_argexpected(lua, type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                   "string/function/table");
  ftl_pattern_matcher m;
  ftl_pattern_init(&m, lua, s, text_size, pattern_end);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  while (count < max_count) {
    const char *end = ftl_pattern_match(&m, s, pattern + anchor);
    if (end != NULL && end != last_end) {
      count++;
      add_value(&m, &buffer, s, end, type);
      s = last_end = end;
    } else if (s < m.text_end) {
      luaL_addchar(&buffer, *s++);
    } else {
      break;
    }
    if (anchor) break;
  }
  luaL_addlstring(&buffer, s, (size_t)(m.text_end - s));
  luaL_pushresult(&buffer);
  ftl_pattern_charge_rest(&m);
  lua_pushinteger(lua, count);
  return 2;
}

void ftl_sandbox_open_match(lua_State *lua) {
  const luaL_Reg functions[] = {
      {"find", string_find}, {"match", string_match}, {"gmatch", string_gmatch}, {"gsub", string_gsub}, {NULL, NULL}};
  lua_getglobal(lua, "string");
  luaL_setfuncs(lua, functions, 0);
  lua_pop(lua, 1);
}
