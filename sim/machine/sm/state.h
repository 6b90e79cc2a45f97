// The state of one SM, shared by the files of this folder.
//
// Times are SM cycles. Within a cycle: replies, then sub-cores 0, 1, ... issue, then the LSU takes one instruction,
// then TMA makes a line. What an instruction decides is written at once (token words, pipe_free); what it cannot know
// yet (a reply, the LSU's choice, other warps' arrivals) leaves the warp blocked until the event that decides it wakes
// it.
//
// Invariant: a warp's cycles before `settled` are in stall_cycles, each once; sc->ready is SM_NEVER while it is
// blocked.
#ifndef FTL_MACHINE_SM_STATE_H
#define FTL_MACHINE_SM_STATE_H

#include "arch/arch_limits.h"
#include "base/check.h"
#include "base/integer.h"
#include "machine/sm/code_cache.h"
#include "machine/sm/gmma.h"
#include "machine/sm/l1.h"
#include "machine/sm/parameters.h"
#include "machine/sm/ring.h"
#include "machine/sm/slot.h"
#include "machine/sm/store_merge.h"
#include "machine/sm/subcore.h"
#include "machine/sm/tma.h"
#include "machine/sm/transactions.h"

enum {
  SM_SUBCORES = FTL_ARCH_MAX_sm_num_subcores,
  SM_MAX_LINES = 256,
  SM_MAX_LSU_QUEUE = FTL_ARCH_MAX_mio_lsu_queue_entries
};

struct ftl_sm {
  ftl_sm_config config;
  const ftl_arch *arch;
  const ftl_warp_program *program;
  int32_t num_subcores;
  bool bulk;
  sm_code code;
  int64_t now, base;
  int64_t until;              // of the advance under way
  int64_t floor;              // nothing can issue before it: this cycle, or the next once sub-cores have begun to issue
  int64_t next[SM_SUBCORES];  // of sub-cores; SM_NEVER where there is none
  sm_subcore subcores[SM_SUBCORES];
  sm_policy policy;

  // MIO and LSU
  int64_t mio_next, lsu_free, data_free, operand_free;
  sm_reads reads[SM_READS];  // of wgmmas that are under way or queue, a ring
  uint32_t reads_head, reads_end;
  int64_t copied_free;        // when the next line of a copy past L1 may be written
  int64_t copied_bytes_left;  // of the line before, which that cycle still writes: of rates that do not divide a line
  // when the data pipe begins with each of the last that the LSU has taken, a ring of mio.lsu_queue_entries
  int64_t lsu_starts[SM_MAX_LSU_QUEUE];
  int64_t *lsu_room, *lsu_end;  // the oldest of them, or data_free where the LSU holds nothing; their end
  // when the sub-core's first instruction may be sent, SM_NEVER where none waits: those that need the data pipe; a copy
  int64_t mio_first_ready[SM_SUBCORES], copy_first_ready[SM_SUBCORES];
  uint32_t copies_next;                   // sub-cores whose next instruction is a copy, a bit each; others have none
  int64_t store_port_free;                // when the port has sent what was handed on
  int64_t store_free;                     // when a store may be taken
  int64_t lines_free;                     // when the LSU may take another access to local or global memory
  int64_t tensor_free, gmma_busy_cycles;  // wgmma
  int64_t gmma_taken;                     // the most that a sub-core has taken of them: see ftl_sm_gmma_take
  int32_t mio_turn;
  int32_t lg_pending;               // lines in flight
  int32_t lg_limit, lg_load_limit;  // with how many those of another instruction, or of another load, would all fit
  bool lg_closed, lg_load_closed;   // they might not
  int64_t reply_next;               // of replies, arrivals, lines to be written and places of loads
  int64_t barrier_free;

  sm_warp *warps;    // slot * num_warps + warp
  sm_stage *stages;  // slot * stages_per_cta + first_stage[ring] + stage
  int32_t first_stage[FTL_TILE_MAX_RINGS], stages_per_cta;
  // cluster.c
  ftl_mem_peers *peers;  // slot * num_rings + ring: the other CTAs that share the ring's loads
  ftl_mem_message *messages;
  int32_t num_messages, capacity_messages;
  uint16_t *barrier_counts;
  sm_warpgroup *warpgroups;
  int32_t warpgroups_per_cta;
  sm_slot *slots;
  sm_tma tma;
  sm_code_cache code_cache;
  sm_parameters parameters;
  sm_l1 l1;
  sm_store_merge store_merge;

  sm_transaction *transactions;
  sm_load *loads;
  sm_waiter *waiters;
  int32_t free_transaction, free_load, free_waiter, num_transactions, in_flight;
  int32_t *fill_buckets;
  ftl_mem_reply *replies;  // ring in order of time
  int32_t reply_head, reply_count, reply_capacity;
  ftl_mem_reply *arrivals;  // replies that wait for the fill port: ring in order of time
  int32_t arrival_head, arrival_count;
  ftl_mem_reply *copied;  // replies of copies past L1 that wait to be written beside wgmmas: ring in order of arrival
  int32_t copied_head, copied_count, copied_capacity;
  sm_load_place *places;  // of loads of warps that have as many as they may: ring in order of time
  int32_t place_head, place_count, place_capacity;
  int64_t fill_free;
  int64_t fill_cycles[FTL_LINE_SECTORS + 1];  // of the fill port, by the number of sectors
  ftl_mem_request *requests;
  int32_t num_requests, capacity_requests;
  ftl_sm_finished *finished;
  int32_t num_finished;

  int64_t num_launched, active_until, num_events;
  int32_t num_resident;
  int64_t gone_warp_cycles;  // resident cycles of warps that have left
  ftl_sm_counters counters;
  ftl_sm_on_issue on_issue, on_jump;
  void *observer_context;
  ftl_arena arena;
};

// A wgmma reads and writes its accumulators in the register file. Another instruction then waits for its operands.
static inline bool sm_wgmma_runs(const ftl_sm *sm, int64_t now) { return sm->tensor_free > now; }

// Nor is the next one to be asked for.
static inline bool sm_line_is_there(const ftl_sm *sm, const sm_op *op, int64_t now) {
  const sm_code_line *line = &sm->code_cache.lines[op->line];
  return line->last_use != 0 && line->there_at <= now && line[1].last_use != 0;
}

// ftl_sm_code_fetch for the usual case, one line that has come; false: any other case, and nothing is changed.
static inline bool sm_code_is_there(ftl_sm *sm, const sm_op *op, int64_t now) {
  if (op->num_lines != 1 || !sm_line_is_there(sm, op, now)) return false;
  sm->code_cache.lines[op->line].last_use = ++sm->code_cache.uses;
  return true;
}

// After an instruction of fixed latency the warp goes on to the next one without touching anything but itself and its
// sub-core; and the LSU does not write the same token meanwhile.
static inline bool sm_ends_alone(const ftl_sm *sm, const sm_warp *w, int64_t now) {
  const sm_op *next = w->op + 1;
  if (next->special || w->tokens[w->op->destination] >= SM_TOKEN_PENDING) return false;
  return next->num_lines == 0 || (next->num_lines == 1 && sm->code_cache.fits && sm_line_is_there(sm, next, now));
}

// What says that a token is there at `cycle`, and by whom (warp.h).
static inline uint32_t sm_token_word(const ftl_sm *sm, int64_t cycle, uint32_t producer) {
  return (uint32_t)(cycle - sm->base) << SM_TOKEN_SHIFT | producer;
}

// A token of the warp is known to be there at `cycle`; the warp looks again if it waits for one.
static inline void sm_token_set(ftl_sm *sm, sm_warp *w, uint16_t token, int64_t now, int64_t cycle, uint32_t producer) {
  w->tokens[token] = sm_token_word(sm, cycle, producer);
  if (w->blocked == SM_ON_TOKEN) ftl_sm_warp_retry(sm, w, now);
}

// A load counts on one of the warp's scoreboards, and is there.
static inline void sm_count_load(sm_warp *w, int32_t scoreboard) {
  w->counting[scoreboard]++;
  w->pending |= (uint8_t)(1 << scoreboard);
}

// One of the loads that count is there.
static inline void sm_load_has_come(ftl_sm *sm, sm_warp *w, int32_t scoreboard, int64_t now) {
  if (--w->counting[scoreboard] > 0) return;
  w->pending &= (uint8_t) ~(1 << scoreboard);
  if (w->blocked == SM_ON_SCOREBOARD) ftl_sm_warp_retry(sm, w, now);
}

// Lines of local and global memory in flight, negative when they have come.
static inline void sm_lg_add(ftl_sm *sm, int32_t lines) {
  sm->lg_pending += lines;
  bool closed = sm->lg_pending > sm->lg_limit, load_closed = sm->lg_pending > sm->lg_load_limit;
  if (closed != sm->lg_closed || load_closed != sm->lg_load_closed) ftl_sm_lg_close(sm, closed, load_closed);
}

// One that ftl_sm_warp_leave waits for.
static inline void sm_outstanding_done(ftl_sm *sm, sm_warp *w, int64_t now) {
  FTL_CHECK(w->outstanding > 0, "warp %d: more replies than requests", w->warp);
  if (--w->outstanding == 0 && w->blocked == SM_ON_DRAIN) ftl_sm_warp_leave(sm, w, now > w->settled ? now : w->settled);
}

// When the data pipe would begin with what comes in `cycle`.
static inline int64_t sm_data_start(const ftl_sm *sm, int64_t cycle) {
  return sm->data_free > cycle ? sm->data_free : cycle;
}

// The data pipe (32 banks and the crossbar) is taken for `cycles` from `cycle` on; gives the cycle after the last.
// Operand reads of a wgmma that is under way lose what is taken.
static inline int64_t sm_reserve_data(ftl_sm *sm, int64_t cycle, int64_t cycles) {
  sm->data_free = sm_data_start(sm, cycle) + cycles;
  if (sm->operand_free > cycle) sm->operand_free += cycles;
  return sm->data_free;
}

// The same of what the LSU sends: while a wgmma runs, a wavefront keeps the pipe for tensor.wgmma_wavefront_cycles.
static inline void sm_reserve_wavefronts(ftl_sm *sm, int64_t cycle, int64_t cycles) {
  sm_reserve_data(sm, cycle, cycles);
  if (sm_wgmma_runs(sm, cycle)) sm->data_free += cycles * (sm->arch->tensor_wgmma_wavefront_cycles - 1);
}

// When what the LSU sends comes between operand reads: as soon as these leave a cycle, or else every
// tensor.wgmma_window_cycles from their begin (kernels/measurements/micro_wgmma_beside_memory.csv).
static inline int64_t sm_window(ftl_sm *sm, int64_t cycle) {
  while (sm->reads_head != sm->reads_end && sm->reads[sm->reads_head % SM_READS].end <= cycle) sm->reads_head++;
  const sm_reads *reads = &sm->reads[sm->reads_head % SM_READS];
  if (sm->reads_head == sm->reads_end || reads->begin >= cycle) return cycle;
  int64_t period = sm->arch->tensor_wgmma_window_cycles;
  int64_t window = reads->begin + ftl_round_up(cycle - reads->begin, period);
  return window < reads->end ? window : reads->end;
}

// A line that TMA or a cp.async past L1 writes goes past the data pipe. Other traffic of the pipe does not notice it
// (an ldmatrix beside 256 lines in 300 cycles takes 0 to 3 cycles more: kernels/measurements/h100/micro_copy_pipe.csv),
// nor do operand reads: wgmmas that leave no cycle of the pipe free (m64n64k16 from shared memory) take 0.6 % longer
// beside 48 bytes a cycle of TMA's and 1.7 % longer beside 52 of cp.async's, m64n128k16 as long beside 64
// (kernels/measurements/micro_wgmma_beside_copy.csv).
// Beside a wgmma copies are written at tensor.wgmma_copy_bytes_per_cycle: a line ends in the cycle that its last whole
// cycle's worth fills, and what is left of it goes with the line behind it. Lines that come faster wait (copied), so
// that those still there when the tensor cores run dry are written at the pipe's own rate.
static inline int64_t sm_copied_cycles_beside_wgmma(ftl_sm *sm, int64_t cycle, int64_t cycles) {
  int64_t rate = sm->arch->tensor_wgmma_copy_bytes_per_cycle;
  int64_t bytes = cycles * sm->arch->shared_bytes_per_cycle + (sm->copied_free >= cycle ? sm->copied_bytes_left : 0);
  sm->copied_bytes_left = bytes % rate;
  return bytes / rate;
}

static inline int64_t sm_write_copied_line(ftl_sm *sm, int64_t cycle, int64_t cycles) {
  int64_t beside = sm_wgmma_runs(sm, cycle) ? sm_copied_cycles_beside_wgmma(sm, cycle, cycles) : 0;
  sm->copied_free = (sm->copied_free > cycle ? sm->copied_free : cycle) + (beside > cycles ? beside : cycles);
  return sm->copied_free;
}

// Of the sectors that a store gives in part, the halves that it gives whole.
static inline uint8_t sm_part_halves(const ftl_line *line) {
  return line->sectors == line->full_sectors ? 0 : ftl_halves_of_words(line->words);
}

// Asks L2 for a line, or sends it one; gives the transaction's number. In line: what the caller knows need not be
// looked at.
static inline int32_t sm_request(ftl_sm *sm, int64_t now, const ftl_line *line, ftl_mem_kind kind,
                                 sm_transaction what) {
  int32_t i = sm->free_transaction, sectors = ftl_num_sectors(line->sectors);
  FTL_CHECK(i >= 0 && sm->num_requests < sm->capacity_requests, "SM %d: more than %d requests in flight at cycle %lld",
            sm->config.sm_idx, sm->num_transactions, (long long)now);
  sm->free_transaction = sm->transactions[i].next;
  what.line = line->line;
  what.sectors = line->sectors;
  sm->transactions[i] = what;
  sm->in_flight++;
  *(kind == FTL_MEM_READ ? &sm->counters.read_sectors : &sm->counters.write_sectors) += sectors;
  if (what.is_local) sm->counters.local_sectors += sectors;
  sm->requests[sm->num_requests++] =
      (ftl_mem_request){.time = now,
                        .line = line->line,
                        .transaction = (uint32_t)i,
                        .sm = (uint16_t)sm->config.sm_idx,
                        .sectors = line->sectors,
                        .kind = (uint8_t)kind,
                        .full_sectors = kind == FTL_MEM_WRITE ? line->full_sectors : 0,
                        .part_halves = kind == FTL_MEM_WRITE ? sm_part_halves(line) : 0,
                        .is_local = what.is_local,
                        .priority = what.priority,
                        .stage = what.peers ? (uint16_t)(what.stage % sm->stages_per_cta) : 0,  // of the CTA
                        .tile_slot = what.kind == SM_TX_TILE ? (uint8_t)(what.warp->slot + 1) : 0,
                        .peers = what.peers};
  return i;
}

// ---- core.c ----
void ftl_sm_run(ftl_sm *sm, int64_t until);

#endif
