// L2 contents: which sectors are present, dirty, replicated; replacement. No time in it.
// Models: two sides with home and replica, sectored lines, write-back with allocate-no-fetch on full sectors,
//   replacement by name, fair slice hash for any slice count; the share of a set's ways that may be dirty; priorities
//   of eviction, those evicted last within a set-aside; optionally only a sample of the sets.
// Does not model: compression.
// Numbers: l2.* keys. Two-sided behaviour: docs/model_l2.md.
#ifndef FTL_MACHINE_L2_TAGS_H
#define FTL_MACHINE_L2_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "base/l2_priority.h"
#include "base/status.h"
#include "machine/l2/hash.h"

typedef struct ftl_l2_tags ftl_l2_tags;

// log2_sample s: only 1/2^s of the sets exist; ftl_l2_tags_in_sample says whether a line maps to one. A line and its
// replica are in the sample together.
FTL_MUST_USE ftl_status ftl_l2_tags_create(ftl_l2_tags **out, const ftl_arch *arch, int32_t log2_sample,
                                           ftl_error *error);
void ftl_l2_tags_destroy(ftl_l2_tags *tags);
bool ftl_l2_tags_in_sample(const ftl_l2_tags *tags, uint64_t line);
// A walk through the lines of a range that are in the sample. Much faster than asking for each line.
typedef struct ftl_l2_sample_walk {
  const ftl_l2_tags *tags;
  uint64_t line, end;  // still to come
  uint32_t left;       // lines of a stretch that follow each other slice by slice (hash.h), of which
  uint32_t slice;      // the first lies in that slice
  uint32_t first_set;  // and set_in_side is that and the slice
  uint16_t home_side;
} ftl_l2_sample_walk;

// Of lines line .. end - 1.
static inline ftl_l2_sample_walk ftl_l2_sample_walk_of(const ftl_l2_tags *tags, uint64_t line, uint64_t end) {
  return (ftl_l2_sample_walk){.tags = tags, .line = line, .end = end};
}
// The next line, and where it lies, for ftl_l2_tags_read_at; false where there is none left.
bool ftl_l2_sample_walk_try_next(ftl_l2_sample_walk *walk, uint64_t *line, ftl_l2_address *at);

typedef struct ftl_l2_place {
  int32_t home_side;  // 0 on one-sided parts
  int32_t slice;      // within all slices, the home slice
} ftl_l2_place;
// Where the line has its home: what tests choose lines by.
ftl_l2_place ftl_l2_tags_place(const ftl_l2_tags *tags, uint64_t line);
// The same, for ftl_l2_tags_read_at and ftl_l2_tags_prefetch.
ftl_l2_address ftl_l2_tags_address(const ftl_l2_tags *tags, uint64_t line);

typedef struct ftl_l2_outcome {
  uint8_t hit_sectors;         // of those asked for, present in the reader's side (a write: all of them)
  uint8_t far_sectors;         // present at home on the other side only (a replica is made)
  uint8_t dram_read_sectors;   // mask fetched from DRAM (fetch granularity included)
  uint8_t dram_write_sectors;  // number of dirty sectors written back: of lines evicted, and of one cleaned
  uint8_t num_writebacks;      // lines among these
  uint8_t writeback_sectors[3];
  uint8_t home_side;
  uint16_t slice_in_side;  // the home's and, on the other side, the replica's
  uint64_t writebacks[3];  // those lines: at most one evicted in each side, and one that a write cleans
} ftl_l2_outcome;

// A read or a write by an SM on `side` (0 on one-sided parts). A write goes to the home side. On its way it leaves a
// replica with its sectors in its own side, if that is another; one by the home's side drops the replica. hit_sectors,
// far_sectors and dram_read_sectors are masks. A write fetches nothing: a sector of which it gives a part is completed
// by a write of the rest, or from DRAM when it is read before that (lazy fetch), or written back as a masked write.
// `priority` is the line's from then on, until another access gives it its own: of a set's ways, victims are those to
// be evicted first, then normal ones, and at most the share l2.persisting_max_bytes of l2.size_bytes is to be evicted
// last.
ftl_l2_outcome ftl_l2_tags_read(ftl_l2_tags *tags, uint64_t line, uint8_t sectors, int32_t side,
                                ftl_l2_priority priority);
ftl_l2_outcome ftl_l2_tags_write(ftl_l2_tags *tags, uint64_t line, uint8_t sectors, uint8_t full_sectors, int32_t side,
                                 ftl_l2_priority priority);
// A read and a write of a line whose place is known; of the sectors written, which halves the write gives whole
// (base/sectors.h): 16 bytes are what lanes give of a row at once. writebacks and writeback_sectors hold num_writebacks
// entries, no more. They give the way of its set that the line is in: of the reader's side, and of the home side.
uint32_t ftl_l2_tags_read_at(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t sectors, int32_t side,
                             ftl_l2_priority priority, ftl_l2_outcome *outcome);
uint32_t ftl_l2_tags_write_at(ftl_l2_tags *tags, ftl_l2_address at, uint64_t line, uint8_t sectors, uint8_t halves,
                              int32_t side, ftl_l2_priority priority, ftl_l2_outcome *outcome);

// A line that is read or written again and again, with all that need not be found anew each time: half a line of the
// host's cache.
typedef struct ftl_l2_known_line {
  uint64_t line;
  uint32_t set_of_side[2];  // of each side, among the sets of both
  uint32_t way_of_side[2];  // where each side had it last, among the ways of all sets: where to look first
  uint16_t slice_in_side;
  uint8_t home_side;
  uint8_t sectors, num_sectors;  // those that are read or written
} ftl_l2_known_line;

// Of a line that lies `at`, whose `sectors` are read or written each time.
void ftl_l2_tags_know(ftl_l2_known_line *out, const ftl_l2_tags *tags, ftl_l2_address at, uint64_t line,
                      uint8_t sectors);
// Reads by `side` of `count` lines, as by ftl_l2_tags_read_at, up to the first that is not where it was, or not with
// all sectors, or of another priority. Gives how many lines were read, and adds their sectors to `num_sectors`.
int64_t ftl_l2_tags_read_present(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                                 ftl_l2_priority priority, int64_t *num_sectors);
// A number that changes whenever lines may have come or gone. While it stays, those of which ftl_l2_tags_read_present
// has read all are there for it.
uint32_t ftl_l2_tags_changes(const ftl_l2_tags *tags);
// As `times` calls of ftl_l2_tags_read_present that read them all, for who knows that they would.
void ftl_l2_tags_use_known(ftl_l2_tags *tags, const ftl_l2_known_line *lines, int64_t count, int32_t side,
                           uint32_t times);
// Tells the host's cache that the line will be sought in the sets of both sides; changes nothing.
void ftl_l2_tags_prefetch_known(const ftl_l2_tags *tags, const ftl_l2_known_line *line);
// ftl_l2_tags_read_at of one.
void ftl_l2_tags_read_known(ftl_l2_tags *tags, ftl_l2_known_line *line, int32_t side, ftl_l2_priority priority,
                            ftl_l2_outcome *outcome);
// ftl_l2_tags_write_at of one, of whole sectors.
void ftl_l2_tags_write_known(ftl_l2_tags *tags, ftl_l2_known_line *line, int32_t side, ftl_l2_priority priority,
                             ftl_l2_outcome *outcome);
// A read-modify-write of one at the home side: what is not there is fetched; the sectors are dirty after it, and the
// replica gone.
void ftl_l2_tags_atomic_known(ftl_l2_tags *tags, ftl_l2_known_line *line, ftl_l2_priority priority,
                              ftl_l2_outcome *outcome);
// Tells the host's cache that a read by `side` of the line that lies there follows; changes nothing.
void ftl_l2_tags_prefetch(const ftl_l2_tags *tags, ftl_l2_address at, int32_t side);
// The hit ratio of an access policy window, 0 to 1000: so many of the lines accessed as FTL_L2_EVICT_LAST are taken so,
// the others as normal. 1000 until it is set.
void ftl_l2_tags_set_hit_ratio(ftl_l2_tags *tags, int64_t milli);
void ftl_l2_tags_flush(ftl_l2_tags *tags);  // write back nothing, forget everything: state before a launch
// State as a streaming write of `bytes` to other addresses leaves it, before L2 has written back what exceeds the share
// of dirty ways: the launch behind it finds that under way. (Settled first, streams came out faster than they already
// are against the H200: 160 launches 5.1, 5.4 and 6.0 % off in the three parts without, 5.3, 5.5 and 5.9 with.)
void ftl_l2_tags_foul(ftl_l2_tags *tags, int64_t bytes);
// The end of a launch: sets with more than their share of dirty ways write some back. Gives the sectors written.
int64_t ftl_l2_tags_settle(ftl_l2_tags *tags);
// In L2 now; of a sample, in the sample.
int64_t ftl_l2_tags_dirty_sectors(const ftl_l2_tags *tags);
// What holds of the sets there are -> of all of L2.
int64_t ftl_l2_tags_scale(const ftl_l2_tags *tags, int64_t sampled);

#endif
