#include "report/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// By the 16 bytes that every file of SQLite's begins with, the last of them 0.
static bool is_database(const char *path) {
  static const char magic[16] = "SQLite format 3";
  char head[sizeof magic];
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  bool is = fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, magic, sizeof head) == 0;
  fclose(file);
  return is;
}

static ftl_status failed(const char *path, int failure, ftl_error *error) {
  return ftl_error_set(error, failure == ENOMEM ? FTL_NO_MEMORY : FTL_IO_FAILED, "%s: %s", path, strerror(failure));
}

static void release(ftl_output_stream *stream) {
  free(stream->path);
  free(stream->beside);
}

// A new file beside the target: PATH.new, or PATH.new1 to PATH.new99 where somebody has such a file. NULL: errno says
// why. `mode`: of the file that it is to replace; 0: as a new file has.
static FILE *create_beside(ftl_output_stream *stream, mode_t mode) {
  enum { MOST = 100 };
  size_t size = strlen(stream->path) + sizeof ".new99";
  int fd = -1;
  stream->beside = malloc(size);
  if (stream->beside == NULL) return NULL;
  for (int i = 0; i < MOST && fd < 0 && (i == 0 || errno == EEXIST); i++) {
    snprintf(stream->beside, size, i == 0 ? "%s.new" : "%s.new%d", stream->path, i);
    fd = open(stream->beside, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  }
  if (fd < 0) return NULL;
  bool has_mode = mode == 0 || fchmod(fd, mode & 0777) == 0;
  FILE *file = has_mode ? fdopen(fd, "w") : NULL;
  if (file != NULL) return file;
  int failure = errno;
  close(fd);
  unlink(stream->beside);
  errno = failure;
  return NULL;
}

ftl_status ftl_output_stream_open(ftl_output_stream *stream, const char *path, ftl_error *error) {
  char resolved[PATH_MAX];  // of a link, so that the link stays
  const char *target = realpath(path, resolved) != NULL ? resolved : path;
  struct stat info;
  bool exists = stat(target, &info) == 0, is_file = exists && S_ISREG(info.st_mode);
  if (is_file && is_database(target))
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: a database, which is not written over", path);
  *stream = (ftl_output_stream){.path = strdup(target)};
  if (stream->path == NULL) return failed(path, ENOMEM, error);
  stream->file = is_file || !exists ? create_beside(stream, is_file ? info.st_mode : 0) : fopen(stream->path, "w");
  if (stream->file != NULL) return FTL_OK;
  int failure = errno;
  release(stream);
  return failed(path, failure, error);
}

ftl_status ftl_output_stream_close(ftl_output_stream *stream, ftl_status status, ftl_error *error) {
  int failure = ferror(stream->file) != 0 ? EIO : 0;
  if (fclose(stream->file) != 0) failure = errno;
  if (status == FTL_OK && failure == 0 && stream->beside != NULL && rename(stream->beside, stream->path) != 0)
    failure = errno;
  if ((status != FTL_OK || failure != 0) && stream->beside != NULL) unlink(stream->beside);
  if (status == FTL_OK && failure != 0) status = failed(stream->path, failure, error);
  release(stream);
  return status;
}

ftl_status ftl_output_file_write(const char *path, const ftl_text *text, ftl_error *error) {
  if (text->failed) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  ftl_output_stream stream;
  ftl_status status = ftl_output_stream_open(&stream, path, error);
  if (status != FTL_OK) return status;
  if (fwrite(ftl_text_get(text), 1, text->size, stream.file) != text->size) status = failed(path, errno, error);
  return ftl_output_stream_close(&stream, status, error);
}
