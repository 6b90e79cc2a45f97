#include "report/markup.h"

#include "report/utf8.h"

static const char *entity_of(unsigned char c) {
  switch (c) {
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '&':
      return "&amp;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return c < 0x20 || c == 0x7f ? "\xef\xbf\xbd" : NULL;
  }
}

void ftl_markup_add(ftl_text *out, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  while (*s != '\0') {
    const unsigned char *plain = s;
    size_t size;
    while (*s != '\0' && entity_of(*s) == NULL && (size = ftl_utf8_size(s)) > 0) s += size;
    ftl_text_add_bytes(out, (const char *)plain, (size_t)(s - plain));
    if (*s == '\0') break;
    const char *entity = entity_of(*s);
    ftl_text_add(out, "%s", entity != NULL ? entity : "\xef\xbf\xbd");
    s++;
  }
}
