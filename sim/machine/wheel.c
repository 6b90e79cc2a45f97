#include "machine/wheel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"

enum { FIRST_CAPACITY = 4096, INSERTION_SORT_MAX = 24 };

_Static_assert(FTL_WHEEL_CHUNK * sizeof(ftl_wheel_event) == 256, "a chunk takes four cache lines");

static uint32_t *next_of(ftl_wheel *wheel, uint32_t chunk) { return &wheel->cells[chunk * FTL_WHEEL_CHUNK].node; }

static void free_chunk(ftl_wheel *wheel, uint32_t chunk) {
  *next_of(wheel, chunk) = wheel->free_chunk;
  wheel->free_chunk = chunk;
}

static bool reserve_chunks(ftl_wheel *wheel, uint32_t num_chunks) {
  size_t chunk_bytes = FTL_WHEEL_CHUNK * sizeof(ftl_wheel_event);
  ftl_wheel_event *cells = ftl_lines_grow(wheel->cells, wheel->num_chunks * chunk_bytes, num_chunks * chunk_bytes);
  if (cells == NULL) return false;
  wheel->cells = cells;
  for (uint32_t i = num_chunks; i > wheel->num_chunks; i--) free_chunk(wheel, i - 1);
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
  free(wheel->cells);
}

void ftl_wheel_restart(ftl_wheel *wheel) {
  FTL_CHECK(wheel->count == 0, "memory: restarted with %lld events to come", (long long)wheel->count);
  wheel->now = 0;
  memset(wheel->slots, 0, sizeof wheel->slots);
}

void ftl_wheel_append_to_new_chunk(ftl_wheel *wheel, ftl_wheel_list *list, ftl_wheel_event event) {
  if (wheel->free_chunk == FTL_WHEEL_NONE) {
    FTL_CHECK(reserve_chunks(wheel, wheel->num_chunks * 2), "memory: no memory for %u chunks of events",
              wheel->num_chunks * 2);
  }
  uint32_t chunk = wheel->free_chunk;
  wheel->free_chunk = *next_of(wheel, chunk);
  if (list->end == 0)
    list->first_chunk = chunk;
  else
    *next_of(wheel, list->end / FTL_WHEEL_CHUNK - 1) = chunk;
  list->end = chunk * FTL_WHEEL_CHUNK + 1;
  wheel->cells[list->end++] = event;
}

static void reserve(ftl_wheel *wheel, uint32_t count) {
  if (count < wheel->capacity) return;
  wheel->capacity *= 2;
  wheel->taken = realloc(wheel->taken, wheel->capacity * sizeof *wheel->taken);
  wheel->scratch = realloc(wheel->scratch, wheel->capacity * sizeof *wheel->scratch);
  FTL_CHECK(wheel->taken != NULL && wheel->scratch != NULL, "memory: no memory for %u events", wheel->capacity);
}

static void insertion_sort(ftl_wheel_event *events, uint32_t count) {
  for (ftl_wheel_event *next = events + 1; next < events + count; next++) {
    ftl_wheel_event event = *next, *place = next;
    for (; place != events && place[-1].sequence > event.sequence; place--) *place = place[-1];
    *place = event;
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
  const ftl_wheel_event *left = scratch, *right = events + half, *end = events + count;
  for (ftl_wheel_event *to = events; left < scratch + half; to++) {
    bool take_right = right < end && right->sequence < left->sequence;
    *to = take_right ? *right++ : *left++;
  }
}

const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, int phase, uint32_t *count) {
  ftl_wheel_list *list = &wheel->slots[wheel->now % FTL_WHEEL_SLOTS][phase], all = *list;
  uint32_t taken = 0;
  uint64_t last_sequence = 0;
  bool is_sorted = true;
  *list = (ftl_wheel_list){0};
  for (uint32_t chunk = all.first_chunk, more = all.end; more != 0;) {
    uint32_t cell = chunk * FTL_WHEEL_CHUNK + 1, end = (chunk + 1) * FTL_WHEEL_CHUNK, next = *next_of(wheel, chunk);
    if (all.end > cell && all.end <= end) {  // the last one
      end = all.end;
      more = 0;
    }
    reserve(wheel, taken + FTL_WHEEL_CHUNK);
    ftl_wheel_event *room = wheel->taken + taken;
    const ftl_wheel_event *cells = wheel->cells;
    for (; cell < end; cell++) {
      ftl_wheel_event event = cells[cell];
      if (event.turns > 0) {
        event.turns--;
        ftl_wheel_append(wheel, list, event);
        cells = wheel->cells;  // which may have moved
        continue;
      }
      is_sorted &= event.sequence >= last_sequence;
      last_sequence = event.sequence;
      *room++ = event;
    }
    taken = (uint32_t)(room - wheel->taken);
    free_chunk(wheel, chunk);
    chunk = next;
  }
  wheel->count -= taken;
  if (!is_sorted) merge_sort(wheel->taken, wheel->scratch, taken);
  *count = taken;
  return wheel->taken;
}
