// Predictions against the committed measurements, on a fixed part of them: the errors are no larger than bounds.def
// says.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "cli/measurements_dir.h"
#include "report/validate.h"
#include "script/session.h"

enum { STEP = 29 };  // a prime, so that the step does not fall in with the order of block sizes in the files

static const struct {
  ftl_part part;
  ftl_quantity quantity;
  double mean;
} bounds[] = {
#define FTL_BOUND(part, quantity, mean) {FTL_PART_##part, FTL_QUANTITY_##quantity, mean},
#include "bounds.def"
#undef FTL_BOUND
};

// Not matmul_tiled: some of cuBLAS's tiles are infeasible, and which of its few cases are taken decides the mean.
static const char *const workloads[] = {"flash2_fwd",         "flash2_bwd",   "flash3_fwd",    "flash_decode",
                                        "standard_attention", "softmax_safe", "softmax_online"};

static ftl_validation read_measurements(void) {
  ftl_validation v = {0};
  ftl_error error = {0};
  glob_t files;
  cr_assert_eq(ftl_measurements_find(&files, &error), FTL_OK, "%s", error.message);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    ftl_measurement_file file;
    cr_assert_eq(ftl_measurement_file_read(&file, files.gl_pathv[i], &error), FTL_OK, "%s", error.message);
    for (size_t w = 0; w < sizeof workloads / sizeof *workloads; w++)
      cr_assert_eq(ftl_validation_add(&v, &file, workloads[w], &error), FTL_OK, "%s", error.message);
    ftl_measurement_file_fini(&file);
  }
  globfree(&files);
  ftl_validation_thin(&v, STEP);
  return v;
}

static void predict(ftl_validation *v, ftl_session *session) {
  ftl_error error = {0};
  ftl_point *points = calloc((size_t)v->num_cases, sizeof *points);
  ftl_answer *answers = calloc((size_t)v->num_cases, sizeof *answers);
  for (int64_t i = 0; i < v->num_cases; i++) {
    const ftl_measured_case *c = &v->cases[i].measured_case;
    points[i].spec = c->spec;
    cr_assert_eq(ftl_session_arch(session, c->arch, &points[i].arch, &error), FTL_OK, "%s", error.message);
  }
  session->evaluate.num_threads = ftl_num_cpus();
  cr_assert_eq(ftl_evaluate(points, v->num_cases, &session->evaluate, answers, &error), FTL_OK, "%s", error.message);
  for (int64_t i = 0; i < v->num_cases; i++) {
    cr_expect_eq(answers[i].status, FTL_OK, "%s: %s", v->cases[i].place, answers[i].message);
    cr_expect(answers[i].prediction.feasible, "%s ran: %s", v->cases[i].place, answers[i].prediction.reason);
    v->cases[i].status = answers[i].status;
    v->cases[i].prediction = answers[i].prediction;
  }
  free(points);
  free(answers);
}

Test(reference_accuracy, errors_are_no_larger_than_stated) {
  ftl_session session;
  ftl_session_init(&session);
  ftl_validation v = read_measurements();
  predict(&v, &session);
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    ftl_error_statistics s;
    ftl_error error;
    cr_assert_eq(ftl_validation_statistics(&v, bounds[i].part, bounds[i].quantity, false, &s, &error), FTL_OK);
    const char *name = ftl_quantity_name(bounds[i].quantity);
    cr_expect(s.count >= 8, "%s part, %s: %d cases", ftl_part_name(bounds[i].part), name, (int)s.count);
    cr_expect(s.mean <= bounds[i].mean, "%s part, %s: mean error %.2f, stated %.2f", ftl_part_name(bounds[i].part),
              name, s.mean, bounds[i].mean);
  }
  ftl_validation_fini(&v);
  ftl_session_fini(&session);
}
