// A binary heap of (time, slot): the next CTA to take a step, ties by slot. Who takes a step mostly asks for its next:
// the place of an event that was taken stays free for the one that is pushed after it, which then sinks from the top;
// else the last would sink from there, and the next rise to where it belongs.
#ifndef FTL_ENGINE_SAMPLED_EVENT_HEAP_H
#define FTL_ENGINE_SAMPLED_EVENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_event {
  int64_t ticks;
  int32_t slot;
} ftl_event;

// Storage for as many events as there are slots is the caller's.
typedef struct ftl_event_heap {
  ftl_event *events;
  int32_t count;
  bool top_is_free;  // events[0] was taken, and count is one more than there are
} ftl_event_heap;

// Without a jump, which nobody could foresee.
static inline bool ftl_event_before(ftl_event a, ftl_event b) {
  return (a.ticks < b.ticks) | ((a.ticks == b.ticks) & (a.slot < b.slot));
}

// From the top, whose place is free.
static inline void ftl_event_heap_sink(ftl_event_heap *heap, ftl_event event) {
  int32_t at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= heap->count) break;
    child += child + 1 < heap->count && ftl_event_before(heap->events[child + 1], heap->events[child]);
    if (!ftl_event_before(heap->events[child], event)) break;
    heap->events[at] = heap->events[child];
    at = child;
  }
  heap->events[at] = event;
  heap->top_is_free = false;
}

// At most as many events as there is storage for.
static inline void ftl_event_heap_push(ftl_event_heap *heap, ftl_event event) {
  if (heap->top_is_free) {
    ftl_event_heap_sink(heap, event);
    return;
  }
  int32_t at = heap->count++;
  while (at > 0 && ftl_event_before(event, heap->events[(at - 1) / 2])) {
    heap->events[at] = heap->events[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap->events[at] = event;
}

static inline bool ftl_event_heap_is_empty(const ftl_event_heap *heap) { return heap->count == heap->top_is_free; }

// Where it is not empty.
static inline ftl_event ftl_event_heap_pop(ftl_event_heap *heap) {
  if (heap->top_is_free) {
    ftl_event last = heap->events[--heap->count];
    ftl_event_heap_sink(heap, last);
  }
  heap->top_is_free = true;
  return heap->events[0];
}

#endif
