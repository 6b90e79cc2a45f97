#include "engine/sampled/tile_lines.h"
#include "fixture.h"

typedef struct sample {
  ftl_arch *arch;
  ftl_l2_tags *tags;
  ftl_tile_lines tiles;
} sample;

static sample make_sample(int32_t log2_sample) {
  sample s = {.arch = shipped_arch("a100_80")};
  cr_assert_eq(ftl_l2_tags_create(&s.tags, s.arch, log2_sample, NULL), FTL_OK);
  cr_assert_eq(ftl_tile_lines_init(&s.tiles, s.tags, 0, NULL), FTL_OK);
  return s;
}

static void release_sample(sample *s) {
  ftl_tile_lines_fini(&s->tiles);
  ftl_l2_tags_destroy(s->tags);
  ftl_arch_destroy(s->arch);
}

Test(unit_engine_tile_lines, a_whole_sample_holds_every_line_once_with_all_its_sectors) {
  sample s = make_sample(0);
  ftl_tile_place place = {.address_bytes = 1 << 21, .row_stride_bytes = 256, .num_rows = 64, .row_bytes = 256};
  ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
  cr_assert_eq(entry->num_sampled, 128);
  cr_assert_eq(entry->num_sectors, 512);
  for (int32_t i = 0; i < 128; i++) {
    cr_assert_eq(s.tiles.lines[entry->first_line + i].line, (1u << 21) / 128 + (uint32_t)i);
    cr_assert_eq(s.tiles.lines[entry->first_line + i].sectors, 15);
  }
  release_sample(&s);
}

Test(unit_engine_tile_lines, rows_that_are_not_whole_lines_give_part_of_their_sectors) {
  sample s = make_sample(0);
  // Rows of 160 bytes, 512 apart: a whole line and one sector each.
  ftl_tile_place place = {.address_bytes = 1 << 21, .row_stride_bytes = 512, .num_rows = 3, .row_bytes = 160};
  ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
  cr_assert_eq(entry->num_sampled, 6);
  cr_assert_eq(entry->num_sectors, 15);
  cr_assert_eq(s.tiles.lines[entry->first_line + 1].sectors, 1);
  release_sample(&s);
}

// The log-sum-exps of rows 3 and 7 lie in one sector of 32 bytes, that of row 8 in the next; two floats across the two
// are a tile of their own.
Test(unit_engine_tile_lines, tiles_within_one_sector_are_that_sector) {
  sample s = make_sample(0);
  static const struct { int32_t first, count; } floats[] = {{3, 1}, {7, 1}, {8, 1}, {7, 2}};
  ptrdiff_t entry[4];
  for (int32_t i = 0; i < 4; i++) {
    ftl_tile_place place = {.address_bytes = (1 << 21) + 4 * floats[i].first,
                            .row_stride_bytes = 4,
                            .num_rows = 1,
                            .row_bytes = 4 * floats[i].count};
    entry[i] = ftl_tile_lines_find(&s.tiles, &place, NULL) - s.tiles.entries;
  }
  cr_expect_eq(entry[1], entry[0]);
  cr_expect_eq(entry[2], 1);
  cr_expect_eq(entry[3], 2);
  cr_expect_eq(s.tiles.entries[0].num_sectors, 1);
  cr_expect_eq(s.tiles.entries[2].num_sectors, 2);
  release_sample(&s);
}

Test(unit_engine_tile_lines, tiles_in_pages_are_told_apart_by_all_their_pages) {
  sample s = make_sample(0);
  const int32_t pages[] = {3, 1, 3, 2, 3, 1};
  // Two rows of 256 bytes a page, pages 4096 bytes apart.
  ftl_tile_place place = {.address_bytes = 3 * 4096,
                          .row_stride_bytes = 256,
                          .num_rows = 4,
                          .row_bytes = 256,
                          .pages = pages,
                          .page_stride_bytes = 4096,
                          .page_rows = 2};
  ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
  cr_assert_eq(entry->num_sampled, 8);
  cr_assert_eq(entry->num_sectors, 32);
  const uint64_t lines[] = {96, 97, 98, 99, 32, 33, 34, 35};
  for (int32_t i = 0; i < 8; i++) cr_expect_eq(s.tiles.lines[entry->first_line + i].line, lines[i]);
  place.pages = pages + 2;  // 3, 2
  ftl_tile_lines_find(&s.tiles, &place, NULL);
  cr_expect_eq(s.tiles.num_entries, 2);
  place.pages = pages + 4;  // 3, 1 of another sequence that shares them
  ftl_tile_lines_find(&s.tiles, &place, NULL);
  cr_expect_eq(s.tiles.num_entries, 2);
  release_sample(&s);
}

// Of twelve tiles all are forgotten when the thirteenth comes, so that what trails and entries remember goes stale.
Test(unit_engine_tile_lines, an_access_with_a_trail_finds_the_tiles_that_it_finds_without) {
  sample with = make_sample(0), without = make_sample(0);
  with.tiles.max_entries = without.tiles.max_entries = 12;
  ftl_tile_trail trails[2] = {{0}};
  for (int64_t i = 0; i < 400; i++) {
    int64_t tile = i % 7 == 3 ? i * i % 17 : i / 2 % 10;  // mostly one after the other, for both accesses
    ftl_tile_place place = {.address_bytes = tile * 4096, .row_stride_bytes = 128, .num_rows = 2, .row_bytes = 128};
    ftl_tile_entry *found = ftl_tile_lines_find(&with.tiles, &place, &trails[i % 2]);
    ftl_tile_entry *wanted = ftl_tile_lines_find(&without.tiles, &place, NULL);
    cr_assert_eq(found - with.tiles.entries, wanted - without.tiles.entries);
    cr_assert_eq(found->address_bytes, place.address_bytes);
  }
  release_sample(&with);
  release_sample(&without);
}

Test(unit_engine_tile_lines, a_tile_seen_again_adds_nothing_and_growing_loses_nothing) {
  sample s = make_sample(0);
  for (int round = 0; round < 2; round++)
    for (int64_t i = 0; i < 5000; i++) {
      ftl_tile_place place = {.address_bytes = i * 4096, .row_stride_bytes = 128, .num_rows = 2, .row_bytes = 128};
      cr_assert_eq(ftl_tile_lines_find(&s.tiles, &place, NULL)->num_sampled, 2);
    }
  cr_assert_eq(s.tiles.num_entries, 5000);
  cr_assert_eq(s.tiles.total_sectors, 5000 * 8);
  release_sample(&s);
}

// Tiles of a stream do not come again: what is kept of them has a bound, by their number (2^17, or
// less where that is set) or by their lines (2^20). The tile after that is the first one again; what they counted for
// the scale of the sample stays.
Test(unit_engine_tile_lines, what_is_kept_of_tiles_has_a_bound) {
  sample s = make_sample(0);
  static const struct {
    int32_t rows;
    int64_t set, most;
  } cases[] = {{1, 0, 1 << 17}, {1, FTL_TILES_OF_STREAM, 1 << 14}, {64, 0, (1 << 20) / 64}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    ftl_tile_lines_fini(&s.tiles);
    cr_assert_eq(ftl_tile_lines_init(&s.tiles, s.tags, 0, NULL), FTL_OK);
    if (cases[c].set > 0) s.tiles.max_entries = cases[c].set;
    int64_t bytes = cases[c].rows * 128;
    for (int64_t i = 0; i <= cases[c].most; i++) {
      ftl_tile_place place = {
          .address_bytes = i * bytes, .row_stride_bytes = 128, .num_rows = cases[c].rows, .row_bytes = 128};
      if (i == cases[c].most) cr_expect_eq(s.tiles.num_entries, cases[c].most);
      cr_assert_not_null(ftl_tile_lines_find(&s.tiles, &place, NULL));
    }
    cr_expect_eq(s.tiles.num_entries, 1);
    cr_expect_eq(s.tiles.num_lines, cases[c].rows);
    cr_expect_eq(s.tiles.total_sectors, (cases[c].most + 1) * cases[c].rows * 4);
  }
  release_sample(&s);
}

Test(unit_engine_tile_lines, a_thinner_sample_holds_about_its_share) {
  sample s = make_sample(4);
  ftl_tile_place place = {.address_bytes = 0, .row_stride_bytes = 256, .num_rows = 65536, .row_bytes = 256};
  ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
  // 131072 lines, 1/16 of the sets: 8192 lines, within 10 % for a fair hash.
  cr_assert_gt(entry->num_sampled, 7372);
  cr_assert_lt(entry->num_sampled, 9011);
  release_sample(&s);
}

// Whether the entry holds exactly the lines of the tile that are in the sample, row after row.
static bool holds_its_lines(const sample *s, const ftl_tile_entry *entry, const ftl_tile_place *place) {
  int32_t found = 0;
  for (int32_t row = 0; row < place->num_rows; row++) {
    int64_t from = ftl_tile_place_row(place, row), last = from + place->row_bytes - 1;
    for (int64_t line = from / 128; line <= last / 128; line++) {
      if (!ftl_l2_tags_in_sample(s->tags, (uint64_t)line)) continue;
      const ftl_l2_known_line *known = &s->tiles.lines[entry->first_line + found];
      if (found++ == entry->num_sampled || known->line != (uint64_t)line) return false;
      ftl_l2_address at = ftl_l2_tags_address(s->tags, (uint64_t)line);
      ftl_l2_known_line wanted;
      ftl_l2_tags_know(&wanted, s->tags, at, (uint64_t)line, known->sectors);
      if (known->home_side != at.home_side ||
          memcmp(&known->set_of_side, &wanted.set_of_side, sizeof wanted.set_of_side))
        return false;
    }
  }
  return found == entry->num_sampled;
}

// Matrices whose rows are 48 lines apart, or 64: tiles of 100 rows lie side by side in them, whose lines come from the
// strip that the one before had made, but for those that lie across two strips of 32 lines (rows of 384 bytes: the one
// of lines 30 to 32). Tiles of a part of these rows, and of rows of another distance in the same strip, have strips of
// their own.
Test(unit_engine_tile_lines, tiles_side_by_side_have_the_lines_that_each_has_alone) {
  sample s = make_sample(5);
  static const struct {
    int32_t first_line, stride_bytes, num_rows, row_bytes;
  } cases[] = {{0, 48 * 128, 100, 128},
               {16, 64 * 128, 100, 128},
               {0, 64 * 128, 37, 128},
               {0, 64 * 128, 100, 384},
               {0, 64 * 128, 100, 160}};
  int32_t num_lines = 0;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int32_t step = 0; step < 16; step++) {
      ftl_tile_place place = {.address_bytes = (1 << 21) + cases[c].first_line * 128 + step * cases[c].row_bytes,
                              .row_stride_bytes = cases[c].stride_bytes,
                              .num_rows = cases[c].num_rows,
                              .row_bytes = cases[c].row_bytes};
      ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
      cr_assert(holds_its_lines(&s, entry, &place), "case %zu, tile %d", c, step);
      int64_t first = place.address_bytes, last = first + place.row_bytes - 1;
      cr_expect_eq(entry->num_sectors, place.num_rows * (last / 32 - first / 32 + 1));
      num_lines += entry->num_sampled;
    }
  // 16 x (100 + 100 + 37) lines of single lines alone, of which 1/32 is in the sample.
  cr_expect_gt(num_lines, 16 * 237 / 32);
  release_sample(&s);
}

// Pages of 16 rows with 8 heads of 256 bytes each, of which a tile takes one from its row 5 on.
Test(unit_engine_tile_lines, heads_side_by_side_in_pages_have_the_lines_that_each_has_alone) {
  sample s = make_sample(3);
  const int32_t pages[] = {7, 3, 12};
  for (int32_t head = 0; head < 8; head++) {
    ftl_tile_place place = {.address_bytes = 7 * 32768 + 5 * 2048 + head * 256,
                            .row_stride_bytes = 2048,
                            .num_rows = 32,
                            .row_bytes = 256,
                            .pages = pages,
                            .page_stride_bytes = 32768,
                            .page_rows = 16,
                            .page_row = 5};
    ftl_tile_entry *entry = ftl_tile_lines_find(&s.tiles, &place, NULL);
    cr_expect(holds_its_lines(&s, entry, &place), "head %d", head);
    cr_expect_eq(entry->num_sectors, 32 * 8);
  }
  release_sample(&s);
}
