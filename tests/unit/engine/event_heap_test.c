#include <criterion/criterion.h>

#include "engine/sampled/event_heap.h"

Test(unit_engine_event_heap, events_come_out_by_time_and_then_by_slot) {
  enum { COUNT = 500 };
  ftl_event storage[COUNT];
  ftl_event_heap heap = {.events = storage};
  uint32_t state = 1;
  for (int32_t i = 0; i < COUNT; i++) {
    state = state * 1664525u + 1013904223u;
    ftl_event_heap_push(&heap, (ftl_event){.ticks = state >> 26, .slot = COUNT - i});
  }
  ftl_event last = {.ticks = -1};
  for (int32_t i = 0; i < COUNT; i++) {
    ftl_event event = ftl_event_heap_pop(&heap);
    cr_assert(ftl_event_before(last, event), "event %d", i);
    last = event;
  }
  cr_assert(ftl_event_heap_is_empty(&heap));
}

// As many events as there is room for, each of which asks for its next, none or two, as a CTA that ends does: the order
// is that of a sort each time.
Test(unit_engine_event_heap, events_that_follow_an_event_take_its_place) {
  enum { ROOM = 37, TAKEN = 2000 };
  ftl_event storage[ROOM];
  ftl_event_heap heap = {.events = storage};
  bool waits[ROOM] = {false};
  int64_t times[ROOM], now = 0;
  uint32_t state = 1;
  for (int32_t taken = 0; taken < TAKEN; taken++) {
    int32_t pushes = taken == 0 ? ROOM : (int32_t)(state >> 30);  // 0 to 3, as far as there is room
    for (int32_t slot = 0; slot < ROOM && pushes > 0; slot++) {
      if (waits[slot]) continue;
      state = state * 1664525u + 1013904223u;
      times[slot] = now + (state >> 27);
      waits[slot] = true;
      ftl_event_heap_push(&heap, (ftl_event){.ticks = times[slot], .slot = slot});
      pushes--;
    }
    int32_t first = -1;
    for (int32_t slot = 0; slot < ROOM; slot++)
      if (waits[slot] && (first < 0 || times[slot] < times[first])) first = slot;
    cr_assert_eq(ftl_event_heap_is_empty(&heap), first < 0);
    if (first < 0) continue;
    ftl_event event = ftl_event_heap_pop(&heap);
    cr_assert_eq(event.slot, first);
    now = event.ticks;
    waits[first] = false;
  }
}
