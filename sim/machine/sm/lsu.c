// Local and global memory: lines through L1, merged misses, stores, cp.async.
//
// Loads: what L1 has is ready after the hit latency; a missing sector that is already on its way is waited for (counted
// as a hit, as it makes no traffic), others are asked of L2 and put into L1 when they come; the token is ready in the
// cycle of the last reply. One of less than 4 bytes a lane that waits for lines takes l1.subword_miss_cycles. Stores
// are written through; those to local memory stay in L1 too. cp.async that bypasses L1 asks L2 for every line; it takes
// the data pipe as it is issued, and arriving lines are written past it, an even share of the instruction's wavefronts
// each.
#include "base/integer.h"
#include "machine/sm/state.h"

enum { FILL_BUCKETS = SM_FILL_BUCKETS, SECTOR_WORDS = 8, WORD_BYTES = 4 };

static int32_t take_waiter(ftl_sm *sm, int32_t load, int32_t next) {
  int32_t i = sm->free_waiter;
  FTL_CHECK(i >= 0, "SM %d: no free waiter", sm->config.sm_idx);
  sm->free_waiter = sm->waiters[i].next;
  sm->waiters[i] = (sm_waiter){load, next};
  return i;
}

static int32_t take_load(ftl_sm *sm, const sm_load *what) {
  int32_t i = sm->free_load;
  FTL_CHECK(i >= 0, "SM %d: no free load", sm->config.sm_idx);
  sm->free_load = sm->loads[i].next_free;
  sm->loads[i] = *what;
  return i;
}

static void put_load(ftl_sm *sm, int32_t load) {
  sm->loads[load].next_free = sm->free_load;
  sm->free_load = load;
}

static int32_t *bucket_of(ftl_sm *sm, uint64_t line) { return &sm->fill_buckets[line % FILL_BUCKETS]; }

// ---- cp.async groups ----
static void finish_groups(ftl_sm *sm, sm_warp *w, int64_t now) {
  while (w->cp_done < w->cp_closed && w->cp_pending[w->cp_done % SM_GROUPS] == 0) {
    int64_t *arrived = &w->cp_arrived[w->cp_done % SM_GROUPS];
    int64_t before = w->cp_done > 0 ? w->cp_arrived[(w->cp_done - 1) % SM_GROUPS] : 0;
    if (*arrived < before) *arrived = before;
    w->cp_done++;
  }
  if (w->blocked == SM_ON_CP_GROUP) ftl_sm_warp_retry(sm, w, now);
}

void ftl_sm_cp_commit(ftl_sm *sm, sm_warp *w, int64_t now) {
  w->cp_closed++;
  FTL_CHECK(w->cp_closed - w->cp_done < SM_GROUPS, "warp %d: %d groups of cp.async in flight", w->warp, SM_GROUPS);
  finish_groups(sm, w, now);
  w->cp_arrived[w->cp_closed % SM_GROUPS] = 0;
}

void ftl_sm_cp_arrive(ftl_sm *sm, sm_warp *w, int32_t group, int64_t now, int64_t arrived) {
  if (w->cp_arrived[group] < arrived) w->cp_arrived[group] = arrived;
  if (--w->cp_pending[group] == 0) finish_groups(sm, w, now);
}

// ---- loads through L1 ----
static void finish_load(ftl_sm *sm, int32_t load_idx, int64_t now) {
  sm_load load = sm->loads[load_idx];
  put_load(sm, load_idx);
  int64_t ready = load.earliest > now ? load.earliest : now;
  if (load.is_cp)
    ftl_sm_cp_arrive(sm, load.warp, load.group, now,
                     sm_reserve_data(sm, now, load.data_cycles) + sm->arch->l1_copy_latency_cycles);
  else if (load.sets_token)
    sm_token_set(sm, load.warp, load.token, now, ready, SM_PRODUCER_GLOBAL);
  if (load.scoreboard) sm_load_has_come(sm, load.warp, load.scoreboard - 1, now);
  if (load.counts) ftl_sm_load_done(sm, load.warp, now);
}

// Waits for sectors of the line that are on their way; gives those that are not.
static uint8_t join_fills(ftl_sm *sm, int32_t load, uint64_t line, uint8_t sectors, int32_t *made) {
  for (int32_t i = *bucket_of(sm, line); i >= 0 && sectors; i = sm->transactions[i].next) {
    sm_transaction *tx = &sm->transactions[i];
    if (tx->line != line || !(tx->sectors & sectors)) continue;
    tx->waiters = take_waiter(sm, load, tx->waiters);
    sectors &= (uint8_t)~tx->sectors;
    ++*made;
  }
  return sectors;
}

static void ask_fill(ftl_sm *sm, int32_t load, const ftl_line *line, bool is_local, uint8_t priority, int64_t now) {
  sm_transaction tx = {.kind = SM_TX_FILL, .is_local = is_local, .priority = priority, .waiters = -1};
  int32_t i = sm_request(sm, now, line, FTL_MEM_READ, tx);
  sm->transactions[i].waiters = take_waiter(sm, load, -1);
  sm->transactions[i].next = *bucket_of(sm, line->line);
  *bucket_of(sm, line->line) = i;
}

static int32_t load_lines(ftl_sm *sm, const sm_mio_entry *entry, const ftl_line *lines, int32_t count, int64_t now) {
  const sm_op *op = entry->op;
  bool is_cp = op->opcode == FTL_OP_CP_ASYNC, is_local = op->opcode == FTL_OP_LDL;
  int32_t made = 0,
          load = take_load(sm, &(sm_load){.warp = entry->warp,
                                          .token = op->destination,
                                          .data_cycles = op->data_cycles,
                                          .group = (uint8_t)entry->group,
                                          .is_cp = is_cp,
                                          .sets_token = entry->last && !is_cp,
                                          .counts = op->counts,
                                          .scoreboard = op->scoreboard,
                                          .earliest = sm_data_start(sm, now) + op->latency + op->extra_cycles});
  for (int32_t i = 0; i < count; i++) {
    uint8_t sectors = lines[i].sectors;
    sm->counters.l1_load_sectors += ftl_num_sectors(sectors);
    uint8_t missing = sectors & (uint8_t)~ftl_sm_l1_lookup(&sm->l1, lines[i].line);
    missing = join_fills(sm, load, lines[i].line, missing, &made);
    int32_t hits = ftl_num_sectors(sectors) - ftl_num_sectors(missing);
    sm->counters.l1_load_hit_sectors += hits;
    if (is_local) {
      sm->counters.l1_local_load_sectors += ftl_num_sectors(sectors);
      sm->counters.l1_local_load_hit_sectors += hits;
    }
    if (!missing) continue;
    ftl_sm_l1_ask(&sm->l1, lines[i].line);
    ask_fill(sm, load, &(ftl_line){.line = lines[i].line, .sectors = missing}, is_local, op->priority, now);
    made++;
  }
  sm->loads[load].remaining = made;
  entry->warp->outstanding += made;
  if (is_cp) entry->warp->cp_pending[entry->group]++;
  if (made == 0) finish_load(sm, load, now);
  return made;
}

void ftl_sm_fill_reply(ftl_sm *sm, int32_t index, int64_t now) {
  sm_transaction *tx = &sm->transactions[index];
  int32_t *link = bucket_of(sm, tx->line), waiters = tx->waiters, count = 0;
  while (*link != index) link = &sm->transactions[*link].next;
  *link = tx->next;
  ftl_sm_l1_fill(&sm->l1, tx->line, tx->sectors);
  while (waiters >= 0) {
    sm_waiter *waiter = &sm->waiters[waiters];
    int32_t next = waiter->next, load = waiter->load;
    waiter->next = sm->free_waiter;
    sm->free_waiter = waiters;
    waiters = next;
    count++;
    sm_warp *w = sm->loads[load].warp;
    if (--sm->loads[load].remaining == 0) finish_load(sm, load, now);
    sm_outstanding_done(sm, w, now);
  }
  sm_lg_add(sm, -count);
}

// ---- stores, and copies that bypass L1 ----
static bool is_masked(const ftl_line *line) { return (line->sectors & ~line->full_sectors) != 0; }

// A request is its sectors, and a mask of bytes where it has not all bytes of them. The next store is taken when no
// more than `waiting` bytes wait for the port.
static void hand_on(ftl_sm *sm, const ftl_line *lines, int32_t count, int64_t waiting, int64_t now) {
  const ftl_arch *arch = sm->arch;
  int64_t sectors = 0;
  for (int32_t i = 0; i < count; i++)
    sectors += ftl_num_sectors(lines[i].sectors) + (is_masked(&lines[i]) ? arch->l1_byte_mask_sectors : 0);
  if (sm->store_port_free < now) sm->store_port_free = now;
  sm->store_port_free += ftl_divide_up(sectors * arch->l1_sector_bytes, arch->l1_store_bytes_per_cycle);
  sm->store_free = sm->store_port_free - ftl_divide_up(waiting, arch->l1_store_bytes_per_cycle);
}

// As many sectors wait as there are open lines.
void ftl_sm_lsu_hand_on(ftl_sm *sm, const ftl_line *lines, int32_t count, int64_t now) {
  hand_on(sm, lines, count, sm->arch->l1_store_merge_lines * sm->arch->l1_sector_bytes, now);
}

void ftl_sm_count_global_store(ftl_sm *sm, const ftl_line *line) {
  sm->counters.global_store_sectors += ftl_num_sectors(line->sectors);
  sm->counters.global_store_masks += is_masked(line);
}

// A store finds the sectors that L1 holds (`found`), and all of a line that waits for more of it. That does not count
// as a use of theirs, and they are sent all the same.
static void count_l1_store(ftl_sm *sm, const ftl_line *line, uint8_t found) {
  sm->counters.l1_store_sectors += ftl_num_sectors(line->sectors);
  sm->counters.l1_store_hit_sectors += ftl_num_sectors(line->sectors & found);
}

// RED: L2 adds each line, and nothing of it stays here. A request takes a sector more than its data, whether lanes have
// all words or some: 32 adjacent words leave an SM every 4.99 cycles, 8 rows of 2 and of every other of 8 words every
// 15.9 (micro_red_patterns.csv).
static int32_t add_lines(ftl_sm *sm, const sm_mio_entry *entry, ftl_line *lines, int32_t count, int64_t now) {
  bool in_words = sm->program->accesses[entry->op->access].in_words;
  for (int32_t i = 0; i < count; i++) lines[i].full_sectors = 0;
  ftl_sm_lsu_hand_on(sm, lines, count, now);
  for (int32_t i = 0; i < count; i++) {
    sm->counters.l1_store_sectors += ftl_num_sectors(lines[i].sectors);
    sm->counters.added_sectors += ftl_num_sectors(lines[i].sectors);
    sm->counters.added_bytes += WORD_BYTES * __builtin_popcount(lines[i].words) / (in_words ? FTL_PAIR_WORDS : 1);
    sm_request(sm, now, &lines[i], FTL_MEM_ATOMIC,
               (sm_transaction){.kind = SM_TX_STORE, .priority = entry->op->priority});
  }
  sm->counters.added_requests += count;
  return count;
}

static ftl_line line_of(const sm_open_line *closed) {
  ftl_line line = {.line = closed->line, .words = closed->words};
  for (int32_t i = 0; i < FTL_LINE_SECTORS; i++) {
    uint32_t words = closed->words >> (SECTOR_WORDS * i) & ((1u << SECTOR_WORDS) - 1);
    line.sectors |= (uint8_t)((words != 0) << i);
    line.full_sectors |= (uint8_t)((words == (1u << SECTOR_WORDS) - 1) << i);
  }
  return line;
}

// Closed lines go to L2.
static void send_stored(ftl_sm *sm, const sm_open_line *closed, int32_t count, int64_t now) {
  if (count == 0) return;
  ftl_line lines[SM_MAX_LINES];
  for (int32_t i = 0; i < count; i++) lines[i] = line_of(&closed[i]);
  ftl_sm_lsu_hand_on(sm, lines, count, now);
  for (int32_t i = 0; i < count; i++) {
    ftl_sm_count_global_store(sm, &lines[i]);
    sm_request(sm, now, &lines[i], FTL_MEM_WRITE,
               (sm_transaction){.kind = SM_TX_STORE, .priority = closed[i].priority});
  }
}

void ftl_sm_lsu_close_lines(ftl_sm *sm, int64_t now) {
  sm_open_line closed;
  while (ftl_sm_store_merge_take(&sm->store_merge, now, &closed)) send_stored(sm, &closed, 1, now);
  ftl_sm_mio_stores_wait(sm);
}

// Gives the number of lines that it opens: those are in flight from now on.
static int32_t store_global(ftl_sm *sm, const sm_mio_entry *entry, const ftl_line *lines, int32_t count, int64_t now) {
  bool in_words = sm->program->accesses[entry->op->access].in_words;
  sm_open_line closed[SM_MAX_LINES];
  int32_t num_closed = 0, opened = 0;
  for (int32_t i = 0; i < count; i++) {
    uint8_t held = ftl_sm_l1_present(&sm->l1, lines[i].line);
    if (lines[i].full_sectors) ftl_sm_l1_write(&sm->l1, lines[i].line, lines[i].full_sectors);
    sm_open_line store = {.line = lines[i].line, .words = lines[i].words, .priority = entry->op->priority};
    bool opens = ftl_sm_store_merge_add(&sm->store_merge, sm->arch, store, in_words, now + count, &closed[num_closed]);
    count_l1_store(sm, &lines[i], opens ? held : lines[i].sectors);
    opened += opens;
    num_closed += closed[num_closed].words != 0;
  }
  send_stored(sm, closed, num_closed, now);
  return opened;
}

// Local memory's lines wait whole, as many as may be open: 8 warps that store two each and load them take 58 cycles for
// all of it, 16 lines, whose port alone has 64 (micro_local_memory.csv).
static int32_t store_local(ftl_sm *sm, const ftl_line *lines, int32_t count, int64_t now) {
  hand_on(sm, lines, count, sm->arch->l1_store_merge_lines * sm->arch->l1_line_bytes, now);
  for (int32_t i = 0; i < count; i++) {
    count_l1_store(sm, &lines[i], ftl_sm_l1_present(&sm->l1, lines[i].line));
    ftl_sm_l1_write(&sm->l1, lines[i].line, lines[i].sectors);
    sm_request(sm, now, &lines[i], FTL_MEM_WRITE, (sm_transaction){.kind = SM_TX_LOCAL_STORE, .is_local = true});
  }
  return count;
}

static int32_t copy_lines(ftl_sm *sm, const sm_mio_entry *entry, const ftl_line *lines, int32_t count, int64_t now) {
  int32_t cycles = entry->op->data_cycles, before = 0;
  sm_transaction tx = {
      .kind = SM_TX_CP, .warp = entry->warp, .group = (uint8_t)entry->group, .priority = entry->op->priority};
  for (int32_t i = 0; i < count; i++) {
    sm->counters.l1_load_sectors += ftl_num_sectors(lines[i].sectors);
    int32_t after = cycles * (i + 1) / count;
    tx.data_cycles = (uint16_t)(after - before);
    before = after;
    sm_request(sm, now, &lines[i], FTL_MEM_READ, tx);
  }
  entry->warp->outstanding += count;
  entry->warp->cp_pending[entry->group] += count;
  // a line's address takes as long as its data would, beside what shared memory sends meanwhile
  sm->lines_free = now + count * sm->arch->l1_line_bytes / sm->arch->l1_bytes_per_cycle;
  return count;
}

static int32_t make_lines(ftl_sm *sm, const sm_mio_entry *entry, ftl_line *lines, int32_t count, int64_t now) {
  switch (entry->op->opcode) {
    case FTL_OP_STG:
      return store_global(sm, entry, lines, count, now);
    case FTL_OP_RED:
      return add_lines(sm, entry, lines, count, now);
    case FTL_OP_STL:
      return store_local(sm, lines, count, now);
    case FTL_OP_CP_ASYNC:
      if (entry->op->flags & FTL_INST_BYPASS_L1) return copy_lines(sm, entry, lines, count, now);
      return load_lines(sm, entry, lines, count, now);
    default:
      return load_lines(sm, entry, lines, count, now);
  }
}

// Of an instruction that stores all of its tile, as of a number that has a sector to itself, those of the sectors.
static void count_stored(ftl_sm *sm, const sm_mio_entry *entry, const ftl_access *access, const ftl_line *lines,
                         int32_t count) {
  const ftl_tile_place *place = entry->place;
  ftl_access_start start = ftl_access_start_of(access, place, entry->warp->warp_in_role);
  int32_t rows_left = ftl_divide_up32(place->num_rows - start.row, access->row_step);
  int32_t num_rows = rows_left < access->num_rows ? rows_left : access->num_rows;
  int64_t bytes = num_rows > 0 ? (int64_t)num_rows * start.bytes : 0, sectors = 0;
  for (int32_t i = 0; i < count; i++) sectors += ftl_num_sectors(lines[i].sectors);
  bool is_whole = bytes == (int64_t)place->num_rows * place->row_bytes;
  if (is_whole) bytes = sectors * sm->arch->l1_sector_bytes;
  sm->counters.global_store_bytes += access->in_words ? bytes / FTL_LANE_WORDS : bytes;
}

// Sectors of which an LDG has the end of what the tile has there: another has what lies before.
static void count_loaded_again(ftl_sm *sm, const sm_mio_entry *entry, const ftl_access *access) {
  const ftl_tile_place *place = entry->place;
  ftl_access_start start = ftl_access_start_of(access, place, entry->warp->warp_in_role);
  bool has_row_before = access->row_step == 1 && start.bytes == place->row_bytes;
  for (int32_t i = 0, row = start.row; start.bytes > 0 && i < access->num_rows && row < place->num_rows; i++) {
    int64_t begin = ftl_tile_place_row(place, row);
    bool continues = start.column_byte > 0;
    if (!continues && row > 0 && !(i > 0 && has_row_before))
      continues = ftl_tile_place_row(place, row - 1) + place->row_bytes == begin;
    sm->counters.l1_again_load_sectors += continues && (begin + start.column_byte) % sm->arch->l1_sector_bytes != 0;
    row += access->row_step;
  }
}

int64_t ftl_sm_lsu_access(ftl_sm *sm, const sm_mio_entry *entry, int64_t now) {
  const sm_op *op = entry->op;
  sm_warp *w = entry->warp;
  const ftl_access *access = &sm->program->accesses[op->access];
  ftl_tile_place local = {.address_bytes = w->local_address_bytes,
                          .row_stride_bytes = FTL_LOCAL_SLOT_BYTES,
                          .num_rows = INT32_MAX,
                          .row_bytes = FTL_LOCAL_SLOT_BYTES};
  ftl_line lines[SM_MAX_LINES];
  int32_t count =
      ftl_access_lines(access, access->is_local ? &local : entry->place, w->warp_in_role, lines, SM_MAX_LINES);
  FTL_CHECK(count <= op->max_lines, "an access of %d lines, %d at most expected", count, op->max_lines);
  int32_t made = make_lines(sm, entry, lines, count, now);
  sm_lg_add(sm, made);
  if (op->opcode == FTL_OP_STG) count_stored(sm, entry, access, lines, count);
  if (op->opcode == FTL_OP_LDG) count_loaded_again(sm, entry, access);
  bool is_cp = op->opcode == FTL_OP_CP_ASYNC, is_load = op->opcode == FTL_OP_LDG || op->opcode == FTL_OP_LDL;
  // a token of a store or copy says that its registers were read
  if (!is_load && entry->last)
    sm_token_set(sm, w, op->destination, now, now + sm->arch->l1_operand_release_cycles, op->producer);
  if (is_cp) ftl_sm_cp_arrive(sm, w, entry->group, now, now + 1);
  if (is_load && access->in_subwords && made > 0) return sm_later(op->data_cycles, sm->arch->l1_subword_miss_cycles);
  if (!is_cp) return op->data_cycles;
  sm->data_free = sm_data_start(sm, now) + op->data_cycles;  // and needs no room among what waits for the pipe
  return 0;
}
