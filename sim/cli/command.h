// The commands, and how they end.
#ifndef FTL_CLI_COMMAND_H
#define FTL_CLI_COMMAND_H

#include "base/status.h"

// 0: done; 1: the job ran and something in it failed; 2: unusable arguments or input.
enum { FTL_EXIT_DONE = 0, FTL_EXIT_FAILED = 1, FTL_EXIT_UNUSABLE = 2 };

// argv[0] is "foretile NAME". Returns the exit status.
int ftl_cmd_run(int argc, char **argv);
int ftl_cmd_predict(int argc, char **argv);
int ftl_cmd_explain(int argc, char **argv);
int ftl_cmd_explore(int argc, char **argv);
int ftl_cmd_arch(int argc, char **argv);
int ftl_cmd_workload(int argc, char **argv);
int ftl_cmd_trace(int argc, char **argv);
int ftl_cmd_import(int argc, char **argv);
int ftl_cmd_measure(int argc, char **argv);
int ftl_cmd_validate(int argc, char **argv);
int ftl_cmd_report(int argc, char **argv);

// The whole command line.
int ftl_command_main(int argc, char **argv);

// Prints "foretile: message" unless status is FTL_OK, and gives the exit status.
int ftl_command_end(ftl_status status, const char *message);

#endif
