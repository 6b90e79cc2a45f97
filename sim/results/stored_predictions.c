// Predictions of a database, each with the metrics of all its launches.
#include <stddef.h>

#include "base/text.h"
#include "results/contents_internal.h"
#include "results/database_internal.h"
#include "results/metric_id.h"

enum { FIRST_PARAM_COLUMN = 9, FIRST_METRIC_COLUMN = FIRST_PARAM_COLUMN + FTL_PARAM_COUNT };

// Reads the parameters into `spec`. False: a workload or a value that this program does not know.
static bool read_spec(sqlite3_stmt *statement, const char *workload, ftl_spec *spec) {
  if (ftl_workload_find(workload) == NULL || ftl_spec_init(spec, workload, NULL) != FTL_OK) return false;
  for (int i = 0; i < FTL_PARAM_COUNT; i++) {
    if (!ftl_spec_takes(spec, (ftl_param)i)) continue;
    const ftl_param_info *info = ftl_param_get((ftl_param)i);
    const char *text = (const char *)sqlite3_column_text(statement, FIRST_PARAM_COLUMN + i);
    bool came_since = !ftl_param_is_of_shape((ftl_param)i) || i == FTL_PARAM_head_dim_v;
    if (text == NULL && !came_since) return false;
    if (text == NULL && i == FTL_PARAM_head_dim_v) {
      spec->value[i] = spec->value[FTL_PARAM_head_dim];
    } else if (text == NULL) {
      spec->value[i] = info->default_value;
    } else if (ftl_spec_set_text(spec, info->name, text, NULL) != FTL_OK) {
      return false;
    }
  }
  return true;
}

static ftl_status find_arch(const ftl_contents_reader *reader, int64_t id, int *out) {
  for (int i = 0; i < reader->out->num_archs; i++) {
    if (reader->out->archs[i].id != id) continue;
    *out = i;
    return FTL_OK;
  }
  return ftl_error_set(reader->error, FTL_IO_FAILED, "%s: a damaged database: a prediction without its GPU model",
                       reader->out->path);
}

typedef struct position {
  int64_t idx;
  ftl_spec spec;
} position;

static ftl_status take_prediction(ftl_contents_reader *reader, sqlite3_stmt *statement, void *user) {
  position *at = user;
  ftl_status status = ftl_contents_has_place(reader, at->idx, reader->out->num_predictions);
  if (status != FTL_OK) return status;
  ftl_stored_prediction *p = &reader->out->predictions[at->idx++];
  status = find_arch(reader, sqlite3_column_int64(statement, 0), &p->arch_idx);
  if (status != FTL_OK) return status;
  const char **const texts[] = {&p->workload, &p->question, &p->version, &p->created_utc, &p->bottleneck, &p->reason};
  for (int i = 0; i < 6; i++) {
    *texts[i] = ftl_contents_text(reader, statement, 1 + i);
    if (*texts[i] == NULL) return ftl_contents_no_memory(reader);
  }
  p->feasible = sqlite3_column_int(statement, 7) != 0;
  ftl_database_read_metrics(statement, FIRST_METRIC_COLUMN, &p->metrics);
  if (!read_spec(statement, p->workload, &at->spec)) return FTL_OK;
  ftl_spec *spec = FTL_ARENA_NEW_RAW(&reader->out->arena, ftl_spec, 1);
  if (spec == NULL) return ftl_contents_no_memory(reader);
  *spec = at->spec;
  p->spec = spec;
  return FTL_OK;
}

ftl_status ftl_contents_read_predictions(ftl_contents_reader *reader) {
  void *predictions = NULL;
  ftl_status status = ftl_contents_array(reader, "predictions", sizeof *reader->out->predictions, &predictions,
                                         &reader->out->num_predictions);
  reader->out->predictions = predictions;
  if (status != FTL_OK) return status;
  ftl_text sql = {0};
  ftl_text_add(&sql,
               "SELECT p.arch_id, p.workload, p.spec, p.program_version, p.created_utc, p.bottleneck, p.reason,"
               " p.feasible, p.id");
  for (int i = 0; i < FTL_PARAM_COUNT; i++) ftl_text_add(&sql, ", p.\"%s\"", ftl_param_get((ftl_param)i)->name);
  for (int i = 0; i < FTL_METRIC_COUNT; i++) ftl_text_add(&sql, ", l.\"%s\"", ftl_metric_id((ftl_metric)i));
  ftl_text_add(
      &sql, " FROM predictions p LEFT JOIN launches l ON l.prediction_id = p.id AND l.launch_idx = -1 ORDER BY p.id");
  position at = {.idx = 0};
  status =
      sql.failed ? ftl_contents_no_memory(reader) : ftl_contents_each(reader, ftl_text_get(&sql), take_prediction, &at);
  ftl_text_fini(&sql);
  return status;
}
