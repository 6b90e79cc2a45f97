#include "engine/sm_pool.h"

#include <stdlib.h>

#include "engine/gate.h"

enum { MAX_THREADS = 64 };

// A window's jobs, which threads take one by one: what is done beside the SMs, as the longest, then each busy SM.
typedef struct pool_window {
  int64_t until;  // < 0: threads leave
  ftl_sm_pool_work beside;
  void *context;
  int32_t num_busy;
  atomic_int next_job;
} pool_window;

struct ftl_sm_pool {
  ftl_sm_code *code;
  ftl_sm **sms;
  int32_t *busy;  // SMs of this window
  int32_t num_sms;
  int num_others;  // threads beside the caller's
  pthread_t others[MAX_THREADS];
  ftl_gate begin, end;  // windows begun; ends of threads in windows
  bool has_gates;
  unsigned num_windows;
  pool_window window;
};

static void do_jobs(ftl_sm_pool *pool) {
  pool_window *window = &pool->window;
  for (;;) {
    int job = atomic_fetch_add_explicit(&window->next_job, 1, memory_order_relaxed);
    if (job > window->num_busy) return;
    if (job == 0)
      window->beside(window->context);
    else
      ftl_sm_advance(pool->sms[pool->busy[job - 1]], window->until);
  }
}

static void *thread_main(void *argument) {
  ftl_sm_pool *pool = argument;
  for (unsigned window = 1;; window++) {
    ftl_gate_wait(&pool->begin, window);
    if (pool->window.until < 0) return NULL;
    do_jobs(pool);
    ftl_gate_raise(&pool->end);
  }
}

// A pool whose threads cannot be started runs on fewer: the result is the same.
static void start_threads(ftl_sm_pool *pool, int num_threads) {
  if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
  if (num_threads < 2 || !ftl_gate_init(&pool->begin)) return;
  if (!ftl_gate_init(&pool->end)) {
    ftl_gate_fini(&pool->begin);
    return;
  }
  pool->has_gates = true;
  while (pool->num_others + 1 < num_threads &&
         pthread_create(&pool->others[pool->num_others], NULL, thread_main, pool) == 0)
    pool->num_others++;
}

static ftl_status create_sms(ftl_sm_pool *pool, const ftl_sm_config *config, int32_t num_sms, ftl_error *error) {
  pool->sms = calloc((size_t)num_sms, sizeof(ftl_sm *));
  pool->busy = calloc((size_t)num_sms, sizeof *pool->busy);
  if (!pool->sms || !pool->busy) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for %d SMs", (int)num_sms);
  ftl_status status = ftl_sm_code_create(&pool->code, config->program, config->arch, error);
  for (int32_t i = 0; status == FTL_OK && i < num_sms; i++) {
    ftl_sm_config one = *config;
    one.sm_idx = i;
    one.code = pool->code;
    status = ftl_sm_create(&pool->sms[i], &one, error);
    pool->num_sms = i + 1;
  }
  return status;
}

ftl_status ftl_sm_pool_create(ftl_sm_pool **out, const ftl_sm_config *config, int32_t num_sms, int num_threads,
                              ftl_error *error) {
  *out = NULL;
  ftl_sm_pool *pool = calloc(1, sizeof *pool);
  if (!pool) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the SMs");
  ftl_status status = create_sms(pool, config, num_sms, error);
  if (status != FTL_OK) {
    ftl_sm_pool_destroy(pool);
    return status;
  }
  start_threads(pool, num_threads);
  *out = pool;
  return FTL_OK;
}

static void begin_window(ftl_sm_pool *pool) {
  atomic_store_explicit(&pool->window.next_job, 0, memory_order_relaxed);
  pool->num_windows++;
  if (pool->has_gates) ftl_gate_raise(&pool->begin);
}

static void stop_threads(ftl_sm_pool *pool) {
  pool->window.until = -1;
  begin_window(pool);
  for (int i = 0; i < pool->num_others; i++) pthread_join(pool->others[i], NULL);
  ftl_gate_fini(&pool->begin);
  ftl_gate_fini(&pool->end);
}

void ftl_sm_pool_destroy(ftl_sm_pool *pool) {
  if (!pool) return;
  if (pool->has_gates) stop_threads(pool);
  for (int32_t i = 0; i < pool->num_sms; i++) ftl_sm_destroy(pool->sms[i]);
  ftl_sm_code_destroy(pool->code);
  free(pool->busy);
  free(pool->sms);
  free(pool);
}

ftl_sm *ftl_sm_pool_get(ftl_sm_pool *pool, int32_t sm) { return pool->sms[sm]; }

void ftl_sm_pool_advance(ftl_sm_pool *pool, int64_t until, ftl_sm_pool_work beside, void *context) {
  pool->window.until = until;
  pool->window.beside = beside;
  pool->window.context = context;
  pool->window.num_busy = 0;
  for (int32_t sm = 0; sm < pool->num_sms; sm++)
    if (ftl_sm_is_busy(pool->sms[sm])) pool->busy[pool->window.num_busy++] = sm;
  begin_window(pool);
  do_jobs(pool);
  if (pool->has_gates) ftl_gate_wait(&pool->end, pool->num_windows * (unsigned)pool->num_others);
}
