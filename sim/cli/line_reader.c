#include "cli/line_reader.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The longest line and its newline.
enum { BUFFER_BYTES = FTL_LINE_MAX_BYTES + 1 };

bool ftl_line_reader_init(ftl_line_reader *reader, int fd) {
  *reader = (ftl_line_reader){.fd = fd, .buffer = malloc(BUFFER_BYTES)};
  return reader->buffer != NULL;
}

void ftl_line_reader_fini(ftl_line_reader *reader) { free(reader->buffer); }

// Makes room by moving what is unread to the front, or, when one line fills everything, by dropping its bytes.
static void make_room(ftl_line_reader *reader) {
  if (reader->begin > 0) {
    memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;
  }
  if (reader->end == BUFFER_BYTES) {
    reader->skipping = true;
    reader->end = 0;
  }
}

static bool has_input(const ftl_line_reader *reader) {
  struct pollfd poll_fd = {.fd = reader->fd, .events = POLLIN};
  return poll(&poll_fd, 1, 0) > 0;
}

// Takes `size` bytes and the newline behind them, if there is one.
static ftl_line_kind take_line(ftl_line_reader *reader, size_t size, char **line, size_t *line_size) {
  *line = reader->buffer + reader->begin;
  *line_size = size;
  bool was_skipping = reader->skipping;
  reader->begin += size;
  if (reader->begin < reader->end) reader->begin++;
  (*line)[size] = '\0';
  reader->skipping = false;
  return was_skipping ? FTL_LINE_TOO_LONG : FTL_LINE;
}

ftl_line_kind ftl_line_reader_next(ftl_line_reader *reader, bool wait, char **line, size_t *size) {
  size_t searched = 0;
  for (;;) {
    size_t unread = reader->end - reader->begin;
    const char *start = reader->buffer + reader->begin;
    const char *newline = memchr(start + searched, '\n', unread - searched);
    if (newline != NULL) return take_line(reader, (size_t)(newline - start), line, size);
    if (reader->at_end) {
      bool has_last = unread > 0 || reader->skipping;
      return has_last ? take_line(reader, unread, line, size) : FTL_LINE_END;
    }
    if (!wait && !has_input(reader)) return FTL_LINE_NOT_YET;
    make_room(reader);
    searched = reader->end;
    ssize_t num_read = read(reader->fd, reader->buffer + reader->end, BUFFER_BYTES - reader->end);
    if (num_read < 0) return FTL_LINE_FAILED;
    reader->at_end = num_read == 0;
    reader->end += (size_t)num_read;
  }
}
