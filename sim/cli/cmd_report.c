// foretile report: a results database as one HTML page.
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "report/output_file.h"
#include "report/page.h"

static ftl_status report(const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->num_positional > 0) {
    return ftl_error_set(error, FTL_BAD_INPUT, "report takes no %.64s: foretile report [--db FILE] -o report.html",
                         arguments->positional[0]);
  }
  ftl_text page = {0};
  ftl_status status = ftl_page_of_file(arguments->database != NULL ? arguments->database : "foretile.db", &page, error);
  if (status == FTL_OK && arguments->output != NULL) {
    status = ftl_output_file_write(arguments->output, &page, error);
  } else if (status == FTL_OK) {
    fwrite(ftl_text_get(&page), 1, page.size, stdout);
  }
  ftl_text_fini(&page);
  return status;
}

int ftl_cmd_report(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "report", "", "do", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = report(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
