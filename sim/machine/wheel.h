// A calendar of events by L2 cycle: in a cycle by phase, in a phase by sequence number, whatever the order of the
// calls.
#ifndef FTL_MACHINE_WHEEL_H
#define FTL_MACHINE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { FTL_WHEEL_SLOTS = 4096, FTL_WHEEL_PHASES = 3, FTL_WHEEL_NONE = UINT32_MAX, FTL_WHEEL_CHUNK_EVENTS = 7 };

typedef struct ftl_wheel_event {
  uint64_t sequence;
  uint32_t node;   // the owner's, for which something happens
  uint32_t turns;  // of the wheel still to wait
} ftl_wheel_event;

typedef struct ftl_wheel_chunk {
  uint32_t next, count;
  uint64_t unused;  // 128 bytes: two cache lines
  ftl_wheel_event events[FTL_WHEEL_CHUNK_EVENTS];
} ftl_wheel_chunk;

typedef struct ftl_wheel_list {
  uint32_t head, tail;
} ftl_wheel_list;

typedef struct ftl_wheel {
  int64_t now;    // every event before this has been taken
  int64_t count;  // events in the wheel
  ftl_wheel_list slots[FTL_WHEEL_SLOTS][FTL_WHEEL_PHASES];
  ftl_wheel_chunk *chunks;
  uint32_t num_chunks, free_chunk;
  ftl_wheel_event *taken;  // room for the events of one cycle and phase
  ftl_wheel_event *scratch;
  uint32_t capacity;
} ftl_wheel;

FTL_MUST_USE ftl_status ftl_wheel_init(ftl_wheel *wheel, ftl_error *error);
void ftl_wheel_fini(ftl_wheel *wheel);
void ftl_wheel_restart(ftl_wheel *wheel);  // empty, now = 0

// An event of `cycle`, not before now; within the current cycle the phase is a later one than the one being taken.
void ftl_wheel_push(ftl_wheel *wheel, int64_t cycle, int phase, uint64_t sequence, uint32_t node);
// The events of the current cycle and phase in order; they leave the wheel. Valid until the next take.
const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, int phase, uint32_t *count);

#endif
