#include "results/contents.h"

#include <stdlib.h>
#include <string.h>

#include "results/contents_internal.h"

enum { POOL_BYTES = 1 << 16 };

// --- text, arrays, rows ---

ftl_status ftl_contents_no_memory(const ftl_contents_reader *reader) {
  return ftl_error_set(reader->error, FTL_NO_MEMORY, "%s: out of memory", reader->out->path);
}

// A copy that lives as long as the contents; "" for NULL, and NULL when memory is out.
static const char *keep(ftl_contents_reader *reader, const char *text) {
  if (text == NULL || text[0] == '\0') return "";
  size_t size = strlen(text) + 1;
  if (size > reader->pool_bytes) {
    reader->pool_bytes = size > POOL_BYTES ? size : POOL_BYTES;
    reader->pool = ftl_arena_alloc_raw(&reader->out->arena, reader->pool_bytes);
  }
  if (reader->pool == NULL) {
    reader->pool_bytes = 0;
    return NULL;
  }
  char *copy = memcpy(reader->pool, text, size);
  reader->pool += size;
  reader->pool_bytes -= size;
  return copy;
}

const char *ftl_contents_text(ftl_contents_reader *reader, sqlite3_stmt *statement, int column) {
  return keep(reader, (const char *)sqlite3_column_text(statement, column));
}

ftl_status ftl_contents_array(ftl_contents_reader *reader, const char *table, size_t element_bytes, void **out,
                              int64_t *count) {
  char sql[96];
  snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
  ftl_status status = ftl_database_get_int(reader->database, sql, count, reader->error);
  if (status != FTL_OK) return status;
  *out = ftl_arena_alloc(&reader->out->arena, element_bytes * (size_t)*count);
  return *out != NULL ? FTL_OK : ftl_contents_no_memory(reader);
}

ftl_status ftl_contents_has_place(const ftl_contents_reader *reader, int64_t idx, int64_t count) {
  if (idx < count) return FTL_OK;
  return ftl_error_set(reader->error, FTL_IO_FAILED, "%s: a damaged database: a table gives more rows than it counts",
                       reader->out->path);
}

ftl_status ftl_contents_each(ftl_contents_reader *reader, const char *sql,
                             ftl_status (*take)(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user),
                             void *user) {
  sqlite3_stmt *statement = NULL;
  ftl_status status = ftl_database_prepare(reader->database, &statement, sql, reader->error);
  int code = SQLITE_DONE;
  while (status == FTL_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) status = take(reader, statement, user);
  if (status == FTL_OK && code != SQLITE_DONE) status = ftl_database_failed(reader->database, code, reader->error);
  sqlite3_finalize(statement);
  return status;
}

// --- runs ---

static ftl_status take_run(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  int64_t *idx = user;
  ftl_status status = ftl_contents_has_place(reader, *idx, reader->out->num_runs);
  if (status != FTL_OK) return status;
  ftl_stored_run *run = &reader->out->runs[(*idx)++];
  *run = (ftl_stored_run){.id = sqlite3_column_int64(statement, 0),
                          .command = ftl_contents_text(reader, statement, 1),
                          .scenario = ftl_contents_text(reader, statement, 2),
                          .version = ftl_contents_text(reader, statement, 3),
                          .started_utc = ftl_contents_text(reader, statement, 4),
                          .finished_utc = ftl_contents_text(reader, statement, 5),
                          .state = ftl_contents_text(reader, statement, 6),
                          .num_predictions = sqlite3_column_int64(statement, 7)};
  bool complete = run->command != NULL && run->scenario != NULL && run->version != NULL && run->started_utc != NULL &&
                  run->finished_utc != NULL && run->state != NULL;
  return complete ? FTL_OK : ftl_contents_no_memory(reader);
}

static ftl_status read_runs(ftl_contents_reader *reader) {
  void *runs = NULL;
  ftl_status status = ftl_contents_array(reader, "runs", sizeof *reader->out->runs, &runs, &reader->out->num_runs);
  reader->out->runs = runs;
  int64_t idx = 0;
  if (status != FTL_OK) return status;
  return ftl_contents_each(reader,
                           "SELECT id, command, scenario, program_version, started_utc, finished_utc, state,"
                           " (SELECT count(*) FROM run_predictions WHERE run_id = id) FROM runs ORDER BY id",
                           take_run, &idx);
}

// --- GPU models ---

static ftl_status take_arch(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  const int64_t *count = user;
  ftl_status status = ftl_contents_has_place(reader, reader->out->num_archs, *count);
  if (status != FTL_OK) return status;
  ftl_stored_arch *arch = &reader->out->archs[reader->out->num_archs];
  const char *name = ftl_contents_text(reader, statement, 1), *die = ftl_contents_text(reader, statement, 2);
  arch->id = sqlite3_column_int64(statement, 0);
  arch->hash = ftl_contents_text(reader, statement, 3);
  arch->num_predictions = sqlite3_column_int64(statement, 4);
  arch->model = name != NULL && die != NULL ? ftl_arch_create(name, die) : NULL;
  if (arch->model == NULL || arch->hash == NULL) return ftl_contents_no_memory(reader);
  reader->out->num_archs++;
  return FTL_OK;
}

static ftl_origin_kind origin_kind(const char *name) {
  static const ftl_origin_kind kinds[] = {FTL_ORIGIN_DATASHEET, FTL_ORIGIN_MEASURED, FTL_ORIGIN_OVERRIDE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (name != NULL && strcmp(name, ftl_origin_kind_name(kinds[i])) == 0) return kinds[i];
  }
  return FTL_ORIGIN_GUESS;
}

// A value that this program would refuse stays unset.
static ftl_status take_arch_value(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  int64_t id = sqlite3_column_int64(statement, 0);
  const char *key = (const char *)sqlite3_column_text(statement, 1);
  ftl_arch *model = NULL;
  (void)user;
  for (int i = 0; i < reader->out->num_archs; i++) {
    if (reader->out->archs[i].id == id) model = reader->out->archs[i].model;
  }
  int key_idx = model != NULL && key != NULL ? ftl_arch_key_find(key) : -1;
  if (key_idx < 0) return FTL_OK;
  ftl_origin origin = {.kind = origin_kind((const char *)sqlite3_column_text(statement, 3)),
                       .text = (const char *)sqlite3_column_text(statement, 4),
                       .file = (const char *)sqlite3_column_text(statement, 5),
                       .line = sqlite3_column_int(statement, 6)};
  const char *text = (const char *)sqlite3_column_text(statement, 2);
  ftl_status status = ftl_arch_key_get(key_idx)->allowed == NULL
                          ? ftl_arch_set_int(model, key_idx, sqlite3_column_int64(statement, 2), origin, NULL)
                          : ftl_arch_set_text(model, key_idx, text != NULL ? text : "", origin, NULL);
  return status == FTL_NO_MEMORY ? ftl_contents_no_memory(reader) : FTL_OK;
}

static ftl_status read_archs(ftl_contents_reader *reader) {
  void *archs = NULL;
  int64_t count = 0;
  ftl_status status = ftl_contents_array(reader, "arch_models", sizeof *reader->out->archs, &archs, &count);
  reader->out->archs = archs;
  if (status == FTL_OK) {
    status = ftl_contents_each(reader,
                               "SELECT a.id, name, die, hash, count(p.id) FROM arch_models a LEFT JOIN predictions p"
                               " ON p.arch_id = a.id GROUP BY a.id ORDER BY name, hash",
                               take_arch, &count);
  }
  if (status != FTL_OK) return status;
  return ftl_contents_each(reader, "SELECT arch_id, key, value, origin, source, file, line FROM arch_values",
                           take_arch_value, NULL);
}

// --- all ---

// One transaction, so that what another program stores meanwhile is all there or not at all.
static ftl_status read_all(ftl_contents_reader *reader) {
  ftl_status status = ftl_database_execute(reader->database, "BEGIN", reader->error);
  if (status == FTL_OK) status = read_runs(reader);
  if (status == FTL_OK) status = read_archs(reader);
  if (status == FTL_OK) status = ftl_contents_read_predictions(reader);
  if (status == FTL_OK) status = ftl_contents_read_measurements(reader);
  return status;
}

ftl_status ftl_contents_read(ftl_contents **out, const char *path, ftl_error *error) {
  *out = NULL;
  ftl_contents *contents = calloc(1, sizeof *contents);
  if (contents != NULL) contents->path = strdup(path);
  if (contents == NULL || contents->path == NULL) {
    free(contents);
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", path);
  }
  ftl_contents_reader reader = {.out = contents, .error = error};
  ftl_status status = ftl_database_open_existing(&reader.database, path, error);
  if (status == FTL_OK) status = read_all(&reader);
  ftl_database_close(reader.database);
  if (status != FTL_OK) {
    ftl_contents_destroy(contents);
    return status;
  }
  *out = contents;
  return FTL_OK;
}

void ftl_contents_destroy(ftl_contents *contents) {
  if (contents == NULL) return;
  for (int i = 0; i < contents->num_archs; i++) ftl_arch_destroy(contents->archs[i].model);
  ftl_arena_fini(&contents->arena);
  free(contents->path);
  free(contents);
}
