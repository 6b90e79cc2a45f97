// A binary heap of (time, slot): the next CTA to take a step, ties by slot.
#ifndef FTL_ENGINE_SAMPLED_EVENT_HEAP_H
#define FTL_ENGINE_SAMPLED_EVENT_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_event {
  int64_t time;
  int32_t slot;
} ftl_event;

// Storage for as many events as there are slots is the caller's.
typedef struct ftl_event_heap {
  ftl_event *events;
  int32_t count;
} ftl_event_heap;

static inline bool ftl_event_before(ftl_event a, ftl_event b) {
  return a.time != b.time ? a.time < b.time : a.slot < b.slot;
}

static inline void ftl_event_heap_push(ftl_event_heap *heap, ftl_event event) {
  int32_t at = heap->count++;
  while (at > 0 && ftl_event_before(event, heap->events[(at - 1) / 2])) {
    heap->events[at] = heap->events[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap->events[at] = event;
}

static inline ftl_event ftl_event_heap_pop(ftl_event_heap *heap) {
  ftl_event top = heap->events[0], last = heap->events[--heap->count];
  int32_t at = 0;
  for (;;) {
    int32_t child = 2 * at + 1;
    if (child >= heap->count) break;
    if (child + 1 < heap->count && ftl_event_before(heap->events[child + 1], heap->events[child])) child++;
    if (!ftl_event_before(heap->events[child], last)) break;
    heap->events[at] = heap->events[child];
    at = child;
  }
  heap->events[at] = last;
  return top;
}

#endif
