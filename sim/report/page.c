#include "report/page.h"

#include <string.h>

#include "base/path.h"
#include "report/page_assets.h"
#include "report/page_internal.h"

ftl_status ftl_page_no_memory(const ftl_page *page) {
  return ftl_error_set(page->error, FTL_NO_MEMORY, "out of memory for the page");
}

const char *ftl_page_keep(ftl_page *page, ftl_text *text) {
  char *copy = text->failed ? NULL : ftl_arena_alloc_raw(&page->arena, text->size + 1);
  if (copy != NULL) memcpy(copy, ftl_text_get(text), text->size + 1);
  ftl_text_fini(text);
  return copy;
}

// Links to the sections that this file has something for.
static void add_navigation(ftl_page *page) {
  bool has_predictions = page->contents->num_predictions > 0, has_rankings = false;
  for (int64_t i = 0; i < page->num_groups; i++) has_rankings = has_rankings || page->groups[i].num_feasible > 1;
  const struct {
    const char *id, *title;
    bool is_there;
  } sections[] = {{"contents", "What it holds", true},
                  {"accuracy", "Predicted and measured", true},
                  {"cases", "Every case", page->cases.num_cases > 0},
                  {"rankings", "Block sizes", has_rankings},
                  {"rooflines", "Rooflines", has_predictions},
                  {"stalls", "Stall reasons", has_predictions},
                  {"predictions", "Every prediction", has_predictions},
                  {"provenance", "Measurements", page->contents->num_measurements > 0}};
  ftl_text_add(page->out, "<nav aria-label=\"Sections\">");
  for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
    if (sections[i].is_there) ftl_text_add(page->out, "<a href=\"#%s\">%s</a> ", sections[i].id, sections[i].title);
  }
  ftl_text_add(page->out, "</nav>\n");
}

static void add_head(ftl_page *page) {
  ftl_text_add(page->out,
               "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
               "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>Foretile: ");
  ftl_markup_add(page->out, ftl_path_file_name(page->contents->path));
  ftl_text_add(page->out, "</title>\n<style>\n");
  ftl_text_add_bytes(page->out, ftl_page_css, ftl_page_css_bytes);
  ftl_text_add(page->out, "</style>\n</head>\n<body>\n<header><h1>");
  ftl_markup_add(page->out, ftl_path_file_name(page->contents->path));
  ftl_text_add(page->out, "</h1>\n");
  add_navigation(page);
  ftl_text_add(page->out, "</header>\n<main>\n");
}

static void add_end(ftl_page *page) {
  ftl_text_add(page->out, "</main>\n<script>\n");
  ftl_text_add_bytes(page->out, ftl_page_js, ftl_page_js_bytes);
  ftl_text_add(page->out, "</script>\n</body>\n</html>\n");
}

static ftl_status add_page(ftl_page *page) {
  add_head(page);
  ftl_page_add_contents(page);
  ftl_status status = ftl_page_add_accuracy(page);
  if (status == FTL_OK) status = ftl_page_add_case_table(page);
  if (status == FTL_OK) status = ftl_page_add_rankings(page);
  if (status != FTL_OK) return status;
  ftl_page_add_rooflines(page);
  ftl_page_add_stalls(page);
  ftl_page_add_predictions(page);
  status = ftl_page_add_provenance(page);
  add_end(page);
  return status == FTL_OK && page->out->failed ? ftl_page_no_memory(page) : status;
}

ftl_status ftl_page_make(const ftl_contents *contents, ftl_text *out, ftl_error *error) {
  if (contents->num_predictions == 0 && contents->num_measurements == 0) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: neither predictions nor measurements, so nothing to report",
                         contents->path);
  }
  ftl_page page = {.contents = contents, .out = out, .error = error};
  ftl_status status = ftl_page_make_gpus(&page);
  if (status == FTL_OK) status = ftl_page_make_cases(&page);
  if (status == FTL_OK) status = ftl_page_make_rows(&page);
  if (status == FTL_OK) status = add_page(&page);
  ftl_validation_fini(&page.cases);
  ftl_arena_fini(&page.arena);
  return status;
}

ftl_status ftl_page_of_file(const char *database_path, ftl_text *out, ftl_error *error) {
  ftl_contents *contents = NULL;
  ftl_status status = ftl_contents_read(&contents, database_path, error);
  if (status == FTL_OK) status = ftl_page_make(contents, out, error);
  ftl_contents_destroy(contents);
  return status;
}
