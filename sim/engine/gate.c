#include "engine/gate.h"

enum { LOOKS = 4000 };  // some ten microseconds: as long as falling asleep and waking up takes

bool ftl_gate_init(ftl_gate *gate) {
  atomic_init(&gate->count, 0);
  if (pthread_mutex_init(&gate->mutex, NULL) != 0) return false;
  if (pthread_cond_init(&gate->raised, NULL) == 0) return true;
  pthread_mutex_destroy(&gate->mutex);
  return false;
}

void ftl_gate_fini(ftl_gate *gate) {
  pthread_cond_destroy(&gate->raised);
  pthread_mutex_destroy(&gate->mutex);
}

void ftl_gate_raise(ftl_gate *gate) {
  pthread_mutex_lock(&gate->mutex);
  atomic_fetch_add_explicit(&gate->count, 1, memory_order_release);
  pthread_cond_broadcast(&gate->raised);
  pthread_mutex_unlock(&gate->mutex);
}

static bool is_at(ftl_gate *gate, unsigned count) {
  return atomic_load_explicit(&gate->count, memory_order_acquire) == count;
}

void ftl_gate_wait(ftl_gate *gate, unsigned count) {
  for (int i = 0; i < LOOKS; i++)
    if (is_at(gate, count)) return;
  pthread_mutex_lock(&gate->mutex);
  while (!is_at(gate, count)) pthread_cond_wait(&gate->raised, &gate->mutex);
  pthread_mutex_unlock(&gate->mutex);
}
