// A count that some threads raise and others wait for. Who waits looks for a while before it sleeps: between two
// windows of a simulation there are microseconds.
#ifndef FTL_ENGINE_GATE_H
#define FTL_ENGINE_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct ftl_gate {
  atomic_uint count;
  pthread_mutex_t mutex;
  pthread_cond_t raised;
} ftl_gate;

bool ftl_gate_init(ftl_gate *gate);  // false: the system has no more of these
// Nobody waits any more.
void ftl_gate_fini(ftl_gate *gate);
// What the caller wrote before is seen by who waited for it.
void ftl_gate_raise(ftl_gate *gate);
// Returns when the count is `count`, which it must come to one by one.
void ftl_gate_wait(ftl_gate *gate, unsigned count);

#endif
