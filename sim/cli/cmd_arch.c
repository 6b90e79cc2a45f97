// foretile arch list|show A|check FILE|docs.
#include <stdio.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/points.h"
#include "report/arch_report.h"
#include "script/arch_loader.h"

static ftl_status list(const ftl_arguments *arguments, ftl_error *error) {
  ftl_arch_list all;
  ftl_status status = ftl_arch_load_all(NULL, &all, error);
  if (status != FTL_OK) return status;
  status = ftl_arch_report_list(stdout, (const ftl_arch *const *)all.archs, all.num_archs, arguments->json, error);
  ftl_arch_list_fini(&all);
  return status;
}

static ftl_status show(const ftl_arguments *arguments, bool check, ftl_error *error) {
  ftl_session session;
  const ftl_arch *arch = NULL;
  ftl_session_init(&session);
  ftl_status status = ftl_points_arch(&session, arguments, arguments->positional[1], &arch, error);
  if (status == FTL_OK) {
    status =
        check ? ftl_arch_report_check(stdout, arch, error) : ftl_arch_report_show(stdout, arch, arguments->json, error);
  }
  ftl_session_fini(&session);
  return status;
}

static ftl_status arch(const ftl_arguments *arguments, ftl_error *error) {
  const char *verb = arguments->num_positional > 0 ? arguments->positional[0] : "";
  int num_names = arguments->num_positional - 1;
  if (strcmp(verb, "list") == 0 && num_names == 0) return list(arguments, error);
  if (strcmp(verb, "docs") == 0 && num_names == 0) return ftl_arch_report_docs(stdout, error);
  if (strcmp(verb, "show") == 0 && num_names == 1) return show(arguments, false, error);
  if (strcmp(verb, "check") == 0 && num_names == 1) return show(arguments, true, error);
  return ftl_error_set(error, FTL_BAD_INPUT, "arch takes: list, show GPU, check FILE, docs");
}

int ftl_cmd_arch(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status =
      ftl_arguments_parse(&arguments, argc, argv, "arch", "list|show GPU|check FILE|docs", "sJ", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = arch(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
