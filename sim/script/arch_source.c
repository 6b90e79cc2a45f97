#include "script/arch_source.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  char section[FTL_ARCH_SOURCE_NAME_BYTES], key[FTL_ARCH_SOURCE_NAME_BYTES];
  int line;
  int table_idx;  // which outermost { } of the file
} entry;

enum { MAX_ENTRIES = 4096 };  // a model has under 200; what follows is not looked at

typedef struct scanner {
  const char *at, *end;
  int line;
  int braces, parentheses, num_tables;
  char name[FTL_ARCH_SOURCE_NAME_BYTES];  // the last word or string, "" when something else followed it
  int name_line;
  char section[FTL_ARCH_SOURCE_NAME_BYTES];
  entry *entries;
  int num_entries;
} scanner;

static void advance(scanner *s, size_t count) {
  for (; count > 0 && s->at < s->end; count--) s->line += *s->at++ == '\n';
}

static bool starts_with(const scanner *s, const char *text) {
  size_t size = strlen(text);
  return (size_t)(s->end - s->at) >= size && memcmp(s->at, text, size) == 0;
}

static void remember_name(scanner *s, const char *start, const char *end) {
  size_t size = (size_t)(end - start);
  if (size >= sizeof s->name) size = sizeof s->name - 1;
  memcpy(s->name, start, size);
  s->name[size] = '\0';
}

// At '[': the number of '=' of a long bracket, or -1.
static int long_bracket_level(const scanner *s) {
  const char *p = s->at + 1;
  while (p < s->end && *p == '=') p++;
  return p < s->end && *p == '[' ? (int)(p - s->at - 1) : -1;
}

static void skip_long_bracket(scanner *s, int level) {
  advance(s, (size_t)level + 2);
  while (s->at < s->end) {
    const char *p = s->at;
    if (*p == ']') {
      int found = 0;
      for (p++; p < s->end && *p == '='; p++) found++;
      if (found == level && p < s->end && *p == ']') {
        advance(s, (size_t)level + 2);
        return;
      }
    }
    advance(s, 1);
  }
}

static void skip_comment(scanner *s) {
  advance(s, 2);
  int level = s->at < s->end && *s->at == '[' ? long_bracket_level(s) : -1;
  if (level >= 0) {
    skip_long_bracket(s, level);
    return;
  }
  while (s->at < s->end && *s->at != '\n') advance(s, 1);
}

static void scan_string(scanner *s) {
  char quote = *s->at;
  advance(s, 1);
  const char *start = s->at;
  while (s->at < s->end && *s->at != quote && *s->at != '\n') advance(s, *s->at == '\\' ? 2 : 1);
  remember_name(s, start, s->at);
  advance(s, 1);
}

static void scan_word(scanner *s) {
  const char *start = s->at;
  s->name_line = s->line;
  while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_')) advance(s, 1);
  remember_name(s, start, s->at);
}

static void add_entry(scanner *s, const char *section, const char *key) {
  if (s->num_entries == MAX_ENTRIES) return;
  entry *added = &s->entries[s->num_entries++];
  snprintf(added->section, sizeof added->section, "%s", section);
  snprintf(added->key, sizeof added->key, "%s", key);
  added->line = s->name_line;
  added->table_idx = s->num_tables;
}

static void scan_assignment(scanner *s) {
  if (s->parentheses > 0 || s->name[0] == '\0') return;
  if (s->braces == 1) {
    snprintf(s->section, sizeof s->section, "%s", s->name);
    add_entry(s, s->name, "");
  } else if (s->braces == 2) {
    add_entry(s, s->section, s->name);
  }
}

static void scan_punctuation(scanner *s) {
  char c = *s->at;
  bool comparison = c == '=' && s->at + 1 < s->end && s->at[1] == '=';
  advance(s, comparison ? 2 : 1);
  if (c == '{' && s->parentheses == 0) {
    s->num_tables += s->braces == 0;
    s->braces++;
  } else if (c == '}' && s->parentheses == 0 && s->braces > 0) {
    s->braces--;
  } else if (c == '(') {
    s->parentheses++;
  } else if (c == ')' && s->parentheses > 0) {
    s->parentheses--;
  } else if (c == '=' && !comparison) {
    scan_assignment(s);
  }
  if (c != ']') s->name[0] = '\0';  // ["name"] = is a name too
}

static void scan_token(scanner *s) {
  char c = *s->at;
  if (isspace((unsigned char)c)) {
    advance(s, 1);
  } else if (starts_with(s, "--")) {
    skip_comment(s);
  } else if (c == '[' && long_bracket_level(s) >= 0) {
    skip_long_bracket(s, long_bracket_level(s));
    s->name[0] = '\0';
  } else if (c == '"' || c == '\'') {
    s->name_line = s->line;
    scan_string(s);
  } else if (isalnum((unsigned char)c) || c == '_') {
    scan_word(s);
  } else {
    scan_punctuation(s);
  }
}

// NULL when memory is out; otherwise *num_entries entries, to free().
static entry *scan(const char *text, size_t size, int *num_entries) {
  *num_entries = 0;
  scanner s = {.at = text, .end = text + size, .line = 1, .entries = malloc(MAX_ENTRIES * sizeof(entry))};
  if (s.entries == NULL) return NULL;
  while (s.at < s.end) scan_token(&s);
  *num_entries = s.num_entries;
  return s.entries;
}

int ftl_arch_source_line(const char *text, size_t size, const char *section, const char *key) {
  int num_entries = 0, line = 0;
  entry *entries = scan(text, size, &num_entries);
  for (int i = 0; i < num_entries; i++) {
    if (strcmp(entries[i].section, section) == 0 && strcmp(entries[i].key, key) == 0) line = entries[i].line;
  }
  free(entries);
  return line;
}

static int entry_compare(const void *left, const void *right) {
  const entry *a = left, *b = right;
  if (a->table_idx != b->table_idx) return a->table_idx < b->table_idx ? -1 : 1;
  int order = strcmp(a->section, b->section);
  if (order == 0) order = strcmp(a->key, b->key);
  if (order != 0) return order;
  return (a->line > b->line) - (a->line < b->line);
}

static bool same_place(const entry *a, const entry *b) {
  return a->table_idx == b->table_idx && strcmp(a->section, b->section) == 0 && strcmp(a->key, b->key) == 0;
}

bool ftl_arch_source_find_repeat(const char *text, size_t size, ftl_arch_source_repeat *out) {
  int num_entries = 0;
  entry *entries = scan(text, size, &num_entries);
  if (num_entries > 0) qsort(entries, (size_t)num_entries, sizeof *entries, entry_compare);
  const entry *found = NULL;
  for (int i = 1; i < num_entries; i++) {
    bool earlier = found == NULL || entries[i].line < found->line;
    if (earlier && same_place(&entries[i - 1], &entries[i])) found = &entries[i];
  }
  if (found != NULL) {
    *out = (ftl_arch_source_repeat){.first_line = found[-1].line, .line = found->line};
    snprintf(out->section, sizeof out->section, "%s", found->section);
    snprintf(out->key, sizeof out->key, "%s", found->key);
  }
  free(entries);
  return found != NULL;
}
