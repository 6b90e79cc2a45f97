// DRAM: channels with banks and row buffers, in their own clock. No latency of the controller or the network in it.
// Models: FR-FCFS with an age cap among a channel's queue entries, ACT/PRE/column timing, bank groups, bus turnaround,
//   refresh, writes saved up and served together, ECC kept in the memory as extra bus time.
// Does not model: the command bus, tFAW, per-bank refresh, reads served from the write buffer.
// Numbers: dram.* keys; docs/model_dram.md for what no key gives.
#ifndef FTL_MACHINE_DRAM_DRAM_H
#define FTL_MACHINE_DRAM_DRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch.h"

typedef struct ftl_dram ftl_dram;

typedef struct ftl_dram_request {
  int64_t arrival_cycle;  // DRAM cycle at which its channel's controller has it
  uint64_t line;
  uint32_t cookie;  // echoed when a read is done
  uint8_t sectors;  // mask of 4
  bool is_write;
} ftl_dram_request;

typedef struct ftl_dram_done {
  int64_t cycle;  // end of the last data
  uint32_t cookie;
} ftl_dram_done;

typedef struct ftl_dram_counters {
  int64_t read_bytes, write_bytes;  // ECC bytes included
  int64_t row_hits, row_misses;     // requests served from a row that another opened, and those that opened theirs
  int64_t busy_cycles;              // data-bus cycles, all channels together
} ftl_dram_counters;

// Idle, at cycle 0. FTL_NO_MEMORY.
FTL_MUST_USE ftl_status ftl_dram_create(ftl_dram **out, const ftl_arch *arch, ftl_error *error);
void ftl_dram_destroy(ftl_dram *dram);

// Requests come in order of arrival, not before the last advance's end.
void ftl_dram_push(ftl_dram *dram, const ftl_dram_request *request);
// Issues every command of cycles < until; all requests that arrive before then must have been pushed. Returns the reads
// whose last column access was among them; valid until the next advance.
const ftl_dram_done *ftl_dram_advance(ftl_dram *dram, int64_t until, int64_t *count);
// Nothing is pending.
bool ftl_dram_is_idle(const ftl_dram *dram);
int64_t ftl_dram_num_pending(const ftl_dram *dram);  // pushed and not wholly issued
// Since it was created or restarted.
ftl_dram_counters ftl_dram_counters_get(const ftl_dram *dram);
// Time 0 with closed rows and counters at 0; must be idle.
void ftl_dram_restart(ftl_dram *dram);

// Writes that a channel saves up and serves together. Three quarters of its queue: a guess that gives the measured
// bandwidth of mixtures and the measured latency of reads beside writes (docs/model_dram.md).
int32_t ftl_dram_drain_entries(const ftl_arch *arch);

// What all channels together carry when they are never short of requests: `read_percent` of the lines are reads, and
// both kinds come from many interleaved streams of whole tiles, as L2 misses and write-backs do. ECC bytes not counted.
FTL_MUST_USE ftl_status ftl_dram_sustained(const ftl_arch *arch, int32_t read_percent, int64_t *bytes_per_second,
                                           ftl_error *error);

#endif
