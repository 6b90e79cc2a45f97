#include "base/integer.h"
#include "base/sectors.h"
#include "engine/sampled/gpu_run.h"

static void add_marks(ftl_tile_marks *sum, const ftl_tile_marks *marks) {
  if (marks->l2_ticks > sum->l2_ticks) sum->l2_ticks = marks->l2_ticks;
  if (marks->far_ticks > sum->far_ticks) sum->far_ticks = marks->far_ticks;
  if (marks->dram_ticks > sum->dram_ticks) sum->dram_ticks = marks->dram_ticks;
  if (marks->gpc_ticks > sum->gpc_ticks) sum->gpc_ticks = marks->gpc_ticks;
}

// A load that a later step waits for arrives then; one for this step lengthens it. A group of steps takes no less than
// its loads take to arrive one after the other, as many at a time as they are ahead. That a loop waits for a latency
// which it does not hide is in its pace at that latency: its tiles come as fast as it goes then, but for what they
// queue. (A product that asks for 24 KB in the middle of a step of 512 cycles, two steps ahead of the wait, has 1.45
// steps for them; from the steps' beginnings it would have one.)
static void add_wait(ftl_gpu_run *run, int32_t slot, const ftl_segment_ref *ref, const ftl_traffic_wait *wait,
                     int64_t now_ticks, ftl_step_wait *longest) {
  ftl_cta_state *state = &run->slots[slot];
  if (wait->latency_cycles > longest->latency_cycles) longest->latency_cycles = wait->latency_cycles;
  longest->asking_ticks += wait->asking_ticks;
  longest->intake_ticks += wait->intake_ticks * (ref->multicast.num_ctas > 1 ? ref->multicast.num_ctas : 1);
  add_marks(&longest->marks, &wait->marks);
  if (ref->lookahead == 0) {
    longest->waits = true;
    if (wait->queue_ticks > longest->queue_ticks) longest->queue_ticks = wait->queue_ticks;
    return;
  }
  int64_t latency_ticks = wait->latency_cycles * FTL_TICKS_PER_CYCLE;
  if (latency_ticks > state->pace_ticks * ref->lookahead)
    latency_ticks = ftl_smaller(latency_ticks, ftl_gpu_pace_of(run, slot, wait->latency_cycles) * ref->lookahead);
  if (run->plan.group > 1) {
    int64_t least_ticks = state->count * latency_ticks / ref->lookahead + wait->queue_ticks;
    if (least_ticks > longest->least_ticks) longest->least_ticks = least_ticks;
    return;
  }
  int64_t arrival_ticks = now_ticks + wait->queue_ticks + latency_ticks;
  int32_t step = (state->step + ref->lookahead) % FTL_TILE_MAX_STAGES;
  longest->due |= UINT64_C(1) << step;
  if (arrival_ticks > state->arrival_ticks[step]) state->arrival_ticks[step] = arrival_ticks;
}

// TMA reads the whole width of its boxes, whatever lies in memory past the tensor's last column
// (kernels/measurements/micro_tma_columns_ncu.csv). Where the next row begins within a box, it is no more to read.
static ftl_tile_run whole_boxes_of(const ftl_tile_run *tiles, int32_t box_bytes) {
  ftl_tile_run whole = *tiles;
  int32_t row_bytes = tiles->place.row_bytes;
  int64_t stride_bytes = tiles->place.row_stride_bytes;
  whole.place.row_bytes = ftl_round_up32(row_bytes, box_bytes);
  bool is_followed = tiles->place.num_rows > 1 && stride_bytes >= row_bytes;
  if (is_followed && stride_bytes < box_bytes) whole.place.row_bytes = (int32_t)stride_bytes;
  return whole;
}

// Tiles of loops do, and of launches that have none. Of straight code the first ones, where CTAs stay as far apart as
// these waits let them begin.
static bool waits_for_channels(const ftl_gpu_run *run, ftl_cta_member member, const ftl_segment_ref *ref) {
  if (run->slots[member.state_slot].segment % 2 == 1 || run->segments->num_loops == 0) return true;
  return run->begins_apart && ref->is_first;
}

// Says in `tiles` what the access makes of them.
static bool try_access_run(ftl_gpu_run *run, ftl_cta_member member, const ftl_segment_ref *ref, ftl_tile_run *tiles,
                           int64_t span_ticks, int64_t now_ticks, ftl_step_wait *longest) {
  int32_t sm = ftl_gpu_sm_of(run, member.slot);
  ftl_tile_run whole;
  tiles->waits_for_channels = waits_for_channels(run, member, ref);
  tiles->is_ahead = ref->lookahead > 0;
  tiles->splits_lines = ref->splits_lines;
  tiles->box_bytes = ref->box_bytes;
  if (ref->box_bytes > 0 && tiles->place.row_bytes % ref->box_bytes != 0) {
    whole = whole_boxes_of(tiles, ref->box_bytes);
    tiles = &whole;
  }
  if (ref->is_store) return ftl_traffic_try_store(run->traffic, tiles, sm, ref->is_atomic, now_ticks, &longest->stores);
  ftl_traffic_wait wait;
  ftl_tile_run share;
  if (ref->multicast.num_ctas > 1) {
    share = ftl_tile_run_share(tiles, ref->multicast, member.cta);
    if (share.num_tiles == 0) return true;
    tiles = &share;
  }
  if (!ftl_traffic_try_load(run->traffic, tiles, span_ticks, sm, now_ticks, &wait)) return false;
  add_wait(run, member.state_slot, ref, &wait, now_ticks, longest);
  return true;
}

// Entries of a table come in whole sectors: what L1 brought for one it has for its neighbours.
static ftl_tile_place sectors_of(const ftl_tile_place *place) {
  int64_t first = place->address_bytes / FTL_SECTOR_BYTES * FTL_SECTOR_BYTES;
  int64_t end = place->address_bytes + (place->num_rows - 1) * place->row_stride_bytes + place->row_bytes;
  int32_t bytes = (int32_t)(ftl_round_up(end, FTL_SECTOR_BYTES) - first);
  return (ftl_tile_place){.address_bytes = first, .row_stride_bytes = bytes, .num_rows = 1, .row_bytes = bytes};
}

static int32_t piece_bytes_of(const ftl_gpu_run *run, const ftl_segment_ref *ref, const ftl_tile_place *place) {
  const ftl_tensor *tensor = &run->segments->tile->tensors[ref->ref.tensor];
  return ref->is_lookup ? place->row_bytes : ref->piece_columns * (int32_t)ftl_dtype_bytes(tensor->dtype);
}

// How many bytes of each row of the place, which are taken for its first ones. A loop that is unrolled otherwise has
// other pieces of a row side by side: L1 is asked for each. Of the last tile of a row passes may want different parts.
static int32_t bytes_in_l1(ftl_gpu_run *run, int32_t slot, const ftl_segment_ref *ref, const ftl_tile_place *place) {
  if (!ref->is_direct || ref->is_store || place->num_rows == 0 || place->pages) return 0;
  int32_t there = 0, piece_bytes = piece_bytes_of(run, ref, place);
  for (int32_t from = 0; from < place->row_bytes; from += piece_bytes) {
    ftl_tile_place piece = *place;
    piece.address_bytes += from;
    piece.row_bytes = place->row_bytes - from < piece_bytes ? place->row_bytes - from : piece_bytes;
    int32_t held = ftl_l1_tiles_load(&run->l1, ftl_gpu_sm_of(run, slot), slot, &piece, piece_bytes);
    there += held;
  }
  run->traffic->counts.l1_hit_sectors += place->num_rows * ftl_divide_up(there, FTL_SECTOR_BYTES);
  return there;
}

// Iterations [first, first + count) of an access, counted from the present event's first.
typedef struct access_span {
  ftl_cta_member member;
  int32_t ref_idx;
  int64_t first, count;
  int64_t now_ticks;
} access_span;

static ftl_tile_place place_at(const ftl_gpu_run *run, const access_span *span, int64_t i) {
  const ftl_cta_state *state = &run->slots[span->member.state_slot];
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[span->ref_idx];
  ftl_cta_at at = ftl_gpu_cta_at(run, span->member, state->outer);
  ftl_tile_place place =
      ftl_ref_place(run->segments->tile, ref, &run->steps[state->segment][span->ref_idx],
                    &run->cursors[span->member.slot * run->num_cursors + span->ref_idx], &at, state->iteration + i);
  return ref->is_lookup && place.num_rows > 0 ? sectors_of(&place) : place;
}

static ftl_tile_trail *trail_of(const ftl_gpu_run *run, const access_span *span) {
  return &run->trails[span->member.slot * run->num_cursors + span->ref_idx];
}

static bool try_access_place(ftl_gpu_run *run, const access_span *span, int64_t i, const ftl_tile_place *place,
                             bool was_loaded, ftl_step_wait *longest) {
  const ftl_cta_state *state = &run->slots[span->member.state_slot];
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[span->ref_idx];
  ftl_tile_run tiles = {.place = *place,
                        .num_rows = place->num_rows,
                        .num_tiles = 1,
                        .trail = trail_of(run, span),
                        .was_loaded = was_loaded,
                        .priority = run->segments->tile->tensors[ref->ref.tensor].l2_priority};
  return place->num_rows == 0 ||
         try_access_run(run, span->member, ref, &tiles, i * state->pace_ticks, span->now_ticks, longest);
}

// As one run where the tiles follow each other.
static bool try_access_span(ftl_gpu_run *run, const access_span *span, ftl_step_wait *longest) {
  const ftl_cta_state *state = &run->slots[span->member.state_slot];
  const ftl_tile_program *tile = run->segments->tile;
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[span->ref_idx];
  int64_t group = state->segment % 2 == 1 ? run->plan.group : 1;
  int64_t iteration = state->iteration + span->first;
  int64_t group_first = group > 1 ? iteration - ftl_modulo(state->first_value + iteration, group) : iteration;
  ftl_tile_run tiles;
  if (group > 1 && !ref->is_lookup &&
      ftl_ref_try_run(tile, ref, &run->steps[state->segment][span->ref_idx],
                      &run->cursors[span->member.slot * run->num_cursors + span->ref_idx], group_first, group,
                      iteration, span->count, &tiles)) {
    tiles.trail = trail_of(run, span);
    return tiles.num_tiles == 0 ||
           try_access_run(run, span->member, ref, &tiles, (span->first + tiles.num_tiles - 1) * state->pace_ticks,
                          span->now_ticks, longest);
  }
  for (int64_t i = span->first; i < span->first + span->count; i++) {
    ftl_tile_place place = place_at(run, span, i);
    if (!try_access_place(run, span, i, &place, false, longest)) return false;
  }
  return true;
}

// The places of a span's iterations, found one by one unless they lie evenly: then they are those of the first, moved.
typedef struct span_places {
  const access_span *span;
  ftl_tile_place first;
  int64_t step_bytes;
  bool are_even;
} span_places;

// Rows, columns and presence of a steady access move evenly, and end where its tensor does: tiles that are alike in the
// first iteration and the last are alike in all.
static span_places places_of(const ftl_gpu_run *run, const access_span *span) {
  const ftl_cta_state *state = &run->slots[span->member.state_slot];
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[span->ref_idx];
  span_places places = {.span = span, .first = place_at(run, span, 0), .are_even = span->count == 1};
  if (places.are_even || ref->is_lookup || ref->ref.pages.page_rows > 0) return places;
  if (!run->steps[state->segment][span->ref_idx].is_steady) return places;
  ftl_tile_place last = place_at(run, span, span->count - 1);
  places.are_even =
      places.first.num_rows > 0 && last.num_rows == places.first.num_rows && last.row_bytes == places.first.row_bytes;
  places.step_bytes = (last.address_bytes - places.first.address_bytes) / (span->count - 1);
  return places;
}

static ftl_tile_place place_of(const ftl_gpu_run *run, const span_places *places, int64_t i) {
  if (i > 0 && !places->are_even) return place_at(run, places->span, i);
  ftl_tile_place place = places->first;
  place.address_bytes += i * places->step_bytes;
  return place;
}

// Loads the first tiles of the span that L1 has nothing of, as far as they lie evenly and each is one piece: how many.
static int64_t load_absent(ftl_gpu_run *run, const span_places *places, const ftl_segment_ref *ref) {
  const ftl_tile_place *first = &places->first;
  if (!places->are_even || first->num_rows == 0 || first->pages) return 0;
  int32_t slot = places->span->member.slot, piece_bytes = piece_bytes_of(run, ref, first);
  if (first->row_bytes > piece_bytes || places->step_bytes % piece_bytes != 0) return 0;
  return ftl_l1_tiles_load_absent(&run->l1, ftl_gpu_sm_of(run, slot), slot, first, piece_bytes, places->step_bytes,
                                  places->span->count);
}

// Stores leave their lines in L1.
static void store_in_l1(ftl_gpu_run *run, const access_span *span) {
  span_places places = places_of(run, span);
  int32_t slot = span->member.slot, sm = ftl_gpu_sm_of(run, slot);
  if (places.are_even) {
    ftl_l1_tiles_store(&run->l1, sm, slot, &places.first, span->count);
    return;
  }
  for (int64_t i = 0; i < span->count; i++) {
    ftl_tile_place place = place_of(run, &places, i);
    ftl_l1_tiles_store(&run->l1, sm, slot, &place, 1);
  }
}

bool ftl_gpu_try_access(ftl_gpu_run *run, ftl_cta_member member, int32_t ref_idx, int64_t now_ticks,
                        ftl_step_wait *longest) {
  const ftl_cta_state *state = &run->slots[member.state_slot];
  const ftl_segment_ref *ref = &run->segments->segments[state->segment].refs[ref_idx];
  access_span span = {.member = member, .ref_idx = ref_idx, .count = state->count, .now_ticks = now_ticks};
  if (ref->is_store && !ref->is_atomic && run->segments->has_direct) store_in_l1(run, &span);
  if (!ref->is_direct || ref->is_store) return try_access_span(run, &span, longest);
  // What L1 has is not asked for, what lies between is.
  const access_span all = span;
  span_places places = places_of(run, &all);
  for (int64_t i = load_absent(run, &places, ref); i < state->count; i++) {
    ftl_tile_place place = place_of(run, &places, i);
    int32_t there = bytes_in_l1(run, member.slot, ref, &place);
    if (there == 0) continue;
    span.count = i - span.first;
    if (span.count > 0 && !try_access_span(run, &span, longest)) return false;
    span.first = i + 1;
    place.address_bytes += there;
    place.row_bytes -= there;
    if (place.row_bytes > 0 && !try_access_place(run, &span, i, &place, true, longest)) return false;
  }
  span.count = state->count - span.first;
  return span.count == 0 || try_access_span(run, &span, longest);
}
