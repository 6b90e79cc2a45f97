// Where the keys stand in the text of an arch model. A Lua table remembers neither lines nor keys given twice.
#ifndef FTL_SCRIPT_ARCH_SOURCE_H
#define FTL_SCRIPT_ARCH_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

enum { FTL_ARCH_SOURCE_NAME_BYTES = 64 };

// The line of `key = ` in `section = { ... }`, or of the section when key is ""; 0 when it is not written that way.
int ftl_arch_source_line(const char *text, size_t size, const char *section, const char *key);

// A key or section written twice in one table.
typedef struct ftl_arch_source_repeat {
  char section[FTL_ARCH_SOURCE_NAME_BYTES], key[FTL_ARCH_SOURCE_NAME_BYTES];  // key "" for a section
  int first_line, line;
} ftl_arch_source_repeat;
bool ftl_arch_source_find_repeat(const char *text, size_t size, ftl_arch_source_repeat *out);

#endif
