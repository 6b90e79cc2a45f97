// Bulk tensor copies that are under way (tma.c).
#ifndef FTL_MACHINE_SM_TMA_H
#define FTL_MACHINE_SM_TMA_H

#include "machine/mem.h"
#include "machine/sm/transactions.h"

enum { SM_MAX_COPIES = 32, SM_LINE_COST = 16 };

typedef struct sm_copy {  // a bulk tensor copy
  sm_warp *warp;
  int64_t eligible;  // first line
  int32_t rows_left;
  int32_t stage;       // loads
  uint64_t byte, end;  // of what is left of the current row
  uint64_t next_row;   // address of the row after it
  uint64_t row_step_bytes, row_bytes;
  uint8_t priority;            // ftl_l2_priority
  uint8_t cost;                // of a line, in 1/SM_LINE_COST of one: less where it stands for lines of several SMs
  const ftl_mem_peers *peers;  // who gets the lines too, or NULL
  bool is_store;
} sm_copy;

typedef struct sm_tma {
  sm_copy copies[SM_MAX_COPIES];
  int32_t num_copies, turn;
  int64_t next;                   // cycle of the next line, SM_NEVER when nothing may go
  int64_t rate_start, rate_cost;  // of lines since rate_start: line n goes at rate_start + n * 1000 / milli
  int64_t rate_free;              // when the rate lets another line go
  int32_t pending_cost;
} sm_tma;

// The warp's copy issues in cycle `now`; there is room for it.
void ftl_sm_tma_issue(ftl_sm *sm, sm_warp *w, int64_t now);
// A line of the copy whose turn it is goes at `now`.
void ftl_sm_tma_step(ftl_sm *sm, int64_t now);
void ftl_sm_tma_landed(ftl_sm *sm, const sm_transaction *tx);  // its line is in flight no more
// A line that it loaded has been written, or one that it stored is in L2.
void ftl_sm_tma_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now);
void ftl_sm_tma_peer_line(ftl_sm *sm, int32_t stage, int64_t now);  // that another CTA asked for

#endif
