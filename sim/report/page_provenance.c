// Where measured rows come from: files, and the machines and settings that their rows name.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "report/page_internal.h"

static const char *const facts[] = {"gpu",       "driver",        "cuda",          "ncu",
                                    "condition", "clock_control", "cache_control", "date"};
enum { NUM_FACTS = sizeof facts / sizeof *facts };

typedef struct origin {
  const char *fact[NUM_FACTS];  // "" where a row does not say
  int64_t num_rows;
  double least_mhz, most_mhz;  // of the SM clock, where rows have it; 0: none has
} origin;

static int compare_facts(const origin *a, const origin *b) {
  int order = 0;
  for (int i = 0; order == 0 && i < NUM_FACTS; i++) order = strcmp(a->fact[i], b->fact[i]);
  return order;
}

static int compare_origins(const void *a, const void *b) { return compare_facts(a, b); }

static origin origin_of(const ftl_measurement *row) {
  origin o = {.num_rows = 1};
  for (int i = 0; i < NUM_FACTS; i++) {
    const char *text = ftl_measurement_fact(row, facts[i]);
    o.fact[i] = text != NULL ? text : "";
  }
  const char *mhz = ftl_measurement_fact(row, "sm_mhz");
  o.least_mhz = o.most_mhz = mhz != NULL ? strtod(mhz, NULL) : 0;
  return o;
}

static void merge(origin *into, const origin *other) {
  into->num_rows += other->num_rows;
  if (other->most_mhz <= 0) return;
  if (into->most_mhz <= 0 || other->least_mhz < into->least_mhz) into->least_mhz = other->least_mhz;
  if (other->most_mhz > into->most_mhz) into->most_mhz = other->most_mhz;
}

// Sorts, and merges equal ones; how many are left.
static int64_t merge_origins(origin *origins, int64_t count) {
  int64_t kept = 0;
  if (count > 1) qsort(origins, (size_t)count, sizeof *origins, compare_origins);
  for (int64_t i = 0; i < count; i++) {
    if (kept > 0 && compare_facts(&origins[kept - 1], &origins[i]) == 0) {
      merge(&origins[kept - 1], &origins[i]);
    } else {
      origins[kept++] = origins[i];
    }
  }
  return kept;
}

static ftl_status add_origins(const ftl_page *page) {
  static const char *const columns[] = {"GPU",       "driver",        "CUDA",          "Nsight Compute",
                                        "condition", "clock control", "cache control", "date",
                                        "rows",      "SM MHz, least", "SM MHz, most",  NULL};
  int64_t count = 0;
  origin *origins = calloc((size_t)page->contents->num_measurements, sizeof *origins);
  if (origins == NULL) return ftl_page_no_memory(page);
  for (int i = 0; i < page->contents->num_files; i++) {
    const ftl_measurement_file *file = &page->contents->files[i].file;
    for (int64_t j = 0; j < file->num_rows; j++) origins[count++] = origin_of(&file->rows[j]);
  }
  count = merge_origins(origins, count);
  ftl_page_table_begin(page, "Machines and settings", columns, 9);
  for (int64_t i = 0; i < count; i++) {
    ftl_page_row_begin(page);
    for (int j = 0; j < NUM_FACTS; j++) ftl_page_cell(page, origins[i].fact[j]);
    ftl_page_count(page, origins[i].num_rows);
    bool has_clock = origins[i].most_mhz > 0;
    ftl_page_number(page, has_clock ? origins[i].least_mhz : (double)NAN, 0);
    ftl_page_number(page, has_clock ? origins[i].most_mhz : (double)NAN, 0);
  }
  ftl_page_table_end(page);
  free(origins);
  return FTL_OK;
}

static void add_files(const ftl_page *page) {
  static const char *const columns[] = {"file", "format", "imported (UTC)", "hash of its bytes", "rows", NULL};
  ftl_page_table_begin(page, "Files", columns, 5);
  for (int i = 0; i < page->contents->num_files; i++) {
    const ftl_stored_file *f = &page->contents->files[i];
    ftl_page_row_begin(page);
    ftl_page_cell(page, ftl_path_file_name(f->file.path));
    ftl_page_cell(page, f->format);
    ftl_page_cell(page, f->imported_utc);
    ftl_page_cell(page, f->hash);
    ftl_page_count(page, f->file.num_rows);
  }
  ftl_page_table_end(page);
}

ftl_status ftl_page_add_provenance(ftl_page *page) {
  if (page->contents->num_measurements == 0) return FTL_OK;
  ftl_page_section(page, "provenance", "Where measurements come from");
  ftl_status status = add_origins(page);
  add_files(page);
  ftl_text_add(page->out, "</section>\n");
  return status;
}
