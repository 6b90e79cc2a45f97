// foretile workload list|show W.
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "report/workload_report.h"

static ftl_status show(const char *name, bool json, ftl_text *text, ftl_error *error) {
  ftl_spec spec;
  ftl_status status = ftl_spec_init(&spec, name, error);
  return status != FTL_OK ? status : ftl_workload_report_show(spec.workload, json, text, error);
}

static ftl_status workload(const ftl_arguments *arguments, ftl_error *error) {
  const char *verb = arguments->num_positional > 0 ? arguments->positional[0] : "";
  ftl_text text = {0};
  ftl_status status = FTL_OK;
  if (strcmp(verb, "list") == 0 && arguments->num_positional == 1) {
    status = ftl_workload_report_list(arguments->json, &text, error);
  } else if (strcmp(verb, "show") == 0 && arguments->num_positional == 2) {
    status = show(arguments->positional[1], arguments->json, &text, error);
  } else {
    status = ftl_error_set(error, FTL_BAD_INPUT, "workload takes: list, show NAME");
  }
  if (status == FTL_OK) fputs(ftl_text_get(&text), stdout);
  ftl_text_fini(&text);
  return status;
}

int ftl_cmd_workload(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "workload", "list|show NAME", "J", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = workload(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
