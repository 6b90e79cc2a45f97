#include "results/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static ftl_status check_bytes(const ftl_csv *csv, ftl_error *error) {
  const char *nul = memchr(csv->text, '\0', csv->size);
  if (nul == NULL) return FTL_OK;
  int64_t line = 1;
  for (const char *c = csv->text; c < nul; c++) line += *c == '\n';
  return ftl_error_set(error, FTL_BAD_INPUT, "%s:%lld: a NUL byte, so no CSV text", csv->path, (long long)line);
}

// Spreadsheets and some shells begin a text in UTF-8 with a byte-order mark; it is no part of the first name.
static size_t drop_byte_order_mark(char *text, size_t size) {
  static const char mark[] = "\xef\xbb\xbf";
  size_t mark_size = sizeof mark - 1;
  if (size < mark_size || memcmp(text, mark, mark_size) != 0) return size;
  memmove(text, text + mark_size, size - mark_size);
  return size - mark_size;
}

// Takes `text`.
static ftl_status set_up(ftl_csv *csv, const char *path, char *text, size_t size, ftl_error *error) {
  *csv = (ftl_csv){.path = strdup(path), .text = text, .size = size, .next_line = 1};
  if (csv->path == NULL || text == NULL) {
    ftl_csv_fini(csv);
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  }
  csv->size = drop_byte_order_mark(text, size);
  text[csv->size] = '\0';
  ftl_status status = check_bytes(csv, error);
  if (status != FTL_OK) ftl_csv_fini(csv);
  return status;
}

ftl_status ftl_csv_init(ftl_csv *csv, const char *path, const char *bytes, size_t size, ftl_error *error) {
  *csv = (ftl_csv){0};
  if (size > FTL_CSV_MAX_BYTES) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s: larger than %d bytes", path, FTL_CSV_MAX_BYTES);
  }
  char *text = malloc(size + 1);
  if (text != NULL && size > 0) memcpy(text, bytes, size);
  return set_up(csv, path, text, size, error);
}

static ftl_status read_all(FILE *file, const char *path, char **text, size_t *size, ftl_error *error) {
  size_t capacity = 1 << 16;
  *text = malloc(capacity + 1);
  *size = 0;
  while (*text != NULL && *size <= FTL_CSV_MAX_BYTES) {
    *size += fread(*text + *size, 1, capacity - *size, file);
    if (*size < capacity) break;
    capacity *= 2;
    char *grown = realloc(*text, capacity + 1);
    if (grown == NULL) free(*text);
    *text = grown;
  }
  if (*text == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  if (ferror(file)) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  if (*size <= FTL_CSV_MAX_BYTES) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s: larger than %d bytes", path, FTL_CSV_MAX_BYTES);
}

ftl_status ftl_csv_open(ftl_csv *csv, const char *path, ftl_error *error) {
  *csv = (ftl_csv){0};
  FILE *file = fopen(path, "rb");
  if (file == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(errno));
  struct stat info;
  char *text = NULL;
  size_t size = 0;
  ftl_status status = fstat(fileno(file), &info) == 0 && S_ISDIR(info.st_mode)
                          ? ftl_error_set(error, FTL_IO_FAILED, "%s: %s", path, strerror(EISDIR))
                          : read_all(file, path, &text, &size, error);
  fclose(file);
  if (status == FTL_OK) return set_up(csv, path, text, size, error);
  free(text);
  return status;
}

void ftl_csv_fini(ftl_csv *csv) {
  free(csv->path);
  free(csv->text);
  free(csv->fields);
  *csv = (ftl_csv){0};
}

const char *ftl_csv_peek_line(const ftl_csv *csv, size_t *size) {
  if (csv->at >= csv->size) return NULL;
  const char *line = csv->text + csv->at;
  *size = strcspn(line, "\n");
  if (*size > 0 && line[*size - 1] == '\r') (*size)--;
  return line;
}

void ftl_csv_skip_line(ftl_csv *csv) {
  csv->at += strcspn(csv->text + csv->at, "\n");
  if (csv->at < csv->size) csv->at++;
  csv->next_line++;
}

static ftl_status add_field(ftl_csv *csv, char *field, ftl_error *error) {
  if (csv->num_fields == FTL_CSV_MAX_FIELDS) {
    return ftl_error_set(error, FTL_BAD_INPUT, "%s:%lld: more than %d columns", csv->path, (long long)csv->line,
                         FTL_CSV_MAX_FIELDS);
  }
  if (csv->num_fields == csv->capacity) {
    int capacity = csv->capacity == 0 ? 64 : 2 * csv->capacity;
    char **grown = realloc(csv->fields, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", csv->path);
    csv->fields = grown;
    csv->capacity = capacity;
  }
  csv->fields[csv->num_fields++] = field;
  return FTL_OK;
}

static ftl_status refuse(const ftl_csv *csv, int64_t line, const char *what, ftl_error *error) {
  return ftl_error_set(error, FTL_BAD_INPUT, "%s:%lld: column %d: %s", csv->path, (long long)line, csv->num_fields + 1,
                       what);
}

// Unquotes in place and leaves `at` behind the closing quote. *end is where the terminator of the field goes.
static ftl_status read_quoted(ftl_csv *csv, char **field, char **end, ftl_error *error) {
  int64_t first_line = csv->next_line;
  char *out = csv->text + ++csv->at;
  *field = out;
  for (; csv->at < csv->size; csv->at++) {
    char c = csv->text[csv->at];
    csv->next_line += c == '\n';
    if (c == '"' && csv->text[++csv->at] != '"') {
      *end = out;
      return FTL_OK;
    }
    *out++ = c;
  }
  return refuse(csv, first_line, "a quoted field that does not end", error);
}

static ftl_status read_plain(ftl_csv *csv, char **field, char **end, ftl_error *error) {
  *field = csv->text + csv->at;
  size_t size = strcspn(*field, ",\n\"");
  csv->at += size;
  *end = *field + size;
  if (csv->text[csv->at] == '"') return refuse(csv, csv->next_line, "a quote inside a field that is not quoted", error);
  if (csv->text[csv->at] != ',' && size > 0 && (*end)[-1] == '\r') (*end)--;
  return FTL_OK;
}

// Steps over what follows a field; *last says whether it was the row's last.
static ftl_status end_field(ftl_csv *csv, bool *last, ftl_error *error) {
  char c = csv->text[csv->at];
  if (c == '\r' && (csv->text[csv->at + 1] == '\n' || csv->at + 1 == csv->size)) c = csv->text[++csv->at];
  *last = c != ',';
  if (csv->at >= csv->size) return FTL_OK;
  if (c != ',' && c != '\n') return refuse(csv, csv->next_line, "text behind a closing quote", error);
  csv->next_line += c == '\n';
  csv->at++;
  return FTL_OK;
}

ftl_status ftl_csv_next(ftl_csv *csv, bool *more, ftl_error *error) {
  *more = csv->at < csv->size;
  csv->num_fields = 0;
  csv->line = csv->next_line;
  bool last = !*more;
  ftl_status status = FTL_OK;
  while (status == FTL_OK && !last) {
    char *field = NULL, *end = NULL;
    bool quoted = csv->text[csv->at] == '"';
    status = quoted ? read_quoted(csv, &field, &end, error) : read_plain(csv, &field, &end, error);
    if (status == FTL_OK) status = end_field(csv, &last, error);
    if (status != FTL_OK) break;
    *end = '\0';  // only now: it may be the separator that end_field looked at
    status = add_field(csv, field, error);
  }
  return status;
}
