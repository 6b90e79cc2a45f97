#include "cli/command.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/utf8.h"
#include "results/version.h"

static const struct {
  const char *name, *usage, *summary;
  int (*run)(int argc, char **argv);
} commands[] = {
    {"run", "run SCENARIO.lua [-- ARGS]", "run a Lua scenario", ftl_cmd_run},
    {"predict", "predict --arch A --workload W KEY=VALUE...", "one prediction, or many from JSON lines",
     ftl_cmd_predict},
    {"explore", "explore --arch A --workload W KEY=V1,V2,...", "every combination, ranked", ftl_cmd_explore},
    {"explain", "explain --arch A --workload W KEY=VALUE...", "one prediction, and why: bottleneck, stalls, what-ifs",
     ftl_cmd_explain},
    {"arch", "arch list|show A|check FILE|docs", "GPU models and where their numbers come from", ftl_cmd_arch},
    {"workload", "workload list|show W", "workloads and their parameters", ftl_cmd_workload},
    {"trace", "trace --arch A --workload W KEY=VALUE...", "warp instructions of one CTA, or a timeline", ftl_cmd_trace},
    {"validate", "validate [--measurements FILE...]", "predicted against measured", ftl_cmd_validate},
    {"measure", "measure [CASES.csv...]", "run the kernels on this machine's GPU", ftl_cmd_measure},
    {"import", "import FILE.csv...", "measured rows into the database", ftl_cmd_import},
    {"report", "report [--db FILE] -o report.html", "the database as one page that works offline", ftl_cmd_report},
};
enum { NUM_COMMANDS = sizeof commands / sizeof *commands };

// What the user typed or a file held may be in it: bytes that are no character are spelt out.
static void print_readable(const char *message) {
  for (const unsigned char *s = (const unsigned char *)message; *s != '\0';) {
    size_t size = ftl_utf8_size(s);
    if (size == 0)
      fprintf(stderr, "\\x%02x", *s++);
    else
      s += fwrite(s, 1, size, stderr);
  }
}

int ftl_command_end(ftl_status status, const char *message) {
  if (status == FTL_OK) return FTL_EXIT_DONE;
  fflush(stdout);
  fputs("foretile: ", stderr);
  print_readable(message);
  fputc('\n', stderr);
  return status == FTL_BAD_INPUT || status == FTL_IO_FAILED ? FTL_EXIT_UNUSABLE : FTL_EXIT_FAILED;
}

static void print_help(void) {
  printf("Foretile predicts HBM traffic, cycles and time of attention kernels on a GPU.\n\n");
  for (int i = 0; i < NUM_COMMANDS; i++) printf("  foretile %-46s %s\n", commands[i].usage, commands[i].summary);
  printf("\nforetile COMMAND --help describes a command; foretile --version prints the version.\n");
  printf("Exit status: 0 done, 1 something in the job failed, 2 unusable arguments or input.\n");
}

static int unknown_command(const char *name) {
  char known[256] = "";
  for (int i = 0; i < NUM_COMMANDS; i++) {
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", commands[i].name);
  }
  ftl_error error;
  ftl_status status = ftl_error_set(&error, FTL_BAD_INPUT, "unknown command %.64s; commands are %s", name, known);
  return ftl_command_end(status, error.message);
}

static int dispatch(int argc, char **argv) {
  if (argc < 2) return ftl_command_end(FTL_BAD_INPUT, "no command; foretile --help lists them");
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
    return print_help(), FTL_EXIT_DONE;
  }
  if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
    return printf("foretile %s\n", ftl_program_version()), FTL_EXIT_DONE;
  }
  for (int i = 0; i < NUM_COMMANDS; i++) {
    if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
  }
  return unknown_command(argv[1]);
}

int ftl_command_main(int argc, char **argv) {
  int exit_status = dispatch(argc, argv);
  bool failed = fflush(stdout) != 0 || ferror(stdout) != 0;
  if (failed && exit_status == FTL_EXIT_DONE) {
    ftl_error error;
    ftl_status status = ftl_error_set(&error, FTL_IO_FAILED, "standard output: %s", strerror(errno));
    return ftl_command_end(status, error.message);
  }
  return exit_status;
}
