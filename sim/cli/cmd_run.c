// foretile run: a Lua scenario.
#include <stdlib.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/use.h"
#include "script/scenario.h"
#include "script/script_file.h"

static const char *const default_database = "foretile.db";

static ftl_sandbox_limits limits_of(const ftl_arguments *arguments) {
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.max_memory_bytes = (size_t)arguments->max_memory_mb << 20;
  limits.max_instructions = arguments->max_instructions;
  limits.allow_io = arguments->allow_io;
  limits.interrupt = ftl_interrupt_signal();
  return limits;
}

static ftl_status run(const ftl_arguments *arguments, ftl_error *error) {
  if (arguments->num_positional != 1) {
    return ftl_error_set(error, FTL_BAD_INPUT, "run takes one scenario file; its arguments go behind --");
  }
  if (arguments->no_database && arguments->database != NULL) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "--no-db: not with --db; one keeps nothing, the other keeps results in %s",
                         arguments->database);
  }
  const char *path = arguments->positional[0];
  const char *database = arguments->database != NULL ? arguments->database : default_database;
  char *text = NULL;
  size_t size = 0;
  ftl_status status = ftl_script_file_read(path, &text, &size, error);
  if (status != FTL_OK) return status;
  ftl_use use;
  status = ftl_use_begin(&use, arguments, "run", arguments->no_database ? NULL : database, path, text, error);
  free(text);
  if (status != FTL_OK) return status;
  status = ftl_scenario_run(&use.session, path, (const char *const *)arguments->rest, arguments->num_rest,
                            limits_of(arguments), error);
  return ftl_use_end(&use, status, error);
}

int ftl_cmd_run(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "run", "SCENARIO.lua [-- ARGS]", "dnjDqimI", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) status = run(&arguments, &error);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
