// Text from outside, of which nobody knows whether it is UTF-8.
#ifndef FTL_REPORT_UTF8_H
#define FTL_REPORT_UTF8_H

#include <stddef.h>

// Bytes of the well-formed character at s, 0 when there is none (RFC 3629: no surrogates, no overlong forms).
size_t ftl_utf8_size(const unsigned char *s);

#endif
