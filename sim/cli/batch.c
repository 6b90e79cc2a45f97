#include "cli/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/line_reader.h"
#include "report/prediction_report.h"

// Lines that are answered together.
typedef struct chunk {
  int capacity, num_lines, num_points;
  ftl_point *points;    // of the good lines
  ftl_answer *answers;  // of the points
  ftl_error *errors;    // a line; status FTL_OK: the line is the next point
} chunk;

static bool chunk_init(chunk *c, int capacity) {
  *c = (chunk){.capacity = capacity};
  c->points = calloc((size_t)capacity, sizeof *c->points);
  c->answers = calloc((size_t)capacity, sizeof *c->answers);
  c->errors = calloc((size_t)capacity, sizeof *c->errors);
  return c->points != NULL && c->answers != NULL && c->errors != NULL;
}

static void chunk_fini(chunk *c) {
  free(c->points);
  free(c->answers);
  free(c->errors);
}

static void add_line(chunk *c, ftl_session *session, const ftl_arguments *arguments, const char *line, size_t size) {
  ftl_error *error = &c->errors[c->num_lines++];
  *error = (ftl_error){.status = FTL_OK};
  ftl_status status = ftl_batch_parse(session, arguments, line, size, &c->points[c->num_points], error);
  if (status == FTL_OK) c->num_points++;
}

static void add_too_long(chunk *c) {
  ftl_error_set(&c->errors[c->num_lines++], FTL_BAD_INPUT, "the line is longer than %d bytes", FTL_LINE_MAX_BYTES);
}

// Waits for the first line, then takes what is there already. *at_end: there is no more.
static ftl_status read_chunk(chunk *c, ftl_line_reader *reader, ftl_session *session, const ftl_arguments *arguments,
                             const char *name, bool *at_end, ftl_error *error) {
  c->num_lines = c->num_points = 0;
  while (c->num_lines < c->capacity) {
    char *line = NULL;
    size_t size = 0;
    ftl_line_kind kind = ftl_line_reader_next(reader, c->num_lines == 0, &line, &size);
    if (kind == FTL_LINE) add_line(c, session, arguments, line, size);
    if (kind == FTL_LINE_TOO_LONG) add_too_long(c);
    if (kind == FTL_LINE_FAILED) {
      return errno == EINTR ? ftl_error_set(error, FTL_INTERRUPTED, "interrupted")
                            : ftl_error_set(error, FTL_IO_FAILED, "%s: %s", name, strerror(errno));
    }
    *at_end = kind == FTL_LINE_END;
    if (kind == FTL_LINE_END || kind == FTL_LINE_NOT_YET) break;
  }
  return FTL_OK;
}

static bool add_answer(const ftl_point *point, const ftl_answer *answer, ftl_text *text) {
  if (answer->status != FTL_OK) {
    ftl_error_json(answer->message, text);
    return false;
  }
  ftl_row row = {.arch = point->arch, .prediction = &answer->prediction};
  ftl_prediction_json(&row, text);
  return true;
}

static ftl_status write_chunk(const chunk *c, FILE *out, int64_t *num_failed, ftl_error *error) {
  ftl_text text = {0};
  int point_idx = 0;
  for (int i = 0; i < c->num_lines; i++) {
    bool good = c->errors[i].status == FTL_OK;
    if (good) {
      good = add_answer(&c->points[point_idx], &c->answers[point_idx], &text);
      point_idx++;
    } else {
      ftl_error_json(c->errors[i].message, &text);
    }
    *num_failed += !good;
    ftl_text_add(&text, "\n");
  }
  ftl_status status = FTL_OK;
  if (text.failed) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the answers");
  } else if (fwrite(ftl_text_get(&text), 1, text.size, out) != text.size || fflush(out) != 0) {
    status = ftl_error_set(error, FTL_IO_FAILED, "writing the answers: %s", strerror(errno));
  }
  ftl_text_fini(&text);
  return status;
}

ftl_status ftl_batch_run(ftl_session *session, const ftl_arguments *arguments, int fd, const char *name, FILE *out,
                         int64_t *num_failed, ftl_error *error) {
  enum { LINES_PER_THREAD = 4 };
  ftl_line_reader reader;
  chunk c;
  bool at_end = false;
  *num_failed = 0;
  bool ready = chunk_init(&c, LINES_PER_THREAD * session->evaluate.num_threads);
  ready = ftl_line_reader_init(&reader, fd) && ready;
  ftl_status status = ready ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  while (status == FTL_OK && !at_end) {
    status = read_chunk(&c, &reader, session, arguments, name, &at_end, error);
    if (status == FTL_OK) status = ftl_evaluate(c.points, c.num_points, &session->evaluate, c.answers, error);
    if (status == FTL_OK) status = write_chunk(&c, out, num_failed, error);
  }
  ftl_line_reader_fini(&reader);
  chunk_fini(&c);
  return status;
}
