// What SMs and the memory system say to each other. Parts of the machine include this and base/ only, never one
// another.
#ifndef FTL_MACHINE_MEM_H
#define FTL_MACHINE_MEM_H

#include <stdint.h>

typedef enum ftl_mem_kind { FTL_MEM_READ, FTL_MEM_WRITE, FTL_MEM_ATOMIC } ftl_mem_kind;

enum { FTL_MEM_MAX_PEERS = 15 };

// Other CTAs of a cluster: where data of a multicast copy, or an arrival at an mbarrier, goes.
typedef struct ftl_mem_peer {
  uint16_t sm, slot;
} ftl_mem_peer;
typedef struct ftl_mem_peers {
  int64_t cluster;  // first CTA of the cluster
  int32_t count;
  ftl_mem_peer peers[FTL_MEM_MAX_PEERS];
} ftl_mem_peers;

typedef enum ftl_mem_message_kind {
  FTL_MEM_PEER_LINE,     // a line of a multicast copy that another CTA made has come
  FTL_MEM_PEER_ARRIVAL,  // a reader in another CTA has released the stage
} ftl_mem_message_kind;

// What reaches a CTA of a cluster from another one, with data by way of L2 or over the SM-to-SM network.
typedef struct ftl_mem_message {
  int64_t time;  // SM cycle
  int64_t cluster;
  ftl_mem_peer to;
  uint16_t stage;  // of the CTA's, all rings together
  uint8_t kind;    // ftl_mem_message_kind
  uint8_t count;   // ARRIVAL: of readers
} ftl_mem_message;

// Where the counter of a persistent kernel with dynamic tiles lies: beyond every tensor.
#define FTL_MEM_COUNTER_LINE (UINT64_C(1) << 57)

// One 128-byte line, some of its sectors. Requests of one SM are in order of time; order between SMs is (time, sm, push
// order).
typedef struct ftl_mem_request {
  int64_t time;          // SM cycle in which it leaves the SM
  uint64_t line;         // device address / 128
  uint32_t transaction;  // the SM's own number, echoed in the reply
  uint16_t sm;
  uint8_t sectors;  // mask of 4; a write covers whole sectors where full_sectors has the bit, else part of them
  uint8_t kind;     // ftl_mem_kind
  uint8_t full_sectors;
  uint8_t part_halves;         // of a write: the halves of the other sectors that it covers (base/sectors.h)
  uint8_t is_local;            // spill traffic: counted apart
  uint8_t priority;            // ftl_l2_priority
  uint8_t tile_slot;           // 1 + the slot of a CTA that takes its next tile from the counter; 0: another request
  uint16_t stage;              // with peers: where they want the line
  const ftl_mem_peers *peers;  // of a multicast read; holds until the request is answered; NULL: none
} ftl_mem_request;

// All sectors of the request are at the SM (reads), or the write is accepted by L2 (writes get one too).
typedef struct ftl_mem_reply {
  int64_t time;  // SM cycle
  uint32_t transaction;
  uint16_t sm;
} ftl_mem_reply;

#endif
