#include "results/measurement.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "arch/arch.h"
#include "engine/predict.h"
#include "results/measured_number.h"
#include "results/measurements_dir.h"
#include "workloads/spec.h"

static const char *const format_names[] = {"project", "ncu raw", "ncu details"};

// What the header says about a column.
typedef struct column {
  const char *name;  // as facts and values are called
  const char *file_name;
  const char *unit;  // base unit
  double scale;      // to the base unit
  bool is_value;     // a counter; else a fact
  bool may_be_text;  // Nsight Compute has counters that are text (a cache configuration)
} column;

typedef struct reader {
  ftl_csv *csv;
  ftl_measurement_file *out;
  column *columns;
  int num_columns;
  int id_idx, metric_idx, unit_idx, value_idx;  // columns of Nsight Compute's pages; -1: none
  ftl_fact *file_facts;                         // "# key: value" lines, for every row
  int num_file_facts;
  int64_t capacity;     // of out->rows
  int values_capacity;  // of the row read last
  ftl_error *error;
} reader;

static ftl_status no_memory(const reader *r) {
  return ftl_error_set(r->error, FTL_NO_MEMORY, "%s: out of memory", r->csv->path);
}

static const char *keep_bytes(reader *r, const char *text, size_t size) {
  char *copy = ftl_arena_alloc(&r->out->arena, size + 1);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

static const char *keep(reader *r, const char *text) { return keep_bytes(r, text, strlen(text)); }

// --- what comes before the header ---

static bool starts_with(const char *line, size_t size, const char *start) {
  size_t start_size = strlen(start);
  return size >= start_size && memcmp(line, start, start_size) == 0;
}

static bool is_ncu_header(const char *line, size_t size) {
  return starts_with(line, size, "\"ID\",") || starts_with(line, size, "ID,");
}

// Nsight Compute mixes the program's own output into its log: everything before its header is skipped.
static bool has_ncu_header(const ftl_csv *csv) {
  const char *line = csv->text;
  for (const char *end = line + csv->size; line < end; line += strcspn(line, "\n") + 1) {
    if (is_ncu_header(line, strcspn(line, "\n"))) return true;
  }
  return false;
}

static ftl_status keep_file_fact(reader *r, const char *line, size_t size) {
  const char *colon = memchr(line, ':', size);
  if (colon == NULL) return FTL_OK;  // a remark
  const char *name = line + 1, *text = colon + 1, *end = line + size;
  while (name < colon && *name == ' ') name++;
  while (text < end && *text == ' ') text++;
  ftl_fact *grown = realloc(r->file_facts, ((size_t)r->num_file_facts + 1) * sizeof *grown);
  if (grown == NULL) return no_memory(r);
  r->file_facts = grown;
  ftl_fact fact = {keep_bytes(r, name, (size_t)(colon - name)), keep_bytes(r, text, (size_t)(end - text))};
  if (fact.name == NULL || fact.text == NULL) return no_memory(r);
  grown[r->num_file_facts++] = fact;
  return FTL_OK;
}

static ftl_status skip_preamble(reader *r, bool is_ncu) {
  size_t size = 0;
  ftl_status status = FTL_OK;
  for (const char *line; status == FTL_OK && (line = ftl_csv_peek_line(r->csv, &size)) != NULL;) {
    if (is_ncu ? is_ncu_header(line, size) : size > 0 && line[0] != '#' && !starts_with(line, size, "==")) break;
    if (!is_ncu && size > 0 && line[0] == '#') status = keep_file_fact(r, line, size);
    ftl_csv_skip_line(r->csv);
  }
  return status;
}

// --- header ---

static int find_field(const ftl_csv *csv, const char *name) {
  for (int i = 0; i < csv->num_fields; i++) {
    if (strcmp(csv->fields[i], name) == 0) return i;
  }
  return -1;
}

static ftl_status find_format(reader *r) {
  const ftl_csv *csv = r->csv;
  r->id_idx = find_field(csv, "ID");
  r->metric_idx = find_field(csv, "Metric Name");
  r->unit_idx = find_field(csv, "Metric Unit");
  r->value_idx = find_field(csv, "Metric Value");
  bool has_id = r->id_idx >= 0 && find_field(csv, "Kernel Name") >= 0;
  if (has_id && r->metric_idx >= 0 && r->unit_idx >= 0 && r->value_idx >= 0) {
    r->out->format = FTL_MEASUREMENT_NCU_DETAILS;
  } else if (has_id) {
    r->out->format = FTL_MEASUREMENT_NCU_RAW;
  } else if (find_field(csv, "condition") >= 0 && find_field(csv, "status") >= 0) {
    r->out->format = FTL_MEASUREMENT_PROJECT;
  } else {
    return ftl_error_set(r->error, FTL_BAD_INPUT,
                         "%s:%lld: no header of measurements: expected Nsight Compute's (ID, ..., Kernel Name, ...) or "
                         "columns condition and status",
                         csv->path, (long long)csv->line);
  }
  return FTL_OK;
}

// Names of Nsight Compute's launch columns as the project's files call them.
static const char *fact_name(const char *name) {
  static const char *const known[][2] = {{"Kernel Name", "kernel"}, {"Device", "gpu"}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i][0]) == 0) return known[i][1];
  }
  return name;
}

static bool is_metric(const char *name) { return strstr(name, "__") != NULL; }

// A column that is a letter from being a parameter would leave that parameter at its default, unseen.
static ftl_status check_spelling(const reader *r, int idx) {
  const char *name = r->csv->fields[idx];
  bool is_other = strcmp(name, "condition") == 0 || strcmp(name, "seqlen") == 0 || is_metric(name);
  if (is_other || ftl_param_find(name) >= 0) return FTL_OK;
  const char *nearest = ftl_param_nearest(name);
  if (strlen(name) < 4 || ftl_edit_distance(name, nearest) > 1) return FTL_OK;
  return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d: %s is no parameter; the nearest is %s",
                       r->csv->path, (long long)r->csv->line, idx + 1, name, nearest);
}

static bool has_same_letters(const char *a, const char *b) {
  int count[256] = {0};
  for (; *a != '\0'; a++) count[(unsigned char)*a]++;
  for (; *b != '\0'; b++) count[(unsigned char)*b]--;
  for (int i = 0; i < 256; i++) {
    if (count[i] != 0) return false;
  }
  return true;
}

// A column that is a letter, or two that changed places, from a metric would be left out of the comparison, unseen.
// Nsight Compute's own names are further apart.
static ftl_status check_metric_spelling(const reader *r, int idx) {
  const char *name = r->csv->fields[idx];
  if (!is_metric(name) || ftl_metric_find(name) >= 0) return FTL_OK;
  for (int i = 0; i < FTL_METRIC_COUNT; i++) {
    const char *metric = ftl_metric_get((ftl_metric)i)->name;
    int distance = ftl_edit_distance(name, metric);
    if (distance > 2 || (distance == 2 && !has_same_letters(name, metric))) continue;
    return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d: %.100s is no metric; the nearest is %s",
                         r->csv->path, (long long)r->csv->line, idx + 1, name, metric);
  }
  return FTL_OK;
}

static ftl_status read_header(reader *r) {
  const ftl_csv *csv = r->csv;
  bool is_ncu = r->out->format != FTL_MEASUREMENT_PROJECT;
  r->num_columns = csv->num_fields;
  r->columns = calloc((size_t)csv->num_fields, sizeof *r->columns);
  if (r->columns == NULL) return no_memory(r);
  for (int i = 0; i < csv->num_fields; i++) {
    const char *name = csv->fields[i];
    if (name[0] != '\0' && find_field(csv, name) != i) {
      return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d: a second column %.100s", csv->path,
                           (long long)csv->line, i + 1, name);
    }
    ftl_status status = is_ncu ? FTL_OK : check_spelling(r, i);
    if (status == FTL_OK) status = check_metric_spelling(r, i);
    if (status != FTL_OK) return status;
    column *c = &r->columns[i];
    const char *kept = keep(r, name);
    if (kept == NULL) return no_memory(r);
    *c = (column){.name = fact_name(kept), .file_name = kept, .unit = "", .scale = 1, .is_value = is_metric(name)};
    c->may_be_text = is_ncu;
    if (!is_ncu && strcmp(name, "time_median_us") == 0) {
      c->name = "foretile__stream_time.sum";
      c->unit = "ns";
      c->scale = 1e3;
      c->is_value = true;
    }
  }
  return FTL_OK;
}

// --- rows ---

static ftl_status add_row(reader *r, ftl_measurement **out) {
  ftl_measurement_file *file = r->out;
  if (file->num_rows == r->capacity) {
    int64_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
    ftl_measurement *grown = realloc(file->rows, (size_t)capacity * sizeof *grown);
    if (grown == NULL) return no_memory(r);
    file->rows = grown;
    r->capacity = capacity;
  }
  ftl_measurement *row = &file->rows[file->num_rows];
  size_t most = (size_t)r->num_columns + (size_t)r->num_file_facts;
  *row = (ftl_measurement){.line = r->csv->line};
  row->facts = FTL_ARENA_NEW(&file->arena, ftl_fact, most);
  row->values = FTL_ARENA_NEW(&file->arena, ftl_measured_value, r->num_columns);
  r->values_capacity = r->num_columns;
  if (row->facts == NULL || row->values == NULL) return no_memory(r);
  for (int i = 0; i < r->num_file_facts; i++) row->facts[row->num_facts++] = r->file_facts[i];
  file->num_rows++;
  *out = row;
  return FTL_OK;
}

static ftl_status add_fact(reader *r, ftl_measurement *row, const char *name, const char *text) {
  const char *kept = keep(r, text);
  if (kept == NULL) return no_memory(r);
  row->facts[row->num_facts++] = (ftl_fact){name, kept};
  return FTL_OK;
}

// The first of several of one name stays: sections of the details page repeat metrics.
static ftl_status push_value(reader *r, ftl_measurement *row, ftl_measured_value value) {
  if (ftl_measurement_value(row, value.metric) != NULL) return FTL_OK;
  if (row->num_values == r->values_capacity) {
    ftl_measured_value *grown = FTL_ARENA_NEW(&r->out->arena, ftl_measured_value, 2 * r->values_capacity);
    if (grown == NULL) return no_memory(r);
    memcpy(grown, row->values, (size_t)row->num_values * sizeof *grown);
    row->values = grown;
    r->values_capacity *= 2;
  }
  row->values[row->num_values++] = value;
  return FTL_OK;
}

static ftl_status add_value(reader *r, ftl_measurement *row, const column *c, int column_idx) {
  const char *text = r->csv->fields[column_idx];
  double number = 0;
  switch (ftl_measured_number_parse(text, &number)) {
    case FTL_NUMBER: {
      number *= c->scale;
      ftl_measured_value value = {.metric = c->name, .unit = c->unit, .value = number};
      value.is_impossible = ftl_measured_is_impossible(c->name, number);
      if (value.is_impossible) {
        value.column = c->file_name;
        value.text = keep(r, text);
        if (value.text == NULL) return no_memory(r);
      }
      return push_value(r, row, value);
    }
    case FTL_NUMBER_MISSING:
      return FTL_OK;
    case FTL_NUMBER_NONE:
      break;
  }
  bool is_known = ftl_metric_find(c->name) >= 0;
  if (c->may_be_text && !is_known && c->unit[0] == '\0' && row->num_facts < r->num_columns) {
    return add_fact(r, row, c->name, text);
  }
  return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d (%.100s): \"%.40s\" is not a number", r->csv->path,
                       (long long)r->csv->line, column_idx + 1, c->file_name, text);
}

static ftl_status read_wide_row(reader *r) {
  ftl_measurement *row = NULL;
  ftl_status status = add_row(r, &row);
  for (int i = 0; status == FTL_OK && i < r->num_columns; i++) {
    const column *c = &r->columns[i];
    status = c->is_value ? add_value(r, row, c, i) : add_fact(r, row, c->name, r->csv->fields[i]);
  }
  return status;
}

// Below the header of the raw page: no ID, a unit where there is one.
static bool is_units_row(const reader *r) {
  return r->out->format == FTL_MEASUREMENT_NCU_RAW && r->out->num_rows == 0 && r->csv->fields[r->id_idx][0] == '\0';
}

static ftl_status read_units(reader *r) {
  for (int i = 0; i < r->num_columns; i++) {
    column *c = &r->columns[i];
    const char *unit = keep(r, r->csv->fields[i]);
    if (unit == NULL) return no_memory(r);
    if (c->is_value) c->scale = ftl_measured_unit_scale(unit, &c->unit);
  }
  return FTL_OK;
}

// --- the details page: a line a metric ---

static const char *metric_of_label(const char *label) {
  static const struct {
    const char *label, *metric;
  } labels[] = {
#define FTL_NCU_LABEL(label, metric) {label, metric},
#include "results/ncu_labels.def"
#undef FTL_NCU_LABEL
  };
  for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
    if (strcmp(label, labels[i].label) == 0) return labels[i].metric;
  }
  return label;
}

static bool continues_launch(const reader *r) {
  if (r->out->num_rows == 0) return false;
  const char *id = ftl_measurement_fact(&r->out->rows[r->out->num_rows - 1], "ID");
  return id != NULL && strcmp(id, r->csv->fields[r->id_idx]) == 0;
}

static ftl_status begin_launch(reader *r) {
  static const char *const of_a_line[] = {"Section Name", "Metric Name", "Metric Unit", "Metric Value"};
  ftl_measurement *row = NULL;
  ftl_status status = add_row(r, &row);
  for (int i = 0; status == FTL_OK && i < r->num_columns; i++) {
    const char *name = r->columns[i].name;
    bool is_fact = strncmp(name, "Rule ", 5) != 0 && strncmp(name, "Estimated ", 10) != 0;
    for (int k = 0; k < 4; k++) is_fact = is_fact && strcmp(name, of_a_line[k]) != 0;
    if (is_fact) status = add_fact(r, row, name, r->csv->fields[i]);
  }
  return status;
}

static ftl_status read_metric_line(reader *r) {
  const char *label = r->csv->fields[r->metric_idx];
  if (r->csv->fields[r->id_idx][0] == '\0') {
    return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d (ID): empty", r->csv->path,
                         (long long)r->csv->line, r->id_idx + 1);
  }
  ftl_status status = continues_launch(r) ? FTL_OK : begin_launch(r);
  if (status != FTL_OK || label[0] == '\0') return status;  // a rule's line has no metric
  const char *unit = keep(r, r->csv->fields[r->unit_idx]);
  const char *kept = keep(r, label);
  if (kept == NULL || unit == NULL) return no_memory(r);
  column c = {.name = metric_of_label(kept), .file_name = kept, .is_value = true, .may_be_text = true};
  c.scale = ftl_measured_unit_scale(unit, &c.unit);
  return add_value(r, &r->out->rows[r->out->num_rows - 1], &c, r->value_idx);
}

// --- the whole file ---

static ftl_status read_row(reader *r) {
  if (r->csv->num_fields != r->num_columns) {
    return ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: column %d: the row has %d fields, the header %d",
                         r->csv->path, (long long)r->csv->line,
                         1 + (r->csv->num_fields < r->num_columns ? r->csv->num_fields : r->num_columns),
                         r->csv->num_fields, r->num_columns);
  }
  if (is_units_row(r)) return read_units(r);
  return r->out->format == FTL_MEASUREMENT_NCU_DETAILS ? read_metric_line(r) : read_wide_row(r);
}

static ftl_status read_rows(reader *r) {
  size_t size = 0;
  ftl_status status = FTL_OK;
  for (const char *line; status == FTL_OK && (line = ftl_csv_peek_line(r->csv, &size)) != NULL;) {
    if (size == 0 || starts_with(line, size, "==")) {
      ftl_csv_skip_line(r->csv);
      continue;
    }
    bool more = false;
    status = ftl_csv_next(r->csv, &more, r->error);
    if (status == FTL_OK) status = read_row(r);
  }
  if (status == FTL_OK && r->out->num_rows == 0) {
    status = ftl_error_set(r->error, FTL_BAD_INPUT, "%s:%lld: a header and no rows", r->csv->path,
                           (long long)r->csv->next_line);
  }
  return status;
}

ftl_status ftl_measurement_file_parse(ftl_measurement_file *out, ftl_csv *csv, ftl_error *error) {
  *out = (ftl_measurement_file){.path = strdup(csv->path), .content_hash = XXH3_64bits(csv->text, csv->size)};
  reader r = {.csv = csv, .out = out, .error = error};
  bool more = false;
  ftl_status status = out->path != NULL ? FTL_OK : no_memory(&r);
  if (status == FTL_OK) status = skip_preamble(&r, has_ncu_header(csv));
  if (status == FTL_OK) status = ftl_csv_next(csv, &more, error);
  if (status == FTL_OK && !more) status = ftl_error_set(error, FTL_BAD_INPUT, "%s:1: no rows", csv->path);
  if (status == FTL_OK) status = find_format(&r);
  if (status == FTL_OK) status = read_header(&r);
  if (status == FTL_OK) status = read_rows(&r);
  free(r.columns);
  free(r.file_facts);
  if (status != FTL_OK) ftl_measurement_file_fini(out);
  return status;
}

ftl_status ftl_measurement_file_read(ftl_measurement_file *out, const char *path, ftl_error *error) {
  *out = (ftl_measurement_file){0};
  ftl_csv csv;
  ftl_status status = ftl_csv_open(&csv, path, error);
  if (status != FTL_OK) return status;
  status = ftl_measurement_file_parse(out, &csv, error);
  ftl_csv_fini(&csv);
  if (status == FTL_OK) out->is_of_project = ftl_measurements_have(path, out->content_hash);
  return status;
}

void ftl_measurement_file_fini(ftl_measurement_file *file) {
  free(file->path);
  free(file->rows);
  ftl_arena_fini(&file->arena);
  *file = (ftl_measurement_file){0};
}

const char *ftl_measurement_format_name(ftl_measurement_format format) { return format_names[format]; }

const char *ftl_measurement_fact(const ftl_measurement *row, const char *name) {
  for (int i = 0; i < row->num_facts; i++) {
    if (strcmp(row->facts[i].name, name) == 0 && row->facts[i].text[0] != '\0') return row->facts[i].text;
  }
  return NULL;
}

const ftl_measured_value *ftl_measurement_value(const ftl_measurement *row, const char *metric) {
  for (int i = 0; i < row->num_values; i++) {
    if (strcmp(row->values[i].metric, metric) == 0) return &row->values[i];
  }
  return NULL;
}
