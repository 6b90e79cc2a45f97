#include "machine/wheel.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { FIRST_CAPACITY = 4096, INSERTION_SORT_MAX = 24 };

ftl_status ftl_wheel_init(ftl_wheel *wheel, ftl_error *error) {
  wheel->capacity = FIRST_CAPACITY;
  wheel->taken = malloc(FIRST_CAPACITY * sizeof *wheel->taken);
  wheel->scratch = malloc(FIRST_CAPACITY * sizeof *wheel->scratch);
  ftl_wheel_restart(wheel);
  if (wheel->taken != NULL && wheel->scratch != NULL) return FTL_OK;
  return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the memory system's events");
}

void ftl_wheel_fini(ftl_wheel *wheel) {
  free(wheel->taken);
  free(wheel->scratch);
}

void ftl_wheel_restart(ftl_wheel *wheel) {
  wheel->now = 0;
  wheel->count = 0;
  memset(wheel->slots, 0xff, sizeof wheel->slots);
}

static ftl_wheel_link *link_of(void *nodes, uint32_t node_bytes, uint32_t node) {
  return (ftl_wheel_link *)(void *)((char *)nodes + (size_t)node * node_bytes);
}

void ftl_wheel_push(ftl_wheel *wheel, void *nodes, uint32_t node_bytes, uint32_t node, int phase) {
  ftl_wheel_link *link = link_of(nodes, node_bytes, node);
  FTL_CHECK(link->cycle >= wheel->now, "memory: an event for L2 cycle %lld in cycle %lld", (long long)link->cycle,
            (long long)wheel->now);
  // An event beyond the wheel waits in its last slot and is pushed again from there.
  int64_t last = wheel->now + FTL_WHEEL_SLOTS - 1;
  int64_t cycle = link->cycle < last ? link->cycle : last;
  ftl_wheel_list *list = &wheel->slots[cycle % FTL_WHEEL_SLOTS][phase];
  link->next = FTL_WHEEL_NONE;
  if (list->head == FTL_WHEEL_NONE) {
    list->head = node;
  } else {
    link_of(nodes, node_bytes, list->tail)->next = node;
  }
  list->tail = node;
  wheel->count++;
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

const ftl_wheel_event *ftl_wheel_take(ftl_wheel *wheel, void *nodes, uint32_t node_bytes, int phase, uint32_t *count) {
  ftl_wheel_list *list = &wheel->slots[wheel->now % FTL_WHEEL_SLOTS][phase];
  uint32_t node = list->head;
  *list = (ftl_wheel_list){FTL_WHEEL_NONE, FTL_WHEEL_NONE};
  *count = 0;
  while (node != FTL_WHEEL_NONE) {
    ftl_wheel_link *link = link_of(nodes, node_bytes, node);
    uint32_t next = link->next;
    wheel->count--;
    if (link->cycle > wheel->now) {
      ftl_wheel_push(wheel, nodes, node_bytes, node, phase);
    } else {
      reserve(wheel, *count);
      wheel->taken[(*count)++] = (ftl_wheel_event){link->sequence, node};
    }
    node = next;
  }
  merge_sort(wheel->taken, wheel->scratch, *count);
  return wheel->taken;
}
