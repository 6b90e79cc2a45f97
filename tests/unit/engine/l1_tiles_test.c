// What L1 keeps of tiles that a CTA loads again.
#include "engine/sampled/l1_tiles.h"

#include <criterion/criterion.h>
#include <math.h>

#include "machine/sm/l1.h"

// Sixteen tiles in four ways, of which two may be protected.
enum { TILE_BYTES = 2048, CAPACITY_BYTES = 16 * TILE_BYTES, WAY_BYTES = 4 * TILE_BYTES, FIRST = 1 << 21 };

static const ftl_l1_size size = {CAPACITY_BYTES, 8 * TILE_BYTES, WAY_BYTES},
                         unprotecting = {CAPACITY_BYTES, 0, WAY_BYTES};

static ftl_tile_place tile(int64_t number) {
  return (ftl_tile_place){.address_bytes = FIRST + number * TILE_BYTES,
                          .row_stride_bytes = 1 << 20,
                          .num_rows = 1,
                          .row_bytes = TILE_BYTES};
}

static int32_t load(ftl_l1_tiles *l1, int32_t slot, int64_t number) {
  ftl_tile_place place = tile(number);
  return ftl_l1_tiles_load(l1, 0, slot, &place, TILE_BYTES);
}

static ftl_l1_tiles l1_of(ftl_l1_size of_size, int64_t num_slots) {
  ftl_l1_tiles l1;
  cr_assert(ftl_l1_tiles_try_init(&l1, of_size, 1, num_slots));
  return l1;
}

// Two passes over a row of `num_tiles` by the CTA of an SM, step by step; the tiles that the second finds whole.
static int32_t second_pass_hits(int32_t num_tiles) {
  ftl_l1_tiles l1 = l1_of(unprotecting, 1);
  int32_t hits = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int32_t i = 0; i < num_tiles; i++) {
      int32_t held = load(&l1, 0, i);
      cr_assert(pass == 1 || held == 0, "a tile that was never loaded");
      hits += held == TILE_BYTES;
    }
  ftl_l1_tiles_fini(&l1);
  return hits;
}

Test(unit_engine_l1_tiles, a_row_that_fits_is_there_for_the_next_pass) { cr_assert_eq(second_pass_hits(16), 16); }

// Least recently used: each tile is evicted just before it is wanted again.
Test(unit_engine_l1_tiles, of_a_row_that_is_a_tile_too_long_nothing_is_left) { cr_assert_eq(second_pass_hits(17), 0); }

// Behind a tile another CTA loads `others`: a set is given others / 4 lines on average, and keeps the tile's where that
// are three or fewer, which are as likely as Poisson's law says: 0.981, 0.857, 0.647 and 0.433 for 4, 8, 12 and 16. So
// many of 100 tiles are there.
Test(unit_engine_l1_tiles, other_ctas_take_sets_at_random) {
  static const int32_t others[] = {4, 8, 12, 16}, expected[] = {98, 86, 65, 43};
  for (int k = 0; k < 4; k++) {
    ftl_l1_tiles l1 = l1_of(unprotecting, 2);
    int32_t hits = 0;
    for (int32_t round = 0; round < 100; round++) {
      load(&l1, 0, round);
      for (int32_t i = 0; i < others[k]; i++) load(&l1, 1, 1000 * (round + 1) + i);
      hits += load(&l1, 0, round) == TILE_BYTES;
    }
    cr_expect_eq(hits, expected[k], "%d others: %d of 100", others[k], hits);
    ftl_l1_tiles_fini(&l1);
  }
}

// What a set keeps is what machine/sm/l1.h keeps of lines at random places (as kernels/micro/l1_allocation.cu has
// them).
Test(unit_engine_l1_tiles, as_many_lines_are_kept_as_of_the_machine) {
  enum { LINES = 1920, LOOKED_FOR = 256, ROUNDS = 8 };
  ftl_arch arch = {
      .l1_line_bytes = 128, .l1_ways = 4, .l1_unified_bytes = LINES * 128, .l1_once_used_bytes = LINES * 128};
  for (int32_t others = 1024; others <= 2048; others += 512) {
    int32_t kept = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
      ftl_arena arena = {0};
      sm_l1 machine;
      cr_assert(ftl_sm_l1_create(&machine, &arch, arch.l1_unified_bytes, &arena));
      for (uint64_t i = 0; i < (uint64_t)(LOOKED_FOR + others); i++)
        ftl_sm_l1_write(&machine, (round * 100000 + i) * 2654435761U % (1U << 30), 15);
      for (uint64_t i = 0; i < LOOKED_FOR; i++)
        kept += ftl_sm_l1_present(&machine, (round * 100000 + i) * 2654435761U % (1U << 30)) == 15;
      ftl_arena_fini(&arena);
    }
    double mean = (others + LOOKED_FOR / 2) / (LINES / 4.0);
    double expected = exp(-mean) * (1 + mean + mean * mean / 2 + mean * mean * mean / 6);
    double share = (double)kept / (LOOKED_FOR * ROUNDS);
    cr_expect(fabs(share - expected) < 0.04, "%d others: %.3f are left, by Poisson's law %.3f", others, share,
              expected);
  }
}

Test(unit_engine_l1_tiles, another_sm_has_its_own) {
  ftl_l1_tiles l1;
  ftl_tile_place place = tile(0);
  cr_assert(ftl_l1_tiles_try_init(&l1, size, 2, 2));
  cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES), 0);
  cr_expect_eq(ftl_l1_tiles_load(&l1, 1, 1, &place, TILE_BYTES), 0);
  cr_expect_eq(ftl_l1_tiles_load(&l1, 1, 1, &place, TILE_BYTES), TILE_BYTES);
  ftl_l1_tiles_fini(&l1);
}

// A pass wants 1000 bytes of the third tile of a row, which are sectors up to 1024; the next wants 1500 of it, then
// one 500, which is there, and keeps what is.
Test(unit_engine_l1_tiles, of_a_tile_what_was_loaded_is_there) {
  ftl_l1_tiles l1 = l1_of(size, 1);
  static const struct { int32_t wanted, held; } passes[] = {{1000, 0}, {1500, 1024}, {500, 500}, {1500, 1500}};
  for (int i = 0; i < 4; i++) {
    ftl_tile_place place = tile(2);
    place.row_bytes = passes[i].wanted;
    cr_expect_eq(ftl_l1_tiles_load(&l1, 0, 0, &place, TILE_BYTES), passes[i].held, "pass %d", i);
  }
  ftl_l1_tiles_fini(&l1);
}

// Tile 0 is loaded again and outlives 100 others; tile 1, loaded once, has the 15 that are left, and the 15th after it
// displaces it.
Test(unit_engine_l1_tiles, a_tile_that_was_loaded_again_outlives_those_loaded_once) {
  for (int32_t others = 14; others <= 15; others++) {
    ftl_l1_tiles l1 = l1_of(size, 1);
    load(&l1, 0, 0);
    cr_expect_eq(load(&l1, 0, 0), TILE_BYTES);
    load(&l1, 0, 1);
    for (int32_t i = 0; i < others; i++) load(&l1, 0, 2 + i);
    cr_expect_eq(load(&l1, 0, 1), others == 14 ? TILE_BYTES : 0);
    for (int32_t i = 0; i < 100; i++) load(&l1, 0, 20 + i);
    cr_expect_eq(load(&l1, 0, 0), TILE_BYTES);
    ftl_l1_tiles_fini(&l1);
  }
}

// Of 12 tiles that were loaded twice the last 8 are protected, and stay when 100 others have passed.
Test(unit_engine_l1_tiles, the_oldest_lose_their_protection) {
  ftl_l1_tiles l1 = l1_of(size, 1);
  for (int32_t i = 0; i < 24; i++) load(&l1, 0, i % 12);
  for (int32_t i = 0; i < 100; i++) load(&l1, 0, 20 + i);
  for (int32_t i = 11; i >= 0; i--) cr_expect_eq(load(&l1, 0, i), i >= 4 ? TILE_BYTES : 0, "tile %d", i);
  ftl_l1_tiles_fini(&l1);
}

// A tile is loaded twice, then 8 by another CTA: of two lines that a set is given on average none or one leave the
// tile's protected, in 3 exp(-2) = 0.406 of the sets. In the others it is the next to go: it stays while nothing else
// comes, and goes with the first line of 100 others.
Test(unit_engine_l1_tiles, what_is_no_longer_protected_is_the_next_to_go) {
  static const int32_t others[] = {0, 100}, expected[] = {100, 41};
  for (int k = 0; k < 2; k++) {
    ftl_l1_tiles l1 = l1_of(size, 2);
    int32_t hits = 0;
    for (int32_t round = 0; round < 100; round++) {
      for (int pass = 0; pass < 2; pass++) load(&l1, 0, round);
      l1.on_sm[0].protected_bytes += 8 * TILE_BYTES;
      for (int32_t i = 0; i < others[k]; i++) load(&l1, 1, 1000 * (round + 1) + i);
      hits += load(&l1, 0, round) == TILE_BYTES;
    }
    cr_expect_eq(hits, expected[k], "%d others: %d of 100", others[k], hits);
    ftl_l1_tiles_fini(&l1);
  }
}

// 16 tiles fit, one of them loaded and 15 stored; a 16th store displaces the loaded one.
Test(unit_engine_l1_tiles, what_is_stored_takes_room) {
  for (int32_t stores = 15; stores <= 16; stores++) {
    ftl_l1_tiles l1 = l1_of(size, 1);
    load(&l1, 0, 0);
    for (int32_t i = 0; i < stores; i++) {
      ftl_tile_place place = tile(20 + i);
      ftl_l1_tiles_store(&l1, 0, 0, &place, 1);
    }
    cr_expect_eq(load(&l1, 0, 0), stores == 15 ? TILE_BYTES : 0);
    ftl_l1_tiles_fini(&l1);
  }
}

// Forty tiles of every third place, of which the 25th had been loaded and is still there: 25 loads find nothing. One by
// one or together, they leave L1 the same: each of twenty tiles that are loaded then finds as much.
Test(unit_engine_l1_tiles, tiles_that_are_absent_are_loaded_together_as_one_by_one) {
  ftl_l1_size large = {CAPACITY_BYTES + 25 * TILE_BYTES, 8 * TILE_BYTES, WAY_BYTES};
  ftl_l1_tiles l1[2] = {l1_of(large, 1), l1_of(large, 1)};
  for (int i = 0; i < 2; i++) cr_assert_eq(load(&l1[i], 0, 3 * 25), 0);
  ftl_tile_place first = tile(0);
  cr_expect_eq(ftl_l1_tiles_load_absent(&l1[0], 0, 0, &first, TILE_BYTES, 3 * TILE_BYTES, 40), 25);
  for (int64_t i = 0; i < 25; i++) cr_expect_eq(load(&l1[1], 0, 3 * i), 0);
  for (int64_t i = 25; i > 5; i--) {
    int32_t held = load(&l1[1], 0, 3 * i);
    cr_expect_eq(load(&l1[0], 0, 3 * i), held, "tile %d", (int)i);
    cr_expect_eq(held, TILE_BYTES, "tile %d", (int)i);
  }
  for (int i = 0; i < 2; i++) ftl_l1_tiles_fini(&l1[i]);
}

// A tile has its place from when it is asked for: what others load before it comes displaces it.
Test(unit_engine_l1_tiles, a_tile_has_its_place_when_it_is_asked_for) {
  ftl_l1_tiles l1 = l1_of(unprotecting, 2);
  load(&l1, 0, 0);
  for (int32_t i = 0; i < 400; i++) load(&l1, 1, 100 + i);
  cr_expect_eq(load(&l1, 0, 0), 0);
  ftl_l1_tiles_fini(&l1);
}
