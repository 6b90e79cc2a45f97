#include "engine/sm_pool.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_THREADS = 64 };

struct ftl_sm_pool {
  ftl_sm **sms;
  int32_t num_sms;
  int num_threads;  // the caller's included
  int num_started;
  pthread_t threads[MAX_THREADS];
  pthread_barrier_t begin, end;
  bool has_barriers;
  int64_t until;  // < 0: threads leave
};

typedef struct pool_worker {
  ftl_sm_pool *pool;
  int thread_idx;
} pool_worker;

static void advance_share(ftl_sm_pool *pool, int thread_idx) {
  for (int32_t sm = thread_idx; sm < pool->num_sms; sm += pool->num_threads)
    if (ftl_sm_is_busy(pool->sms[sm])) ftl_sm_advance(pool->sms[sm], pool->until);
}

static void *worker_main(void *argument) {
  pool_worker worker = *(pool_worker *)argument;
  free(argument);
  for (;;) {
    pthread_barrier_wait(&worker.pool->begin);
    if (worker.pool->until < 0) return NULL;
    advance_share(worker.pool, worker.thread_idx);
    pthread_barrier_wait(&worker.pool->end);
  }
}

// A pool whose threads cannot be started runs on fewer: the result is the same.
static void start_threads(ftl_sm_pool *pool, int num_threads) {
  pool->num_threads = 1;
  if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
  if (num_threads > pool->num_sms) num_threads = pool->num_sms;
  if (num_threads < 2) return;
  if (pthread_barrier_init(&pool->begin, NULL, (unsigned)num_threads) != 0) return;
  if (pthread_barrier_init(&pool->end, NULL, (unsigned)num_threads) != 0) {
    pthread_barrier_destroy(&pool->begin);
    return;
  }
  pool->has_barriers = true;
  pool->num_threads = num_threads;
  for (int i = 1; i < num_threads; i++) {
    pool_worker *worker = malloc(sizeof *worker);
    if (!worker) abort();
    *worker = (pool_worker){.pool = pool, .thread_idx = i};
    if (pthread_create(&pool->threads[i], NULL, worker_main, worker) != 0) abort();
    pool->num_started++;
  }
}

ftl_status ftl_sm_pool_create(ftl_sm_pool **out, const ftl_sm_config *config, int32_t num_sms, int num_threads,
                              ftl_error *error) {
  *out = NULL;
  ftl_sm_pool *pool = calloc(1, sizeof *pool);
  if (!pool) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the SMs");
  pool->sms = calloc((size_t)num_sms, sizeof(ftl_sm *));
  ftl_status status =
      pool->sms ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %d SMs", (int)num_sms);
  for (int32_t i = 0; status == FTL_OK && i < num_sms; i++) {
    ftl_sm_config one = *config;
    one.sm_idx = i;
    status = ftl_sm_create(&pool->sms[i], &one, error);
    pool->num_sms = i + 1;
  }
  if (status != FTL_OK) {
    ftl_sm_pool_destroy(pool);
    return status;
  }
  start_threads(pool, num_threads);
  *out = pool;
  return FTL_OK;
}

void ftl_sm_pool_destroy(ftl_sm_pool *pool) {
  if (!pool) return;
  if (pool->has_barriers) {
    pool->until = -1;
    pthread_barrier_wait(&pool->begin);
    for (int i = 1; i <= pool->num_started; i++) pthread_join(pool->threads[i], NULL);
    pthread_barrier_destroy(&pool->begin);
    pthread_barrier_destroy(&pool->end);
  }
  for (int32_t i = 0; i < pool->num_sms; i++) ftl_sm_destroy(pool->sms[i]);
  free(pool->sms);
  free(pool);
}

ftl_sm *ftl_sm_pool_get(ftl_sm_pool *pool, int32_t sm) { return pool->sms[sm]; }

void ftl_sm_pool_advance(ftl_sm_pool *pool, int64_t until) {
  pool->until = until;
  if (pool->num_threads == 1) {
    advance_share(pool, 0);
    return;
  }
  pthread_barrier_wait(&pool->begin);
  advance_share(pool, 0);
  pthread_barrier_wait(&pool->end);
}
