// Command-line options. One list of all; a command names those that it takes.
#ifndef FTL_CLI_ARGUMENTS_H
#define FTL_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ftl_arguments {
  const char *arch, *workload, *detail, *database, *batch, *by, *svg, *output, *timeline, *measurements, *build;
  bool json, quiet, allow_io, no_database, markdown, all, no_ncu, no_stream, program, open_code, help;
  int64_t num_jobs, top, max_memory_mb, max_instructions, cta, launch, max_lines, from_cycle, until_cycle, every,
      repeat;
  uint64_t given;     // a bit for each option that was (ftl_arguments_given)
  const char **sets;  // KEY=VALUE of --set
  int num_sets;
  const char **positional;
  int num_positional;
  char **rest;  // behind "--"
  int num_rest;
} ftl_arguments;

// `options`: letters of the options that the command takes (arguments.c). Prints the help and sets `help` when asked
// for. FTL_BAD_INPUT names the option and the nearest one, or what is allowed.
FTL_MUST_USE ftl_status ftl_arguments_parse(ftl_arguments *out, int argc, char **argv, const char *command,
                                            const char *usage, const char *options, ftl_error *error);
// The name of the first of these options that was given; NULL: none.
const char *ftl_arguments_given(const ftl_arguments *arguments, const char *options);
void ftl_arguments_fini(ftl_arguments *arguments);

#endif
