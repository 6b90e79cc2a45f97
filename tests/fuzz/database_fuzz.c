// A results database of any bytes: opened, asked, and written to.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "results/contents.h"
#include "results/database.h"
#include "fuzz_target.h"

static void ask(ftl_database *database) {
  const ftl_result_key key = {.hex = "00000000000000000000000000000000"};
  ftl_prediction prediction;
  ftl_error error;
  ftl_spec spec;
  int64_t run_id = 0;
  bool found = false;
  if (ftl_spec_init(&spec, "flash2_fwd", &error) != FTL_OK) abort();
  ftl_status status = ftl_database_get(database, 1, &key, &spec, &found, &prediction, &error);
  if (status == FTL_OK) status = ftl_database_begin_run(database, "fuzz", NULL, NULL, &run_id, &error);
  if (status == FTL_OK) status = ftl_database_end_run(database, run_id, FTL_RUN_STATE_DONE, &error);
  if (status != FTL_OK && error.message[0] == '\0') abort();
}

static void read_all(const char *path) {
  ftl_contents *contents = NULL;
  ftl_error error = {0};
  ftl_status status = ftl_contents_read(&contents, path, &error);
  if ((status == FTL_OK) != (contents != NULL) || (status != FTL_OK && error.message[0] == '\0')) abort();
  ftl_contents_destroy(contents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[] = "/tmp/ftl_fuzz_XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  close(fd);
  ftl_database *database = NULL;
  ftl_error error;
  if (ftl_database_open(&database, path, &error) == FTL_OK) ask(database);
  ftl_database_close(database);
  read_all(path);
  static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
  char name[64];
  for (int i = 0; i < 4; i++) {
    snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
    unlink(name);
  }
  return 0;
}
