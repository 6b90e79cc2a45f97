// The memory system's state, shared by memory.c (building it, windows of time, replies) and memory_flow.c (what happens
// to a request on its way).
#ifndef FTL_MACHINE_MEMORY_INTERNAL_H
#define FTL_MACHINE_MEMORY_INTERNAL_H

#include "base/sectors.h"
#include "machine/dram/dram.h"
#include "machine/l2/coalescer.h"
#include "machine/l2/mshr.h"
#include "machine/l2/tags.h"
#include "machine/memory.h"
#include "machine/noc/noc.h"
#include "machine/wheel.h"

enum { FTL_MEMORY_NONE = UINT32_MAX, FTL_MEMORY_CLOCK_MEMO = 1024 };

typedef enum ftl_memory_stage {
  FTL_STAGE_SLICE,  // an SM's request at a slice: the reader's own, or the home of what it writes
  FTL_STAGE_TAKEN,  // the slice has taken it in
  FTL_STAGE_HOME,   // a fetch for the other side at the home slice
  FTL_STAGE_CROSS,  // write data or fetched data at the link between the sides
  FTL_STAGE_FILL,   // data from DRAM or from the other side at the slice that asked for it
  FTL_STAGE_PORT,   // a reply at its GPC's port
} ftl_memory_stage;

// Within an L2 cycle: data that arrive can be found by the lookups, and what lookups send over the link goes on.
typedef enum ftl_memory_phase { FTL_PHASE_FILL, FTL_PHASE_LOOKUP, FTL_PHASE_CROSS } ftl_memory_phase;

typedef enum ftl_memory_node_kind {
  FTL_NODE_READ = FTL_MEM_READ,
  FTL_NODE_WRITE = FTL_MEM_WRITE,
  FTL_NODE_ATOMIC = FTL_MEM_ATOMIC,
  FTL_NODE_FAR_FETCH,   // of a line by the side that is not its home
  FTL_NODE_DRAM_FETCH,  // by the home side
} ftl_memory_node_kind;

// A request of an SM, or what L2 does for it.
typedef struct ftl_memory_node {
  uint64_t sequence;  // of the SM's request, over all requests
  uint64_t line;
  ftl_l2_address at;  // where the line lies
  uint32_t transaction;
  const ftl_mem_peers *peers;  // that get the data too, or NULL
  uint32_t next;               // waiter for the same line, or free node
  uint16_t sm;
  uint16_t peer_stage;  // where peers want the line
  uint8_t kind, stage;
  uint8_t side;  // a request: its SM's; a fetch: the side that the data go to
  uint8_t sectors, full_sectors, part_halves;
  uint8_t priority;      // ftl_l2_priority
  uint8_t dram_sectors;  // of a far fetch: what the home fetches for it
  uint8_t tail_cycles;   // the last byte leaves the slice this much after the first
  bool is_coalesced;     // its data come with another SM's: no access of its own
} ftl_memory_node;

_Static_assert(sizeof(ftl_memory_node) <= 64, "a node takes a cache line");

// The last results of a conversion of cycles, which is exact and slow.
typedef struct ftl_clock_memo {
  ftl_clock from, to;
  int64_t cycles[FTL_MEMORY_CLOCK_MEMO], results[FTL_MEMORY_CLOCK_MEMO];
} ftl_clock_memo;

struct ftl_memory {
  int32_t num_sms, num_gpcs, num_sides, num_slices, slices_per_side;
  int64_t ecc_inline_milli;
  int64_t request_cycles, hit_cycles, reply_cycles, far_cycles;
  int64_t to_dram_cycles, from_dram_cycles;  // the controller's two ways
  int64_t lead_cycles;                       // what DRAM has not begun comes back no sooner than this
  int64_t max_window_cycles;
  uint8_t max_merges;
  ftl_clock sm_clock, l2_clock, dram_clock;
  ftl_clock_memo *sm_to_l2, *l2_to_sm, *l2_to_dram, *dram_to_l2;

  ftl_l2_tags *tags;
  ftl_l2_hash hash;  // of the tags
  ftl_l2_mshrs mshrs;
  ftl_l2_coalescer *coalescers;  // one a GPC
  ftl_dram *dram;
  ftl_noc_port *sm_out, *sm_in, *gpc_in, *slices_in, *slices;
  int64_t read_request_bytes, byte_mask_bytes;  // of a slice's intake
  ftl_noc_port far_links[2];                    // by the side that they lead to
  int32_t *gpc_of_sm, *side_of_sm;

  ftl_wheel events, port_events;
  ftl_memory_node *nodes;
  uint32_t num_nodes, free_node;
  int64_t num_requests;  // of SMs, not yet answered
  uint64_t next_sequence;
  int64_t until;          // SM cycle of the last advance
  int64_t settled_bytes;  // written back after the launch, ECC included

  ftl_mem_reply *replies;  // of this advance in the order in which they were found
  int64_t num_replies, max_replies;
  ftl_mem_message *messages;  // to peers, in the same order
  int64_t num_messages, max_messages;
  ftl_memory_counters counters;
};

// Puts the cycle's conversion into its place in the memo.
void ftl_memory_convert_anew(ftl_clock_memo *memo, int64_t cycle);
// The first edge of the other clock at or after this cycle's edge.
static inline int64_t ftl_memory_convert(ftl_clock_memo *memo, int64_t cycle) {
  uint32_t i = (uint32_t)cycle % FTL_MEMORY_CLOCK_MEMO;
  if (memo->cycles[i] != cycle) ftl_memory_convert_anew(memo, cycle);
  return memo->results[i];
}

// Room for more of them: there is always one to take. Memory out is a broken invariant.
void ftl_memory_add_nodes(ftl_memory *memory);
static inline uint32_t ftl_memory_take_node(ftl_memory *memory) {
  if (memory->free_node == FTL_MEMORY_NONE) ftl_memory_add_nodes(memory);
  uint32_t node = memory->free_node;
  memory->free_node = memory->nodes[node].next;
  return node;
}
static inline void ftl_memory_free_node(ftl_memory *memory, uint32_t node) {
  memory->nodes[node].next = memory->free_node;
  memory->free_node = node;
}

void ftl_memory_add_message(ftl_memory *memory, ftl_mem_message message);
// Room for more of them.
void ftl_memory_add_replies(ftl_memory *memory);
static inline void ftl_memory_add_reply(ftl_memory *memory, ftl_mem_reply reply) {
  if (memory->num_replies == memory->max_replies) ftl_memory_add_replies(memory);
  memory->replies[memory->num_replies++] = reply;
}

// Sets new requests on their way: time is the SM cycle in which an SM's port takes one, or later.
void ftl_memory_flow_start(ftl_memory *memory, const ftl_mem_request *requests, int64_t count);
// Handles all events of L2 cycle events.now.
void ftl_memory_flow_cycle(ftl_memory *memory);
// Handles the replies at the ports in L2 cycle port_events.now.
void ftl_memory_flow_ports(ftl_memory *memory);
// The DRAM read that node `cookie` asked for has ended in that DRAM cycle.
void ftl_memory_flow_dram_done(ftl_memory *memory, uint32_t cookie, int64_t dram_cycle);

#endif
