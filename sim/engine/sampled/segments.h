// A tile program cut at its loops: straight code, loop, straight code, loop, ... straight code.
//
// Segment 2k is the straight code before loop k (and after the last), segment 2k+1 is loop k, of the leading role. The
// loops of the other roles (a producer walks the tiles that its consumers walk) stand for those of the leading role
// with the same bounds, or in the same place where there are as many.
//
// A program of one role may have one loop around others (FlashAttention-1: blocks of keys around tiles of queries). Its
// body is cut like the program: segments outer.first .. outer.last run once for each of its iterations. Where it begins
// and where it ends stands a loop that never runs, so that straight code around it and in it are segments of their own.
#ifndef FTL_ENGINE_SAMPLED_SEGMENTS_H
#define FTL_ENGINE_SAMPLED_SEGMENTS_H

#include "engine/sampled/time_units.h"
#include "lower/warp_program.h"
#include "tile/cta_exprs.h"

enum {
  FTL_MAX_SEGMENT_LOOPS = FTL_TILE_MAX_LOOP_VARS,
  FTL_MAX_SEGMENTS = 2 * FTL_MAX_SEGMENT_LOOPS + 1,
  FTL_MAX_SEGMENT_REFS = 40,  // a row held in 16 steps is loaded and stored in as many
  FTL_MAX_PROGRAM_LOOPS = FTL_MAX_SEGMENT_LOOPS * FTL_TILE_MAX_ROLES
};

typedef struct ftl_segment_ref {
  ftl_tile_ref ref;       // of the tile, and of those of other operations that continue its rows
  int32_t piece_columns;  // of each of these
  bool is_store;
  bool is_atomic;     // a store that adds: L2 reads what it has not
  bool is_direct;     // a load into registers, through L1
  bool is_lookup;     // of a table's entry: direct too
  int32_t loop_var;   // of the role's loop around it (-1: straight code)
  ftl_expr lo;        // first value of that variable
  int32_t outer_var;  // of the loop around that loop, or around this straight code; -1: none
  int32_t lookahead;  // iterations between this load and the wait for it: the stages of its ring but that in use and
                      // those that readers hold over a step; 0 in straight code
  int32_t box_bytes;  // of a row that TMA loads at a time, past the tensor's last column too; 0: not by TMA
  bool is_first;      // into a ring, in straight code: the first that it gets, which is waited for before others
  bool splits_lines;  // into a ring: a warp's copies ask for parts of lines, one behind the other
  ftl_multicast multicast;  // of a load into a ring
} ftl_segment_ref;

typedef struct ftl_segment {
  int32_t num_refs;
  ftl_segment_ref refs[FTL_MAX_SEGMENT_REFS];  // global accesses of all roles
} ftl_segment;

// The loop around others: index into ftl_warp_program.loops (-1: none), and the segments in it.
typedef struct ftl_outer_loop {
  int32_t loop, first, last;
} ftl_outer_loop;

typedef struct ftl_segments {
  const ftl_tile_program *tile;
  bool has_direct;  // some load goes into registers, through L1
  int32_t num_loops;
  int32_t leading_role;                  // the role with most instructions: the CTA's pace is its pace
  int32_t loops[FTL_MAX_SEGMENT_LOOPS];  // of the leading role, indices into ftl_warp_program.loops; -1: never runs
  int32_t
      place_of_loop[FTL_MAX_PROGRAM_LOOPS];  // of every loop of the program: which of those it stands for; -1: outer
  ftl_outer_loop outer;
  ftl_segment segments[FTL_MAX_SEGMENTS];
} ftl_segments;

// False where the program does not have that form (it then runs in full).
bool ftl_segments_try_init(ftl_segments *segments, const ftl_warp_program *program);
// Where a CTA is.
typedef struct ftl_cta_at {
  int64_t cta;
  int64_t outer;          // value of the variable of the loop around its loops; 0 where there is none
  ftl_cta_values of_cta;  // of its expressions; none where they are worked out as they are asked for
} ftl_cta_at;

// Iterations of loop k of the leading role at `cta`, and the first value of its variable; in the outer loop, of its
// first iteration.
int64_t ftl_segments_trips(const ftl_segments *segments, const ftl_warp_program *program, int32_t k, int64_t cta,
                           int64_t *first_value);
// The same where the outer loop's variable has a value of its own.
int64_t ftl_segments_trips_in(const ftl_segments *segments, const ftl_warp_program *program, int32_t k,
                              const ftl_cta_at *at, int64_t *first_value);
// Iterations of the outer loop at `cta`, and the first value of its variable; one of 0 where there is none.
int64_t ftl_segments_outer_trips(const ftl_segments *segments, const ftl_warp_program *program, int64_t cta,
                                 int64_t *first_value);
// Expressions that decide what a CTA does in all segments, and where.
void ftl_segments_add_exprs(const ftl_segments *segments, const ftl_warp_program *program, ftl_cta_exprs *exprs);
// How often a CTA comes to segment s.
int64_t ftl_segments_visits(const ftl_segments *segments, const ftl_warp_program *program, int32_t s, int64_t cta);
// Whether loop `loop` of a role has loops in it.
bool ftl_warp_loop_is_outer(const ftl_warp_program *program, const ftl_warp_role *role, int32_t loop);

// Whether the first iterations of the accesses' loops are one point at which expressions are evaluated.
static inline bool ftl_refs_share_point(const ftl_segment_ref *a, const ftl_segment_ref *b) {
  return a->loop_var == b->loop_var && a->outer_var == b->outer_var && a->lo == b->lo;
}

#endif
