// foretile measure [CASES.csv...]: runs kernels/measure.py, the one driver of the kernels, in this process's place.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"

// Words of the new command line. They live until the process is replaced or ends.
typedef struct word_list {
  const char **words;
  int num_words;
} word_list;

static void add(word_list *list, const char *word) { list->words[list->num_words++] = word; }

static void add_option(word_list *list, const char *option, const char *value) {
  if (value == NULL) return;
  add(list, option);
  add(list, value);
}

// From FORETILE_KERNELS, or the folder of the sources.
static ftl_status find_driver(ftl_text *path, ftl_error *error) {
  const char *folder = getenv("FORETILE_KERNELS");
  if (folder == NULL || folder[0] == '\0') folder = FTL_KERNELS_DIR;
  ftl_text_add(path, "%s/measure.py", folder);
  if (path->failed) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  if (access(ftl_text_get(path), R_OK) == 0) return FTL_OK;
  return ftl_error_set(error, FTL_IO_FAILED,
                       "measure: no measure.py in %.400s: name the folder kernels of the sources in FORETILE_KERNELS",
                       folder);
}

// Returns only when the driver could not be started.
static ftl_status replace_process(const ftl_arguments *arguments, const char *driver, ftl_error *error) {
  enum { MAX_OWN_WORDS = 16 };
  word_list list = {calloc((size_t)arguments->num_positional + MAX_OWN_WORDS, sizeof *list.words), 0};
  if (list.words == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  char repeat[24];
  snprintf(repeat, sizeof repeat, "%lld", (long long)arguments->repeat);
  add(&list, "python3");
  add(&list, driver);
  add_option(&list, "--out", arguments->output != NULL ? arguments->output : "measurements");
  add_option(&list, "--build", arguments->build);
  add_option(&list, "--repeat", repeat);
  if (arguments->no_ncu) add(&list, "--no-ncu");
  if (arguments->no_stream) add(&list, "--no-stream");
  add(&list, "--");
  add(&list, "measure");
  for (int i = 0; i < arguments->num_positional; i++) add(&list, arguments->positional[i]);
  fflush(stdout);
  execvp("python3", (char *const *)(const void *)list.words);
  int code = errno;
  free(list.words);
  return ftl_error_set(error, FTL_IO_FAILED, "measure needs python3: %s", strerror(code));
}

int ftl_cmd_measure(int argc, char **argv) {
  ftl_arguments arguments;
  ftl_error error;
  ftl_text driver = {0};
  ftl_status status = ftl_arguments_parse(&arguments, argc, argv, "measure", "[CASES.csv...]", "oNSRB", &error);
  if (status != FTL_OK) return ftl_command_end(status, error.message);
  if (!arguments.help) {
    status = find_driver(&driver, &error);
    if (status == FTL_OK) status = replace_process(&arguments, ftl_text_get(&driver), &error);
  }
  ftl_text_fini(&driver);
  ftl_arguments_fini(&arguments);
  return ftl_command_end(status, error.message);
}
