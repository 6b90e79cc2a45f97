// TMA: bulk tensor copies between L2 and shared memory, line by line.
//
// Copies under way take turns, a line each, at tma.lines_per_cycle_milli and with at most tma.max_pending_lines in
// flight; the first line of a copy goes tma.latency_cycles after it issued. A line takes one wavefront of the data pipe
// when it is written to (loads: on arrival) or read from shared memory. Lines that are stored go when the store port
// has passed what came before (kernels/measurements/micro_tma_store.csv: 31.6 to 31.8 bytes a cycle from one SM, as by
// the LSU). Rows outside the tensor make no lines.
#include "base/integer.h"
#include "base/sectors.h"
#include "machine/sm/state.h"

static int64_t line_cycles(const ftl_sm *sm) { return ftl_divide_up(FTL_LINE_BYTES, sm->arch->shared_bytes_per_cycle); }

// A line goes at `now`: the engine's rate lets the next one go later.
static void take_rate(ftl_sm *sm, int64_t now, int64_t cost) {
  sm_tma *tma = &sm->tma;
  if (now > tma->rate_free) {
    tma->rate_start = now;
    tma->rate_cost = 0;
  }
  tma->rate_cost += cost;
  tma->rate_free = tma->rate_start + tma->rate_cost * 1000 / (SM_LINE_COST * sm->arch->tma_lines_per_cycle_milli);
}

static bool is_full(const ftl_sm *sm) { return sm->tma.pending_cost >= SM_LINE_COST * sm->arch->tma_max_pending_lines; }

// The first copy that may go on does so in `eligible`.
static void set_next(ftl_sm *sm, int64_t eligible) {
  sm->tma.next = is_full(sm) ? SM_NEVER : sm_later(eligible, sm->tma.rate_free);
}

static int64_t eligible_at(const ftl_sm *sm, const sm_copy *copy) {
  return copy->is_store ? sm_later(copy->eligible, sm->store_port_free) : copy->eligible;
}

static void find_next(ftl_sm *sm) {
  const sm_tma *tma = &sm->tma;
  int64_t next = SM_NEVER;
  for (int32_t i = 0; i < tma->num_copies; i++) {
    int64_t eligible = eligible_at(sm, &tma->copies[i]);
    if (eligible < next) next = eligible;
  }
  set_next(sm, next);
}

static void open_pipes(ftl_sm *sm, int64_t cycle) {
  for (int32_t s = 0; s < sm->num_subcores; s++) {
    sm_subcore *sc = &sm->subcores[s];
    sc->pipe_free[FTL_SM_PIPE_TMA] = cycle;
    sm_subcore_wake(sc, cycle);
  }
}

// A load reads the whole width of its box, whatever lies in memory past the tensor's last column
// (kernels/measurements/micro_tma_columns_ncu.csv).
static int32_t row_bytes_of(const ftl_sm *sm, const sm_warp *w, const ftl_access_start *start) {
  if (w->op->opcode != FTL_OP_TMA_LOAD || start->bytes <= 0) return start->bytes;
  int32_t box_bytes = sm->program->rings[w->op->arg].box_bytes;
  return start->bytes > box_bytes ? start->bytes : box_bytes;
}

// Rows [first, first + num_rows) of an access, as far as the tensor has them.
static sm_copy copy_of_rows(ftl_sm *sm, sm_warp *w, int32_t first, int32_t num_rows, int64_t now) {
  const ftl_access *access = &sm->program->accesses[w->op->access];
  const ftl_tile_place *place = &w->places[access->ref];
  ftl_access_start start = ftl_access_start_of(access, place, w->warp_in_role);
  int32_t row = start.row + first * access->row_step, exist = start.bytes > 0 ? place->num_rows - row : 0;
  int32_t rows = exist <= 0 ? 0 : ftl_divide_up32(exist, access->row_step);
  sm_copy copy = {.warp = w,
                  .eligible = now + sm->arch->tma_latency_cycles,
                  .rows_left = rows < num_rows ? rows : num_rows,
                  .cost = SM_LINE_COST,
                  .next_row = rows > 0 ? (uint64_t)(ftl_tile_place_row(place, row) + start.column_byte) : 0,
                  .row_step_bytes = (uint64_t)(place->row_stride_bytes * access->row_step),
                  .row_bytes = (uint64_t)row_bytes_of(sm, w, &start),
                  .priority = w->op->priority,
                  .is_store = w->op->opcode == FTL_OP_TMA_STORE};
  if (!copy.is_store) ftl_sm_stage(sm, w, w->op->arg, w->filled[w->op->arg], &copy.stage);
  return copy;
}

static bool next_row(sm_copy *copy) {
  if (copy->rows_left == 0) return false;
  copy->rows_left--;
  copy->byte = copy->next_row;
  copy->end = copy->byte + copy->row_bytes;
  copy->next_row += copy->row_step_bytes;
  return true;
}

enum { WORD_BYTES = 4 };

// What the current row has in the line that begins at `begin`.
static void take_part(sm_copy *copy, uint64_t begin, ftl_line *line) {
  uint64_t from = copy->byte - begin, left = copy->end - begin, to = left < FTL_LINE_BYTES ? left : FTL_LINE_BYTES;
  if (to - from == FTL_LINE_BYTES) {  // the usual case
    line->sectors = line->full_sectors = FTL_ALL_SECTORS;
    line->words = UINT32_MAX;
  } else {
    uint8_t touched =
        (uint8_t)ftl_mask_between(from / FTL_SECTOR_BYTES, (to + FTL_SECTOR_BYTES - 1) / FTL_SECTOR_BYTES);
    uint8_t covered =
        (uint8_t)ftl_mask_between((from + FTL_SECTOR_BYTES - 1) / FTL_SECTOR_BYTES, to / FTL_SECTOR_BYTES);
    line->sectors = (uint8_t)(line->sectors | touched);
    line->full_sectors = (uint8_t)(line->full_sectors | covered);
    line->words |= ftl_mask_between(from / WORD_BYTES, to / WORD_BYTES);
  }
  copy->byte = begin + to;
}

// The next line, with what following rows have in it; false: the copy is through.
static bool next_line(sm_copy *copy, ftl_line *line) {
  if (copy->byte == copy->end && !next_row(copy)) return false;
  *line = (ftl_line){.line = copy->byte / FTL_LINE_BYTES};
  uint64_t begin = line->line * FTL_LINE_BYTES;
  do {
    take_part(copy, begin, line);
  } while (copy->byte == copy->end && copy->next_row - begin < FTL_LINE_BYTES && next_row(copy));
  return true;
}

// What the CTA copies of the rows: all, or its share of a load that several CTAs make together. Alone it stands for all
// of them, at their rates together.
static sm_copy copy_of_share(ftl_sm *sm, sm_warp *w, int64_t now) {
  int32_t num_rows = sm->program->accesses[w->op->access].num_rows, ring = w->op->arg;
  bool is_load = w->op->opcode == FTL_OP_TMA_LOAD;
  int32_t sharing = is_load ? ftl_sm_sharing_ctas(sm, ring) : 1;
  if (sharing == 1 || sm->config.is_alone) {
    sm_copy copy = copy_of_rows(sm, w, 0, num_rows, now);
    copy.cost = (uint8_t)(SM_LINE_COST / sharing);
    return copy;
  }
  int32_t member = ftl_multicast_member(sm->program->rings[ring].multicast, w->point.cta);
  sm_copy copy = copy_of_rows(sm, w, member * (num_rows / sharing), num_rows / sharing, now);
  copy.peers = ftl_sm_peers(sm, w->slot, ring);
  return copy;
}

// Lines that the other CTAs copy of the same tile.
static int32_t lines_of_peers(ftl_sm *sm, sm_warp *w, int64_t now) {
  int32_t sharing = ftl_sm_sharing_ctas(sm, w->op->arg), count = 0;
  int32_t rows = sm->program->accesses[w->op->access].num_rows / sharing;
  int32_t member = ftl_multicast_member(sm->program->rings[w->op->arg].multicast, w->point.cta);
  for (int32_t i = 0; i < sharing; i++) {
    if (i == member) continue;
    sm_copy copy = copy_of_rows(sm, w, i * rows, rows, now);
    for (ftl_line line; next_line(&copy, &line);) count++;
  }
  return count;
}

void ftl_sm_tma_issue(ftl_sm *sm, sm_warp *w, int64_t now) {
  sm_tma *tma = &sm->tma;
  sm_copy *copy = &tma->copies[tma->num_copies++];
  *copy = copy_of_share(sm, w, now);
  if (copy->is_store) {
    w->tma_stores++;
    w->outstanding++;
  } else {
    sm->stages[copy->stage].pending_lines++;
    if (copy->peers) sm->stages[copy->stage].pending_lines += lines_of_peers(sm, w, now);
  }
  if (tma->num_copies == SM_MAX_COPIES) open_pipes(sm, SM_NEVER);
  find_next(sm);
}

static void send_line(ftl_sm *sm, sm_copy *copy, const ftl_line *line, int64_t now) {
  sm_transaction tx = {.kind = copy->is_store ? SM_TX_TMA_STORE : SM_TX_TMA_LOAD,
                       .warp = copy->warp,
                       .stage = copy->stage,
                       .priority = copy->priority,
                       .peers = copy->peers,
                       .group = copy->cost};
  if (copy->is_store) {
    sm_reserve_data(sm, now, line_cycles(sm));
    ftl_sm_lsu_hand_on(sm, line, 1, now);
    ftl_sm_count_global_store(sm, line);
    sm->counters.global_store_bytes += WORD_BYTES * __builtin_popcount(line->words);
  } else {
    sm->stages[copy->stage].pending_lines++;
  }
  sm_request(sm, now, line, copy->is_store ? FTL_MEM_WRITE : FTL_MEM_READ, tx);
  sm->tma.pending_cost += copy->cost;
}

static void finish_copy(ftl_sm *sm, int32_t index, int64_t now) {
  sm_tma *tma = &sm->tma;
  sm_copy copy = tma->copies[index];
  if (tma->num_copies-- == SM_MAX_COPIES) open_pipes(sm, sm->floor);
  for (int32_t i = index; i < tma->num_copies; i++) tma->copies[i] = tma->copies[i + 1];
  if (copy.is_store) {
    copy.warp->tma_stores--;
    if (copy.warp->blocked == SM_ON_TMA_STORE) ftl_sm_warp_retry(sm, copy.warp, now);
    sm_outstanding_done(sm, copy.warp, now);
  } else {
    sm->stages[copy.stage].pending_lines--;
    sm->stages[copy.stage].time = sm_later(sm->stages[copy.stage].time, now);
    ftl_sm_stage_try_complete(sm, copy.stage, now);
  }
}

// -1: none may go on, as where the LSU has taken the store port meanwhile.
static int32_t copy_in_turn(const ftl_sm *sm, int64_t now) {
  const sm_tma *tma = &sm->tma;
  int32_t index = tma->turn < tma->num_copies ? tma->turn : 0;
  for (int32_t i = 0; i < tma->num_copies; i++) {
    if (eligible_at(sm, &tma->copies[index]) <= now) return index;
    index = index + 1 < tma->num_copies ? index + 1 : 0;
  }
  return -1;
}

static bool is_through(const sm_copy *copy) { return copy->byte == copy->end && copy->rows_left == 0; }

// One line of the copy whose turn it is; a copy leaves with its last line.
static void step_copy(ftl_sm *sm, int32_t index, int64_t now) {
  sm_tma *tma = &sm->tma;
  sm_copy *copy = &tma->copies[index];
  ftl_line line;
  if (next_line(copy, &line)) {
    send_line(sm, copy, &line, now);
    take_rate(sm, now, copy->cost);
  }
  bool is_store = copy->is_store, ends = is_through(copy);
  tma->turn = ends ? index : index + 1;
  if (ends) finish_copy(sm, index, now);
  if (ends || is_store)
    find_next(sm);
  else
    set_next(sm, now);
}

void ftl_sm_tma_step(ftl_sm *sm, int64_t now) {
  while (sm->tma.next <= now) {
    int32_t index = copy_in_turn(sm, now);
    if (index < 0)
      find_next(sm);
    else
      step_copy(sm, index, now);
  }
}

static void line_has_come(ftl_sm *sm, int32_t stage_idx, int64_t now) {
  int64_t written = sm_write_copied_line(sm, now, line_cycles(sm));
  sm_stage *stage = &sm->stages[stage_idx];
  stage->pending_lines--;
  stage->time = sm_later(stage->time, written);
  if (stage->pending_lines == 0) ftl_sm_stage_try_complete(sm, stage_idx, now);
}

void ftl_sm_tma_peer_line(ftl_sm *sm, int32_t stage, int64_t now) { line_has_come(sm, stage, now); }

void ftl_sm_tma_landed(ftl_sm *sm, const sm_transaction *tx) {
  bool was_full = is_full(sm);
  sm->tma.pending_cost -= tx->group;
  if (was_full) find_next(sm);
}

void ftl_sm_tma_reply(ftl_sm *sm, const sm_transaction *tx, int64_t now) {
  if (!tx->has_landed) ftl_sm_tma_landed(sm, tx);
  if (tx->kind == SM_TX_TMA_LOAD) line_has_come(sm, tx->stage, now);
}
