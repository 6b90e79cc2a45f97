// A tile program cut at its loops: straight code, loop, straight code, loop, ... straight code.
//
// Segment 2k is the straight code before loop k (and after the last), segment 2k+1 is loop k, of the leading role. The
// loops of the other roles (a producer walks the tiles that its consumers walk) stand for those of the leading role
// with the same bounds, or in the same place where there are as many; loops must not nest.
#ifndef FTL_ENGINE_SAMPLED_SEGMENTS_H
#define FTL_ENGINE_SAMPLED_SEGMENTS_H

#include "lower/warp_program.h"

enum {
  FTL_MAX_SEGMENT_LOOPS = 8,
  FTL_MAX_SEGMENTS = 2 * FTL_MAX_SEGMENT_LOOPS + 1,
  FTL_MAX_SEGMENT_REFS = 40,  // a row held in 16 steps is loaded and stored in as many
  FTL_MAX_PROGRAM_LOOPS = FTL_MAX_SEGMENT_LOOPS * FTL_TILE_MAX_ROLES
};

typedef struct ftl_segment_ref {
  const ftl_tile_ref *ref;
  bool is_store;
  bool is_atomic;    // a store that adds: L2 reads what it has not
  bool is_direct;    // a load into registers, through L1
  bool is_lookup;    // of a table's entry: direct too
  int32_t loop_var;  // of the role's loop around it (-1: straight code)
  ftl_expr lo;       // first value of that variable
  int32_t
      lookahead;  // iterations between this load and the wait for it: the other stages of its ring; 0 in straight code
  ftl_multicast multicast;  // of a load into a ring
} ftl_segment_ref;

typedef struct ftl_segment {
  int32_t num_refs;
  ftl_segment_ref refs[FTL_MAX_SEGMENT_REFS];  // global accesses of all roles
} ftl_segment;

typedef struct ftl_segments {
  const ftl_tile_program *tile;
  bool has_direct;  // some load goes into registers, through L1
  int32_t num_loops;
  int32_t leading_role;                          // the role with most instructions: the CTA's pace is its pace
  int32_t loops[FTL_MAX_SEGMENT_LOOPS];          // of the leading role, indices into ftl_warp_program.loops
  int32_t place_of_loop[FTL_MAX_PROGRAM_LOOPS];  // of every loop of the program: which of those it stands for
  ftl_segment segments[FTL_MAX_SEGMENTS];
} ftl_segments;

// False where the program does not have that form (it then runs in full).
bool ftl_segments_try_init(ftl_segments *segments, const ftl_warp_program *program);
// Iterations of loop k of the leading role at `cta`, and the first value of its variable.
int64_t ftl_segments_trips(const ftl_segments *segments, const ftl_warp_program *program, int32_t k, int64_t cta,
                           int64_t *first_value);

#endif
