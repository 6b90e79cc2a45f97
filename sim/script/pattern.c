// The matcher follows lstrlib.c of Lua 5.4 (Copyright 1994-2022 Lua.org, PUC-Rio, MIT licence).
#include "script/pattern.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#include "script/sandbox.h"

enum { MAX_DEPTH = 200, CAPTURE_OPEN = -1, CAPTURE_POSITION = -2, STEPS_PER_CHARGE = 1024 };

void ftl_pattern_count_steps(ftl_pattern_matcher *m, int64_t steps) {
  m->steps += steps;
  if (m->steps < STEPS_PER_CHARGE) return;
  int64_t charge = m->steps;
  m->steps = 0;
  ftl_sandbox_charge(m->lua, charge);
}

void ftl_pattern_charge_rest(ftl_pattern_matcher *m) {
  ftl_sandbox_charge(m->lua, m->steps);
  m->steps = 0;
}

// --- single characters ---

static const char *class_end(ftl_pattern_matcher *m, const char *p) {
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

static bool single_match(ftl_pattern_matcher *m, const char *s, const char *p, const char *end) {
  ftl_pattern_count_steps(m, 1 + (end - p) / 16);
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

static const char *match_here(ftl_pattern_matcher *m, const char *s, const char *p);

static const char *match_balance(ftl_pattern_matcher *m, const char *s, const char *p) {
  if (p + 1 >= m->pattern_end) luaL_error(m->lua, "malformed pattern (missing arguments to '%%b')");
  if (s >= m->text_end || *s != *p) return NULL;
  int open = 1;
  while (++s < m->text_end) {
    ftl_pattern_count_steps(m, 1);
    if (*s == p[1]) {
      if (--open == 0) return s + 1;
    } else if (*s == *p) {
      open++;
    }
  }
  return NULL;
}

static const char *max_expand(ftl_pattern_matcher *m, const char *s, const char *p, const char *end) {
  ptrdiff_t i = 0;
  while (single_match(m, s + i, p, end)) i++;
  for (; i >= 0; i--) {
    const char *result = match_here(m, s + i, end + 1);
    if (result != NULL) return result;
  }
  return NULL;
}

static const char *min_expand(ftl_pattern_matcher *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    const char *result = match_here(m, s, end + 1);
    if (result != NULL) return result;
    if (!single_match(m, s, p, end)) return NULL;
  }
}

static const char *capture_start(ftl_pattern_matcher *m, const char *s, const char *p, ptrdiff_t kind) {
  if (m->num_captures >= FTL_PATTERN_MAX_CAPTURES) luaL_error(m->lua, "too many captures");
  m->captures[m->num_captures].start = s;
  m->captures[m->num_captures].size = kind;
  m->num_captures++;
  const char *result = match_here(m, s, p);
  if (result == NULL) m->num_captures--;
  return result;
}

static const char *capture_end(ftl_pattern_matcher *m, const char *s, const char *p) {
  int i = m->num_captures - 1;
  while (i >= 0 && m->captures[i].size != CAPTURE_OPEN) i--;
  if (i < 0) luaL_error(m->lua, "invalid pattern capture");
  m->captures[i].size = s - m->captures[i].start;
  const char *result = match_here(m, s, p);
  if (result == NULL) m->captures[i].size = CAPTURE_OPEN;
  return result;
}

static const char *match_back_reference(ftl_pattern_matcher *m, const char *s, int digit) {
  int i = digit - '1';
  if (i < 0 || i >= m->num_captures || m->captures[i].size < 0) {
    luaL_error(m->lua, "invalid capture index %%%d", i + 1);
  }
  ptrdiff_t size = m->captures[i].size;
  ftl_pattern_count_steps(m, 1 + size / FTL_SANDBOX_BYTES_PER_STEP);
  bool same = m->text_end - s >= size && memcmp(m->captures[i].start, s, (size_t)size) == 0;
  return same ? s + size : NULL;
}

// %f[set]: p is at '['; *end becomes the end of the set.
static bool match_frontier(ftl_pattern_matcher *m, const char *s, const char *p, const char **end) {
  if (p >= m->pattern_end || *p != '[') luaL_error(m->lua, "missing '[' after '%%f' in pattern");
  *end = class_end(m, p);
  int before = s == m->text ? 0 : byte_at(s - 1);
  int here = s == m->text_end ? 0 : byte_at(s);
  return !in_set(before, p, *end - 1) && in_set(here, p, *end - 1);
}

// --- the search ---

// A pattern item that is not a single character: true when it was one, with *s the result and *p the rest of the
// pattern, or *p NULL when *s is the whole match.
static bool match_special(ftl_pattern_matcher *m, const char **s, const char **p) {
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
static void match_default(ftl_pattern_matcher *m, const char **s, const char **p) {
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
static const char *match_here(ftl_pattern_matcher *m, const char *s, const char *p) {
  if (++m->depth > MAX_DEPTH) luaL_error(m->lua, "pattern too complex");
  while (s != NULL && p != NULL && p != m->pattern_end) {
    ftl_pattern_count_steps(m, 1);
    if (!match_special(m, &s, &p)) match_default(m, &s, &p);
  }
  m->depth--;
  return s;
}

const char *ftl_pattern_match(ftl_pattern_matcher *m, const char *s, const char *p) {
  m->depth = 0;
  m->num_captures = 0;
  return match_here(m, s, p);
}

void ftl_pattern_init(ftl_pattern_matcher *m, lua_State *lua, const char *text, size_t text_size,
                      const char *pattern_end) {
  *m = (ftl_pattern_matcher){.lua = lua, .text = text, .text_end = text + text_size, .pattern_end = pattern_end};
}

// --- results ---

void ftl_pattern_push_capture(ftl_pattern_matcher *m, int i, const char *s, const char *end) {
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

int ftl_pattern_push_captures(ftl_pattern_matcher *m, const char *s, const char *end) {
  int num = m->num_captures == 0 && s != NULL ? 1 : m->num_captures;
  luaL_checkstack(m->lua, num, "too many captures");
  for (int i = 0; i < num; i++) ftl_pattern_push_capture(m, i, s, end);
  return num;
}
