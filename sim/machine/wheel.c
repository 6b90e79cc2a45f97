#include "machine/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { FIRST_CAPACITY = 4096, INSERTION_SORT_MAX = 24 };

_Static_assert(sizeof(ftl_wheel_chunk) == 128, "a chunk takes two cache lines");

static bool reserve_chunks(ftl_wheel *wheel, uint32_t num_chunks) {
  ftl_wheel_chunk *chunks = realloc(wheel->chunks, num_chunks * sizeof *chunks);
  if (chunks == NULL) return false;
  wheel->chunks = chunks;
  for (uint32_t i = num_chunks; i > wheel->num_chunks; i--) {
    chunks[i - 1].next = wheel->free_chunk;
    wheel->free_chunk = i - 1;
  }
  wheel->num_chunks = num_chunks;
  return true;
}

ftl_status ftl_wheel_init(ftl_wheel *wheel, ftl_error *error) {
  wheel->capacity = FIRST_CAPACITY;
  wheel->taken = malloc(FIRST_CAPACITY * sizeof *wheel->taken);
  wheel->scratch = malloc(FIRST_CAPACITY * sizeof *wheel->scratch);
  wheel->free_chunk = FTL_WHEEL_NONE;
  ftl_wheel_restart(wheel);
  if (wheel->taken != NULL && wheel->scratch != NULL && reserve_chunks(wheel, FIRST_CAPACITY)) return FTL_OK;
  return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the memory system's events");
}

void ftl_wheel_fini(ftl_wheel *wheel) {
  free(wheel->taken);
  free(wheel->scratch);
  free(wheel->chunks);
}

void ftl_wheel_restart(ftl_wheel *wheel) {
  FTL_CHECK(wheel->count == 0, "memory: restarted with %lld events to come", (long long)wheel->count);
  wheel->now = 0;
  memset(wheel->slots, 0xff, sizeof wheel->slots);
}

static uint32_t take_chunk(ftl_wheel *wheel) {
  if (wheel->free_chunk == FTL_WHEEL_NONE) {
    FTL_CHECK(reserve_chunks(wheel, wheel->num_chunks * 2), "memory: no memory for %u events",
              wheel->num_chunks * 2 * FTL_WHEEL_CHUNK_EVENTS);
  }
  uint32_t chunk = wheel->free_chunk;
  wheel->free_chunk = wheel->chunks[chunk].next;
  wheel->chunks[chunk].next = FTL_WHEEL_NONE;
  wheel->chunks[chunk].count = 0;
  return chunk;
}

static void append(ftl_wheel *wheel, ftl_wheel_list *list, ftl_wheel_event event) {
  if (list->head == FTL_WHEEL_NONE) {
    list->head = list->tail = take_chunk(wheel);
  } else if (wheel->chunks[list->tail].count == FTL_WHEEL_CHUNK_EVENTS) {
    uint32_t chunk = take_chunk(wheel);
    wheel->chunks[list->tail].next = chunk;
    list->tail = chunk;
  }
  ftl_wheel_chunk *chunk = &wheel->chunks[list->tail];
  chunk->events[chunk->count++] = event;
  wheel->count++;
}

void ftl_wheel_push(ftl_wheel *wheel, int64_t cycle, int phase, uint64_t sequence, uint32_t node) {
  FTL_CHECK(cycle >= wheel->now, "memory: an event for L2 cycle %lld in cycle %lld", (long long)cycle,
            (long long)wheel->now);
  uint32_t turns = (uint32_t)((uint64_t)(cycle - wheel->now) / FTL_WHEEL_SLOTS);
  append(wheel, &wheel->slots[(uint64_t)cycle % FTL_WHEEL_SLOTS][phase], (ftl_wheel_event){sequence, node, turns});
}

static void reserve(ftl_wheel *wheel, uint32_t count) {
  if (count < wheel->capacity) return;
  wheel->capacity *= 2;
  wheel->taken = realloc(wheel->taken, wheel->capacity * sizeof *wheel->taken);
  wheel->scratch = realloc(wheel->scratch, wheel->capacity * sizeof *wheel->scratch);
  FTL_CHECK(wheel->taken != NULL && wheel->scratch != NULL, "memory: no memory for %u events", wheel->capacity);
}

static void insertion_sort(ftl_wheel_event *events, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    ftl_wheel_event event = events[i];
    uint32_t j = i;
    for (; j > 0 && events[j - 1].sequence > event.sequence; j--) events[j] = events[j - 1];
    events[j] = event;
  }
}

static void merge_sort(ftl_wheel_event *events, ftl_wheel_event *scratch, uint32_t count) {
  if (count <= INSERTION_SORT_MAX) {
    insertion_sort(events, count);
    return;
  }
  uint32_t half = count / 2;
  merge_sort(events, scratch, half);
  merge_sort(events + half, scratch, count - half);
  if (events[half - 1].sequence <= events[half].sequence) return;
  memcpy(scratch, events, half * sizeof *events);
  uint32_t left = 0, right = half;
  for (uint32_t i = 0; left < half; i++) {
    bool take_right = right < count && events[right].sequence < scratch[left].sequence;
    events[i] = take_right ? events[right++] : scratch[left++];
  }
}

const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, int phase, uint32_t *count) {
  ftl_wheel_list *list = &wheel->slots[wheel->now % FTL_WHEEL_SLOTS][phase];
  uint32_t index = list->head;
  *list = (ftl_wheel_list){FTL_WHEEL_NONE, FTL_WHEEL_NONE};
  uint32_t taken = 0;
  bool is_sorted = true;
  while (index != FTL_WHEEL_NONE) {
    uint32_t num_events = wheel->chunks[index].count, next = wheel->chunks[index].next;
    reserve(wheel, taken + FTL_WHEEL_CHUNK_EVENTS);
    for (uint32_t i = 0; i < num_events; i++) {
      ftl_wheel_event event = wheel->chunks[index].events[i];
      wheel->count--;
      if (event.turns > 0) {
        event.turns--;
        append(wheel, list, event);
        continue;
      }
      if (taken > 0 && wheel->taken[taken - 1].sequence > event.sequence) is_sorted = false;
      wheel->taken[taken++] = event;
    }
    wheel->chunks[index].next = wheel->free_chunk;
    wheel->free_chunk = index;
    index = next;
  }
  if (!is_sorted) merge_sort(wheel->taken, wheel->scratch, taken);
  *count = taken;
  return wheel->taken;
}
