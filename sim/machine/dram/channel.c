#include "machine/dram/channel.h"

#include "base/check.h"
#include "base/integer.h"
#include "base/sectors.h"

typedef struct command {
  int64_t cycle;
  uint32_t bank;
  uint32_t entry;  // FTL_DRAM_NONE: no command
  bool is_column;  // else ACT, with the PRE before it
  int direction;
} command;

int32_t ftl_dram_drain_entries(const ftl_arch *arch) {
  int32_t entries = (int32_t)arch->dram_queue_entries;
  return entries < 4 ? 1 : entries * 3 / 4;
}

ftl_dram_timing ftl_dram_timing_init(const ftl_arch *arch) {
  int32_t entries = (int32_t)arch->dram_queue_entries;
  return (ftl_dram_timing){
      .rcd = arch->dram_trcd_cycles,
      .rp = arch->dram_trp_cycles,
      .ras = arch->dram_tras_cycles,
      .cl = arch->dram_tcl_cycles,
      .ccd_long = arch->dram_tccd_long_cycles,
      .rrd = arch->dram_trrd_cycles,
      .wtr = arch->dram_twtr_cycles,
      .rtw = arch->dram_trtw_cycles,
      .refi = arch->dram_trefi_cycles,
      .rfc = arch->dram_trfc_cycles,
      .burst = arch->dram_burst_cycles,
      .burst_bytes = arch->dram_burst_bytes,
      .ecc_milli = arch->dram_ecc_inline_milli,
      .num_banks = (uint32_t)(arch->dram_num_bank_groups * arch->dram_banks_per_group),
      .num_groups = (uint32_t)arch->dram_num_bank_groups,
      .queue_entries = entries,
      .drain_entries = ftl_dram_drain_entries(arch),
      .most_bypasses = (uint32_t)arch->dram_most_bypasses,
      .least_reads = entries / 4,  // a guess, as ftl_dram_drain_entries
  };
}

void ftl_dram_channel_reset(ftl_dram_channel *channel, const ftl_dram_timing *timing, uint32_t channel_idx,
                            uint32_t num_channels) {
  const ftl_dram_list none = {FTL_DRAM_NONE, FTL_DRAM_NONE};
  ftl_dram_bank *banks = channel->banks;
  *channel = (ftl_dram_channel){.banks = banks, .arriving = {none, none}};
  channel->next_refresh = timing->refi * (channel_idx + 1) / num_channels;
  for (uint32_t b = 0; b < timing->num_banks; b++) {
    banks[b] = (ftl_dram_bank){.group = (uint8_t)(b % timing->num_groups),
                               .entries = {none, none},
                               .hit = {FTL_DRAM_NONE, FTL_DRAM_NONE},
                               .next = {FTL_DRAM_NONE, FTL_DRAM_NONE}};
  }
}

static void list_append(ftl_dram_entry *entries, ftl_dram_list *list, uint32_t entry) {
  entries[entry].next = FTL_DRAM_NONE;
  if (list->head == FTL_DRAM_NONE) {
    list->head = entry;
  } else {
    entries[list->tail].next = entry;
  }
  list->tail = entry;
}

static void list_remove(ftl_dram_entry *entries, ftl_dram_list *list, uint32_t entry) {
  uint32_t before = FTL_DRAM_NONE;
  for (uint32_t i = list->head; i != entry; i = entries[i].next) before = i;
  if (before == FTL_DRAM_NONE) {
    list->head = entries[entry].next;
  } else {
    entries[before].next = entries[entry].next;
  }
  if (list->tail == entry) list->tail = before;
}

void ftl_dram_channel_push(ftl_dram_channel *channel, ftl_dram_shared *shared, uint32_t entry, bool is_write) {
  FTL_CHECK(shared->entries[entry].since >= channel->now,
            "dram: a request arrives at cycle %lld, the channel is at %lld", (long long)shared->entries[entry].since,
            (long long)channel->now);
  list_append(shared->entries, &channel->arriving[is_write], entry);
}

static void find_hit(const ftl_dram_entry *entries, ftl_dram_bank *bank, int direction) {
  uint32_t i = bank->is_open ? bank->entries[direction].head : FTL_DRAM_NONE;
  while (i != FTL_DRAM_NONE && entries[i].row != bank->row) i = entries[i].next;
  bank->hit[direction] = i;
}

// ACT for the bank's oldest request. The PRE before it went as early as it could: the command bus is not modelled.
static inline int64_t activate_cycle(const ftl_dram_shared *shared, const ftl_dram_bank *bank, int64_t since) {
  if (bank->is_open) return ftl_larger(bank->precharge_from, since) + shared->timing.rp;
  return ftl_larger(bank->activate_from, since);
}

// Whether the bank's next command is a column access: for the open row, unless older requests have waited too long.
static inline bool goes_on_with_row(const ftl_dram_timing *timing, const ftl_dram_bank *bank, int direction) {
  uint32_t hit = bank->hit[direction];
  return hit != FTL_DRAM_NONE && (bank->num_bypasses < timing->most_bypasses || hit == bank->entries[direction].head);
}

static bool is_open_next(const ftl_dram_queue *queue, uint32_t b) { return queue->opens[b / 64] >> (b % 64) & 1; }

static void columns_remove(ftl_dram_queue *queue, uint32_t b) {
  uint32_t i = 0;
  while (queue->columns[i] != b) i++;
  queue->num_columns--;
  for (; i < queue->num_columns; i++) queue->columns[i] = queue->columns[i + 1];
}

static void columns_insert(const ftl_dram_channel *channel, const ftl_dram_shared *shared, ftl_dram_queue *queue,
                           int direction, uint32_t b) {
  uint64_t order = shared->entries[channel->banks[b].next[direction]].order;
  uint32_t i = queue->num_columns++;
  for (; i > 0; i--) {
    uint8_t before = queue->columns[i - 1];
    if (shared->entries[channel->banks[before].next[direction]].order < order) break;
    queue->columns[i] = before;
  }
  queue->columns[i] = (uint8_t)b;
}

// Finds the bank's next command of a direction: to be called when its first entry, its first hit, its row or when it
// may be precharged has changed.
static void find_next(ftl_dram_channel *channel, const ftl_dram_shared *shared, uint32_t b, int direction) {
  ftl_dram_bank *bank = &channel->banks[b];
  ftl_dram_queue *queue = &channel->queues[direction];
  uint32_t before = bank->next[direction], next = bank->entries[direction].head;
  if (before == FTL_DRAM_NONE && next == FTL_DRAM_NONE) return;
  bool is_column = goes_on_with_row(&shared->timing, bank, direction);
  bool was_column = before != FTL_DRAM_NONE && !is_open_next(queue, b);
  if (is_column) next = bank->hit[direction];
  bank->next[direction] = next;
  if (was_column && is_column && next == before) return;
  uint64_t bit = (uint64_t)1 << (b % 64);
  if (was_column) columns_remove(queue, b);
  queue->opens[b / 64] &= ~bit;
  if (is_column) {
    columns_insert(channel, shared, queue, direction, b);
  } else if (next != FTL_DRAM_NONE) {
    queue->opens[b / 64] |= bit;
    bank->open_from[direction] = activate_cycle(shared, bank, shared->entries[next].since);
    if (bank->open_from[direction] < queue->opens_from) queue->opens_from = bank->open_from[direction];
  }
}

static void find_both_next(ftl_dram_channel *channel, const ftl_dram_shared *shared, uint32_t b) {
  find_next(channel, shared, b, FTL_DRAM_READ);
  find_next(channel, shared, b, FTL_DRAM_WRITE);
}

// Moves what has arrived by `now` into the queue, as far as it has room.
static void admit(ftl_dram_channel *channel, ftl_dram_shared *shared, int direction) {
  ftl_dram_list *arriving = &channel->arriving[direction];
  while (arriving->head != FTL_DRAM_NONE && channel->num_queued[direction] < shared->timing.queue_entries) {
    uint32_t index = arriving->head;
    ftl_dram_entry *entry = &shared->entries[index];
    if (entry->since > channel->now) break;
    arriving->head = entry->next;
    entry->since = channel->now;
    entry->order = channel->num_arrived++;
    ftl_dram_bank *bank = &channel->banks[entry->bank];
    bool is_first = bank->entries[direction].head == FTL_DRAM_NONE;
    bool is_hit = bank->is_open && entry->row == bank->row && bank->hit[direction] == FTL_DRAM_NONE;
    list_append(shared->entries, &bank->entries[direction], index);
    if (is_hit) bank->hit[direction] = index;
    if (is_first || is_hit) find_next(channel, shared, entry->bank, direction);
    if (direction == FTL_DRAM_WRITE && channel->num_queued[direction] == 0) channel->writes_since = channel->now;
    channel->num_queued[direction]++;
  }
}

// When the next request could enter the queue; INT64_MAX: no request, or no room.
static int64_t next_arrival(const ftl_dram_channel *channel, const ftl_dram_shared *shared) {
  int64_t earliest = INT64_MAX;
  for (int d = 0; d < FTL_DRAM_NUM_DIRECTIONS; d++) {
    if (channel->arriving[d].head == FTL_DRAM_NONE || channel->num_queued[d] >= shared->timing.queue_entries) continue;
    int64_t since = ftl_larger(shared->entries[channel->arriving[d].head].since, channel->now);
    if (since < earliest) earliest = since;
  }
  return earliest;
}

static inline int64_t column_cycle(const ftl_dram_channel *channel, uint32_t b, int64_t from) {
  const ftl_dram_bank *bank = &channel->banks[b];
  return ftl_larger(ftl_larger(bank->column_from, channel->group_from[bank->group]), from);
}

// The next command of all banks for a direction, not before `from`. First the earlier, then column accesses, then the
// older request: FR-FCFS.
static inline command first_command(ftl_dram_channel *channel, const ftl_dram_shared *shared, int direction,
                                    int64_t from) {
  ftl_dram_queue *queue = &channel->queues[direction];
  command best = {INT64_MAX, 0, FTL_DRAM_NONE, false, direction};
  if (queue->num_columns > 0) {
    int64_t column_from = ftl_larger(channel->bus_from[direction], from);
    uint32_t bank = queue->columns[0];
    int64_t cycle = column_cycle(channel, bank, column_from);
    for (uint32_t i = 1; i < queue->num_columns && cycle > column_from; i++) {
      int64_t other = column_cycle(channel, queue->columns[i], column_from);
      if (other >= cycle) continue;
      cycle = other;
      bank = queue->columns[i];
    }
    best = (command){cycle, bank, channel->banks[bank].next[direction], true, direction};
  }
  int64_t activate_from = ftl_larger(channel->activate_from, from);
  if (ftl_larger(activate_from, queue->opens_from) >= best.cycle) return best;
  queue->opens_from = INT64_MAX;
  for (uint32_t word = 0; word * 64 < shared->timing.num_banks; word++) {
    for (uint64_t opens = queue->opens[word]; opens != 0; opens &= opens - 1) {
      uint32_t b = word * 64 + (uint32_t)__builtin_ctzll(opens), entry = channel->banks[b].next[direction];
      int64_t opens_from = channel->banks[b].open_from[direction];
      if (opens_from < queue->opens_from) queue->opens_from = opens_from;
      int64_t cycle = ftl_larger(opens_from, activate_from);
      bool is_older =
          cycle == best.cycle && !best.is_column && shared->entries[entry].order < shared->entries[best.entry].order;
      if (cycle < best.cycle || is_older) best = (command){cycle, b, entry, false, direction};
    }
  }
  return best;
}

// When the writes in the queue have waited long enough; INT64_MAX: none wait, or reads are to be served before.
static inline int64_t drain_cycle(const ftl_dram_channel *channel, const ftl_dram_timing *timing) {
  bool may_drain = channel->turn == FTL_DRAM_READ && channel->turn_left == 0;
  return may_drain && channel->num_queued[FTL_DRAM_WRITE] > 0 ? channel->writes_since + timing->refi : INT64_MAX;
}

// Writes wait until they are many, or for an interval of refreshes, and are then served together: so many share the
// cost of turning the bus. Of the reads that have waited for them some are served before the next. To be called when
// requests have come or a turn is over.
static void choose_turn(ftl_dram_channel *channel, const ftl_dram_timing *timing) {
  if (channel->turn_left > 0) return;
  if (channel->turn == FTL_DRAM_WRITE) {
    channel->turn = FTL_DRAM_READ;
    channel->turn_left = ftl_smaller32(channel->num_queued[FTL_DRAM_READ], timing->least_reads);
    channel->writes_since = channel->now;
    if (channel->turn_left > 0) return;
  }
  int32_t num_writes = channel->num_queued[FTL_DRAM_WRITE];
  if (num_writes < timing->drain_entries && channel->now < drain_cycle(channel, timing)) return;
  channel->turn = FTL_DRAM_WRITE;
  channel->turn_left = ftl_smaller32(num_writes, timing->drain_entries);
}

static inline command next_command(ftl_dram_channel *channel, const ftl_dram_shared *shared) {
  return first_command(channel, shared, channel->turn, channel->now);
}

static void refresh(ftl_dram_channel *channel, const ftl_dram_shared *shared, int64_t cycle) {
  const ftl_dram_timing *timing = &shared->timing;
  // Refreshes of an idle stretch leave nothing behind: only the last one before `cycle` matters.
  int64_t start = channel->next_refresh + (cycle - channel->next_refresh) / timing->refi * timing->refi;
  channel->next_refresh = start + timing->refi;
  for (uint32_t b = 0; b < timing->num_banks; b++) {
    ftl_dram_bank *bank = &channel->banks[b];
    bank->is_open = false;
    bank->hit[FTL_DRAM_READ] = bank->hit[FTL_DRAM_WRITE] = FTL_DRAM_NONE;
    bank->activate_from = ftl_larger(bank->activate_from, start + timing->rfc);
    find_both_next(channel, shared, b);
  }
}

static void activate(ftl_dram_channel *channel, ftl_dram_shared *shared, const command *act) {
  const ftl_dram_timing *timing = &shared->timing;
  ftl_dram_bank *bank = &channel->banks[act->bank];
  shared->entries[act->entry].opened_row = true;
  bank->is_open = true;
  bank->row = shared->entries[act->entry].row;
  bank->num_bypasses = 0;
  bank->column_from = act->cycle + timing->rcd;
  bank->precharge_from = act->cycle + timing->ras;
  channel->activate_from = act->cycle + timing->rrd;
  find_hit(shared->entries, bank, FTL_DRAM_READ);
  find_hit(shared->entries, bank, FTL_DRAM_WRITE);
  find_both_next(channel, shared, act->bank);
}

static void retire(ftl_dram_channel *channel, ftl_dram_shared *shared, uint32_t index, int direction, int64_t cycle) {
  ftl_dram_entry *entry = &shared->entries[index];
  ftl_dram_bank *bank = &channel->banks[entry->bank];
  list_remove(shared->entries, &bank->entries[direction], index);
  find_hit(shared->entries, bank, direction);
  channel->num_queued[direction]--;
  if (entry->opened_row) {
    shared->counters.row_misses++;
  } else {
    shared->counters.row_hits++;
  }
  int64_t bytes = (int64_t)entry->num_sectors * FTL_SECTOR_BYTES;
  if (direction == FTL_DRAM_READ) {
    shared->counters.read_bytes += bytes;
    shared->done[shared->num_done++] = (ftl_dram_done){cycle + shared->timing.cl + shared->timing.burst, entry->cookie};
  } else {
    shared->counters.write_bytes += bytes;
  }
  if (channel->turn_left > 0) channel->turn_left--;
  entry->next = shared->free_entry;
  shared->free_entry = index;
  shared->num_pending--;
}

// Bursts of ECC that the ones so far have made due: they lie in the same row and go with the data.
static int64_t take_ecc_bursts(ftl_dram_channel *channel, ftl_dram_shared *shared, int direction) {
  if (shared->timing.ecc_milli == 0) return 0;
  channel->ecc_debt_milli += shared->timing.ecc_milli;
  int64_t bursts = channel->ecc_debt_milli / 1000;
  channel->ecc_debt_milli -= bursts * 1000;
  int64_t bytes = bursts * shared->timing.burst_bytes;
  if (direction == FTL_DRAM_READ) {
    shared->counters.read_bytes += bytes;
  } else {
    shared->counters.write_bytes += bytes;
  }
  return bursts;
}

// True: the queue was full and has got room, as the request has left it with its last burst, or the turn is over.
static bool access_column(ftl_dram_channel *channel, ftl_dram_shared *shared, const command *column) {
  const ftl_dram_timing *timing = &shared->timing;
  int direction = column->direction;
  ftl_dram_bank *bank = &channel->banks[column->bank];
  int64_t data_cycles = timing->burst * (1 + take_ecc_bursts(channel, shared, direction));
  int64_t end = column->cycle + data_cycles;
  shared->counters.busy_cycles += data_cycles;
  channel->group_from[bank->group] = column->cycle + timing->ccd_long;
  if (direction == FTL_DRAM_READ) {
    channel->bus_from[FTL_DRAM_READ] = end;
    channel->bus_from[FTL_DRAM_WRITE] = end + timing->cl + timing->rtw;
    bank->precharge_from = ftl_larger(bank->precharge_from, end);
  } else {
    channel->bus_from[FTL_DRAM_WRITE] = end;
    channel->bus_from[FTL_DRAM_READ] = end + timing->wtr;
    bank->precharge_from = ftl_larger(bank->precharge_from, end + timing->wtr);
  }
  bool is_bypass = bank->entries[direction].head != column->entry;
  bool is_last = --shared->entries[column->entry].num_bursts == 0;
  bool ends_turn = channel->turn_left == 1;
  if (is_bypass) bank->num_bypasses++;
  if (is_last) retire(channel, shared, column->entry, direction, end - timing->burst);
  if (is_bypass || is_last) find_next(channel, shared, column->bank, direction);
  int other = direction == FTL_DRAM_READ ? FTL_DRAM_WRITE : FTL_DRAM_READ;
  if (bank->next[other] != FTL_DRAM_NONE) find_next(channel, shared, column->bank, other);
  return is_last && (ends_turn || channel->num_queued[direction] == timing->queue_entries - 1);
}

void ftl_dram_channel_advance(ftl_dram_channel *channel, ftl_dram_shared *shared, int64_t until) {
  int64_t event = channel->now;  // the next arrival or turn, or `now` where the queue has got room
  for (;;) {
    if (event <= channel->now) {
      admit(channel, shared, FTL_DRAM_READ);
      admit(channel, shared, FTL_DRAM_WRITE);
      choose_turn(channel, &shared->timing);
      event = ftl_smaller(next_arrival(channel, shared), drain_cycle(channel, &shared->timing));
    }
    command next = next_command(channel, shared);
    if (event <= next.cycle) {
      if (event >= until) return;
      channel->now = event;
      continue;
    }
    if (next.cycle >= until) return;
    if (next.cycle >= channel->next_refresh) {
      refresh(channel, shared, next.cycle);
      continue;
    }
    channel->now = next.cycle;
    if (next.is_column) {
      if (access_column(channel, shared, &next)) event = channel->now;
    } else {
      activate(channel, shared, &next);
    }
  }
}
