// Status codes and the caller-owned error line.
// Every function that can fail on outside input, I/O or memory returns ftl_status and fills one line.
// A broken model invariant is not a status: see check.h.
#ifndef FTL_BASE_STATUS_H
#define FTL_BASE_STATUS_H

typedef enum ftl_status {
  FTL_OK = 0,
  FTL_BAD_INPUT,   // arguments, scenario, arch model, CSV, database content: exit status 2
  FTL_INFEASIBLE,  // a well-formed configuration that the GPU cannot run; message holds the reason
  FTL_IO_FAILED,   // the system refused: file, database, disk: exit status 2
  FTL_NO_MEMORY,
  FTL_RUN_FAILED,  // the job ran and something in it failed: exit status 1
  FTL_INTERRUPTED,
} ftl_status;

enum { FTL_ERROR_MESSAGE_BYTES = 512 };

typedef struct ftl_error {
  ftl_status status;
  char message[FTL_ERROR_MESSAGE_BYTES];  // one line, no newline, never empty when status != FTL_OK
  int subject_bytes;  // of the message: what it begins with is what failed; 0: nothing is told apart
} ftl_error;

#define FTL_MUST_USE __attribute__((warn_unused_result))

// Sets *error (which may be NULL) to one formatted line and returns status. Control characters in the text become '?'.
ftl_status ftl_error_set(ftl_error *error, ftl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// The same of a line that begins with the name of what failed, right before the text: callers may know it by another.
ftl_status ftl_error_set_about(ftl_error *error, ftl_status status, const char *subject, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
