// A warp: where it is in its code and what it waits for (warp.c).
#ifndef FTL_MACHINE_SM_WARP_H
#define FTL_MACHINE_SM_WARP_H

#include "lower/walk.h"
#include "machine/sm/op.h"
#include "machine/sm/sm.h"

#define SM_NEVER INT64_MAX

// Of two cycles.
static inline int64_t sm_earlier(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t sm_later(int64_t a, int64_t b) { return a > b ? a : b; }
#define SM_LONG_AGO (-(INT64_C(1) << 60))  // a cycle before any, from which distances can be taken

enum { SM_SCOREBOARDS = 6 };

enum { SM_GROUPS = 64 };  // of cp.async and of wgmma that a warp may have in flight

// ---- token words: (cycle - base) << 2 | producer; the largest of a set says when all are ready and who was last ----
enum { SM_TOKEN_SHIFT = 2 };
#define SM_TOKEN_PENDING UINT32_C(0xfffffffc)  // | producer: nobody knows yet

typedef enum sm_block {
  SM_RUNS,  // ready at a known cycle
  SM_ON_TOKEN,
  SM_ON_CP_GROUP,
  SM_ON_GMMA,
  SM_ON_TMA_STORE,
  SM_ON_BARRIER,
  SM_BEHIND_BARRIER,  // which it has come to
  SM_ON_FULL,
  SM_ON_EMPTY,
  SM_ON_TILE,
  SM_ON_SCOREBOARD,  // that several loads count on
  SM_ON_LOADS,       // of its own, as many as it may have on their way
  SM_ON_DRAIN,
  SM_GONE,  // no warp here
} sm_block;

typedef struct sm_warp {
  int64_t settled;
  int64_t mio_free;  // not before this cycle its next instruction for the MIO
  const sm_op *op;   // next to issue
  uint32_t *tokens;
  uint8_t repeat_left;
  uint8_t last_pipe;  // of the instruction that it issued last
  uint8_t reason;     // ftl_stall of the cycles before it is ready
  uint8_t blocked;    // sm_block
  uint8_t subcore, position;
  uint8_t role;
  int16_t warp, warp_in_role;  // of the CTA, of the role
  int32_t slot;
  int32_t warpgroup;                  // index into sm->warpgroups
  int32_t wait_id;                    // barrier; ring stage (index into sm->stages)
  int64_t not_before;                 // its next instruction: the code's stall count and line
  int64_t barrier_opens;              // of the one it came to last; SM_NEVER: others are to come
  uint32_t wait_for;                  // fills or arrivals
  int32_t outstanding;                // memory instructions and lines that keep the warp from leaving
  int32_t loads;                      // LDGs on their way, where these are counted
  uint16_t counting[SM_SCOREBOARDS];  // of these, by scoreboard
  uint8_t pending;                    // scoreboards that loads count on, a bit each
  int64_t start;
  uint32_t tiles_done;
  const sm_op *first_op;
  ftl_tile_place *places;  // by tile reference
  // cp.async groups: number of groups closed; lines and instructions of each still on their way; when the last came
  uint32_t cp_closed, cp_done;  // groups < cp_done have arrived
  int32_t cp_pending[SM_GROUPS];
  int64_t cp_arrived[SM_GROUPS];  // of a group that is done: when it and all before it had arrived
  // wgmma
  uint32_t gmma_closed;
  uint32_t gmma_end[SM_GROUPS];  // wgmmas issued when group g was closed
  int32_t tma_stores;            // copies whose shared memory is not read yet
  uint32_t filled[FTL_TILE_MAX_RINGS], waited[FTL_TILE_MAX_RINGS], released[FTL_TILE_MAX_RINGS];
  ftl_expr_point point;
  int64_t loop_hi[FTL_TILE_MAX_LOOP_VARS];
  int64_t local_address_bytes;
} sm_warp;

// When all source tokens of the warp's next instruction are ready: the latest of their words.
static inline uint32_t sm_latest_source(const sm_warp *w) {
  const uint16_t *sources = w->op->sources;
  const uint32_t *tokens = w->tokens;
  uint32_t a = tokens[sources[0]], b = tokens[sources[1]], c = tokens[sources[2]], d = tokens[sources[3]];
  a = a > b ? a : b;
  c = c > d ? c : d;
  return a > c ? a : c;
}

// What a wait for a token of this word is called.
static inline ftl_stall sm_stall_of(uint32_t word) {
  static const uint8_t stalls[4] = {FTL_STALL_WAIT, FTL_STALL_SHORT_SCOREBOARD, FTL_STALL_LONG_SCOREBOARD,
                                    FTL_STALL_IMC_MISS};
  return (ftl_stall)stalls[word & 3];
}

// Finds when the warp's next instruction may issue, not before `earliest`; `reason`: of the wait until then.
void ftl_sm_warp_evaluate(ftl_sm *sm, sm_warp *w, int64_t earliest, ftl_stall reason);
// Goes on to the next instruction that issues; pseudo instructions take effect at `now`.
void ftl_sm_warp_advance(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason);
// Settles the blocked warp and goes on after (advance) or evaluates again the instruction that it is blocked at.
void ftl_sm_warp_resume(ftl_sm *sm, sm_warp *w, int64_t now, int64_t earliest, ftl_stall reason);
// Settles the blocked warp up to `now` and looks again when the instruction that it is blocked at may issue.
void ftl_sm_warp_retry(ftl_sm *sm, sm_warp *w, int64_t now);
// It issues nothing until it is resumed or retried; its cycles count as `reason` from where it was settled.
void ftl_sm_warp_block(ftl_sm *sm, sm_warp *w, sm_block block, ftl_stall reason);
// The warp has ended in `cycle`; with the last of its CTA the slot is free.
void ftl_sm_warp_leave(ftl_sm *sm, sm_warp *w, int64_t cycle);
// The warp begins its CTA's code in `cycle`.
void ftl_sm_warp_start(ftl_sm *sm, sm_warp *w, int64_t cta, int64_t cycle);

#endif
