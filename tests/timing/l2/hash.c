// Slices and sets are used evenly, whatever their number and the stride.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "machine/l2/hash.h"

typedef struct stream {
  const char *name;
  uint64_t row_lines, row_stride;  // rows of consecutive lines, so far apart
} stream;

static const stream streams[] = {
    {"contiguous", 1, 1},
    {"every second line", 1, 2},
    {"every fourth line", 1, 4},
    {"stride 3", 1, 3},
    {"stride 48", 1, 48},
    {"stride 96", 1, 96},
    {"4 KiB stride", 1, 32},
    {"64 KiB stride", 1, 512},
    {"1 MiB stride", 1, 8192},
    {"rows of 256 B of 8 KiB", 2, 64},
    {"rows of 128 B of 1 KiB", 1, 8},
    {"16 KiB tiles of 4 MiB", 128, 32768},
};

static uint64_t line_of(const stream *s, uint64_t i) { return i / s->row_lines * s->row_stride + i % s->row_lines; }

static double imbalance_of_slices(const ftl_l2_hash *hash, const stream *s, uint64_t lines_per_slice) {
  uint32_t n = hash->slices_per_side * hash->num_sides;
  uint64_t *hits = calloc(n, sizeof *hits), most = 0;
  for (uint64_t i = 0; i < lines_per_slice * n; i++) {
    ftl_l2_address at = ftl_l2_hash_address(hash, line_of(s, i));
    cr_assert(at.home_side < hash->num_sides && at.slice_in_side < hash->slices_per_side);
    cr_assert_lt(at.set_in_side, hash->slices_per_side * hash->sets_per_slice);
    hits[at.home_side * hash->slices_per_side + at.slice_in_side]++;
  }
  for (uint32_t i = 0; i < n; i++) most = hits[i] > most ? hits[i] : most;
  free(hits);
  return (double)most / (double)lines_per_slice - 1;
}

Test(timing_l2_hash, slices_share_every_stream_within_two_percent) {
  uint32_t slices[] = {40, 48, 64, 22, 36, 47, 80};
  for (size_t c = 0; c < sizeof slices / sizeof slices[0]; c++) {
    for (uint32_t sides = 1; sides <= 2; sides++) {
      ftl_l2_hash hash = ftl_l2_hash_make(sides, slices[c], 128, 32);
      for (size_t s = 0; s < sizeof streams / sizeof streams[0]; s++) {
        // Where a stride leaves only the hash, 40000 lines a slice have a deviation of 0.5 %.
        double imbalance = imbalance_of_slices(&hash, &streams[s], 40000);
        cr_expect_lt(imbalance, 0.02, "%u x %u slices, %s: the busiest has %.3f too much", sides, slices[c],
                     streams[s].name, imbalance);
      }
    }
  }
}

Test(timing_l2_hash, a_few_consecutive_lines_never_crowd_one_slice) {
  ftl_l2_hash hash = ftl_l2_hash_make(1, 48, 256, 32);
  for (uint64_t tile = 0; tile < 1000; tile++) {
    uint64_t hits[48] = {0}, most = 0;
    for (uint64_t i = 0; i < 128; i++) hits[ftl_l2_hash_address(&hash, tile * 128 + i).slice_in_side]++;
    for (int i = 0; i < 48; i++) most = hits[i] > most ? hits[i] : most;
    // 128 lines touch at most four blocks of 48 lines, each line of a block in its own slice.
    cr_expect_leq(most, 4);
  }
}

Test(timing_l2_hash, runs_of_addresses_fill_any_number_of_sets_evenly) {
  uint32_t set_counts[] = {32, 100, 128, 256, 341};
  for (size_t c = 0; c < sizeof set_counts / sizeof set_counts[0]; c++) {
    ftl_l2_hash hash = ftl_l2_hash_make(1, 40, set_counts[c], 32);
    uint32_t num_sets = 40 * set_counts[c];
    uint8_t *lines = calloc(num_sets, 1), most = 0;
    for (uint64_t i = 0; i < 16u * num_sets; i++) lines[ftl_l2_hash_address(&hash, 12345 + i).set_in_side]++;
    for (uint32_t i = 0; i < num_sets; i++) most = lines[i] > most ? lines[i] : most;
    cr_expect_leq(most, 18, "16 lines a set on average, %d in the fullest of %u", most, num_sets);
    free(lines);
  }
}

// K and V of one head of 38 sequences, 896 rows of 256 bytes of four heads each: 917504 bytes apart, on an H200 76.255
// blocks of 47 slices and two sides, of which eight are a Fibonacci number, 610. 5.5 lines a set; by steps of the
// golden ratio alone half of the sets would have none, and some 24.
Test(timing_l2_hash, tiles_a_stride_apart_meet_in_few_sets_more_often_than_by_chance) {
  enum { NUM_TILES = 38, TILE_LINES = 896 * 256 / 128, STRIDE_LINES = 4 * TILE_LINES, NUM_SETS = 2 * 47 * 256 };
  ftl_l2_hash hash = ftl_l2_hash_make(2, 47, 256, 32);
  uint8_t *lines = calloc(NUM_SETS, 1), most = 0;
  for (uint64_t t = 0; t < 2 * NUM_TILES; t++) {
    uint64_t first = t % 2 * (1 << 24) + t / 2 * STRIDE_LINES;
    for (uint64_t i = 0; i < TILE_LINES; i++) {
      ftl_l2_address at = ftl_l2_hash_address(&hash, first + i);
      lines[at.home_side * (NUM_SETS / 2) + at.set_in_side]++;
    }
  }
  int32_t num_empty = 0;
  for (uint32_t i = 0; i < NUM_SETS; i++) {
    most = lines[i] > most ? lines[i] : most;
    num_empty += lines[i] == 0;
  }
  cr_expect_leq(most, 15, "%d in the fullest", most);
  cr_expect_lt(num_empty, NUM_SETS / 20, "%d are empty", (int)num_empty);
  free(lines);
}

Test(timing_l2_hash, the_sides_halve_any_run_of_granule_pairs) {
  ftl_l2_hash hash = ftl_l2_hash_make(2, 40, 128, 32);
  for (uint64_t pair = 0; pair < 1000; pair++) {
    uint32_t first = ftl_l2_hash_address(&hash, pair * 64).home_side;
    for (uint64_t i = 0; i < 64; i++) {
      cr_expect_eq(ftl_l2_hash_address(&hash, pair * 64 + i).home_side, i < 32 ? first : 1 - first);
    }
  }
}

Test(timing_l2_hash, division_by_a_number_known_before_is_exact) {
  const uint32_t numbers[] = {1, 2, 3, 5, 32, 47, 48, 255, 512, 16384, UINT32_MAX};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    uint64_t n = numbers[i], last = UINT64_MAX / n * n;
    const uint64_t ends[] = {0, n - 1, n, (n << 20) - 1, n << 20, last - 1, last, UINT64_MAX};
    const uint64_t num_ends = sizeof ends / sizeof ends[0];
    for (uint64_t k = 0; k < 1000; k++) {
      uint64_t x = k < num_ends ? ends[k] : ftl_l2_mix(k) >> k % 64;
      ftl_quotient divided = ftl_divide(ftl_divisor_of(numbers[i]), x);
      cr_expect(divided.quotient == x / n && divided.remainder == x % n, "%lu / %lu", x, n);
    }
  }
}
