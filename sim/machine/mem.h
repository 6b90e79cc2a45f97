// What SMs and the memory system say to each other. Parts of the machine include this and base/ only, never one
// another.
#ifndef FTL_MACHINE_MEM_H
#define FTL_MACHINE_MEM_H

#include <stdint.h>

typedef enum ftl_mem_kind { FTL_MEM_READ, FTL_MEM_WRITE, FTL_MEM_ATOMIC } ftl_mem_kind;

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
  uint8_t is_local;  // spill traffic: counted apart
  uint8_t priority;  // ftl_l2_priority
} ftl_mem_request;

// All sectors of the request are at the SM (reads), or the write is accepted by L2 (writes get one too).
typedef struct ftl_mem_reply {
  int64_t time;  // SM cycle
  uint32_t transaction;
} ftl_mem_reply;

#endif
