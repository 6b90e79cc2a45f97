// A calendar of events by L2 cycle: in a cycle by phase, in a phase by sequence number, whatever the order of the
// calls.
#ifndef FTL_MACHINE_WHEEL_H
#define FTL_MACHINE_WHEEL_H

#include <stdint.h>

#include "base/check.h"
#include "base/status.h"

enum { FTL_WHEEL_SLOTS = 4096, FTL_WHEEL_PHASES = 3, FTL_WHEEL_NONE = UINT32_MAX };
enum { FTL_WHEEL_CHUNK = 16 };  // cells: 256 bytes, four cache lines

typedef struct ftl_wheel_event {
  uint64_t sequence;
  uint32_t node;   // the owner's, for which something happens
  uint32_t turns;  // of the wheel still to wait
} ftl_wheel_event;

// Events in the order of the calls: a chain of chunks, of which the first cell's `node` is the next chunk.
typedef struct ftl_wheel_list {
  uint32_t first_chunk;
  uint32_t end;  // the cell after the last event's; of a list without events 0. A chunk's first cell: the last is full
} ftl_wheel_list;

typedef struct ftl_wheel {
  int64_t now;    // every event before this has been taken
  int64_t count;  // events in the wheel
  ftl_wheel_list slots[FTL_WHEEL_SLOTS][FTL_WHEEL_PHASES];
  ftl_wheel_event *cells;
  uint32_t num_chunks, free_chunk;
  ftl_wheel_event *taken;  // room for the events of one cycle and phase
  ftl_wheel_event *scratch;
  uint32_t capacity;
} ftl_wheel;

// FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_wheel_init(ftl_wheel *wheel, ftl_error *error);
void ftl_wheel_fini(ftl_wheel *wheel);
void ftl_wheel_restart(ftl_wheel *wheel);  // empty, now = 0

// The list's last chunk is full, or it has none.
void ftl_wheel_append_to_new_chunk(ftl_wheel *wheel, ftl_wheel_list *list, ftl_wheel_event event);
// Behind the list's last event.
static inline void ftl_wheel_append(ftl_wheel *wheel, ftl_wheel_list *list, ftl_wheel_event event) {
  if (list->end % FTL_WHEEL_CHUNK == 0)
    ftl_wheel_append_to_new_chunk(wheel, list, event);
  else
    wheel->cells[list->end++] = event;
}

// An event of `cycle`, not before now; within the current cycle the phase is a later one than the one being taken.
static inline void ftl_wheel_push(ftl_wheel *wheel, int64_t cycle, int phase, uint64_t sequence, uint32_t node) {
  FTL_CHECK(cycle >= wheel->now, "memory: an event for L2 cycle %lld in cycle %lld", (long long)cycle,
            (long long)wheel->now);
  uint32_t turns = (uint32_t)((uint64_t)(cycle - wheel->now) / FTL_WHEEL_SLOTS);
  wheel->count++;
  ftl_wheel_append(wheel, &wheel->slots[(uint64_t)cycle % FTL_WHEEL_SLOTS][phase],
                   (ftl_wheel_event){sequence, node, turns});
}

// The events of the current cycle and phase in order; they leave the wheel. Valid until the next take.
const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, int phase, uint32_t *count);

#endif
