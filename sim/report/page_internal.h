// Shared by the sections of the page.
#ifndef FTL_REPORT_PAGE_INTERNAL_H
#define FTL_REPORT_PAGE_INTERNAL_H

#include "report/markup.h"
#include "report/page.h"
#include "report/validate.h"

enum { FTL_PAGE_NUM_COLOURS = 8 };  // of series: classes c0 to c7 of page.css

// A prediction, and its question in words.
typedef struct ftl_page_row {
  const ftl_stored_prediction *prediction;
  const ftl_stored_arch *arch;
  const char *gpu;      // its name; with a part of its hash where another model in the file has the same
  const char *problem;  // "heads=32 seqlen=8192": what is asked for, defaults left out
  const char *choice;   // "block_m=64 num_warps=8": how; defaults left out but for tiles, warps and stages
  double time_ns;       // by its own conditions; NaN: infeasible or not known
  double measured_ns;   // of the same configuration; NaN: not in the file
  double hbm_bytes;
} ftl_page_row;

// Rows of one problem on one GPU by one version of the program; the fastest first, infeasible ones last.
typedef struct ftl_page_group {
  const ftl_page_row *rows;
  int64_t num_rows, num_feasible;
} ftl_page_group;

typedef struct ftl_page {
  const ftl_contents *contents;
  const char **gpus;   // of each GPU model, as rows have it
  ftl_page_row *rows;  // group after group
  ftl_page_group *groups;
  int64_t num_groups;
  const char **workloads;  // that were predicted, by name: a colour each
  int num_workloads, num_versions;
  ftl_validation cases;                    // measured, and predicted in this file; worst first
  struct ftl_question_defaults *defaults;  // of the workloads asked for so far (page_question.c)
  double *measured_ns;      // of each prediction in the file, by the condition of its case; NaN: not measured
  int64_t num_unpredicted;  // measured cases without a prediction in this file
  ftl_arena arena;
  ftl_text *out;
  ftl_error *error;
} ftl_page;

FTL_MUST_USE ftl_status ftl_page_no_memory(const ftl_page *page);
const char *ftl_page_keep(ftl_page *page, ftl_text *text);  // takes the text; NULL when memory is out

// --- what the sections are made from ---
FTL_MUST_USE ftl_status ftl_page_make_gpus(ftl_page *page);   // page_rows.c
FTL_MUST_USE ftl_status ftl_page_make_cases(ftl_page *page);  // page_cases.c
FTL_MUST_USE ftl_status ftl_page_make_rows(ftl_page *page);   // page_rows.c; after the cases

// --- sections, each a file ---
void ftl_page_add_contents(ftl_page *page);  // page_contents.c
FTL_MUST_USE ftl_status ftl_page_add_accuracy(ftl_page *page);
FTL_MUST_USE ftl_status ftl_page_add_case_table(ftl_page *page);
FTL_MUST_USE ftl_status ftl_page_add_rankings(ftl_page *page);
void ftl_page_add_rooflines(ftl_page *page);
void ftl_page_add_stalls(ftl_page *page);
void ftl_page_add_predictions(ftl_page *page);
FTL_MUST_USE ftl_status ftl_page_add_provenance(ftl_page *page);

// --- words of a question (page_question.c) ---
// What `question` ("flash2_fwd batch=1 heads=32 ...") asks for, and by which choice, defaults left out. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_question_split(ftl_page *page, const char *question, ftl_text *problem, ftl_text *choice);
// The value of one word; false: it is not there. Into at most `size` bytes.
bool ftl_question_value(const char *question, const char *name, char *out, size_t size);

// --- parts of HTML (page_html.c) ---
// <section id=...><h2>; sections end with "</section>".
void ftl_page_section(const ftl_page *page, const char *id, const char *title);
// A table that scripts sort and filter: `columns` are headers, NULL after the last; from the first_number-th on, which
// is one of the classes n2 to n9 of page.css, they are numbers.
void ftl_page_table_begin(const ftl_page *page, const char *caption, const char *const *columns, int first_number);
void ftl_page_table_end(const ftl_page *page);
void ftl_page_row_begin(const ftl_page *page);
void ftl_page_cell(const ftl_page *page, const char *text);
void ftl_page_number(const ftl_page *page, double value, int decimals);  // "-": not a number
void ftl_page_signed(const ftl_page *page, double value, int decimals);
void ftl_page_count(const ftl_page *page, int64_t value);
// "h200 · flash2_fwd · heads=32 seqlen=8192", and the version of the program where there are several.
void ftl_page_group_name(const ftl_page *page, const ftl_page_group *group);
// The colours of the workloads.
void ftl_page_legend(const ftl_page *page);
int ftl_page_colour(const ftl_page *page, const char *workload);

#endif
