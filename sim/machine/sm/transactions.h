// What is on its way between the SM and L2 (transactions.c), and who waits for it.
#ifndef FTL_MACHINE_SM_TRANSACTIONS_H
#define FTL_MACHINE_SM_TRANSACTIONS_H

#include "base/sectors.h"
#include "machine/mem.h"
#include "machine/sm/warp.h"

enum { SM_FILL_BUCKETS = 1024 };

typedef enum sm_transaction_kind {
  SM_TX_FILL,
  SM_TX_CP,
  SM_TX_STORE,
  SM_TX_LOCAL_STORE,
  SM_TX_TMA_LOAD,
  SM_TX_TMA_STORE,
  SM_TX_TILE,
  SM_TX_PEER_LINE,
  SM_TX_PEER_ARRIVAL
} sm_transaction_kind;

typedef struct sm_transaction {
  uint8_t kind;
  uint8_t sectors;
  uint8_t is_local;
  uint8_t group;         // CP
  uint8_t priority;      // ftl_l2_priority
  uint8_t has_landed;    // CP, TMA_LOAD: no longer in flight, though not written yet
  uint16_t data_cycles;  // on arrival
  int32_t next;          // free list; FILL: hash chain
  int32_t waiters;       // FILL: list of sm_waiter, newest first
  int32_t stage;         // TMA_LOAD, PEER_*
  sm_warp *warp;
  uint64_t line;               // PEER_*: the first CTA of the cluster
  const ftl_mem_peers *peers;  // TMA_LOAD: who gets the line too, or NULL
} sm_transaction;

// One load that waits for lines of L1.
typedef struct sm_load {
  sm_warp *warp;
  int32_t remaining;
  int32_t next_free;
  uint16_t token;
  uint16_t data_cycles;  // cp.async: to write what came to shared memory
  uint8_t group;
  bool is_cp;
  bool sets_token;
  bool counts;         // among its warp's loads
  uint8_t scoreboard;  // on which it counts, from 1 on; 0: none
  int64_t earliest;    // when its hits are there
} sm_load;
// The place of a load among those of its warp, free from `time` on.
typedef struct sm_load_place {
  int64_t time;
  sm_warp *warp;
  int64_t warp_start;  // by which a warp is told from one that comes after it
} sm_load_place;
typedef struct sm_waiter {
  int32_t load, next;
} sm_waiter;

// False: out of memory.
bool ftl_sm_transactions_create(ftl_sm *sm);
// Takes what has come by `now`, and lines that waited for their turn until then.
void ftl_sm_replies(ftl_sm *sm, int64_t now);
// The data of one of the warp's loads that count are there; times do not descend.
void ftl_sm_load_done(ftl_sm *sm, sm_warp *w, int64_t now);

#endif
