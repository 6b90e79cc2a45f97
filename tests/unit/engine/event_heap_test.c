#include <criterion/criterion.h>

#include "engine/sampled/event_heap.h"

Test(unit_engine_event_heap, events_come_out_by_time_and_then_by_slot) {
  enum { COUNT = 500 };
  ftl_event storage[COUNT];
  ftl_event_heap heap = {.events = storage};
  uint32_t state = 1;
  for (int32_t i = 0; i < COUNT; i++) {
    state = state * 1664525u + 1013904223u;
    ftl_event_heap_push(&heap, (ftl_event){.time = state >> 26, .slot = COUNT - i});
  }
  ftl_event last = {.time = -1};
  for (int32_t i = 0; i < COUNT; i++) {
    ftl_event event = ftl_event_heap_pop(&heap);
    cr_assert(ftl_event_before(last, event), "event %d", i);
    last = event;
  }
  cr_assert_eq(heap.count, 0);
}
