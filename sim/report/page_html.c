// Tables, names and legends. End tags that HTML lets one leave out are left out: half the size of a table of thousands
// of rows.
#include <math.h>
#include <string.h>

#include "report/page_internal.h"

void ftl_page_section(const ftl_page *page, const char *id, const char *title) {
  ftl_text_add(page->out, "<section id=%s>\n<h2>", id);
  ftl_markup_add(page->out, title);
  ftl_text_add(page->out, "</h2>\n");
}

void ftl_page_table_begin(const ftl_page *page, const char *caption, const char *const *columns, int first_number) {
  ftl_text_add(page->out, "<div class=scroll role=region tabindex=0 aria-label=\"");
  ftl_markup_add(page->out, caption);
  ftl_text_add(page->out, "\"><table class=\"data n%d\">\n<caption>", first_number);
  ftl_markup_add(page->out, caption);
  ftl_text_add(page->out, "</caption>\n<thead><tr>");
  for (; *columns != NULL; columns++) {
    ftl_text_add(page->out, "<th scope=col>");
    ftl_markup_add(page->out, *columns);
  }
  ftl_text_add(page->out, "</thead>\n<tbody>\n");
}

void ftl_page_table_end(const ftl_page *page) { ftl_text_add(page->out, "</tbody></table></div>\n"); }
void ftl_page_row_begin(const ftl_page *page) { ftl_text_add(page->out, "\n<tr>"); }

void ftl_page_cell(const ftl_page *page, const char *text) {
  ftl_text_add(page->out, "<td>");
  ftl_markup_add(page->out, text);
}

void ftl_page_number(const ftl_page *page, double value, int decimals) {
  if (isfinite(value)) {
    ftl_text_add(page->out, "<td>%.*f", decimals, value);
  } else {
    ftl_text_add(page->out, "<td>-");
  }
}

void ftl_page_signed(const ftl_page *page, double value, int decimals) {
  if (isfinite(value)) {
    ftl_text_add(page->out, "<td>%+.*f", decimals, value);
  } else {
    ftl_text_add(page->out, "<td>-");
  }
}

void ftl_page_count(const ftl_page *page, int64_t value) { ftl_text_add(page->out, "<td>%lld", (long long)value); }

void ftl_page_group_name(const ftl_page *page, const ftl_page_group *group) {
  const ftl_page_row *row = &group->rows[0];
  const char *words[] = {row->gpu, row->prediction->workload, row->problem, row->prediction->version};
  int num_words = page->num_versions > 1 ? 4 : 3;
  for (int i = 0; i < num_words; i++) {
    if (i > 0) ftl_text_add(page->out, " · ");
    ftl_markup_add(page->out, words[i]);
  }
}

int ftl_page_colour(const ftl_page *page, const char *workload) {
  int idx = 0;
  while (idx < page->num_workloads && strcmp(page->workloads[idx], workload) != 0) idx++;
  return idx < FTL_PAGE_NUM_COLOURS ? idx : FTL_PAGE_NUM_COLOURS - 1;
}

void ftl_page_legend(const ftl_page *page) {
  ftl_text_add(page->out, "<ul class=legend>");
  for (int i = 0; i < page->num_workloads; i++) {
    ftl_text_add(page->out, "<li><span class=\"key c%d\"></span>", ftl_page_colour(page, page->workloads[i]));
    ftl_markup_add(page->out, page->workloads[i]);
  }
  ftl_text_add(page->out, "</ul>\n");
}
