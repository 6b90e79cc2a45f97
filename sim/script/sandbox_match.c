// string.find, match, gmatch and gsub with Lua's patterns, counting every step of the backtracking search as an
// instruction: Lua's own run in C, where no hook can stop a pattern such as ("a*"):rep(20) .. "b".
// The matcher follows lstrlib.c of Lua 5.4 (Copyright 1994-2022 Lua.org, PUC-Rio, MIT licence).
#include <ctype.h>
#include <string.h>

#include <lauxlib.h>

#include "script/sandbox_internal.h"

enum { MAX_CAPTURES = 32, MAX_DEPTH = 200, CAPTURE_OPEN = -1, CAPTURE_POSITION = -2, STEPS_PER_CHARGE = 1024 };

typedef struct matcher {
  lua_State *lua;
  const char *text, *text_end, *pattern_end;
  int depth, num_captures;
  int64_t steps;
  struct {
    const char *start;
    ptrdiff_t size;
  } captures[MAX_CAPTURES];
} matcher;

static void count_steps(matcher *m, int64_t steps) {
  m->steps += steps;
  if (m->steps < STEPS_PER_CHARGE) return;
  int64_t charge = m->steps;
  m->steps = 0;
  ftl_sandbox_charge(m->lua, charge);
}

static void charge_rest(matcher *m) { ftl_sandbox_charge(m->lua, m->steps); }

// --- single characters ---

static const char *class_end(matcher *m, const char *p) {
  if (p == m->pattern_end) luaL_error(m->lua, "malformed pattern (ends with '%%')");
  if (*p++ == '%') {
    if (p == m->pattern_end) luaL_error(m->lua, "malformed pattern (ends with '%%')");
    return p + 1;
  }
  if (p[-1] != '[') return p;
  if (p < m->pattern_end && *p == '^') p++;
  do {  // the first ']' is a member
    if (p == m->pattern_end) luaL_error(m->lua, "malformed pattern (missing ']')");
    if (*p++ == '%' && p < m->pattern_end) p++;
  } while (p == m->pattern_end || *p != ']');
  return p + 1;
}

static bool in_class(int c, int letter) {
  bool in;
  switch (tolower(letter)) {
    case 'a':
      in = isalpha(c) != 0;
      break;
    case 'c':
      in = iscntrl(c) != 0;
      break;
    case 'd':
      in = isdigit(c) != 0;
      break;
    case 'g':
      in = isgraph(c) != 0;
      break;
    case 'l':
      in = islower(c) != 0;
      break;
    case 'p':
      in = ispunct(c) != 0;
      break;
    case 's':
      in = isspace(c) != 0;
      break;
    case 'u':
      in = isupper(c) != 0;
      break;
    case 'w':
      in = isalnum(c) != 0;
      break;
    case 'x':
      in = isxdigit(c) != 0;
      break;
    default:
      return letter == c;
  }
  return isupper(letter) ? !in : in;
}

static int byte_at(const char *s) { return (unsigned char)*s; }

// p is at '[', last at the ']' that ends it.
static bool in_set(int c, const char *p, const char *last) {
  bool positive = true;
  if (p[1] == '^') {
    positive = false;
    p++;
  }
  while (++p < last) {
    if (*p == '%') {
      p++;
      if (in_class(c, byte_at(p))) return positive;
    } else if (p[1] == '-' && p + 2 < last) {
      p += 2;
      if (byte_at(p - 2) <= c && c <= byte_at(p)) return positive;
    } else if (byte_at(p) == c) {
      return positive;
    }
  }
  return !positive;
}

static bool single_match(matcher *m, const char *s, const char *p, const char *end) {
  count_steps(m, 1 + (end - p) / 16);
  if (s >= m->text_end) return false;
  switch (*p) {
    case '.':
      return true;
    case '%':
      return in_class(byte_at(s), byte_at(p + 1));
    case '[':
      return in_set(byte_at(s), p, end - 1);
    default:
      return *p == *s;
  }
}

// --- repetition, captures ---

static const char *match_here(matcher *m, const char *s, const char *p);

static const char *match_balance(matcher *m, const char *s, const char *p) {
  if (p + 1 >= m->pattern_end) luaL_error(m->lua, "malformed pattern (missing arguments to '%%b')");
  if (s >= m->text_end || *s != *p) return NULL;
  int open = 1;
  while (++s < m->text_end) {
    count_steps(m, 1);
    if (*s == p[1]) {
      if (--open == 0) return s + 1;
    } else if (*s == *p) {
      open++;
    }
  }
  return NULL;
}

static const char *max_expand(matcher *m, const char *s, const char *p, const char *end) {
  ptrdiff_t i = 0;
  while (single_match(m, s + i, p, end)) i++;
  for (; i >= 0; i--) {
    const char *result = match_here(m, s + i, end + 1);
    if (result != NULL) return result;
  }
  return NULL;
}

static const char *min_expand(matcher *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    const char *result = match_here(m, s, end + 1);
    if (result != NULL) return result;
    if (!single_match(m, s, p, end)) return NULL;
  }
}

static const char *capture_start(matcher *m, const char *s, const char *p, ptrdiff_t kind) {
  if (m->num_captures >= MAX_CAPTURES) luaL_error(m->lua, "too many captures");
  m->captures[m->num_captures].start = s;
  m->captures[m->num_captures].size = kind;
  m->num_captures++;
  const char *result = match_here(m, s, p);
  if (result == NULL) m->num_captures--;
  return result;
}

static const char *capture_end(matcher *m, const char *s, const char *p) {
  int i = m->num_captures - 1;
  while (i >= 0 && m->captures[i].size != CAPTURE_OPEN) i--;
  if (i < 0) luaL_error(m->lua, "invalid pattern capture");
  m->captures[i].size = s - m->captures[i].start;
  const char *result = match_here(m, s, p);
  if (result == NULL) m->captures[i].size = CAPTURE_OPEN;
  return result;
}

static const char *match_back_reference(matcher *m, const char *s, int digit) {
  int i = digit - '1';
  if (i < 0 || i >= m->num_captures || m->captures[i].size < 0) {
    luaL_error(m->lua, "invalid capture index %%%d", i + 1);
  }
  ptrdiff_t size = m->captures[i].size;
  count_steps(m, 1 + size / FTL_SANDBOX_BYTES_PER_STEP);
  bool same = m->text_end - s >= size && memcmp(m->captures[i].start, s, (size_t)size) == 0;
  return same ? s + size : NULL;
}

// %f[set]: p is at '['; *end becomes the end of the set.
static bool match_frontier(matcher *m, const char *s, const char *p, const char **end) {
  if (p >= m->pattern_end || *p != '[') luaL_error(m->lua, "missing '[' after '%%f' in pattern");
  *end = class_end(m, p);
  int before = s == m->text ? 0 : byte_at(s - 1);
  int here = s == m->text_end ? 0 : byte_at(s);
  return !in_set(before, p, *end - 1) && in_set(here, p, *end - 1);
}

// --- the search ---

// A pattern item that is not a single character: true when it was one, with *s the result and *p the rest of the
// pattern, or *p NULL when *s is the whole match.
static bool match_special(matcher *m, const char **s, const char **p) {
  const char *at = *p;
  const char *end = NULL;
  char next = at + 1 < m->pattern_end ? at[1] : '\0';
  if (*at == '(') {
    *s = next == ')' ? capture_start(m, *s, at + 2, CAPTURE_POSITION) : capture_start(m, *s, at + 1, CAPTURE_OPEN);
    *p = NULL;
  } else if (*at == ')') {
    *s = capture_end(m, *s, at + 1);
    *p = NULL;
  } else if (*at == '$' && at + 1 == m->pattern_end) {
    if (*s != m->text_end) *s = NULL;
    *p = NULL;
  } else if (*at == '%' && next == 'b') {
    *s = match_balance(m, *s, at + 2);
    *p = at + 4;
  } else if (*at == '%' && next == 'f') {
    if (!match_frontier(m, *s, at + 2, &end)) *s = NULL;
    *p = end;
  } else if (*at == '%' && isdigit((unsigned char)next)) {
    *s = match_back_reference(m, *s, next);
    *p = at + 2;
  } else {
    return false;
  }
  return true;
}

// A single character with its suffix, as match_special.
static void match_default(matcher *m, const char **s, const char **p) {
  const char *at = *p;
  const char *end = class_end(m, at);
  char suffix = end < m->pattern_end ? *end : '\0';
  const char *from = *s;
  *p = NULL;
  if (suffix == '*') {
    *s = max_expand(m, from, at, end);
  } else if (suffix == '-') {
    *s = min_expand(m, from, at, end);
  } else if (suffix == '+') {
    *s = single_match(m, from, at, end) ? max_expand(m, from + 1, at, end) : NULL;
  } else if (suffix == '?') {
    *s = single_match(m, from, at, end) ? match_here(m, from + 1, end + 1) : NULL;
    if (*s != NULL) return;
    *s = from;
    *p = end + 1;
  } else {
    *s = single_match(m, from, at, end) ? from + 1 : NULL;
    *p = end;
  }
}

// The end of a match of pattern p at s, or NULL.
static const char *match_here(matcher *m, const char *s, const char *p) {
  if (++m->depth > MAX_DEPTH) luaL_error(m->lua, "pattern too complex");
  while (s != NULL && p != NULL && p != m->pattern_end) {
    count_steps(m, 1);
    if (!match_special(m, &s, &p)) match_default(m, &s, &p);
  }
  m->depth--;
  return s;
}

static const char *match_at(matcher *m, const char *s, const char *p) {
  m->depth = 0;
  m->num_captures = 0;
  return match_here(m, s, p);
}

static void matcher_init(matcher *m, lua_State *lua, const char *text, size_t text_size, const char *pattern_end) {
  *m = (matcher){.lua = lua, .text = text, .text_end = text + text_size, .pattern_end = pattern_end};
}

// --- results ---

static void push_capture(matcher *m, int i, const char *s, const char *end) {
  if (i >= m->num_captures) {
    if (i > 0) luaL_error(m->lua, "invalid capture index %%%d", i + 1);
    lua_pushlstring(m->lua, s, (size_t)(end - s));
  } else if (m->captures[i].size == CAPTURE_POSITION) {
    lua_pushinteger(m->lua, m->captures[i].start - m->text + 1);
  } else if (m->captures[i].size == CAPTURE_OPEN) {
    luaL_error(m->lua, "unfinished capture");
  } else {
    lua_pushlstring(m->lua, m->captures[i].start, (size_t)m->captures[i].size);
  }
}

// All captures; the whole match when there are none and s is not NULL.
static int push_captures(matcher *m, const char *s, const char *end) {
  int num = m->num_captures == 0 && s != NULL ? 1 : m->num_captures;
  luaL_checkstack(m->lua, num, "too many captures");
  for (int i = 0; i < num; i++) push_capture(m, i, s, end);
  return num;
}

static size_t start_offset(lua_Integer init, size_t size) {
  if (init > 0) return (size_t)init - 1;
  if (init == 0 || init < -(lua_Integer)size) return 0;
  return size - (size_t)-init;
}

static const char *find_plain(matcher *m, const char *s, const char *what, size_t size) {
  if (size == 0) return s;
  for (; (size_t)(m->text_end - s) >= size; s++) {
    const char *hit = memchr(s, what[0], (size_t)(m->text_end - s) - size + 1);
    count_steps(
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

static int push_plain(matcher *m, const char *s, const char *what, size_t size) {
  const char *hit = find_plain(m, s, what, size);
  if (hit == NULL) return 0;
  lua_pushinteger(m->lua, hit - m->text + 1);
  lua_pushinteger(m->lua, hit - m->text + (ptrdiff_t)size);
  return 2;
}

static int push_first_match(matcher *m, const char *s, const char *pattern, bool find) {
  bool anchor = pattern < m->pattern_end && *pattern == '^';
  for (; s <= m->text_end; s++) {
    const char *end = match_at(m, s, pattern + anchor);
    if (end != NULL && !find) return push_captures(m, s, end);
    if (end != NULL) {
      lua_pushinteger(m->lua, s - m->text + 1);
      lua_pushinteger(m->lua, end - m->text);
      return push_captures(m, NULL, NULL) + 2;
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
    matcher m;
    matcher_init(&m, lua, text, text_size, pattern + pattern_size);
    bool plain = find && (lua_toboolean(lua, 4) || is_plain(pattern, pattern_size));
    num_results =
        plain ? push_plain(&m, text + start, pattern, pattern_size) : push_first_match(&m, text + start, pattern, find);
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
  matcher m;
  matcher_init(&m, lua, text, text_size, pattern + pattern_size);
  for (const char *s = text + lua_tointeger(lua, lua_upvalueindex(3)); s <= m.text_end; s++) {
    const char *end = match_at(&m, s, pattern);
    if (end == NULL || end - text == last_end) continue;
    lua_pushinteger(lua, end - text);
    lua_copy(lua, -1, lua_upvalueindex(3));
    lua_copy(lua, -1, lua_upvalueindex(4));
    lua_pop(lua, 1);
    charge_rest(&m);
    return push_captures(&m, s, end);
  }
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

static void add_template(matcher *m, luaL_Buffer *buffer, const char *s, const char *end) {
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
      push_capture(m, c - '1', s, end);
      luaL_tolstring(m->lua, -1, NULL);
      lua_remove(m->lua, -2);
      luaL_addvalue(buffer);
    } else {
      luaL_error(m->lua, "invalid use of '%%' in replacement string");
    }
  }
}

// Adds the replacement of the match s..end.
static void add_value(matcher *m, luaL_Buffer *buffer, const char *s, const char *end, int type) {
  lua_State *lua = m->lua;
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(lua, 3);
    lua_call(lua, push_captures(m, s, end), 1);
  } else if (type == LUA_TTABLE) {
    push_capture(m, 0, s, end);
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
  matcher m;
  matcher_init(&m, lua, s, text_size, pattern_end);
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  while (count < max_count) {
    const char *end = match_at(&m, s, pattern + anchor);
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
  charge_rest(&m);
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
