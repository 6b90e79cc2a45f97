// Prints find the ways that may hold a line, and the free ones.
#include "machine/l2/prints.h"

#include <criterion/criterion.h>

enum { NUM_WAYS = 20, NUM_WORDS = 3 };  // the last word has four ways

static void clear(uint64_t prints[NUM_WORDS]) {
  for (uint32_t way = 0; way < NUM_WORDS * FTL_L2_PRINTS_OF_WORD; way++)
    ftl_l2_prints_set(prints, way, way < NUM_WAYS ? FTL_L2_PRINT_FREE : FTL_L2_PRINT_NONE);
}

// The first way like `print`, or NUM_WAYS.
static uint32_t first_like(const uint64_t prints[NUM_WORDS], uint8_t print) {
  for (uint32_t word = 0; word < NUM_WORDS; word++) {
    uint64_t like = ftl_l2_prints_like(prints[word], print);
    if (like) return word * FTL_L2_PRINTS_OF_WORD + ftl_l2_prints_first(like);
  }
  return NUM_WAYS;
}

Test(timing_l2_prints, a_line_is_neither_free_nor_beyond_the_last_way) {
  for (uint64_t line = 0; line < 100000; line++) {
    uint8_t print = ftl_l2_print_of(line);
    cr_assert_neq(print, FTL_L2_PRINT_FREE);
    cr_assert_neq(print, FTL_L2_PRINT_NONE);
  }
}

// Every value stands in every way once, and the way is found among 19 that hold every other value.
Test(timing_l2_prints, the_first_way_with_a_print_is_found) {
  for (uint32_t way = 0; way < NUM_WAYS; way++)
    for (uint32_t print = 1; print < FTL_L2_PRINT_NONE; print++) {
      uint64_t prints[NUM_WORDS] = {0};
      clear(prints);
      for (uint32_t other = 0; other < NUM_WAYS; other++) {
        uint8_t different = (uint8_t)(1 + (print + other) % (FTL_L2_PRINT_NONE - 1));
        if (other != way && different != print) ftl_l2_prints_set(prints, other, different);
      }
      cr_assert_eq(first_like(prints, (uint8_t)print), NUM_WAYS, "print %u stands nowhere", print);
      ftl_l2_prints_set(prints, way, (uint8_t)print);
      cr_assert_eq(first_like(prints, (uint8_t)print), way, "print %u", print);
    }
}

Test(timing_l2_prints, free_ways_are_found_until_the_last_is_taken) {
  uint64_t prints[NUM_WORDS] = {0};
  clear(prints);
  for (uint32_t way = 0; way < NUM_WAYS; way++) {
    cr_expect_eq(first_like(prints, FTL_L2_PRINT_FREE), way);
    ftl_l2_prints_set(prints, way, (uint8_t)(way + 1));
  }
  cr_expect_eq(first_like(prints, FTL_L2_PRINT_FREE), NUM_WAYS);
}
