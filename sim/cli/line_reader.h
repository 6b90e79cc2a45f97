// Lines of a file descriptor, of limited length, without waiting for more than is there.
#ifndef FTL_CLI_LINE_READER_H
#define FTL_CLI_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

enum { FTL_LINE_MAX_BYTES = 1 << 20 };

typedef enum ftl_line_kind {
  FTL_LINE,           // a line
  FTL_LINE_TOO_LONG,  // a line of more than FTL_LINE_MAX_BYTES, which was skipped
  FTL_LINE_NOT_YET,   // no whole line without waiting
  FTL_LINE_END,       // end of the file
  FTL_LINE_FAILED,    // errno says why; EINTR when a signal came
} ftl_line_kind;

typedef struct ftl_line_reader {
  int fd;
  char *buffer;  // FTL_LINE_MAX_BYTES + 1
  size_t begin, end;
  bool at_end, skipping;
} ftl_line_reader;

// False: memory is out.
bool ftl_line_reader_init(ftl_line_reader *reader, int fd);
void ftl_line_reader_fini(ftl_line_reader *reader);
// *line is valid until the next call, NUL-terminated, without its newline; it may hold NULs itself. A last line without
// newline counts. wait: waits for a line.
ftl_line_kind ftl_line_reader_next(ftl_line_reader *reader, bool wait, char **line, size_t *size);

#endif
