// The style sheet and the script of the page: page.css and page.js, built in (embed.cmake).
#ifndef FTL_REPORT_PAGE_ASSETS_H
#define FTL_REPORT_PAGE_ASSETS_H

#include <stddef.h>

extern const char ftl_page_css[];
extern const size_t ftl_page_css_bytes;
extern const char ftl_page_js[];
extern const size_t ftl_page_js_bytes;

#endif
