#include "report/utf8.h"

#include <stdbool.h>

size_t ftl_utf8_size(const unsigned char *s) {
  if (s[0] < 0x80) return 1;
  size_t size = s[0] >= 0xc2 && s[0] <= 0xdf   ? 2
                : s[0] >= 0xe0 && s[0] <= 0xef ? 3
                : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
                                               : 0;
  for (size_t i = 1; i < size; i++) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  bool is_overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
  bool is_beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return is_overlong || is_beyond ? 0 : size;
}
