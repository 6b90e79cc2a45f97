// Every measured case beside its prediction, worst first.
#include <math.h>
#include <string.h>

#include "report/page_internal.h"

static void add_error(const ftl_page *page, const ftl_case *c, ftl_quantity quantity) {
  double error = 0;
  ftl_page_signed(page, ftl_case_error(c, quantity, &error) ? error : (double)NAN, 1);
}

static ftl_status add_case(ftl_page *page, const ftl_case *c) {
  static const ftl_quantity shown[] = {FTL_QUANTITY_cycles, FTL_QUANTITY_hbm,   FTL_QUANTITY_l2_sectors,
                                       FTL_QUANTITY_l2_hit, FTL_QUANTITY_insts, FTL_QUANTITY_registers};
  const ftl_spec *spec = &c->measured_case.spec;
  ftl_text question = {0}, problem = {0}, choice = {0};
  char conditions[32];
  ftl_spec_canonical(spec, &question);
  ftl_status status = ftl_question_split(page, ftl_text_get(&question), &problem, &choice);
  ftl_page_row_begin(page);
  ftl_page_cell(page, ftl_part_name(c->measured_case.part));
  ftl_page_cell(page, c->measured_case.source);
  ftl_page_cell(page, ftl_spec_text(spec, FTL_PARAM_conditions, conditions));
  ftl_page_cell(page, spec->workload->name);
  ftl_page_cell(page, ftl_text_get(&problem));
  ftl_page_cell(page, ftl_text_get(&choice));
  ftl_page_cell(page, c->place);
  ftl_page_number(page, ftl_case_measured_time_ns(c) / 1e3, 1);
  ftl_page_number(page, ftl_case_is_predicted(c) ? ftl_case_predicted_time_ns(c) / 1e3 : (double)NAN, 1);
  bool is_stream = strcmp(ftl_spec_text(spec, FTL_PARAM_conditions, conditions), "stream") == 0;
  add_error(page, c, is_stream ? FTL_QUANTITY_stream_time : FTL_QUANTITY_time);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) add_error(page, c, shown[i]);
  bool failed = question.failed || problem.failed || choice.failed;
  ftl_text_fini(&question);
  ftl_text_fini(&problem);
  ftl_text_fini(&choice);
  return failed ? ftl_page_no_memory(page) : status;
}

ftl_status ftl_page_add_case_table(ftl_page *page) {
  static const char *const columns[] = {"part",        "kernel of", "condition",    "workload",      "problem",
                                        "choice",      "file:line", "measured us",  "predicted us",  "time %",
                                        "cycles %",    "HBM %",     "L2 sectors %", "L2 hit points", "instructions %",
                                        "registers %", NULL};
  if (page->cases.num_cases == 0) return FTL_OK;
  ftl_page_section(page, "cases", "Every case, worst first");
  ftl_page_table_begin(page, "Measured cases, by the larger error of cycles and time", columns, 8);
  ftl_status status = FTL_OK;
  for (int64_t i = 0; status == FTL_OK && i < page->cases.num_cases; i++) {
    status = add_case(page, &page->cases.cases[i]);
  }
  ftl_page_table_end(page);
  ftl_text_add(page->out, "</section>\n");
  return status;
}
