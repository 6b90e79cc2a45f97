// One DRAM channel: chooses the next command and when it may go.
#ifndef FTL_MACHINE_DRAM_CHANNEL_H
#define FTL_MACHINE_DRAM_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arch_limits.h"
#include "machine/dram/dram.h"

enum {
  FTL_DRAM_NONE = UINT32_MAX,
  FTL_DRAM_MAX_GROUPS = FTL_ARCH_MAX_dram_num_bank_groups,
  FTL_DRAM_MAX_BANKS = FTL_DRAM_MAX_GROUPS * FTL_ARCH_MAX_dram_banks_per_group
};
_Static_assert(FTL_DRAM_MAX_BANKS <= UINT8_MAX + 1 && FTL_DRAM_MAX_BANKS % 64 == 0,
               "banks are bytes, and bits of words");

typedef enum ftl_dram_direction { FTL_DRAM_READ, FTL_DRAM_WRITE, FTL_DRAM_NUM_DIRECTIONS } ftl_dram_direction;

typedef struct ftl_dram_entry {
  int64_t since;  // cycle from which the scheduler sees it
  uint64_t row;
  uint64_t order;  // of arrival in the channel
  uint32_t next, cookie;
  uint8_t bank;
  uint8_t num_bursts;  // still to issue
  uint8_t num_sectors;
  bool opened_row;  // the row was opened for it
} ftl_dram_entry;

typedef struct ftl_dram_list {
  uint32_t head, tail;
} ftl_dram_list;

typedef struct ftl_dram_bank {
  bool is_open;
  uint8_t group;
  uint32_t num_bypasses;  // column accesses since the bank's oldest entry was first passed over
  uint64_t row;
  int64_t column_from, precharge_from, activate_from;  // first cycles at which each is legal
  ftl_dram_list entries[FTL_DRAM_NUM_DIRECTIONS];      // in order of arrival
  uint32_t hit[FTL_DRAM_NUM_DIRECTIONS];               // the first of them for the open row
  uint32_t next[FTL_DRAM_NUM_DIRECTIONS];              // the one that the next command is for
  int64_t open_from[FTL_DRAM_NUM_DIRECTIONS];          // where that is an ACT: its first legal cycle
} ftl_dram_bank;

// What the banks do next in one direction, kept as it changes: looking through all of them at each command would be
// half of the channel's work.
typedef struct ftl_dram_queue {
  uint64_t opens[FTL_DRAM_MAX_BANKS / 64];  // banks whose next command is an ACT
  int64_t opens_from;                       // none of them is legal before this cycle
  uint32_t num_columns;
  uint8_t columns[FTL_DRAM_MAX_BANKS];  // banks whose next command is a column access, that of the oldest request first
} ftl_dram_queue;

// What all channels share and never changes.
typedef struct ftl_dram_timing {
  int64_t rcd, rp, ras, cl, ccd_long, rrd, wtr, rtw, refi, rfc, burst;
  int64_t burst_bytes, ecc_milli;
  uint32_t num_banks, num_groups;
  int32_t queue_entries;
  uint32_t most_bypasses;
  int32_t drain_entries;  // writes that wait for each other, and are served together
  int32_t least_reads;    // of those that wait, between two such turns
} ftl_dram_timing;

typedef struct ftl_dram_channel {
  int64_t now;  // of the last command or arrival
  int64_t next_refresh;
  int64_t bus_from[FTL_DRAM_NUM_DIRECTIONS];  // first cycle for a column access of that direction
  int64_t activate_from;                      // tRRD
  int64_t group_from[FTL_DRAM_MAX_GROUPS];
  uint64_t num_arrived;
  int32_t num_queued[FTL_DRAM_NUM_DIRECTIONS];
  ftl_dram_list arriving[FTL_DRAM_NUM_DIRECTIONS];  // not arrived, or waiting for a queue entry
  int turn;                                         // the direction whose requests are served
  int32_t turn_left;                                // of them, before the other's may be
  int64_t writes_since;                             // from which the writes in the queue wait
  int64_t ecc_debt_milli;
  ftl_dram_queue queues[FTL_DRAM_NUM_DIRECTIONS];
  ftl_dram_bank *banks;
} ftl_dram_channel;

// Where a channel's entries live and its results go: all channels share these.
typedef struct ftl_dram_shared {
  ftl_dram_timing timing;
  ftl_dram_entry *entries;
  uint32_t free_entry;
  int64_t num_pending;
  ftl_dram_done *done;
  int64_t num_done;
  ftl_dram_counters counters;
} ftl_dram_shared;

// In cycles of the DRAM clock.
ftl_dram_timing ftl_dram_timing_init(const ftl_arch *arch);
// Closed rows, empty queues; refreshes of the channels are spread over the interval.
void ftl_dram_channel_reset(ftl_dram_channel *channel, const ftl_dram_timing *timing, uint32_t channel_idx,
                            uint32_t num_channels);
// Takes over the entry, whose `since` is its arrival.
void ftl_dram_channel_push(ftl_dram_channel *channel, ftl_dram_shared *shared, uint32_t entry, bool is_write);
// Issues the channel's commands of DRAM cycles < until; reads that end with them are added to shared->done.
void ftl_dram_channel_advance(ftl_dram_channel *channel, ftl_dram_shared *shared, int64_t until);

#endif
