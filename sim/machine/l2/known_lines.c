// Lines that are read or written again and again: each keeps the way that it was last in, so that a use of it is a look
// there and a stamp.
#include "base/check.h"
#include "base/sectors.h"
#include "machine/l2/tags_internal.h"

void ftl_l2_tags_know(ftl_l2_known_line *out, const ftl_l2_tags *tags, ftl_l2_address at, uint64_t line,
                      uint8_t sectors) {
  *out = (ftl_l2_known_line){.line = line,
                             .slice_in_side = at.slice_in_side,
                             .home_side = (uint8_t)at.home_side,
                             .sectors = sectors,
                             .num_sectors = (uint8_t)ftl_num_sectors(sectors)};
  for (uint32_t side = 0; side < tags->hash.num_sides; side++) {
    out->set_of_side[side] = ftl_l2_set_of(tags, at, side);
    out->way_of_side[side] = out->set_of_side[side] * tags->num_ways;
  }
}

// Of one in the sample, the first set of as many as the sample has one of.
static ftl_l2_address address_of(const ftl_l2_tags *tags, const ftl_l2_known_line *line) {
  uint32_t set = line->set_of_side[line->home_side] - line->home_side * tags->sets_per_side;
  return (ftl_l2_address){
      .home_side = line->home_side, .slice_in_side = line->slice_in_side, .set_in_side = set << tags->log2_sample};
}

static void remember_way(const ftl_l2_tags *tags, ftl_l2_known_line *line, uint32_t side, uint32_t way) {
  line->way_of_side[side] = line->set_of_side[side] * tags->num_ways + way;
}

// A line is in one set of a side and once in it, so one that is where it was is the one that a search would find.
// Only where a use is a stamp and nothing else: a loop of few registers.
int64_t ftl_l2_tags_read_present(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                                 ftl_l2_priority priority, int64_t *num_sectors) {
  if (!tags->replacement->stamps_only || priority == FTL_L2_EVICT_LAST) return 0;
  ftl_l2_set *const sets = tags->sets;
  ftl_l2_way *const ways = tags->ways;
  const ftl_l2_known_line *line = lines, *end = lines + count;
  int64_t sectors = 0;
  for (; line < end; line++) {
    ftl_l2_way *entry = &ways[line->way_of_side[side]];
    bool is_there = entry->line == line->line && (ftl_halves_of_sectors(line->sectors) & ~entry->halves) == 0;
    if (!is_there || entry->priority != priority) break;
    ftl_l2_stamp(&sets[line->set_of_side[side]], entry);
    sectors += line->num_sectors;
  }
  *num_sectors += sectors;
  return line - lines;
}

// The last of them stamps.
void ftl_l2_tags_use_known(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                           uint32_t times) {
  for (const ftl_l2_known_line *line = lines; line < lines + count; line++) {
    ftl_l2_set *set = &tags->sets[line->set_of_side[side]];
    set->tick += times - 1;
    ftl_l2_stamp(set, &tags->ways[line->way_of_side[side]]);
  }
}

void ftl_l2_tags_prefetch_known(const ftl_l2_tags *tags, const ftl_l2_known_line *line) {
  for (uint32_t side = 0; side < tags->hash.num_sides; side++) {
    ftl_l2_set_view view = ftl_l2_view_of(tags, line->set_of_side[side]);
    __builtin_prefetch(view.set, 1);
    __builtin_prefetch(view.prints, 1);
    __builtin_prefetch(&tags->ways[line->way_of_side[side]], 1);
  }
}

void ftl_l2_tags_read_known(ftl_l2_tags *tags, ftl_l2_known_line *line, int32_t side, ftl_l2_priority priority,
                            ftl_l2_outcome *outcome) {
  uint32_t way = ftl_l2_tags_read_at(tags, address_of(tags, line), line->line, line->sectors, side, priority, outcome);
  remember_way(tags, line, (uint32_t)side, way);
}

// Sectors that are dirty where the line was, written by the home's side: the write is a use of the way and nothing
// else. No way of the set became dirty, so that it has no more dirty ones than the write before left it.
static bool try_rewrite(ftl_l2_tags *tags, const ftl_l2_known_line *line, uint32_t side, ftl_l2_priority priority) {
  if (!tags->replacement->stamps_only || priority == FTL_L2_EVICT_LAST || side != line->home_side) return false;
  ftl_l2_way *entry = &tags->ways[line->way_of_side[side]];
  bool is_there =
      entry->line == line->line && (line->sectors & ~(entry->dirty & ftl_sectors_of_halves(entry->halves))) == 0;
  if (!is_there || entry->may_have_replica || entry->priority != priority) return false;
  ftl_l2_stamp(&tags->sets[line->set_of_side[side]], entry);
  return true;
}

void ftl_l2_tags_write_known(ftl_l2_tags *tags, ftl_l2_known_line *line, int32_t side, ftl_l2_priority priority,
                             ftl_l2_outcome *outcome) {
  if (try_rewrite(tags, line, (uint32_t)side, priority)) {
    *outcome = (ftl_l2_outcome){
        .hit_sectors = line->sectors, .home_side = line->home_side, .slice_in_side = line->slice_in_side};
    return;
  }
  uint32_t way = ftl_l2_tags_write_at(tags, address_of(tags, line), line->line, line->sectors,
                                      ftl_halves_of_sectors(line->sectors), side, priority, outcome);
  remember_way(tags, line, line->home_side, way);
}

static void add_writebacks(ftl_l2_outcome *outcome, const ftl_l2_outcome *more) {
  FTL_CHECK(outcome->num_writebacks + more->num_writebacks <= 2, "l2: an atomic writes back more than two lines");
  for (int i = 0; i < more->num_writebacks; i++) {
    outcome->writebacks[outcome->num_writebacks] = more->writebacks[i];
    outcome->writeback_sectors[outcome->num_writebacks++] = more->writeback_sectors[i];
  }
  outcome->dram_write_sectors = (uint8_t)(outcome->dram_write_sectors + more->dram_write_sectors);
}

void ftl_l2_tags_atomic_known(ftl_l2_tags *tags, ftl_l2_known_line *line, ftl_l2_priority priority,
                              ftl_l2_outcome *outcome) {
  int32_t side = line->home_side;
  int64_t num_present = 0;
  ftl_l2_outcome write;
  bool was_read = ftl_l2_tags_read_present(tags, line, 1, side, priority, &num_present) == 1;
  if (!was_read) ftl_l2_tags_read_known(tags, line, side, priority, outcome);
  ftl_l2_tags_write_known(tags, line, side, priority, was_read ? outcome : &write);
  if (!was_read) add_writebacks(outcome, &write);
}
