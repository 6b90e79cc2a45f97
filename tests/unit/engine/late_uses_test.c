// Uses of L2 that are put off leave it as those made at once.
#include "engine/sampled/late_uses.h"

#include "fixture.h"

enum { TILES = 512, TILE_BYTES = 1 << 16, LOG2_SAMPLE = 5 };

typedef struct cache {
  ftl_l2_tags *tags;
  ftl_tile_lines tiles;
  ftl_late_uses late;
} cache;

static void start(cache *c, const ftl_arch *arch) {
  cr_assert_eq(ftl_l2_tags_create(&c->tags, arch, LOG2_SAMPLE, NULL), FTL_OK);
  cr_assert_eq(ftl_tile_lines_init(&c->tiles, c->tags, 0, NULL), FTL_OK);
  cr_assert(ftl_late_uses_try_init(&c->late));
}

static void stop(cache *c) {
  ftl_late_uses_fini(&c->late);
  ftl_tile_lines_fini(&c->tiles);
  ftl_l2_tags_destroy(c->tags);
}

static ftl_tile_entry *entry_of(cache *c, int64_t tile) {
  ftl_tile_place place = {.address_bytes = (tile + 1) * TILE_BYTES,
                          .row_stride_bytes = 256,
                          .num_rows = TILE_BYTES / 256,
                          .row_bytes = 256};
  return ftl_tile_lines_find(&c->tiles, &place, NULL);
}

// Sectors that DRAM gives for a read of the tile; *was_late: none, since it was put off.
static int64_t read_tile(cache *c, int64_t tile, bool may_be_late, bool *was_late) {
  ftl_tile_entry *entry = entry_of(c, tile);
  int64_t missed = 0, there = 0;
  *was_late = may_be_late && ftl_late_uses_add(&c->late, c->tags, &c->tiles, entry, 0) > 0;
  if (*was_late) return 0;
  ftl_late_uses_settle(&c->late, c->tags, &c->tiles);
  ftl_l2_known_line *lines = &c->tiles.lines[entry->first_line];
  if (ftl_l2_tags_read_present(c->tags, lines, entry->num_sampled, 0, FTL_L2_EVICT_NORMAL, &there) ==
      entry->num_sampled) {
    ftl_late_uses_found(&c->late, &c->tiles, entry, 0, there);
    return 0;
  }
  for (int32_t i = 0; i < entry->num_sampled; i++) {
    ftl_l2_outcome outcome;
    ftl_l2_tags_read_known(c->tags, &lines[i], 0, FTL_L2_EVICT_NORMAL, &outcome);
    missed += __builtin_popcount(outcome.dram_read_sectors);
  }
  return missed;
}

// Reads of some tiles over and over, of others now and then, of more than L2 holds in all: the same misses as where
// each read is made at once.
Test(unit_engine_late_uses, misses_are_those_of_uses_made_at_once) {
  ftl_arch *arch = shipped_arch("a100_40");
  cache late, prompt;
  start(&late, arch);
  start(&prompt, arch);
  uint32_t random = 1;
  int64_t num_late = 0, num_missed = 0;
  for (int32_t i = 0; i < 40000; i++) {
    random = random * 1664525 + 1013904223;
    int64_t tile = random >> 31 ? (random >> 8) % 8 + (uint32_t)i / 400 : (random >> 8) % (i % 100 == 0 ? TILES : 4);
    bool was_late, never;
    int64_t of_late = read_tile(&late, tile, true, &was_late), of_prompt = read_tile(&prompt, tile, false, &never);
    cr_assert_eq(of_late, of_prompt, "read %d", i);
    num_late += was_late;
    num_missed += of_late;
  }
  cr_expect_gt(num_late, 20000);
  cr_expect_gt(num_missed, 10000);
  stop(&late);
  stop(&prompt);
  ftl_arch_destroy(arch);
}

// More tiles than may be put off at a time, used in turn: none is lost.
Test(unit_engine_late_uses, a_change_of_contents_ends_what_was_known) {
  ftl_arch *arch = shipped_arch("a100_40");
  cache c;
  start(&c, arch);
  bool was_late;
  for (int32_t round = 0; round < 3; round++)
    for (int32_t tile = 0; tile < 2 * FTL_LATE_USES; tile++) {
      (void)read_tile(&c, tile, true, &was_late);
      cr_expect_eq(was_late, round == 2, "round %d, tile %d", round, tile);
    }
  (void)read_tile(&c, TILES - 1, true, &was_late);
  (void)read_tile(&c, 0, true, &was_late);
  cr_expect_not(was_late, "a new tile may have displaced it");
  stop(&c);
  ftl_arch_destroy(arch);
}
