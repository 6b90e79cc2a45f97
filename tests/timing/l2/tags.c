// What is in L2, on a small cache: one set a side where the test needs to fill one.
#include <criterion/criterion.h>
#include <stdio.h>

#include "machine/l2/coalescer.h"
#include "machine/l2/mshr.h"
#include "machine/l2/tags.h"

static ftl_arch tags_arch(int64_t sides, int64_t ways, int64_t sets_per_side, const char *replacement) {
  ftl_arch arch = {.l1_line_bytes = 128,
                   .l2_size_bytes = sides * ways * sets_per_side * 128,
                   .l2_num_sides = sides,
                   .l2_num_slices = sides,
                   .l2_ways = ways,
                   .l2_side_hash_granule_bytes = 128,
                   .l2_fill_sectors = 1,
                   .l2_max_dirty_milli = 1000,
                   .l2_busy_dirty_milli = 1000};
  snprintf(arch.l2_replacement, sizeof arch.l2_replacement, "%s", replacement);
  return arch;
}

static ftl_l2_tags *create_tags(const ftl_arch *arch, int32_t log2_sample) {
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, arch, log2_sample, &error), FTL_OK);
  return tags;
}

// The index-th line whose home is that side.
static uint64_t line_of(const ftl_l2_tags *tags, int32_t side, int index) {
  uint64_t line = 0;
  while (ftl_l2_tags_place(tags, line).home_side != side || index-- > 0) line++;
  return line;
}

Test(timing_l2_tags, a_read_miss_fetches_the_sectors_asked_for_and_then_hits) {
  ftl_arch arch = tags_arch(1, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  ftl_l2_outcome miss = ftl_l2_tags_read(tags, 7, 5, 0, FTL_L2_EVICT_NORMAL),
                 part = ftl_l2_tags_read(tags, 7, 7, 0, FTL_L2_EVICT_NORMAL);
  cr_expect(miss.hit_sectors == 0 && miss.dram_read_sectors == 5);
  cr_expect(part.hit_sectors == 5 && part.dram_read_sectors == 2);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, the_fetch_granularity_widens_a_miss_by_what_is_missing) {
  ftl_arch arch = tags_arch(1, 4, 1, "lru");
  arch.l2_fill_sectors = 2;
  ftl_l2_tags *tags = create_tags(&arch, 0);
  cr_expect_eq(ftl_l2_tags_read(tags, 7, 2, 0, FTL_L2_EVICT_NORMAL).dram_read_sectors, 3);
  (void)ftl_l2_tags_write(tags, 7, 4, 4, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, 7, 8, 0, FTL_L2_EVICT_NORMAL).dram_read_sectors, 8,
               "sector 2 was written: it is newer than DRAM");
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, full_writes_fetch_nothing_and_partial_ones_when_read) {
  ftl_arch arch = tags_arch(1, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  cr_expect_eq(ftl_l2_tags_write(tags, 7, 3, 1, 0, FTL_L2_EVICT_NORMAL).dram_read_sectors, 0);
  ftl_l2_outcome read = ftl_l2_tags_read(tags, 7, 3, 0, FTL_L2_EVICT_NORMAL);
  cr_expect(read.hit_sectors == 1 && read.dram_read_sectors == 2);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 2);
  ftl_l2_tags_destroy(tags);
}

static void write_halves(ftl_l2_tags *tags, uint64_t line, uint8_t sectors, uint8_t halves, int32_t side) {
  ftl_l2_outcome outcome;
  (void)ftl_l2_tags_write_at(tags, ftl_l2_tags_address(tags, line), line, sectors, halves, side, FTL_L2_EVICT_NORMAL,
                             &outcome);
}

// Sectors 0 and 1: of the first both halves are written, one after the other, of the second the same one twice.
Test(timing_l2_tags, a_sector_of_which_all_parts_were_written_is_read_without_dram) {
  for (int sides = 1; sides <= 2; sides++)
    for (int32_t side = 0; side < sides; side++) {
      ftl_arch arch = tags_arch(sides, 4, 1, "lru");
      ftl_l2_tags *tags = create_tags(&arch, 0);
      uint64_t line = line_of(tags, 0, 0);
      write_halves(tags, line, 3, 0x03, side);
      cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 2);
      write_halves(tags, line, 3, 0x12, side);
      ftl_l2_outcome read = ftl_l2_tags_read(tags, line, 3, side, FTL_L2_EVICT_NORMAL);
      cr_expect_eq(read.hit_sectors, 1, "side %d: hit %d", (int)side, read.hit_sectors);
      cr_expect_eq(read.dram_read_sectors, 2, "side %d: fetched %d", (int)side, read.dram_read_sectors);
      cr_expect_eq(ftl_l2_tags_read(tags, line, 3, side, FTL_L2_EVICT_NORMAL).hit_sectors, 3);
      ftl_l2_tags_destroy(tags);
    }
}

Test(timing_l2_tags, an_eviction_writes_back_the_dirty_sectors_of_the_oldest_line) {
  ftl_arch arch = tags_arch(1, 2, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  (void)ftl_l2_tags_write(tags, 1, 6, 6, 0, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_read(tags, 2, 15, 0, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_read(tags, 1, 2, 0, FTL_L2_EVICT_NORMAL);  // now line 2 is the oldest
  ftl_l2_outcome clean = ftl_l2_tags_read(tags, 3, 15, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(clean.num_writebacks, 0);
  ftl_l2_outcome dirty = ftl_l2_tags_read(tags, 4, 15, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(dirty.num_writebacks, 1);
  cr_expect(dirty.writebacks[0] == 1 && dirty.writeback_sectors[0] == 6 && dirty.dram_write_sectors == 2);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 0);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, a_far_read_makes_a_replica_and_keeps_the_home_line) {
  ftl_arch arch = tags_arch(2, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  uint64_t line = line_of(tags, 0, 0);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).dram_read_sectors, 1);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 0, FTL_L2_EVICT_NORMAL).hit_sectors, 1, "it came by way of its home");
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).hit_sectors, 1);
  (void)ftl_l2_tags_read(tags, line, 2, 0, FTL_L2_EVICT_NORMAL);
  ftl_l2_outcome far = ftl_l2_tags_read(tags, line, 2, 1, FTL_L2_EVICT_NORMAL);
  cr_expect(far.hit_sectors == 0 && far.far_sectors == 2 && far.dram_read_sectors == 0);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, a_write_by_the_homes_side_drops_the_replica) {
  ftl_arch arch = tags_arch(2, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  uint64_t line = line_of(tags, 0, 0);
  (void)ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_write(tags, line, 1, 1, 0, FTL_L2_EVICT_NORMAL);
  ftl_l2_outcome read = ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL);
  cr_expect(read.hit_sectors == 0 && read.far_sectors == 1);
  ftl_l2_tags_destroy(tags);
}

// kernels/measurements/micro_rewrite_capacity_ncu.csv: only the writes cross the link in later passes, not the reads.
Test(timing_l2_tags, a_write_by_the_replicas_side_leaves_it_there_and_fresh) {
  ftl_arch arch = tags_arch(2, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  uint64_t line = line_of(tags, 0, 0);
  (void)ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_write(tags, line, 7, 3, 1, FTL_L2_EVICT_NORMAL);
  // Of sector 1 it has all now, of sector 2 a part, as its home.
  ftl_l2_outcome read = ftl_l2_tags_read(tags, line, 7, 1, FTL_L2_EVICT_NORMAL);
  cr_expect(read.hit_sectors == 3 && read.far_sectors == 0 && read.dram_read_sectors == 4);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 3, "once, at home");
  // It is there after a second write too, until one by the home's side.
  (void)ftl_l2_tags_write(tags, line, 1, 1, 1, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).hit_sectors, 1);
  (void)ftl_l2_tags_write(tags, line, 1, 1, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).hit_sectors, 0);
  ftl_l2_tags_destroy(tags);
}

// kernels/measurements/micro_write_back_ncu.csv: an SM that reads back what it wrote crosses the link no more.
Test(timing_l2_tags, a_write_by_the_far_side_leaves_a_replica) {
  ftl_arch arch = tags_arch(2, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  uint64_t line = line_of(tags, 0, 0);
  (void)ftl_l2_tags_write(tags, line, 1, 1, 1, FTL_L2_EVICT_NORMAL);
  ftl_l2_outcome read = ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL);
  cr_expect(read.hit_sectors == 1 && read.far_sectors == 0);
  // It has the sectors that were written whole, no others.
  (void)ftl_l2_tags_write(tags, line, 6, 2, 1, FTL_L2_EVICT_NORMAL);
  read = ftl_l2_tags_read(tags, line, 14, 1, FTL_L2_EVICT_NORMAL);
  cr_expect(read.hit_sectors == 2 && read.far_sectors == 0 && read.dram_read_sectors == 12);
  ftl_l2_tags_destroy(tags);
}

// One way a side. The far write of a line of side 0 takes the place of a dirty line of side 1 there, and at home that
// of another: both are written back.
Test(timing_l2_tags, a_far_write_takes_a_place_on_both_sides) {
  ftl_arch arch = tags_arch(2, 1, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  (void)ftl_l2_tags_write(tags, line_of(tags, 0, 0), 1, 1, 0, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_write(tags, line_of(tags, 1, 0), 3, 3, 1, FTL_L2_EVICT_NORMAL);
  ftl_l2_outcome write = ftl_l2_tags_write(tags, line_of(tags, 0, 1), 15, 15, 1, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(write.num_writebacks, 2);
  cr_expect_eq(write.dram_write_sectors, 1 + 2);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 4, "the replica is clean");
  ftl_l2_tags_destroy(tags);
}

// Two ways a side. The replica has the priority of its write: it goes before the line that was used longest ago.
Test(timing_l2_tags, a_replica_that_a_write_leaves_is_evicted_first_where_the_line_is) {
  ftl_arch arch = tags_arch(2, 2, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  (void)ftl_l2_tags_read(tags, line_of(tags, 1, 0), 1, 1, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_write(tags, line_of(tags, 0, 0), 1, 1, 1, FTL_L2_EVICT_FIRST);
  (void)ftl_l2_tags_read(tags, line_of(tags, 1, 1), 1, 1, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line_of(tags, 1, 0), 1, 1, FTL_L2_EVICT_NORMAL).hit_sectors, 1);
  cr_expect_eq(ftl_l2_tags_read(tags, line_of(tags, 0, 0), 1, 1, FTL_L2_EVICT_NORMAL).far_sectors, 1, "from its home");
  ftl_l2_tags_destroy(tags);
}

// A set of one way a side: another line of side 0 takes the home's place, while the replica stays on side 1.
Test(timing_l2_tags, a_write_drops_a_replica_that_has_outlived_its_home) {
  ftl_arch arch = tags_arch(2, 1, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  uint64_t line = line_of(tags, 0, 0);
  (void)ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL);
  (void)ftl_l2_tags_read(tags, line_of(tags, 0, 1), 1, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).hit_sectors, 1, "the replica");
  (void)ftl_l2_tags_write(tags, line, 1, 1, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).far_sectors, 1, "from its home");
  // Read again from the other side after a write that had none to drop, it has one, which the next write drops.
  (void)ftl_l2_tags_write(tags, line, 1, 1, 0, FTL_L2_EVICT_NORMAL);
  cr_expect_eq(ftl_l2_tags_read(tags, line, 1, 1, FTL_L2_EVICT_NORMAL).far_sectors, 1);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, data_read_from_both_sides_halve_the_capacity) {
  ftl_arch arch = tags_arch(2, 8, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  for (int readers = 1; readers <= 2; readers++) {
    // 16 places. Read at home only, 8 + 8 lines stay; read from both sides, 4 + 4 lines with their replicas do.
    int fitting = readers == 1 ? 8 : 4;
    for (int extra = 0; extra <= 1; extra++) {
      int misses = 0;
      ftl_l2_tags_flush(tags);
      for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 2 * (fitting + extra); i++) {
          int32_t home = i % 2;
          for (int32_t r = 0; r < readers; r++) {
            ftl_l2_outcome read = ftl_l2_tags_read(tags, line_of(tags, home, i / 2), 15, home ^ r, FTL_L2_EVICT_NORMAL);
            if (pass == 2) misses += read.dram_read_sectors != 0;
          }
        }
      }
      cr_expect_eq(misses > 0, extra == 1, "%d readers, %d lines a side: %d misses", readers, fitting + extra, misses);
    }
  }
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, an_atomic_fetches_what_it_changes_once) {
  ftl_arch arch = tags_arch(2, 4, 1, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  ftl_l2_known_line line;
  ftl_l2_tags_know(&line, tags, ftl_l2_tags_address(tags, 9), 9, 3);
  ftl_l2_outcome outcome;
  ftl_l2_tags_atomic_known(tags, &line, FTL_L2_EVICT_NORMAL, &outcome);
  cr_expect_eq(outcome.dram_read_sectors, 3);
  ftl_l2_tags_atomic_known(tags, &line, FTL_L2_EVICT_NORMAL, &outcome);
  cr_expect_eq(outcome.dram_read_sectors, 0);
  cr_expect_eq(outcome.hit_sectors, 3);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 2);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, nru_spares_what_was_used_since_the_marks_were_cleared) {
  ftl_arch arch = tags_arch(1, 4, 1, "nru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  for (uint64_t line = 0; line < 5; line++)
    (void)ftl_l2_tags_read(tags, line, 15, 0, FTL_L2_EVICT_NORMAL);  // clears, evicts one, marks line 4
  int survivors = 0;
  for (uint64_t line = 5; line < 8; line++) (void)ftl_l2_tags_read(tags, line, 15, 0, FTL_L2_EVICT_NORMAL);
  for (uint64_t line = 4; line < 8; line++)
    survivors += ftl_l2_tags_read(tags, line, 15, 0, FTL_L2_EVICT_NORMAL).hit_sectors != 0;
  cr_expect_eq(survivors, 4, "three more fills take the three unmarked ways");
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, a_flush_forgets_and_a_foul_fills_with_dirty_lines) {
  ftl_arch arch = tags_arch(2, 4, 8, "lru");
  ftl_l2_tags *tags = create_tags(&arch, 0);
  ftl_l2_tags_foul(tags, 100 * arch.l2_size_bytes);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), arch.l2_size_bytes / 32);
  cr_expect_eq(ftl_l2_tags_read(tags, 3, 1, 0, FTL_L2_EVICT_NORMAL).dram_write_sectors > 0, true);
  ftl_l2_tags_flush(tags);
  cr_expect_eq(ftl_l2_tags_dirty_sectors(tags), 0);
  cr_expect_eq(ftl_l2_tags_read(tags, 3, 1, 0, FTL_L2_EVICT_NORMAL).dram_write_sectors, 0);
  ftl_l2_tags_destroy(tags);
}

Test(timing_l2_tags, an_unknown_policy_is_an_error_that_names_it) {
  ftl_arch arch = tags_arch(1, 4, 1, "fifo");
  ftl_l2_tags *tags;
  ftl_error error;
  cr_expect_eq(ftl_l2_tags_create(&tags, &arch, 0, &error), FTL_BAD_INPUT);
  cr_expect_not_null(strstr(error.message, "fifo"));
  cr_expect_null(tags);
}

Test(timing_l2_tags, mshrs_survive_growth_and_removal_in_any_order) {
  ftl_l2_mshrs mshrs;
  ftl_error error;
  cr_assert_eq(ftl_l2_mshrs_init(&mshrs, 0, &error), FTL_OK);
  enum { NUM = 5000 };
  for (uint64_t line = 0; line < NUM; line++) (void)ftl_l2_mshrs_add(&mshrs, line, line & 1, 1);
  for (uint64_t i = 0; i < NUM; i++) {
    uint64_t line = i * 1237 % NUM;  // 1237 and 5000 have no common divisor: every line once
    ftl_l2_mshr *mshr = ftl_l2_mshrs_find(&mshrs, line, line & 1);
    cr_assert_not_null(mshr);
    ftl_l2_mshrs_remove(&mshrs, mshr);
    cr_assert_null(ftl_l2_mshrs_find(&mshrs, line, line & 1));
    uint64_t other = (i + 1) * 1237 % NUM;
    cr_assert(i + 1 == NUM || ftl_l2_mshrs_find(&mshrs, other, other & 1) != NULL);
  }
  cr_expect_eq(mshrs.count, 0);
  ftl_l2_mshrs_fini(&mshrs);
}

// Wherever a walk begins and ends: its lines are those that are in the sample, in order, each where it lies.
static void expect_walk(const ftl_l2_tags *tags, uint64_t begin, uint64_t end) {
  ftl_l2_sample_walk walk = ftl_l2_sample_walk_of(tags, begin, end);
  uint64_t found;
  ftl_l2_address at;
  for (uint64_t line = begin; line < end; line++) {
    if (!ftl_l2_tags_in_sample(tags, line)) continue;
    cr_assert(ftl_l2_sample_walk_try_next(&walk, &found, &at));
    cr_assert_eq(found, line, "line %d, not %d", (int)found, (int)line);
    cr_assert_eq(at.home_side, (uint32_t)ftl_l2_tags_place(tags, line).home_side);
    cr_assert_eq(at.home_side * 6 + at.slice_in_side, (uint32_t)ftl_l2_tags_place(tags, line).slice);
    cr_assert_eq(at.set_in_side, ftl_l2_tags_address(tags, line).set_in_side);
  }
  cr_assert_not(ftl_l2_sample_walk_try_next(&walk, &found, &at));
}

Test(timing_l2_tags, a_walk_of_the_sample_finds_the_lines_that_are_in_it) {
  // One side and two, slices that are no power of two, a whole sample and thin ones.
  for (int64_t sides = 1; sides <= 2; sides++)
    for (int32_t log2_sample = 0; log2_sample <= 6; log2_sample++) {
      ftl_arch arch = tags_arch(sides, 4, 1, "lru");
      arch.l2_num_slices = 6 * sides;
      arch.l2_size_bytes = arch.l2_num_slices * arch.l2_ways * arch.l1_line_bytes * 64;
      ftl_l2_tags *tags = create_tags(&arch, log2_sample);
      expect_walk(tags, 0, 5000);
      for (uint64_t begin = 0; begin < 60; begin++)
        for (uint64_t lines = 0; lines < 60; lines++) expect_walk(tags, begin, begin + lines);
      ftl_l2_tags_destroy(tags);
    }
}

// What a read finds, as a caller of read_present and read_known sees it: sectors there, and sectors from DRAM.
typedef struct found {
  int64_t hits, fetched, written;
} found;

static void add_outcome(found *sum, const ftl_l2_outcome *outcome) {
  sum->hits += __builtin_popcount(outcome->hit_sectors);
  sum->fetched += __builtin_popcount(outcome->dram_read_sectors);
  sum->written += outcome->dram_write_sectors;
}

static found read_all_known(ftl_l2_tags *tags, ftl_l2_known_line *lines, int64_t count, int32_t side,
                            ftl_l2_priority priority) {
  found sum = {0};
  for (int64_t i = 0;; i++) {
    i += ftl_l2_tags_read_present(tags, lines + i, count - i, side, priority, &sum.hits);
    if (i == count) return sum;
    ftl_l2_outcome outcome;
    ftl_l2_tags_read_known(tags, &lines[i], side, priority, &outcome);
    add_outcome(&sum, &outcome);
  }
}

static found read_all(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                      ftl_l2_priority priority) {
  found sum = {0};
  for (int64_t i = 0; i < count; i++) {
    ftl_l2_outcome outcome = ftl_l2_tags_read(tags, lines[i].line, lines[i].sectors, side, priority);
    add_outcome(&sum, &outcome);
  }
  return sum;
}

static found write_all_known(ftl_l2_tags *tags, ftl_l2_known_line *lines, int64_t count, int32_t side,
                             ftl_l2_priority priority) {
  found sum = {0};
  for (int64_t i = 0; i < count; i++) {
    ftl_l2_outcome outcome;
    ftl_l2_tags_write_known(tags, &lines[i], side, priority, &outcome);
    add_outcome(&sum, &outcome);
  }
  return sum;
}

static found write_all(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                       ftl_l2_priority priority) {
  found sum = {0};
  for (int64_t i = 0; i < count; i++) {
    ftl_l2_outcome outcome = ftl_l2_tags_write(tags, lines[i].line, lines[i].sectors, lines[i].sectors, side, priority);
    add_outcome(&sum, &outcome);
  }
  return sum;
}

// Runs of lines are read by both sides and written, in L2 or not, dirty or not, with other sectors and priorities,
// between writes that move and drop them.
static void access_twice(int64_t sides, int64_t ways, const char *policy) {
  enum { NUM_LINES = 96, NUM_STEPS = 4000 };
  ftl_arch arch = tags_arch(sides, ways, 16, policy);
  ftl_l2_tags *tags = create_tags(&arch, 0), *reference = create_tags(&arch, 0);
  ftl_l2_known_line lines[NUM_LINES];
  for (uint64_t line = 0; line < NUM_LINES; line++)
    ftl_l2_tags_know(&lines[line], tags, ftl_l2_tags_address(tags, line), line, (uint8_t)(1 + line * 7 % 15));
  int64_t hits = 0;
  for (uint64_t step = 0; step < NUM_STEPS; step++) {
    uint64_t random = ftl_l2_mix(step + 1), first = random % NUM_LINES,
             count = (random >> 8) % (NUM_LINES - first) % 16;
    int32_t side = (int32_t)((random >> 16) % (uint64_t)sides);
    ftl_l2_priority priority = (random >> 20) % 8 == 0 ? (ftl_l2_priority)((random >> 24) % 3) : FTL_L2_EVICT_NORMAL;
    if ((random >> 32) % 4 == 0) {
      ftl_l2_tags_write(tags, first, 5, 5, 0, priority);
      ftl_l2_tags_write(reference, first, 5, 5, 0, priority);
    }
    bool writes = (random >> 40) % 2 == 0;
    found known = writes ? write_all_known(tags, &lines[first], (int64_t)count, side, priority)
                         : read_all_known(tags, &lines[first], (int64_t)count, side, priority);
    found each = writes ? write_all(reference, &lines[first], (int64_t)count, side, priority)
                        : read_all(reference, &lines[first], (int64_t)count, side, priority);
    cr_assert(known.hits == each.hits && known.fetched == each.fetched && known.written == each.written,
              "%s, step %d: %d sectors there, %d alike", policy, (int)step, (int)known.hits, (int)each.hits);
    hits += known.hits;
  }
  cr_assert_gt(hits, 1000);
  cr_assert_eq(ftl_l2_tags_dirty_sectors(tags), ftl_l2_tags_dirty_sectors(reference));
  ftl_l2_tags_destroy(tags);
  ftl_l2_tags_destroy(reference);
}

Test(timing_l2_tags, lines_that_are_known_are_accessed_as_any_other) {
  const char *const policies[] = {"lru", "nru", "random"};
  for (int i = 0; i < 3; i++) {
    access_twice(1, 4, policies[i]);
    access_twice(2, 3, policies[i]);  // ways are no power of two
  }
}
