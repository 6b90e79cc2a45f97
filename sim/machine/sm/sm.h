// One SM running CTAs of one warp program.
// Models: CTA slots, sub-cores with warp scheduling, dependency tokens, pipes, MIO and shared memory, cp.async groups,
//   TMA with multicast within a cluster, mbarriers, named barriers, wgmma queues, L1, instruction cache; a stall reason
//   for every warp cycle without issue.
// Does not model: register-bank conflicts, divergence within a warp.
// Numbers: the arch model's sm.*, fp32.* ... tma.* keys. Mechanisms, sources, deviations: docs/model_sm.md.
//
// An SM is advanced alone up to a cycle: nothing that another SM does before that cycle can reach it, as the machine
// advances all SMs by less than the shortest trip to L2 and back.
#ifndef FTL_MACHINE_SM_SM_H
#define FTL_MACHINE_SM_SM_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"
#include "lower/warp_program.h"
#include "machine/mem.h"

typedef struct ftl_sm ftl_sm;

enum { FTL_SM_CODE_AHEAD_LINES = 1024 };  // of code, that an SM may have fetched beyond its share (code_cache.c)

typedef enum ftl_stall {
  FTL_STALL_SELECTED,  // issued in this cycle
  FTL_STALL_NOT_SELECTED,
  FTL_STALL_WAIT,              // fixed-latency dependency
  FTL_STALL_SHORT_SCOREBOARD,  // shared memory, shuffle, MUFU
  FTL_STALL_LONG_SCOREBOARD,   // global and local memory, cp.async and TMA completion
  FTL_STALL_MATH_PIPE_THROTTLE,
  FTL_STALL_MIO_THROTTLE,
  FTL_STALL_LG_THROTTLE,
  FTL_STALL_TEX_THROTTLE,
  FTL_STALL_BARRIER,
  FTL_STALL_MEMBAR,  // not modelled: always 0
  FTL_STALL_BRANCH_RESOLVING,
  FTL_STALL_GMMA,
  FTL_STALL_DRAIN,
  FTL_STALL_DISPATCH_STALL,
  FTL_STALL_IMC_MISS,
  FTL_STALL_NO_INSTRUCTION,
  FTL_STALL_MISC,      // as many loads of the warp on their way as it may have
  FTL_STALL_SLEEPING,  // not modelled: always 0
  FTL_STALL_COUNT
} ftl_stall;

typedef struct ftl_sm_counters {
  int64_t warp_insts;            // issued, repeats counted
  int64_t tensor_insts;          // HMMA/HGMMA warp instructions
  int64_t tensor_busy_cycles;    // sum over sub-cores of cycles in which the tensor pipe works
  int64_t issue_active_cycles;   // sum over sub-cores
  int64_t active_cycles;         // cycles with at least one resident warp
  int64_t resident_warp_cycles;  // sum over resident warps of their cycles; == sum of stall_cycles
  int64_t stall_cycles[FTL_STALL_COUNT];
  int64_t shared_wavefronts, bank_conflicts;
  int64_t l1_load_sectors, l1_load_hit_sectors, l1_store_sectors, l1_store_hit_sectors;
  int64_t l1_local_load_sectors, l1_local_load_hit_sectors;  // of these loads those of spilled registers
  int64_t l1_again_load_sectors;                             // by LDG, that another load of the tile asks for before
  int64_t read_sectors, write_sectors, local_sectors;        // to L2
  int64_t global_store_bytes;                                // of STG and TMA
  int64_t global_store_sectors;                              // sent to L2 for them
  int64_t global_store_masks;                          // that take a sector each on their way, with parts of sectors
  int64_t added_bytes, added_sectors, added_requests;  // of RED: what lanes add, sent to L2 for it, in so many
  int64_t pipe_insts[16];                              // by pipe, in the order of the pipe enum in sm/pipes.h
} ftl_sm_counters;

typedef struct ftl_sm_finished {
  int64_t time;  // cycle in which the CTA's last warp has left
  int64_t cta;
  int32_t slot;
} ftl_sm_finished;

// A program as SMs run it. Many SMs may share one: it stays in the host's caches.
typedef struct ftl_sm_code ftl_sm_code;

typedef struct ftl_sm_config {
  const ftl_arch *arch;
  const ftl_warp_program *program;
  const ftl_sm_code *code;  // of this program on this chip, to outlive the SM; NULL: its own
  int32_t sm_idx;
  int32_t num_slots;  // CTAs that may be resident
  int64_t
      persistent_stride;  // 0: a CTA is one tile; else after tile t its warps go on with t + stride while < num_ctas
  bool dynamic_tiles;     // persistent: after each tile its warps go on with the one that ftl_sm_assign_tile gave
  bool is_alone;     // no other SM exists: of shared loads it copies the others' part too, and a stage that its own
                     // warps have read the others' have read as well
  bool is_warm;      // a CTA has left the code, if all of it fits, and the kernel's parameters in the SM's caches
  bool is_code_far;  // the launch finds its code in memory, but for what it brings along
  bool ctas_alike;   // all CTAs of the launch run every loop as often
  bool bulk;         // may issue runs and stretches as one event; never changes a counter
} ftl_sm_config;

// FTL_INFEASIBLE when the program needs what the chip does not have; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_sm_code_create(ftl_sm_code **out, const ftl_warp_program *program, const ftl_arch *arch,
                                           ftl_error *error);
void ftl_sm_code_destroy(ftl_sm_code *code);

// FTL_INFEASIBLE when the program or the number of slots needs what the chip does not have; FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_sm_create(ftl_sm **out, const ftl_sm_config *config, ftl_error *error);
void ftl_sm_destroy(ftl_sm *sm);

// Starts a CTA in a free slot at `cycle` (not before the last advance's end).
void ftl_sm_launch(ftl_sm *sm, int32_t slot, int64_t cta, int64_t cycle);
// A reply, with time at or after the last advance's end.
void ftl_sm_deliver(ftl_sm *sm, const ftl_mem_reply *reply);
// The CTA launched last in `slot` is one of a cluster whose CTAs run at `members`, in the order of their indices.
// Before the next advance.
void ftl_sm_join(ftl_sm *sm, int32_t slot, const ftl_mem_peer *members);
// Answers a request of the last advance that has a tile_slot, in the order of these requests: the number of the CTA's
// next tile; it ends with a tile beyond the grid.
void ftl_sm_assign_tile(ftl_sm *sm, int32_t slot, int64_t tile);
// From another CTA of a cluster, with time at or after the last advance's end. What comes for a CTA that has left is
// dropped.
void ftl_sm_receive(ftl_sm *sm, const ftl_mem_message *message);
// Runs all cycles < until. Requests and finished CTAs of these cycles can be read until the next advance.
void ftl_sm_advance(ftl_sm *sm, int64_t until);
// Of the last advance, in the order in which they were made.
const ftl_mem_request *ftl_sm_requests(const ftl_sm *sm, int32_t *count);
// Of the last advance.
const ftl_sm_finished *ftl_sm_finished_ctas(const ftl_sm *sm, int32_t *count);
// Arrivals of the last advance at mbarriers of other CTAs, tma.peer_latency_cycles after they were made.
const ftl_mem_message *ftl_sm_messages(const ftl_sm *sm, int32_t *count);
// True while a CTA is resident or starting. An idle SM needs no advance.
bool ftl_sm_is_busy(const ftl_sm *sm);
// Counters of all cycles before the last advance's end, whatever the lengths of the advances were.
const ftl_sm_counters *ftl_sm_counters_get(const ftl_sm *sm);
// Cycles in which the SM had anything to do: what a run costs the host, not what the GPU would show. Unlike counters it
// depends on `bulk` and on the lengths of the advances.
int64_t ftl_sm_num_events(const ftl_sm *sm);

// Calls on_issue for every issued instruction from now on (timeline, tests). NULL stops it.
typedef void (*ftl_sm_on_issue)(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                                const ftl_warp_inst *inst);
void ftl_sm_observe(ftl_sm *sm, ftl_sm_on_issue on_issue, void *context);
// The same for branches and exits alone: what lies between may go on as runs.
void ftl_sm_observe_jumps(ftl_sm *sm, ftl_sm_on_issue on_jump, void *context);
// What each warp waits for, one line each: for the deadlock report.
void ftl_sm_describe(const ftl_sm *sm, char *buffer, int64_t buffer_bytes);

#endif
