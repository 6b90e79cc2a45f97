#include "machine/l2/mshr.h"

#include <stdlib.h>

#include "base/check.h"

ftl_status ftl_l2_mshrs_init(ftl_l2_mshrs *mshrs, uint64_t capacity, ftl_error *error) {
  *mshrs = (ftl_l2_mshrs){.capacity = 1024, .shift = 54};
  for (; mshrs->capacity < capacity; mshrs->capacity *= 2) mshrs->shift--;
  mshrs->table = calloc(mshrs->capacity, sizeof *mshrs->table);
  if (mshrs->table == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "no memory for the L2 misses in flight");
  return FTL_OK;
}

void ftl_l2_mshrs_fini(ftl_l2_mshrs *mshrs) {
  free(mshrs->table);
  *mshrs = (ftl_l2_mshrs){0};
}

static void grow(ftl_l2_mshrs *mshrs) {
  ftl_l2_mshrs larger = {.capacity = mshrs->capacity * 2, .shift = mshrs->shift - 1, .count = mshrs->count};
  larger.table = calloc(larger.capacity, sizeof *larger.table);
  FTL_CHECK(larger.table != NULL, "l2: no memory for %llu misses in flight", (unsigned long long)larger.capacity);
  for (uint64_t i = 0; i < mshrs->capacity; i++) {
    if (mshrs->table[i].in_flight != 0) *ftl_l2_mshrs_place(&larger, mshrs->table[i].key) = mshrs->table[i];
  }
  free(mshrs->table);
  *mshrs = larger;
}

ftl_l2_mshr *ftl_l2_mshrs_add(ftl_l2_mshrs *mshrs, uint64_t line, uint32_t side, uint8_t sectors) {
  if (mshrs->count * 2 >= mshrs->capacity) grow(mshrs);
  uint64_t key = ftl_l2_mshr_key(line, side);
  ftl_l2_mshr *place = ftl_l2_mshrs_place(mshrs, key);
  if (place->in_flight == 0) {
    *place = (ftl_l2_mshr){.key = key, .last_waiter = FTL_L2_NO_WAITER};
    mshrs->count++;
  }
  place->in_flight |= sectors;
  return place;
}

void ftl_l2_mshrs_remove(ftl_l2_mshrs *mshrs, ftl_l2_mshr *mshr) {
  uint64_t mask = mshrs->capacity - 1;
  uint64_t hole = (uint64_t)(mshr - mshrs->table);
  mshrs->count--;
  // What follows moves up, unless that would put it before its own home (Knuth, TAOCP 3, 6.4, algorithm R).
  for (uint64_t i = (hole + 1) & mask; mshrs->table[i].in_flight != 0; i = (i + 1) & mask) {
    uint64_t home = ftl_l2_mshrs_home(mshrs, mshrs->table[i].key);
    if (((i - home) & mask) >= ((i - hole) & mask)) {
      mshrs->table[hole] = mshrs->table[i];
      hole = i;
    }
  }
  mshrs->table[hole].in_flight = 0;
}
