// Which line leaves when accesses have priorities: one set of eight ways, half of it the set-aside.
#include <criterion/criterion.h>
#include <stdio.h>

#include "machine/l2/tags.h"

enum { WAYS = 8, LAST_WAYS = 4, LINE = 15 };

static ftl_l2_tags *create_set(const char *replacement) {
  ftl_arch arch = {.l1_line_bytes = 128,
                   .l2_size_bytes = WAYS * 128,
                   .l2_num_sides = 1,
                   .l2_num_slices = 1,
                   .l2_ways = WAYS,
                   .l2_side_hash_granule_bytes = 128,
                   .l2_fill_sectors = 1,
                   .l2_persisting_max_bytes = LAST_WAYS * 128,
                   .l2_max_dirty_milli = 1000,
                   .l2_busy_dirty_milli = 1000};
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "%s", replacement);
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, &arch, 0, &error), FTL_OK);
  return tags;
}

static bool read_hits(ftl_l2_tags *tags, uint64_t line, ftl_l2_priority priority) {
  return ftl_l2_tags_read(tags, line, LINE, 0, priority).hit_sectors == LINE;
}

static void read_lines(ftl_l2_tags *tags, uint64_t first, int count, ftl_l2_priority priority) {
  for (int i = 0; i < count; i++) (void)read_hits(tags, first + (uint64_t)i, priority);
}

// Which of the lines are there, as a mask, found without changing what is there but for their use.
static int num_present(ftl_l2_tags *tags, uint64_t first, int count, ftl_l2_priority priority) {
  int present = 0;
  for (int i = count - 1; i >= 0; i--) present += read_hits(tags, first + (uint64_t)i, priority);
  return present;
}

// Least recently used of those of the priority that is to go first, by a list in the order of use.
typedef struct use_list {
  uint64_t line[WAYS];
  ftl_l2_priority priority[WAYS];
  int count;
} use_list;

static bool list_use(use_list *list, uint64_t line, ftl_l2_priority priority) {
  int at = 0, first = 0;
  while (at < list->count && list->line[at] != line) at++;
  bool hits = at < list->count;
  if (!hits && list->count == WAYS) {
    while (first < WAYS && list->priority[first] != FTL_L2_EVICT_FIRST) first++;
    at = first < WAYS ? first : 0;
  }
  if (hits || list->count == WAYS) {
    for (list->count--; at < list->count; at++) {
      list->line[at] = list->line[at + 1];
      list->priority[at] = list->priority[at + 1];
    }
  }
  list->line[list->count] = line;
  list->priority[list->count++] = priority;
  return hits;
}

// Twelve lines in eight ways, asked for at random, at times evict-first, so that victims that were looked up several at
// once have been used again, or have another priority, when their turn comes.
Test(timing_l2_priority, lru_evicts_what_a_list_in_the_order_of_use_says) {
  ftl_l2_tags *tags = create_set("lru");
  use_list list = {0};
  for (uint64_t i = 0; i < 20000; i++) {
    uint64_t bits = ftl_l2_mix(i), line = bits % 12;
    bool first = i % 1000 > 900 && bits >> 40 & 1;
    ftl_l2_priority priority = first ? FTL_L2_EVICT_FIRST : FTL_L2_EVICT_NORMAL;
    cr_assert_eq(read_hits(tags, line, priority), list_use(&list, line, priority), "access %llu",
                 (unsigned long long)i);
  }
  ftl_l2_tags_destroy(tags);
}

// Lines 0 to 6 normal and 100 evict-first: the next miss takes 100, though it was used last. Then none is left that
// goes first, and line 0, the oldest, goes.
Test(timing_l2_priority, a_line_to_be_evicted_first_goes_before_older_normal_ones) {
  ftl_l2_tags *tags = create_set("lru");
  read_lines(tags, 0, 7, FTL_L2_EVICT_NORMAL);
  read_lines(tags, 100, 1, FTL_L2_EVICT_FIRST);
  cr_expect_not(read_hits(tags, 7, FTL_L2_EVICT_NORMAL));
  cr_expect(read_hits(tags, 0, FTL_L2_EVICT_NORMAL), "100 was taken, not the oldest");
  cr_expect_not(read_hits(tags, 8, FTL_L2_EVICT_NORMAL));
  cr_expect_not(read_hits(tags, 1, FTL_L2_EVICT_NORMAL), "now the oldest normal line was taken");
  ftl_l2_tags_destroy(tags);
}

// A stream of evict-first lines passes through the one way that it got.
Test(timing_l2_priority, a_stream_to_be_evicted_first_leaves_normal_lines_alone) {
  for (int i = 0; i < 3; i++) {
    static const char *const names[] = {"lru", "nru", "random"};
    ftl_l2_tags *tags = create_set(names[i]);
    read_lines(tags, 0, 7, FTL_L2_EVICT_NORMAL);
    read_lines(tags, 1000, 50, FTL_L2_EVICT_FIRST);
    cr_expect_eq(num_present(tags, 0, 7, FTL_L2_EVICT_NORMAL), 7, "%s", names[i]);
    ftl_l2_tags_destroy(tags);
  }
}

// Four lines to be evicted last fill the set-aside; of a stream of normal lines the other four ways hold the last four.
Test(timing_l2_priority, lines_to_be_evicted_last_stay_while_others_stream_past) {
  for (int i = 0; i < 3; i++) {
    static const char *const names[] = {"lru", "nru", "random"};
    ftl_l2_tags *tags = create_set(names[i]);
    read_lines(tags, 0, LAST_WAYS, FTL_L2_EVICT_LAST);
    read_lines(tags, 1000, 50, FTL_L2_EVICT_NORMAL);
    cr_expect_eq(num_present(tags, 0, LAST_WAYS, FTL_L2_EVICT_LAST), LAST_WAYS, "%s", names[i]);
    ftl_l2_tags_destroy(tags);
  }
}

// A fifth makes the oldest of them normal; four of the five stay.
Test(timing_l2_priority, no_more_than_the_set_aside_is_evicted_last) {
  ftl_l2_tags *tags = create_set("lru");
  read_lines(tags, 0, LAST_WAYS + 1, FTL_L2_EVICT_LAST);
  read_lines(tags, 1000, 50, FTL_L2_EVICT_NORMAL);
  cr_expect_not(read_hits(tags, 0, FTL_L2_EVICT_NORMAL));
  cr_expect_eq(num_present(tags, 1, LAST_WAYS, FTL_L2_EVICT_LAST), LAST_WAYS);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_priority, normal_lines_use_the_set_aside_while_nothing_persists) {
  ftl_l2_tags *tags = create_set("lru");
  read_lines(tags, 0, WAYS, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(num_present(tags, 0, WAYS, FTL_L2_EVICT_NORMAL), WAYS);
  ftl_l2_tags_destroy(tags);
}

// A normal access ends what an access to be evicted last gave the line.
Test(timing_l2_priority, the_last_access_decides) {
  ftl_l2_tags *tags = create_set("lru");
  read_lines(tags, 0, LAST_WAYS, FTL_L2_EVICT_LAST);
  read_lines(tags, 0, 1, FTL_L2_EVICT_NORMAL);
  read_lines(tags, 1000, WAYS, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(num_present(tags, 1, LAST_WAYS - 1, FTL_L2_EVICT_LAST), LAST_WAYS - 1);
  cr_expect_not(read_hits(tags, 0, FTL_L2_EVICT_NORMAL));
  ftl_l2_tags_destroy(tags);
}

// Sixteen lines take turns in a set-aside of four. All of them as to be evicted last: LRU among them finds none again.
// With a hit ratio of an eighth those that a hash chose stay, pass after pass.
Test(timing_l2_priority, a_hit_ratio_keeps_part_of_what_does_not_fit) {
  int hits[2];
  for (int run = 0; run < 2; run++) {
    ftl_l2_tags *tags = create_set("lru");
    if (run == 1) ftl_l2_tags_set_hit_ratio(tags, 125);
    hits[run] = 0;
    for (int pass = 0; pass < 4; pass++)
      for (uint64_t line = 0; line < 16; line++) hits[run] += read_hits(tags, line, FTL_L2_EVICT_LAST);
    ftl_l2_tags_destroy(tags);
  }
  cr_expect_eq(hits[0], 0);
  cr_expect_geq(hits[1], 3);
  cr_expect_eq(hits[1] % 3, 0, "a line that stays is found in each pass after the first");
}

// A write that the hint sends off first is written back by the next miss.
Test(timing_l2_priority, a_dirty_line_to_be_evicted_first_is_written_back_first) {
  ftl_l2_tags *tags = create_set("lru");
  read_lines(tags, 0, 7, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_write(tags, 100, LINE, LINE, 0, FTL_L2_EVICT_FIRST);
  ftl_l2_outcome miss = ftl_l2_tags_read(tags, 7, LINE, 0, FTL_L2_EVICT_NORMAL);
  cr_expect(miss.num_writebacks == 1 && miss.writebacks[0] == 100 && miss.dram_write_sectors == 4);
  ftl_l2_tags_destroy(tags);
}
