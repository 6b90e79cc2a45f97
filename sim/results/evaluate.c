#define _GNU_SOURCE  // sched_getaffinity
#include "results/evaluate.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"

// One distinct configuration. Points with the same key share the answer of the first.
typedef struct job {
  ftl_result_key key;
  int64_t point_idx;
} job;

typedef struct evaluation {
  const ftl_point *points;
  const ftl_evaluate_options *options;
  ftl_answer *answers;
  const job *jobs;  // in point order
  int64_t num_jobs;
  int num_threads_inside;  // that one prediction may use

  pthread_mutex_t lock;  // guards the rest and the database
  int64_t next_job, num_done;
  ftl_status status;
  ftl_error *error;
} evaluation;

int ftl_num_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

ftl_status ftl_point_check_gpu(const ftl_spec *spec, const ftl_arch *arch, ftl_error *error) {
  enum { KHZ_PER_MHZ = 1000 };
  bool takes_clock = ftl_spec_takes(spec, FTL_PARAM_clock_mhz);
  int64_t mhz = takes_clock ? spec->value[FTL_PARAM_clock_mhz] : 0, khz = mhz * KHZ_PER_MHZ;
  if (mhz == 0 || (khz >= arch->clock_sm_min_khz && khz <= arch->clock_sm_max_khz)) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "clock_mhz=%lld: %s holds %lld to %lld MHz (clock.sm_min_khz, clock.sm_max_khz), or 0: as the "
                       "power limit allows",
                       (long long)mhz, arch->name, (long long)ftl_divide_up(arch->clock_sm_min_khz, KHZ_PER_MHZ),
                       (long long)arch->clock_sm_max_khz / KHZ_PER_MHZ);
}

ftl_status ftl_point_make(const ftl_space *space, int64_t point_idx, const ftl_arch *arch, ftl_point *out,
                          ftl_error *error) {
  ftl_error local = {0};
  out->arch = arch;
  out->contradiction[0] = '\0';
  ftl_status status = ftl_space_point(space, point_idx, &out->spec, &local);
  if (status == FTL_OK) status = ftl_point_check_gpu(&out->spec, arch, &local);
  if (status == FTL_BAD_INPUT) {
    snprintf(out->contradiction, sizeof out->contradiction, "%s", local.message);
    return FTL_OK;
  }
  return status == FTL_OK ? FTL_OK : ftl_error_set(error, status, "%s", local.message);
}

static bool is_cancelled(const ftl_evaluate_options *options) {
  return options->cancel != NULL && atomic_load_explicit(options->cancel, memory_order_relaxed);
}

static void fail(evaluation *e, ftl_status status, const char *message) {
  if (e->status == FTL_OK) e->status = ftl_error_set(e->error, status, "%s", message);
}

// Called with the lock held.
static void finish_job(evaluation *e) {
  e->num_done++;
  if (e->options->progress != NULL) e->options->progress(e->options->progress_user, e->num_done, e->num_jobs);
}

// Called with the lock held. Whether the database had the answer.
static bool look_up(evaluation *e, const job *j) {
  if (e->options->database == NULL) return false;
  bool found = false;
  ftl_error error;
  ftl_answer *answer = &e->answers[j->point_idx];
  ftl_status status = ftl_database_get(e->options->database, e->options->run_id, &j->key, &e->points[j->point_idx].spec,
                                       &found, &answer->prediction, &error);
  if (status != FTL_OK) fail(e, status, error.message);
  answer->is_stored = found;
  return found;
}

// Called with the lock held.
static void store(evaluation *e, const job *j) {
  const ftl_answer *answer = &e->answers[j->point_idx];
  if (e->options->database == NULL || answer->status != FTL_OK) return;
  const ftl_point *point = &e->points[j->point_idx];
  ftl_error error;
  ftl_status status = ftl_database_put(e->options->database, e->options->run_id, &j->key, &point->spec, point->arch,
                                       &answer->prediction, &error);
  if (status != FTL_OK) fail(e, status, error.message);
}

// Called without the lock.
static void predict(evaluation *e, const job *j) {
  const ftl_point *point = &e->points[j->point_idx];
  ftl_answer *answer = &e->answers[j->point_idx];
  ftl_predict_options options = {.num_threads = e->num_threads_inside, .cancel = e->options->cancel};
  ftl_error error = {0};
  answer->status = ftl_predict(&point->spec, point->arch, &options, &answer->prediction, &error);
  if (answer->status != FTL_OK) snprintf(answer->message, sizeof answer->message, "%s", error.message);
}

static void *work(void *user) {
  evaluation *e = user;
  pthread_mutex_lock(&e->lock);
  while (e->status == FTL_OK && e->next_job < e->num_jobs) {
    if (is_cancelled(e->options)) {
      fail(e, FTL_INTERRUPTED, "interrupted");
      break;
    }
    const job *j = &e->jobs[e->next_job++];
    if (!look_up(e, j) && e->status == FTL_OK) {
      pthread_mutex_unlock(&e->lock);
      predict(e, j);
      pthread_mutex_lock(&e->lock);
      if (e->answers[j->point_idx].status == FTL_INTERRUPTED) fail(e, FTL_INTERRUPTED, "interrupted");
      store(e, j);
    }
    finish_job(e);
  }
  pthread_mutex_unlock(&e->lock);
  return NULL;
}

// --- equal points ---

static int compare_keys(const void *a, const void *b) {
  const job *x = a, *y = b;
  int order = strcmp(x->key.hex, y->key.hex);
  if (order != 0) return order;
  return (x->point_idx > y->point_idx) - (x->point_idx < y->point_idx);
}

static int compare_points(const void *a, const void *b) {
  const job *x = a, *y = b;
  return (x->point_idx > y->point_idx) - (x->point_idx < y->point_idx);
}

// Sets first_idx[i] for every point that has a job, and leaves one job a distinct key at the front of `jobs`, in point
// order.
static int64_t remove_equal(job *jobs, int64_t num_all, int64_t *first_idx) {
  int64_t num_jobs = 0;
  qsort(jobs, (size_t)num_all, sizeof *jobs, compare_keys);
  for (int64_t i = 0; i < num_all; i++) {
    bool is_first = num_jobs == 0 || strcmp(jobs[num_jobs - 1].key.hex, jobs[i].key.hex) != 0;
    int64_t point_idx = jobs[i].point_idx;
    if (is_first) jobs[num_jobs++] = jobs[i];
    first_idx[point_idx] = jobs[num_jobs - 1].point_idx;
  }
  qsort(jobs, (size_t)num_jobs, sizeof *jobs, compare_points);
  return num_jobs;
}

// One a point that does not contradict itself.
static ftl_status make_jobs(const ftl_point *points, int64_t num_points, job *jobs, int64_t *num_jobs,
                            ftl_error *error) {
  ftl_status status = FTL_OK;
  *num_jobs = 0;
  for (int64_t i = 0; status == FTL_OK && i < num_points; i++) {
    if (!ftl_point_is_well_formed(&points[i])) continue;
    job *j = &jobs[(*num_jobs)++];
    j->point_idx = i;
    status = ftl_result_key_make(&points[i].spec, points[i].arch, &j->key, error);
  }
  return status;
}

static void answer_contradiction(const ftl_point *point, ftl_answer *answer) {
  answer->prediction.spec = point->spec;
  snprintf(answer->prediction.reason, sizeof answer->prediction.reason, "%s", point->contradiction);
}

// --- threads ---

static void run_jobs(evaluation *e) {
  int num_threads = e->options->num_threads;
  if (num_threads > e->num_jobs) num_threads = e->num_jobs > 0 ? (int)e->num_jobs : 1;
  e->num_threads_inside = e->options->num_threads / num_threads;
  if (e->num_threads_inside < 1) e->num_threads_inside = 1;
  pthread_t *threads = calloc((size_t)num_threads, sizeof *threads);
  int num_started = 0;
  // This thread works too; with too few others it only takes longer.
  while (threads != NULL && num_started < num_threads - 1 &&
         pthread_create(&threads[num_started], NULL, work, e) == 0) {
    num_started++;
  }
  work(e);
  for (int i = 0; i < num_started; i++) pthread_join(threads[i], NULL);
  free(threads);
}

ftl_status ftl_evaluate(const ftl_point *points, int64_t num_points, const ftl_evaluate_options *options,
                        ftl_answer *answers, ftl_error *error) {
  if (num_points == 0) return FTL_OK;
  job *jobs = calloc((size_t)num_points, sizeof *jobs);
  int64_t *first_idx = calloc((size_t)num_points, sizeof *first_idx);
  int64_t num_jobs = 0;
  ftl_status status = jobs != NULL && first_idx != NULL
                          ? make_jobs(points, num_points, jobs, &num_jobs, error)
                          : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %lld points", (long long)num_points);
  if (status == FTL_OK) {
    memset(answers, 0, sizeof *answers * (size_t)num_points);
    evaluation e = {.points = points, .options = options, .answers = answers, .jobs = jobs, .error = error};
    e.num_jobs = remove_equal(jobs, num_jobs, first_idx);
    pthread_mutex_init(&e.lock, NULL);
    run_jobs(&e);
    pthread_mutex_destroy(&e.lock);
    status = e.status;
    for (int64_t i = 0; i < num_points; i++) {
      if (!ftl_point_is_well_formed(&points[i])) {
        answer_contradiction(&points[i], &answers[i]);
        continue;
      }
      if (first_idx[i] != i) answers[i] = answers[first_idx[i]];
      answers[i].prediction.spec.given = points[i].spec.given;  // a stored answer may have been asked for otherwise
    }
  }
  free(first_idx);
  free(jobs);
  return status;
}
