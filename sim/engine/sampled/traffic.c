#include "engine/sampled/traffic.h"

#include <stdlib.h>

#include "arch/topology.h"
#include "base/integer.h"
#include "base/sectors.h"
#include "engine/sampled/dram_rate.h"
#include "engine/sampled/traffic_costs.h"

enum {
  LEAST_SETS = 32,      // of a side of L2
  COPIED_SECTORS = 16,  // by one cp.async of a warp: 16 bytes a lane
};

static int32_t choose_sample(const ftl_arch *arch, int64_t smallest_tile_lines) {
  int64_t sets = arch->l2_size_bytes / (arch->l1_line_bytes * arch->l2_ways * arch->l2_num_sides);
  int32_t log2_sample = 0;
  while (sets >> (log2_sample + 1) >= LEAST_SETS && smallest_tile_lines >> (log2_sample + 1) >= FTL_SAMPLED_LINES)
    log2_sample++;
  return log2_sample;
}

ftl_status ftl_traffic_create_tags(ftl_l2_tags **out, const ftl_arch *arch, int64_t smallest_tile_lines,
                                   ftl_error *error) {
  return ftl_l2_tags_create(out, arch, choose_sample(arch, smallest_tile_lines), error);
}

static ftl_status find_homes(ftl_traffic *traffic, ftl_error *error) {
  const ftl_arch *arch = traffic->arch;
  traffic->homes = malloc((size_t)arch->chip_num_sms * sizeof *traffic->homes);
  if (!traffic->homes) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the places of SMs");
  for (int32_t sm = 0; sm < arch->chip_num_sms; sm++)
    traffic->homes[sm] = (ftl_sm_home){.gpc = ftl_arch_gpc_of_sm(arch, sm), .side = ftl_arch_side_of_sm(arch, sm)};
  return FTL_OK;
}

ftl_status ftl_traffic_init(ftl_traffic *traffic, const ftl_launch *launch, int64_t sm_khz, ftl_l2_tags *tags,
                            ftl_error *error) {
  const ftl_arch *arch = launch->arch;
  *traffic = (ftl_traffic){.arch = arch, .sm_khz = sm_khz, .tags = tags};
  ftl_dram_rate rate;
  ftl_status status = ftl_dram_rate_get(arch, &rate, error);
  if (status == FTL_OK) status = find_homes(traffic, error);
  if (status != FTL_OK) return status;
  int32_t merging_gpcs = arch->l2_coalescer_merges > 1 ? (int32_t)arch->chip_num_gpcs : 0;
  status = ftl_tile_lines_init(&traffic->tiles, tags, merging_gpcs, error);
  if (status != FTL_OK) {
    free(traffic->homes);
    return status;
  }
  ftl_traffic_set_costs(traffic, launch, &rate);
  status = ftl_dram_channels_init(&traffic->channels, arch, sm_khz, traffic->dram_read_ticks, error);
  if (status == FTL_OK && !ftl_late_uses_try_init(&traffic->late))
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory for sampled tiles");
  if (status != FTL_OK) ftl_traffic_fini(traffic);
  return status;
}

void ftl_traffic_fini(ftl_traffic *traffic) {
  ftl_tile_lines_fini(&traffic->tiles);
  ftl_late_uses_fini(&traffic->late);
  ftl_dram_channels_fini(&traffic->channels);
  free(traffic->homes);
}

void ftl_traffic_settle(ftl_traffic *traffic) { ftl_late_uses_settle(&traffic->late, traffic->tags, &traffic->tiles); }

// A load or store of a run of tiles.
typedef struct request {
  const ftl_tile_run *run;
  ftl_tile_entry *entry;
  int64_t now_ticks, span_ticks;
  int64_t intake_ticks;  // time that one tile takes through the SM's own port
  int64_t tile_sectors;  // that the tiles have
  int64_t num_sectors;   // asked for: those in which a box ends and another begins twice
} request;

// Of one tile of the run; most runs are one, and a division takes as long as much of the request.
static int64_t sectors_of_tile(const ftl_tile_run *run, int64_t num_sectors) {
  return run->num_tiles == 1 ? num_sectors : num_sectors / run->num_tiles;
}

// Each box of TMA is asked for by itself: a sector that two of a row share comes for both. (Of rows of 144 bytes the SM
// takes in 9.5 sectors by two boxes of 128: kernels/measurements/micro_tma_columns_ncu.csv.)
static int64_t sectors_of_two_boxes(const ftl_tile_run *run) {
  const ftl_tile_place *place = &run->place;
  if (run->box_bytes == 0 || place->row_bytes <= run->box_bytes) return 0;
  int64_t page_stride_bytes = place->pages ? place->page_stride_bytes : 0;
  int64_t all_bytes = place->address_bytes | place->row_stride_bytes | page_stride_bytes | run->box_bytes;
  if (all_bytes % FTL_SECTOR_BYTES == 0) return 0;  // the usual case
  int64_t rows = 0;
  for (int32_t row = run->first_row; row < run->first_row + run->num_rows; row++)
    rows += (ftl_tile_place_row(place, row) + run->box_bytes) % FTL_SECTOR_BYTES != 0;
  return rows * (ftl_divide_up32(place->row_bytes, run->box_bytes) - 1);
}

static bool try_make_request(ftl_traffic *traffic, const ftl_tile_run *run, int64_t span_ticks, int64_t now_ticks,
                             request *out) {
  if (ftl_tile_lines_are_full(&traffic->tiles)) ftl_traffic_settle(traffic);  // before their lines are forgotten
  ftl_tile_entry *entry = ftl_tile_lines_find(&traffic->tiles, &run->place, run->trail);
  if (!entry) return false;
  *out = (request){
      .run = run, .entry = entry, .now_ticks = now_ticks, .span_ticks = span_ticks, .tile_sectors = entry->num_sectors};
  if (run->num_rows < run->place.num_rows) out->tile_sectors = out->tile_sectors * run->num_rows / run->place.num_rows;
  out->num_sectors = out->tile_sectors + sectors_of_two_boxes(run);
  out->intake_ticks = sectors_of_tile(run, out->num_sectors) * traffic->sm_sector_ticks;
  return true;
}

static int64_t dram_ticks(const ftl_traffic *traffic, int64_t read_sectors, int64_t written_sectors) {
  return read_sectors * traffic->dram_read_ticks + written_sectors * traffic->dram_write_ticks;
}

// Occupies a server for `cost`; gives by how much the run comes later for it. Its sectors do not come at once: they
// pass the server from the first tile to the last and while the SM takes that in, and what has not passed by then is
// late.
static int64_t serve(ftl_traffic_server *server, const request *ask, int64_t cost_ticks) {
  server->free_ticks = (server->free_ticks > ask->now_ticks ? server->free_ticks : ask->now_ticks) + cost_ticks;
  if (cost_ticks > 0 && ask->now_ticks > server->asked_ticks) server->asked_ticks = ask->now_ticks;
  int64_t late_ticks = server->free_ticks - ask->now_ticks - ask->span_ticks - ask->intake_ticks;
  return late_ticks > 0 ? late_ticks : 0;
}

// Sectors pass one server while those behind them pass the one before: what is late at several is late by the most.
static void queue_for(ftl_traffic_wait *wait, int64_t late_ticks) {
  if (late_ticks > wait->queue_ticks) wait->queue_ticks = late_ticks;
}

// A request to read waits for the stores that are in the network ahead of it, and takes slices' intake from those
// behind it: it is no store that was asked for later than others, which is what `asked` is for. Gives how late it is.
static int64_t take_request(ftl_traffic *traffic, const request *ask) {
  ftl_traffic_server *intake = &traffic->intake;
  int64_t ahead_ticks = intake->free_ticks > ask->now_ticks ? intake->free_ticks - ask->now_ticks : 0;
  intake->free_ticks = ask->now_ticks + ahead_ticks + traffic->read_request_ticks * ask->num_sectors;
  // What exceeds these waits in the SMs.
  if (ahead_ticks > traffic->waiting_stores_ticks) ahead_ticks = traffic->waiting_stores_ticks;
  int64_t late_ticks = ahead_ticks - ask->span_ticks - ask->intake_ticks;
  return late_ticks > 0 ? late_ticks : 0;
}

// True when the request joins one for the same run that another SM of the GPC made, and whose data L2 does not have yet
// or has had for no longer than the window.
static bool try_coalesce(const ftl_traffic *traffic, ftl_tile_group *group, int64_t now_ticks) {
  if (!group || now_ticks > group->closes_ticks || group->num_merged + 1 >= traffic->arch->l2_coalescer_merges)
    return false;
  group->num_merged++;
  return true;
}

// An access that joined none: others may join it. Its data, but for those that come last_lines_late_cycles later, are
// at L2 once what it waits for beyond a hit is over. The coalescer keeps a line's last request, so that of one part of
// a line is forgotten when the warp's next copy asks for the other (kernels/measurements/micro_half_lines_ncu.csv).
static void open_group(const ftl_traffic *traffic, ftl_tile_group *group, const request *ask,
                       const ftl_traffic_wait *wait, int64_t last_lines_late_cycles) {
  if (!group) return;
  int64_t now_ticks = ask->now_ticks;
  if (ask->run->splits_lines) {
    *group = (ftl_tile_group){.closes_ticks = now_ticks + COPIED_SECTORS * traffic->ask_sector_ticks};
    return;
  }
  int64_t late_ticks =
      (wait->latency_cycles - last_lines_late_cycles - traffic->hit_latency_cycles) * FTL_TICKS_PER_CYCLE +
      wait->queue_ticks;
  *group = (ftl_tile_group){.closes_ticks = now_ticks + late_ticks + traffic->coalescer_window_ticks};
}

// The lines of the sample that a request asks for, in address order.
typedef struct line_range {
  ftl_l2_known_line *begin, *end;
} line_range;

static line_range lines_of(const ftl_traffic *traffic, const request *ask) {
  ftl_l2_known_line *lines = &traffic->tiles.lines[ask->entry->first_line];
  line_range range = {lines, lines + ask->entry->num_sampled};
  const ftl_tile_place *place = &ask->run->place;
  if (ask->run->num_rows == place->num_rows) return range;
  int64_t from = place->address_bytes + ask->run->first_row * place->row_stride_bytes;
  int64_t to = from + (ask->run->num_rows - 1) * place->row_stride_bytes + place->row_bytes;
  while (range.begin < range.end && (int64_t)range.begin->line < from / FTL_LINE_BYTES) range.begin++;
  while (range.begin < range.end && (int64_t)range.end[-1].line > (to - 1) / FTL_LINE_BYTES) range.end--;
  return range;
}

static void prefetch_after(const ftl_traffic *traffic, const ftl_l2_known_line *line, const line_range *range) {
  enum { AHEAD = 4 };
  if (range->end - line > AHEAD) ftl_l2_tags_prefetch_known(traffic->tags, line + AHEAD);
}

typedef struct sampled_outcome {
  ftl_traffic_found sectors;
  int64_t tiles, far_tiles, missed_tiles;  // tiles of the run with lines in the sample; only where some are not there
} sampled_outcome;

// The tiles of a run that some of its lines belong to. The lines come in order of their addresses: tile after tile
// where these lie one below the other, row after row where they lie side by side.
typedef struct tile_counter {
  int64_t tile_bytes;       // 0: the run is one tile
  int64_t row_bytes, base;  // of tiles side by side: the stride of their rows, and where the first begins; else 0
  int64_t tile, begin, last;
  uint64_t seen;  // of tiles side by side, one bit each: more than 64 share them
  int64_t count;
} tile_counter;

static tile_counter tiles_of(const ftl_tile_run *run) {
  if (run->num_tiles <= 1) return (tile_counter){.last = -1};
  if (run->tile_row_bytes > 0)
    return (tile_counter){
        .tile_bytes = run->tile_row_bytes, .row_bytes = run->place.row_stride_bytes, .base = run->place.address_bytes};
  int64_t tile_bytes = run->place.row_stride_bytes * run->num_rows / run->num_tiles;
  return (tile_counter){.tile_bytes = tile_bytes, .begin = -tile_bytes, .last = -1};
}

static void count_tile_beside(tile_counter *tiles, int64_t byte) {
  int64_t in_row = byte > tiles->base ? (byte - tiles->base) % tiles->row_bytes : 0;
  uint64_t bit = UINT64_C(1) << (in_row / tiles->tile_bytes % 64);
  tiles->count += (tiles->seen & bit) == 0;
  tiles->seen |= bit;
}

// Counts the line's tile once, however many of its lines are counted.
static inline void count_tile(tile_counter *tiles, uint64_t line) {
  int64_t byte = (int64_t)line * FTL_LINE_BYTES;
  if (tiles->row_bytes > 0) {
    count_tile_beside(tiles, byte);
    return;
  }
  if (tiles->tile_bytes > 0 && (uint64_t)(byte - tiles->begin) >= (uint64_t)tiles->tile_bytes) {
    tiles->tile = byte / tiles->tile_bytes;  // seldom: a division a line would cost as much as the rest
    tiles->begin = tiles->tile * tiles->tile_bytes;
  }
  tiles->count += tiles->tile != tiles->last;
  tiles->last = tiles->tile;
}

// Of tiles that have four lines in the sample on average one in seven has none, since lines come into it by twos: it
// finds what the last one that has some found.
static sampled_outcome outcome_of_kind(const ftl_traffic *traffic, const request *ask, ftl_traffic_kind kind) {
  ftl_traffic_found found = traffic->found[kind];
  bool is_coming = ask->entry->fill_ready_ticks > ask->now_ticks;
  if (is_coming) found.missed = found.dram_written = 0;
  return (sampled_outcome){
      .sectors = found, .tiles = found.asked, .far_tiles = found.far, .missed_tiles = found.missed};
}

// All of a tile is read, and its lines are known to be there: how many sectors they have, else 0.
static int64_t read_late(ftl_traffic *traffic, const request *ask, int32_t side) {
  if (ask->run->num_rows < ask->run->place.num_rows) return 0;
  return ftl_late_uses_add(&traffic->late, traffic->tags, &traffic->tiles, ask->entry, side);
}

// Reads the lines of the range that are where they were, from the first on; where those are all of the tile's, the next
// reads of them may be late. Gives how many.
static int64_t read_there(ftl_traffic *traffic, const request *ask, const line_range *range, int32_t side,
                          int64_t *hits) {
  ftl_traffic_settle(traffic);
  int64_t count = range->end - range->begin;
  int64_t there = ftl_l2_tags_read_present(traffic->tags, range->begin, count, side, ask->run->priority, hits);
  if (there == count && count == ask->entry->num_sampled)
    ftl_late_uses_found(&traffic->late, &traffic->tiles, ask->entry, side, *hits);
  return there;
}

static sampled_outcome read_sample(ftl_traffic *traffic, const request *ask, int32_t side) {
  sampled_outcome outcome = {0};
  ftl_traffic_found *sum = &outcome.sectors;
  line_range range = lines_of(traffic, ask);
  bool was_loaded = ask->entry->was_loaded || ask->run->was_loaded;
  ftl_traffic_kind kind = was_loaded ? FTL_TRAFFIC_AGAIN : FTL_TRAFFIC_FIRST;
  ask->entry->was_loaded = true;
  if (kind == FTL_TRAFFIC_FIRST) {
    traffic->counts.new_sectors += ask->tile_sectors;
    ftl_late_uses_begin(&traffic->late, &traffic->tiles, ask->entry);
  }
  if (range.begin == range.end) return outcome_of_kind(traffic, ask, kind);
  tile_counter far = tiles_of(ask->run), missed = far, all = far;
  int64_t hits = read_late(traffic, ask, side);
  ftl_l2_priority priority = ask->run->priority;
  ftl_l2_known_line *line = hits > 0 ? range.end : range.begin + read_there(traffic, ask, &range, side, &hits);  // most
  for (; line < range.end; line++) {
    prefetch_after(traffic, line, &range);  // those that are not where they were mostly follow each other
    ftl_l2_outcome of_line;
    ftl_l2_tags_read_known(traffic->tags, line, side, priority, &of_line);
    if (of_line.far_sectors != 0) count_tile(&far, line->line);
    if (of_line.dram_read_sectors != 0) count_tile(&missed, line->line);
    sum->asked += ftl_num_sectors(line->sectors & (uint8_t)~of_line.hit_sectors);
    sum->far += ftl_num_sectors(of_line.far_sectors);
    sum->missed += ftl_num_sectors(of_line.dram_read_sectors);
    sum->dram_written += of_line.dram_write_sectors;
    hits += ftl_num_sectors(of_line.hit_sectors);
    line += ftl_l2_tags_read_present(traffic->tags, line + 1, range.end - line - 1, side, priority, &hits);
  }
  sum->asked += hits;
  if (sum->far > 0 || sum->missed > 0)
    for (const ftl_l2_known_line *each = range.begin; each < range.end; each++) count_tile(&all, each->line);
  outcome.tiles = all.count;
  outcome.far_tiles = far.count;
  outcome.missed_tiles = missed.count;
  traffic->found[kind] = *sum;
  int64_t again = 0;  // found, or on their way
  if (ask->tile_sectors > 0) again = (ask->num_sectors - ask->tile_sectors) * sum->asked / ask->tile_sectors;
  traffic->counts.hit_sectors += hits + again;
  traffic->counts.far_sectors += sum->far;
  traffic->counts.looked_up_sectors += sum->asked + again;
  traffic->counts.dram_read_sectors += sum->missed;
  traffic->counts.dram_write_sectors += sum->dram_written;
  if (kind == FTL_TRAFFIC_FIRST) {
    traffic->counts.new_looked_up_sectors += sum->asked;
    traffic->counts.new_dram_read_sectors += sum->missed;
  }
  return outcome;
}

// A share of the sample, as sectors of the whole run.
static int64_t of_run(const request *ask, int64_t sectors, int64_t sampled) {
  return sampled > 0 ? ask->tile_sectors * sectors / sampled : 0;
}

// Beyond the time for which the tile queues in any case: what queues for DRAM has its refreshes in the rate.
static int64_t cycles_exceeding(int64_t cycles, int64_t queue_ticks) {
  int64_t left = cycles - queue_ticks / FTL_TICKS_PER_CYCLE;
  return left > 0 ? left : 0;
}

static int64_t refresh_wait_cycles_of(ftl_traffic *traffic, const request *ask) {
  return ftl_dram_refresh_wait(&traffic->refresh, ask->run, ask->intake_ticks / FTL_TICKS_PER_CYCLE);
}

// What the last lines of a run wait at their channels beyond what it queues for all of DRAM: they are later than the SM
// asks for them and takes them in. Tiles that do not wait for channels (gpu_access.c) are in others' way, and wait for
// refreshes alone.
static int64_t channel_wait_cycles_of(ftl_traffic *traffic, const request *ask, const sampled_outcome *outcome,
                                      const ftl_traffic_wait *wait) {
  const ftl_traffic_found *found = &outcome->sectors;
  int64_t asking_ticks = ask->num_sectors * traffic->ask_sector_ticks, end_ticks = 0;
  bool is_served = !traffic->is_in_groups && ftl_dram_channels_take(&traffic->channels, ask->run);
  if (is_served)
    end_ticks = ftl_dram_channels_serve(&traffic->channels, ask->run, found->missed, found->asked, ask->now_ticks,
                                        asking_ticks);
  if (!is_served || !ask->run->waits_for_channels)
    return cycles_exceeding(refresh_wait_cycles_of(traffic, ask) * outcome->missed_tiles / outcome->tiles,
                            wait->queue_ticks);
  int64_t late_ticks = end_ticks - ask->now_ticks -
                       (asking_ticks > ask->intake_ticks ? asking_ticks : ask->intake_ticks) - wait->queue_ticks;
  return late_ticks > 0 ? late_ticks / FTL_TICKS_PER_CYCLE : 0;
}

// What L2 gives up goes to DRAM's channels.
static void write_out(ftl_traffic *traffic, int64_t sectors, int64_t now_ticks) {
  if (sectors > 0 && !traffic->is_in_groups) ftl_dram_channels_write(&traffic->channels, sectors, now_ticks);
}

// The run is on its way from DRAM for another CTA: what is left of that, as far as it exceeds `wait`. Both have the
// same latency, and queue for as long. What a step asks ahead it does not wait for, but while its lines queue for L2
// they are in flight as long as a latency would keep them, and hold back those behind them: of these DRAM's queue alone
// is one.
static void wait_for_fill(const request *ask, ftl_traffic_wait *wait) {
  const ftl_tile_entry *entry = ask->entry;
  int64_t left_ticks = entry->fill_ready_ticks - ask->now_ticks,
          dram_queue_ticks = entry->fill_mark_ticks - ask->now_ticks - ask->intake_ticks;
  if (left_ticks <= wait->latency_cycles * FTL_TICKS_PER_CYCLE + wait->queue_ticks) return;
  wait->marks.dram_ticks = entry->fill_mark_ticks;
  int64_t latency_ticks = dram_queue_ticks > 0 ? left_ticks - dram_queue_ticks : left_ticks;
  int64_t most_ticks = (int64_t)entry->fill_latency_cycles * FTL_TICKS_PER_CYCLE;
  if (!ask->run->is_ahead && latency_ticks > most_ticks) latency_ticks = most_ticks;
  wait->latency_cycles = (latency_ticks > 0 ? latency_ticks : 0) / FTL_TICKS_PER_CYCLE;
  wait->queue_ticks = left_ticks - wait->latency_cycles * FTL_TICKS_PER_CYCLE;
}

// The access itself: what of it the other side and DRAM have to give, and how long that takes. Returns how many cycles
// of that are the last lines' alone.
static int64_t access_run(ftl_traffic *traffic, const request *ask, int32_t side, ftl_traffic_wait *wait) {
  sampled_outcome outcome = read_sample(traffic, ask, side);
  const ftl_traffic_found *found = &outcome.sectors;
  if (found->far > 0) {
    wait->latency_cycles += traffic->far_latency_cycles * outcome.far_tiles / outcome.tiles;
    queue_for(wait, serve(&traffic->far, ask, traffic->far_sector_ticks * of_run(ask, found->far, found->asked)));
    wait->marks.far_ticks = traffic->far.free_ticks;
  }
  if (found->missed > 0) {
    int64_t cost_ticks =
        dram_ticks(traffic, of_run(ask, found->missed, found->asked), of_run(ask, found->dram_written, found->asked));
    queue_for(wait, serve(&traffic->dram, ask, cost_ticks));
    int64_t channel_wait_cycles = channel_wait_cycles_of(traffic, ask, &outcome, wait);
    write_out(traffic, of_run(ask, found->dram_written, found->asked), ask->now_ticks);
    wait->latency_cycles += traffic->miss_latency_cycles * outcome.missed_tiles / outcome.tiles + channel_wait_cycles;
    wait->marks.dram_ticks = ask->entry->fill_mark_ticks = traffic->dram.free_ticks;
    ask->entry->fill_latency_cycles = (int32_t)wait->latency_cycles;
    ask->entry->fill_ready_ticks = ask->now_ticks + wait->latency_cycles * FTL_TICKS_PER_CYCLE + wait->queue_ticks;
    return channel_wait_cycles;
  }
  wait_for_fill(ask, wait);
  return 0;
}

bool ftl_traffic_try_load(ftl_traffic *traffic, const ftl_tile_run *run, int64_t span_ticks, int32_t sm,
                          int64_t now_ticks, ftl_traffic_wait *wait) {
  request ask;
  if (!try_make_request(traffic, run, span_ticks, now_ticks, &ask)) return false;
  *wait = (ftl_traffic_wait){.latency_cycles = traffic->hit_latency_cycles,
                             .asking_ticks = sectors_of_tile(run, ask.num_sectors) * traffic->ask_sector_ticks,
                             .intake_ticks = ask.intake_ticks};
  traffic->counts.asked_sectors += ask.num_sectors;
  ftl_sm_home home = traffic->homes[sm];
  bool may_coalesce = traffic->tiles.groups && !run->is_multicast;
  ftl_tile_group *group = may_coalesce ? ftl_tile_lines_group(&traffic->tiles, ask.entry, home.gpc) : NULL;
  bool joins = try_coalesce(traffic, group, now_ticks);
  if (!joins) {
    queue_for(wait, take_request(traffic, &ask));
    queue_for(wait, serve(&traffic->l2, &ask, traffic->l2_sector_ticks * ask.num_sectors));
    wait->marks.l2_ticks = traffic->l2.free_ticks;
  }
  int64_t last_lines_late_cycles = access_run(traffic, &ask, home.side, wait);
  int64_t port_wait_ticks = serve(&traffic->gpc[home.gpc], &ask, traffic->gpc_sector_ticks * ask.num_sectors);
  if (joins) {
    traffic->counts.coalesced_sectors += ask.num_sectors;
    if (group->served_ticks > now_ticks + wait->queue_ticks) wait->queue_ticks = group->served_ticks - now_ticks;
    wait->marks = group->marks;
  } else {
    open_group(traffic, group, &ask, wait, last_lines_late_cycles);
    queue_for(wait, port_wait_ticks);
    int64_t gpc_mark_ticks = traffic->gpc[home.gpc].free_ticks;
    if (group) {
      // The last mark apart: all four copied right after it was set waited for the host to write what it was set to.
      group->served_ticks = now_ticks + wait->queue_ticks;
      group->marks = wait->marks;
      group->marks.gpc_ticks = gpc_mark_ticks;
    }
    wait->marks.gpc_ticks = gpc_mark_ticks;
  }
  if (run->trail) ftl_tile_lines_prefetch_next(&traffic->tiles, ask.entry, home.gpc);
  traffic->counts.load_latency_cycles +=
      (wait->latency_cycles + wait->queue_ticks / FTL_TICKS_PER_CYCLE) * run->num_tiles;
  traffic->counts.num_loads += run->num_tiles;
  return true;
}

static int64_t grown(const ftl_traffic_waiting *waiting, int64_t mark_ticks, const ftl_traffic_server *server) {
  if (mark_ticks <= waiting->served_ticks) return 0;
  int64_t behind_ticks = server->asked_ticks > waiting->made_ticks ? server->asked_ticks - waiting->made_ticks : 0;
  int64_t late_ticks =
      server->free_ticks - behind_ticks - (mark_ticks > waiting->due_ticks ? mark_ticks : waiting->due_ticks);
  return late_ticks > 0 ? late_ticks : 0;
}

int64_t ftl_traffic_overtaken(const ftl_traffic *traffic, const ftl_traffic_waiting *waiting) {
  int64_t most_ticks = grown(waiting, waiting->marks.l2_ticks, &traffic->l2);
  int64_t next_ticks = grown(waiting, waiting->marks.far_ticks, &traffic->far);
  if (next_ticks > most_ticks) most_ticks = next_ticks;
  next_ticks = grown(waiting, waiting->marks.dram_ticks, &traffic->dram);
  if (next_ticks > most_ticks) most_ticks = next_ticks;
  next_ticks = grown(waiting, waiting->marks.gpc_ticks, &traffic->gpc[traffic->homes[waiting->sm].gpc]);
  return next_ticks > most_ticks ? next_ticks : most_ticks;
}

int64_t ftl_traffic_take_stores(ftl_traffic *traffic, const ftl_store_intake *intake, int64_t end_ticks) {
  ftl_traffic_server *server = &traffic->intake;
  int64_t from_ticks = end_ticks - intake->sm_ticks;
  server->free_ticks = (server->free_ticks > from_ticks ? server->free_ticks : from_ticks) + intake->l2_ticks;
  if (from_ticks > server->asked_ticks) server->asked_ticks = from_ticks;
  int64_t taken_ticks = server->free_ticks - traffic->waiting_stores_ticks;
  write_out(traffic, intake->dram_written, from_ticks);
  if (intake->dram_ticks > 0)
    traffic->dram.free_ticks =
        (traffic->dram.free_ticks > from_ticks ? traffic->dram.free_ticks : from_ticks) + intake->dram_ticks;
  return taken_ticks > end_ticks ? taken_ticks : end_ticks;
}

int64_t ftl_traffic_stores_taken(const ftl_traffic *traffic, int64_t made_ticks, int64_t end_ticks) {
  const ftl_traffic_server *server = &traffic->intake;
  int64_t behind_ticks = server->asked_ticks > made_ticks ? server->asked_ticks - made_ticks : 0;
  int64_t taken_ticks = server->free_ticks - traffic->waiting_stores_ticks - behind_ticks;
  return taken_ticks > end_ticks ? taken_ticks : end_ticks;
}

static void add_intake(const ftl_traffic *traffic, int64_t num_sectors, bool is_atomic, ftl_store_intake *sum) {
  const ftl_store_intake *cost = is_atomic ? &traffic->add_cost : &traffic->store_cost;
  sum->l2_ticks += num_sectors * cost->l2_ticks;
  sum->sm_ticks += num_sectors * cost->sm_ticks;
}

bool ftl_traffic_try_store(ftl_traffic *traffic, const ftl_tile_run *run, int32_t sm, bool is_atomic, int64_t now_ticks,
                           ftl_store_intake *intake) {
  request ask;
  if (!try_make_request(traffic, run, 0, now_ticks, &ask)) return false;
  add_intake(traffic, ask.num_sectors, is_atomic, intake);
  traffic->counts.store_sectors += ask.num_sectors;
  if (is_atomic)
    traffic->counts.atomic_sectors += ask.num_sectors;
  else
    traffic->counts.store_bytes += (int64_t)run->num_rows * run->place.row_bytes;
  ftl_traffic_found found = {0};  // a write fetches nothing, an atomic what is not there
  line_range range = lines_of(traffic, &ask);
  if (range.begin < range.end) ftl_traffic_settle(traffic);
  for (ftl_l2_known_line *line = range.begin; line < range.end; line++) {
    prefetch_after(traffic, line, &range);
    ftl_l2_outcome outcome;
    if (is_atomic)
      ftl_l2_tags_atomic_known(traffic->tags, line, run->priority, &outcome);
    else
      ftl_l2_tags_write_known(traffic->tags, line, traffic->homes[sm].side, run->priority, &outcome);
    found.missed += ftl_num_sectors(outcome.dram_read_sectors);
    found.dram_written += outcome.dram_write_sectors;
    found.asked += line->num_sectors;
  }
  traffic->counts.dram_read_sectors += found.missed;
  traffic->counts.dram_write_sectors += found.dram_written;
  traffic->counts.stored_in_sample += found.asked;
  if (range.begin == range.end)
    found = traffic->found[FTL_TRAFFIC_STORE];
  else
    traffic->found[FTL_TRAFFIC_STORE] = found;
  int64_t written = of_run(&ask, found.dram_written, found.asked);
  intake->dram_ticks += dram_ticks(traffic, of_run(&ask, found.missed, found.asked), written);
  intake->dram_written += written;
  return true;
}

void ftl_traffic_spill(ftl_traffic *traffic, int64_t written_sectors, int64_t now_ticks) {
  if (written_sectors == 0) return;
  traffic->counts.dram_write_sectors += written_sectors;
  int64_t from_ticks = traffic->dram.free_ticks > now_ticks ? traffic->dram.free_ticks : now_ticks;
  traffic->dram.free_ticks = from_ticks + traffic->dram_write_ticks * ftl_traffic_scale(traffic, written_sectors);
}
