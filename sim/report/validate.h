// Predicted against measured: cases, errors, statistics, quality of ranking.
#ifndef FTL_REPORT_VALIDATE_H
#define FTL_REPORT_VALIDATE_H

#include "engine/predict.h"
#include "report/validate_statistics.h"
#include "results/measured_case.h"

typedef enum ftl_quantity {
#define FTL_QUANTITY(id, name, metric, second, kind) FTL_QUANTITY_##id,
#include "report/validate_quantities.def"
#undef FTL_QUANTITY
  FTL_QUANTITY_COUNT
} ftl_quantity;

typedef enum ftl_quantity_kind { FTL_QUANTITY_RELATIVE, FTL_QUANTITY_POINTS, FTL_QUANTITY_RATIO } ftl_quantity_kind;

const char *ftl_quantity_name(ftl_quantity quantity);
const char *ftl_quantity_id(ftl_quantity quantity);
const char *ftl_quantity_unit(ftl_quantity quantity);        // of the error: "%", "points", "warps"
const char *ftl_quantity_value_unit(ftl_quantity quantity);  // of its values: "byte", "ns"
// Nsight Compute's name of what is compared; NULL: a sum of two.
const char *ftl_quantity_metric_name(ftl_quantity quantity);
int ftl_quantity_find(const char *id);  // -1: none
const char *ftl_quantity_nearest(const char *id);

// What its row says of where a measurement comes from; "" where it does not.
typedef struct ftl_provenance {
  char gpu[48], driver[24], cuda[16], ncu[24], date[16];
} ftl_provenance;

// One configuration of one kernel under one condition; several profiles of it are one case.
typedef struct ftl_case {
  ftl_measured_case measured_case;
  double measured[FTL_METRIC_COUNT];                       // mean over the profiles; NaN: not measured, or impossible
  double least[FTL_METRIC_COUNT], most[FTL_METRIC_COUNT];  // over the profiles
  int64_t counts[FTL_METRIC_COUNT];                        // profiles that have it
  int64_t num_impossible;                                  // values left out because they cannot be
  ftl_provenance provenance;                               // of the first profile
  char place[96];                                          // "attention_flash2_ncu.csv:12", of the first
  ftl_status status;                                       // of the prediction
  const ftl_prediction *prediction;  // borrowed; NULL until there is one; holds the reason of a failure too
} ftl_case;

typedef struct ftl_uncovered {
  char reason[96];
  int64_t num_rows;
} ftl_uncovered;

typedef struct ftl_validation {
  ftl_case *cases;
  int64_t num_cases, capacity;
  ftl_uncovered *uncovered;  // rows that no configuration expresses
  int num_uncovered;
  int64_t num_rows;       // read in all
  int64_t num_not_run;    // rows that say that the kernel did not run, or not right
  int64_t num_unchecked;  // rows that say that nothing checked what it computed; not among num_not_run
  int64_t num_left_out;   // by filters; not among num_rows
  // For ftl_validation_check: the first row that is not ok, the first file whose cases have nothing to compare.
  char not_run[160], unmeasured[448];
} ftl_validation;

// Which rows become cases. What is left out is left out without a word.
typedef struct ftl_case_filter {
  const char *workload;                                           // NULL: all
  bool (*wants)(const void *user, const ftl_measured_case *one);  // NULL: all
  const void *user;
} ftl_case_filter;

// Adds the rows of a file that `filter` (NULL: all) lets through. FTL_BAD_INPUT names the line, FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_validation_add(ftl_validation *validation, const ftl_measurement_file *file,
                                           const ftl_case_filter *filter, ftl_error *error);
// FTL_BAD_INPUT: there is no case, or none with anything that is compared; the line says why not.
FTL_MUST_USE ftl_status ftl_validation_check(const ftl_validation *validation, ftl_error *error);
void ftl_validation_fini(ftl_validation *validation);
// Keeps one case of every `step`, as they come.
void ftl_validation_thin(ftl_validation *validation, int64_t step);

// Sorts worst first: cases without a prediction, then by the larger error of cycles and time.
void ftl_validation_sort(ftl_validation *validation);

// Both sides of a case; false where one is missing.
bool ftl_case_values(const ftl_case *c, ftl_quantity quantity, double *measured, double *predicted);
// The measured side; false where it is missing, or of another condition than the case's.
bool ftl_case_measured(const ftl_case *c, ftl_quantity quantity, double *out);
// Signed error of a case; false where a side is missing, or the measured value is 0 and the predicted is not.
bool ftl_case_error(const ftl_case *c, ftl_quantity quantity, double *out);
// The same, counted only as far as it exceeds twice the spread of the profiles. False too if there was one profile.
bool ftl_case_error_above_spread(const ftl_case *c, ftl_quantity quantity, double *out);
// The larger absolute error of cycles and time; negative: no prediction.
double ftl_case_size(const ftl_case *c);
bool ftl_case_is_predicted(const ftl_case *c);
double ftl_case_measured_time_ns(const ftl_case *c);
double ftl_case_predicted_time_ns(const ftl_case *c);

// Of the cases of a part. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_validation_statistics(const ftl_validation *validation, ftl_part part,
                                                  ftl_quantity quantity, bool above_spread, ftl_error_statistics *out,
                                                  ftl_error *error);

// The choice of block sizes, warps and stages for one shape, kernel family and condition.
typedef struct ftl_choice {
  const ftl_case *first;  // says which
  int64_t num_cases;
  double rho;                  // NaN: no order
  double best_pct, best3_pct;  // of the best measured time that the predicted best, the best of three, reach
} ftl_choice;

enum { FTL_CHOICE_MIN_CASES = 4 };
// Worst first by rho, those without an order last; groups of at least FTL_CHOICE_MIN_CASES cases of one part. `out` has
// room for num_cases / FTL_CHOICE_MIN_CASES. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_cases_choices(const ftl_case *const *cases, int64_t num_cases, ftl_choice *out,
                                          int64_t *num_choices, ftl_error *error);
// Of the cases of a part. *out is freed by the caller.
FTL_MUST_USE ftl_status ftl_validation_choices(const ftl_validation *validation, ftl_part part, ftl_choice **out,
                                               int64_t *num_choices, ftl_error *error);

typedef struct ftl_choice_summary {
  double rho_mean, rho_least;  // of those that have an order
  double best_mean_pct, best_least_pct, best3_mean_pct, best3_least_pct;
} ftl_choice_summary;
ftl_choice_summary ftl_choices_summary(const ftl_choice *choices, int64_t count);

// Reports leave a part without cases out.
int64_t ftl_validation_count_part(const ftl_validation *validation, ftl_part part);

// Cases of the part that have registers, and those of them within 8 of the measured.
void ftl_validation_registers(const ftl_validation *validation, ftl_part part, int64_t *num_cases, int64_t *num_near);

#endif
