// A calendar of events by L2 cycle: in a cycle by phase, in a phase by sequence number, whatever the order of the calls.
#ifndef FTL_MACHINE_WHEEL_H
#define FTL_MACHINE_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { FTL_WHEEL_SLOTS = 4096, FTL_WHEEL_PHASES = 3, FTL_WHEEL_NONE = UINT32_MAX };

// What an event carries; the first member of the owner's node.
typedef struct ftl_wheel_link {
  int64_t cycle;
  uint64_t sequence;
  uint32_t next;
} ftl_wheel_link;

typedef struct ftl_wheel_event {
  uint64_t sequence;
  uint32_t node;
} ftl_wheel_event;

typedef struct ftl_wheel_list {
  uint32_t head, tail;
} ftl_wheel_list;

typedef struct ftl_wheel {
  int64_t now;    // every event before this has been taken
  int64_t count;  // events in the wheel
  ftl_wheel_list slots[FTL_WHEEL_SLOTS][FTL_WHEEL_PHASES];
  ftl_wheel_event *taken;  // room for the events of one cycle and phase
  ftl_wheel_event *scratch;
  uint32_t capacity;
} ftl_wheel;

FTL_MUST_USE ftl_status ftl_wheel_init(ftl_wheel *wheel, ftl_error *error);
void ftl_wheel_fini(ftl_wheel *wheel);
void ftl_wheel_restart(ftl_wheel *wheel);  // empty, now = 0

// Nodes lie in one array, `node_bytes` apart, with an ftl_wheel_link first; nodes + node * node_bytes is set for `cycle`.
// The cycle is not before now; within the current cycle the phase is a later one than the one being taken.
void ftl_wheel_push(ftl_wheel *wheel, void *nodes, uint32_t node_bytes, uint32_t node, int phase);
// The events of the current cycle and phase in order; they leave the wheel.
const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, void *nodes, uint32_t node_bytes, int phase, uint32_t *count);

#endif
