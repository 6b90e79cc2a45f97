#include "report/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/utf8.h"

void ftl_json_add_string(ftl_text *out, const char *string) {
  const unsigned char *s = (const unsigned char *)string;
  ftl_text_add_bytes(out, "\"", 1);
  while (*s != '\0') {
    size_t size = ftl_utf8_size(s);
    if (size == 0) {
      ftl_text_add_bytes(out, "\\ufffd", 6);
      size = 1;
    } else if (*s == '"' || *s == '\\') {
      ftl_text_add(out, "\\%c", *s);
    } else if (*s < 0x20 || *s == 0x7f) {
      ftl_text_add(out, "\\u%04x", *s);
    } else {
      ftl_text_add_bytes(out, (const char *)s, size);
    }
    s += size;
  }
  ftl_text_add_bytes(out, "\"", 1);
}

void ftl_json_add_key(ftl_text *out, const char *key) {
  ftl_json_add_string(out, key);
  ftl_text_add_bytes(out, ": ", 2);
}

void ftl_json_add_number(ftl_text *out, double value) {
  const double exact_limit = 9007199254740992.0;  // 2^53
  if (!isfinite(value)) {
    ftl_text_add(out, "null");
  } else if (value == floor(value) && fabs(value) <= exact_limit) {
    ftl_text_add(out, "%" PRId64, (int64_t)value);
  } else {
    char buffer[40];
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(buffer, sizeof buffer, "%.*g", digits, value);
      if (strtod(buffer, NULL) == value) break;
    }
    ftl_text_add(out, "%s", buffer);
  }
}
