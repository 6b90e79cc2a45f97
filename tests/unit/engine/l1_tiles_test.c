// What L1 keeps of tiles that a CTA loads again.
#include "engine/sampled/l1_tiles.h"

#include <criterion/criterion.h>

enum { TILE_BYTES = 2048, CAPACITY_BYTES = 16 * TILE_BYTES, PROTECTED_BYTES = 8 * TILE_BYTES, FIRST = 1 << 21 };

static ftl_tile_place tile(int64_t number) {
  return (ftl_tile_place){.address_bytes = FIRST + number * TILE_BYTES,
                          .row_stride_bytes = 1 << 20,
                          .num_rows = 1,
                          .row_bytes = TILE_BYTES};
}

// Two passes over a row of `num_tiles` by each of `num_slots` CTAs of SM 0, step by step; the hits of the second.
static int32_t second_pass_hits(int32_t num_slots, int32_t num_tiles) {
  ftl_l1_tiles l1;
  int32_t hits = 0;
  cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 1, num_slots));
  for (int pass = 0; pass < 2; pass++)
    for (int32_t i = 0; i < num_tiles; i++)
      for (int32_t slot = 0; slot < num_slots; slot++) {
        ftl_tile_place place = tile((int64_t)slot * 64 + i);
        bool hit = ftl_l1_tiles_load(&l1, 0, slot, &place, TILE_BYTES, 0) == TILE_BYTES;
        cr_assert(pass == 1 || !hit, "a tile that was never loaded");
        hits += hit;
      }
  ftl_l1_tiles_fini(&l1);
  return hits;
}

Test(unit_engine_l1_tiles, a_row_that_fits_is_there_for_the_next_pass) { cr_assert_eq(second_pass_hits(1, 16), 16); }

// Least recently used: each tile is evicted just before it is wanted again.
Test(unit_engine_l1_tiles, of_a_row_that_is_a_tile_too_long_nothing_is_left) {
  cr_assert_eq(second_pass_hits(1, 17), 0);
}

Test(unit_engine_l1_tiles, ctas_of_an_sm_share_it) {
  cr_assert_eq(second_pass_hits(4, 4), 16);
  cr_assert_eq(second_pass_hits(4, 5), 0);
}

Test(unit_engine_l1_tiles, another_sm_has_its_own) {
  ftl_l1_tiles l1;
  ftl_tile_place place = tile(0);
  cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 2, 2));
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 0), 0);
  cr_expect_eq(ftl_l1_tiles_load(&l1, 1, 1, &place, TILE_BYTES, 0), 0);
  cr_expect_eq(ftl_l1_tiles_load(&l1, 1, 1, &place, TILE_BYTES, 0), TILE_BYTES);
  ftl_l1_tiles_fini(&l1);
}

// A pass wants 1000 bytes of the third tile of a row, which are sectors up to 1024; the next wants 1500 of it, then
// one 500, which is there, and keeps what is.
Test(unit_engine_l1_tiles, of_a_tile_what_was_loaded_is_there) {
  ftl_l1_tiles l1;
  ftl_tile_place place = tile(2);
  cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 1, 1));
  place.row_bytes = 1000;
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 0), 0);
  place.row_bytes = 1500;
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 0), 1024);
  place.row_bytes = 500;
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 0), 500);
  place.row_bytes = 1500;
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 0), 1500);
  ftl_l1_tiles_fini(&l1);
}

static bool load(ftl_l1_tiles *l1, int64_t number) {
  ftl_tile_place place = tile(number);
  return ftl_l1_tiles_load(l1, 0, 0, &place, TILE_BYTES, 0) == TILE_BYTES;
}

// Tile 0 is loaded again and outlives 100 others; tile 1, loaded once, has the 15 that are left, and the 15th after it
// displaces it.
Test(unit_engine_l1_tiles, a_tile_that_was_loaded_again_outlives_those_loaded_once) {
  for (int32_t others = 14; others <= 15; others++) {
    ftl_l1_tiles l1;
    cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 1, 1));
    load(&l1, 0);
    cr_expect(load(&l1, 0));
    load(&l1, 1);
    for (int32_t i = 0; i < others; i++) load(&l1, 2 + i);
    cr_expect_eq(load(&l1, 1), others == 14);
    for (int32_t i = 0; i < 100; i++) load(&l1, 20 + i);
    cr_expect(load(&l1, 0));
    ftl_l1_tiles_fini(&l1);
  }
}

// Of 12 tiles that were loaded twice the last 8 are protected, and stay when 100 others have passed.
Test(unit_engine_l1_tiles, the_oldest_lose_their_protection) {
  ftl_l1_tiles l1;
  cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 1, 1));
  for (int32_t i = 0; i < 24; i++) load(&l1, i % 12);
  for (int32_t i = 0; i < 100; i++) load(&l1, 20 + i);
  for (int32_t i = 11; i >= 0; i--) cr_expect_eq(load(&l1, i), i >= 4, "tile %d", i);
  ftl_l1_tiles_fini(&l1);
}

// 16 tiles fit, one of them loaded and 15 stored; a 16th store displaces the loaded one.
Test(unit_engine_l1_tiles, what_is_stored_takes_room) {
  for (int32_t stores = 15; stores <= 16; stores++) {
    ftl_l1_tiles l1;
    cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, PROTECTED_BYTES, 1, 1));
    load(&l1, 0);
    for (int32_t i = 0; i < stores; i++) {
      ftl_tile_place place = tile(20 + i);
      ftl_l1_tiles_store(&l1, 0, &place, 1);
    }
    cr_expect_eq(load(&l1, 0), stores == 15);
    ftl_l1_tiles_fini(&l1);
  }
}

// Forty tiles of every third place, of which the 25th had been loaded and is still there: 25 loads find nothing. One by
// one or together, they leave L1 the same: each of twenty tiles that are loaded then finds as much.
Test(unit_engine_l1_tiles, tiles_that_are_absent_are_loaded_together_as_one_by_one) {
  ftl_l1_tiles l1[2];
  for (int i = 0; i < 2; i++) {
    cr_assert(ftl_l1_tiles_try_init(&l1[i], CAPACITY_BYTES + 25 * TILE_BYTES, PROTECTED_BYTES, 1, 1));
    ftl_tile_place place = tile(3 * 25);
    cr_assert_eq(ftl_l1_tiles_load(&l1[i], 0, 0, &place, TILE_BYTES, 0), 0);
  }
  ftl_tile_place first = tile(0);
  cr_expect_eq(ftl_l1_tiles_load_absent(&l1[0], 0, 0, &first, TILE_BYTES, 3 * TILE_BYTES, 40), 25);
  for (int64_t i = 0; i < 25; i++) {
    ftl_tile_place place = tile(3 * i);
    cr_expect_eq(ftl_l1_tiles_load(&l1[1], 0, 0, &place, TILE_BYTES, 0), 0);
  }
  for (int64_t i = 25; i > 5; i--) {
    ftl_tile_place place = tile(3 * i);
    int32_t held = ftl_l1_tiles_load(&l1[1], 0, 0, &place, TILE_BYTES, 0);
    cr_expect_eq(ftl_l1_tiles_load(&l1[0], 0, 0, &place, TILE_BYTES, 0), held, "tile %d", (int)i);
    cr_expect_eq(held, TILE_BYTES, "tile %d", (int)i);
  }
  for (int i = 0; i < 2; i++) ftl_l1_tiles_fini(&l1[i]);
}

// A row of four tiles is asked for, of a CTA of slot 0, and as much as L1 has is loaded by another before it comes.
// Gives which of its tiles are there for the next pass, a bit each.
static int32_t there_after(double first, double last) {
  ftl_l1_tiles l1;
  int32_t there = 0;
  cr_assert(ftl_l1_tiles_try_init(&l1, CAPACITY_BYTES, 0, 1, 2));
  for (int32_t pass = 0; pass < 2; pass++) {
    for (int32_t i = 0; i < 4; i++) {
      ftl_tile_place place = tile(i);
      bool hit = ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES, 256 * i / 4) == TILE_BYTES;
      there |= (pass == 1 && hit) << i;
    }
    for (int32_t i = 0; pass == 0 && i < 16; i++) {
      ftl_tile_place place = tile(100 + i);
      cr_assert_eq(ftl_l1_tiles_load(&l1, 0, 1, &place, TILE_BYTES, 0), 0);
    }
    ftl_l1_tiles_come(&l1, 0, 0, first, last);
  }
  ftl_l1_tiles_fini(&l1);
  return there;
}

Test(unit_engine_l1_tiles, a_tile_is_there_from_when_it_comes) {
  cr_expect_eq(there_after(0, 0), 0, "it came at once, and 16 tiles after it");
  cr_expect_eq(there_after(1, 1), 15, "it came last");
}

// With the first tile came half of the 16 others, and 2 more with each that follows: behind it come 8, 6, 4 and 2, and
// the row's later ones. L1 has 16.
Test(unit_engine_l1_tiles, the_last_part_of_a_row_may_come_last) {
  cr_expect_eq(there_after(0.5, 1), 15);
  cr_expect_eq(there_after(0, 1), 14, "16 others behind the first tile");
}
