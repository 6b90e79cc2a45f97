// Text in HTML and SVG.
#ifndef FTL_REPORT_MARKUP_H
#define FTL_REPORT_MARKUP_H

#include "base/text.h"

// As it is to be read, in an element or a quoted attribute: nothing in it is markup. What is not UTF-8, and control
// characters, become U+FFFD.
void ftl_markup_add(ftl_text *out, const char *text);

#endif
