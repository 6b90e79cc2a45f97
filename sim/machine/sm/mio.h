// The two queues of a sub-core from which the LSU takes instructions (mio.c), and what it does with them (lsu.c).
#ifndef FTL_MACHINE_SM_MIO_H
#define FTL_MACHINE_SM_MIO_H

#include "machine/sm/warp.h"

typedef struct sm_mio_entry {
  const sm_op *op;
  sm_warp *warp;
  ftl_tile_place *place;  // the entry's own room for its tile, which the warp may leave: of local and global memory
  int32_t stage;          // mbarrier operations
  uint16_t group;         // cp.async
  bool last;              // of its run: sets the token
  uint32_t order;         // in which the sub-core's instructions came
} sm_mio_entry;

// Shared memory, shuffles and mbarriers wait in one queue of a sub-core, local and global memory in another.
enum { SM_QUEUE_MIO, SM_QUEUE_LG, SM_QUEUES };
typedef struct sm_mio_queue {
  uint32_t head, mask;  // places are counted without end and taken modulo a power of two
  int32_t count, capacity;
  sm_mio_entry *entries;  // ring of mask + 1
} sm_mio_queue;

typedef struct sm_subcore sm_subcore;

bool ftl_sm_mio_queue_create(ftl_sm *sm, sm_mio_queue *queue, int64_t entries,
                             bool has_places);  // false: out of memory
// The warp's instruction issues into its queue of the sub-core; `last`: of its run. stage: of an mbarrier operation.
void ftl_sm_mio_push(ftl_sm *sm, sm_subcore *sc, sm_warp *w, int64_t now, bool last, int32_t stage);
// The LSU takes an instruction at `now`, if one may be sent: the sub-core's whose turn it is.
void ftl_sm_mio_serve(ftl_sm *sm, int64_t now);
void ftl_sm_mio_stores_wait(ftl_sm *sm);  // the store port is taken for longer
// No room, or room again, for the lines of another instruction, and of another load.
void ftl_sm_lg_close(ftl_sm *sm, bool closed, bool load_closed);

// ---- lsu.c ----
void ftl_sm_lsu_hand_on(ftl_sm *sm, const ftl_line *lines, int32_t count, int64_t now);  // takes the store port
// Counts a line that is sent: its sectors, and a mask where it has not all bytes of them.
void ftl_sm_count_global_store(ftl_sm *sm, const ftl_line *line);
void ftl_sm_lsu_close_lines(ftl_sm *sm, int64_t now);                           // lines whose time has come close
int64_t ftl_sm_lsu_access(ftl_sm *sm, const sm_mio_entry *entry, int64_t now);  // gives the data cycles it takes
// The warp closes a group of cp.async.
void ftl_sm_cp_commit(ftl_sm *sm, sm_warp *w, int64_t now);
// One of the group's instructions or lines has come, at `arrived`.
void ftl_sm_cp_arrive(ftl_sm *sm, sm_warp *w, int32_t group, int64_t now, int64_t arrived);
// The line of transaction `index` is in L1; loads that waited for it go on.
void ftl_sm_fill_reply(ftl_sm *sm, int32_t index, int64_t now);

#endif
