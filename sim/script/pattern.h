// Lua's patterns at one place of a text, counting every step of the backtracking search as an instruction: Lua's own
// run in C, where no hook can stop a pattern such as ("a*"):rep(20) .. "b".
#ifndef FTL_SCRIPT_PATTERN_H
#define FTL_SCRIPT_PATTERN_H

#include <lua.h>
#include <stddef.h>
#include <stdint.h>

enum { FTL_PATTERN_MAX_CAPTURES = 32 };

typedef struct ftl_pattern_matcher {
  lua_State *lua;
  const char *text, *text_end, *pattern_end;
  int depth, num_captures;
  int64_t steps;  // not charged yet
  struct {
    const char *start;
    ptrdiff_t size;
  } captures[FTL_PATTERN_MAX_CAPTURES];
} ftl_pattern_matcher;

// The functions below raise where the pattern is malformed, or a limit of the sandbox is hit.
void ftl_pattern_init(ftl_pattern_matcher *m, lua_State *lua, const char *text, size_t text_size,
                      const char *pattern_end);
// The end of a match of pattern p at s, or NULL. Without the anchor, which is the caller's to see.
const char *ftl_pattern_match(ftl_pattern_matcher *m, const char *s, const char *p);

// Of the last match, s..end.
void ftl_pattern_push_capture(ftl_pattern_matcher *m, int i, const char *s, const char *end);
// All captures, their number; the whole match when there are none and s is not NULL.
int ftl_pattern_push_captures(ftl_pattern_matcher *m, const char *s, const char *end);

void ftl_pattern_count_steps(ftl_pattern_matcher *m, int64_t steps);
// What is left of them, at the end of a search.
void ftl_pattern_charge_rest(ftl_pattern_matcher *m);

#endif
