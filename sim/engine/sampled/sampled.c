#include "engine/sampled/sampled.h"

#include <math.h>

#include "base/integer.h"
#include "base/sectors.h"
#include "engine/sampled/gpu_steps.h"
#include "engine/sampled/segments.h"
#include "engine/sampled/step_times.h"
#include "engine/sampled/stream.h"
#include "engine/sampled/traffic.h"

// What interpolating between numbers of resident CTAs and averaging bandwidth over the chip may cost: 95 % of the cases
// of tests/unit/engine/sampled_test.c lie within these and what is added to them below.
static const double CYCLES_BOUND_PCT = 6.0, HBM_BOUND_PCT = 1.0;

enum {
  SMALL_BYTES = 4 << 20,
  LOOKED_AT_CTAS = 64,
  STREAM_TILES = 4,        // that come once, that have as many lines in the sample together as one of other launches,
  STREAM_LINES = 1 << 15,  // if all that it moves has so many
};

// How often CTAs that stand for all of the grid come to each segment, iterations of loops included. They are spread by
// the golden ratio, which meets no period of the grid: the CTA in its middle may be a causal head's first, with one
// iteration.
typedef struct segment_visits {
  int64_t of[FTL_MAX_SEGMENTS];
} segment_visits;

static segment_visits count_visits(const ftl_launch *launch, const ftl_segments *segments) {
  segment_visits visits = {0};
  for (uint32_t i = 0; i < LOOKED_AT_CTAS; i++) {
    int64_t cta = (int64_t)(i * 0x9e3779b9u * (uint64_t)launch->tile->num_ctas >> 32);
    for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
      int64_t first, trips = 1;
      if (s % 2 == 1) trips = ftl_segments_trips(segments, launch->warps, s / 2, cta, &first);
      visits.of[s] += trips * ftl_segments_visits(segments, launch->warps, s, cta);
    }
  }
  return visits;
}

typedef struct moved_by_refs {
  int64_t most, all;  // by one reference of those CTAs, and by all
} moved_by_refs;

static moved_by_refs moved_by(const ftl_segments *segments, const segment_visits *visits) {
  moved_by_refs moved = {0};
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++)
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) {
      int64_t bytes = visits->of[s] * ftl_tile_ref_bytes(segments->tile, &segments->segments[s].refs[i].ref);
      if (bytes > moved.most) moved.most = bytes;
      moved.all += bytes;
    }
  return moved;
}

// Where `count` tiles are asked for as one: 4^n keep 2^n times the lines of one.
static int64_t lines_share(int64_t count) {
  int64_t share = 1;
  while (share * share < count) share *= 2;
  return share;
}

// Of the pieces of a row that a tile is made of.
static int64_t pieces_bytes(const ftl_segments *segments, const ftl_segment_ref *ref) {
  int64_t pieces = ref->ref.columns / ref->piece_columns;
  return ftl_tile_ref_bytes(segments->tile, &ref->ref) / pieces * lines_share(pieces);
}

// Lines of the smallest tile that carries a share worth the name, but for numbers a row (LSE); 1, so that every set is
// in the sample, when all tensors together are small. Tiles of a loop are asked for in groups; next to groups, half as
// many lines do for the others.
static int64_t smallest_tile_lines(const ftl_segments *segments, const segment_visits *visits,
                                   const ftl_walk_plan *plan) {
  int64_t smallest = 0, all_bytes = 0;
  for (int32_t i = 0; i < segments->tile->num_tensors; i++) {
    all_bytes += ftl_tensor_bytes(&segments->tile->tensors[i]);
  }
  if (all_bytes <= SMALL_BYTES) return 1;
  int64_t most = moved_by(segments, visits).most;
  for (int32_t s = 0; s < 2 * segments->num_loops + 1; s++) {
    for (int32_t i = 0; i < segments->segments[s].num_refs; i++) {
      const ftl_segment_ref *ref = &segments->segments[s].refs[i];
      if (ref->ref.columns == 1 ||
          FTL_SAMPLED_LEAST_SHARE * visits->of[s] * ftl_tile_ref_bytes(segments->tile, &ref->ref) < most)
        continue;
      int64_t bytes = pieces_bytes(segments, ref);
      if (ref->multicast.num_ctas > 1) bytes /= ref->multicast.num_ctas;
      // Of a stream no line is found again by another CTA: a group keeps as many as one of its iterations.
      if (plan->group > 1) bytes *= s % 2 == 0 ? 2 : plan->is_stream ? plan->group : lines_share(plan->group);
      if (smallest == 0 || bytes / FTL_LINE_BYTES < smallest) smallest = bytes / FTL_LINE_BYTES;
    }
  }
  return smallest > 0 ? smallest : 1;
}

// Tiles that come once: what one finds decides nothing for another: several share a tile's lines.
static int64_t lines_of_stream(int64_t tile_lines, int64_t moved_bytes) {
  int64_t most = FTL_SAMPLED_LINES * (moved_bytes / FTL_LINE_BYTES) / STREAM_LINES;
  int64_t shared = STREAM_TILES * tile_lines < most ? STREAM_TILES * tile_lines : most;
  return shared > tile_lines ? shared : tile_lines;
}

bool ftl_sampled_try_plan(const ftl_launch *launch, ftl_walk_plan *plan) {
  ftl_segments segments;
  if (!ftl_segments_try_init(&segments, launch->warps)) return false;
  *plan = ftl_walk_plan_make(launch, &segments);
  segment_visits visits = count_visits(launch, &segments);
  plan->tile_lines = smallest_tile_lines(&segments, &visits, plan);
  plan->moved_bytes = moved_by(&segments, &visits).all / LOOKED_AT_CTAS * launch->tile->num_ctas;
  if (plan->is_stream && ftl_stream_loads_once(&segments, launch->arch))
    plan->tile_lines = lines_of_stream(plan->tile_lines, plan->moved_bytes);
  return true;
}

// x * part / whole without overflow, rounded down; 0 of an empty whole.
static int64_t scaled_down(int64_t x, int64_t part, int64_t whole) {
  return whole > 0 ? (int64_t)((__extension__(__int128) x) * part / whole) : 0;
}

// Whether SMs hold nearer to all CTAs that fit than to one, while they have any.
static bool are_sms_full(const ftl_step_times *times, const ftl_gpu_steps *steps) {
  return 2 * steps->cta_cycles >= (1 + times->most_ctas) * steps->sm_active_cycles;
}

// What timing decides per instruction (stalls, L1 hits) is taken from the SM run whose latency is nearest below the
// mean, of one CTA or of all that fit by which is nearer to those that an SM holds while it has any; where these lose
// an eighth of their time (a guess) or more by following each other, as where they drive each other's code out, from
// the run in which they do.
static const ftl_sm_counters *typical_counters(ftl_step_times *times, const ftl_gpu_steps *steps) {
  const ftl_traffic_counts *counts = &steps->counts;
  int64_t mean = counts->num_loads > 0 ? counts->load_latency_cycles / counts->num_loads : 0;
  int32_t i = 0, row = are_sms_full(times, steps);
  if (row == 1 && 8 * times->succession.extra_sixteenths > times->whole_cta_sixteenths[1][0])
    return &times->succession.counters;
  while (i + 1 < FTL_NUM_STEP_LATENCIES && times->latency_cycles[i + 1] <= mean) i++;
  return &ftl_step_times_point(times, row, i)->counters;
}

// Those of the SM that says which parts of sectors merge.
static const ftl_sm_counters *storing_counters(ftl_step_times *times, const ftl_gpu_steps *steps) {
  return are_sms_full(times, steps) && times->store_as_launched ? &times->storing : typical_counters(times, steps);
}

// Stall cycles in the proportions of the SM run, so that they sum to the residence of all warps.
static void fill_stalls(const ftl_sm_counters *typical, ftl_sm_counters *sm) {
  int64_t issued = scaled_down(typical->stall_cycles[FTL_STALL_SELECTED], sm->warp_insts, typical->warp_insts);
  int64_t waiting = typical->resident_warp_cycles - typical->stall_cycles[FTL_STALL_SELECTED];
  int64_t left = sm->resident_warp_cycles > issued ? sm->resident_warp_cycles - issued : 0;
  for (int i = 0; i < FTL_STALL_COUNT; i++)
    sm->stall_cycles[i] = i == FTL_STALL_SELECTED ? issued : scaled_down(typical->stall_cycles[i], left, waiting);
}

// Warps that stay to a CTA's end: of a role whose loops only its first warp runs (a TMA producer) the others leave at
// once.
static int32_t lasting_warps(const ftl_warp_program *program) {
  int32_t warps = program->num_warps;
  for (int32_t r = 0; r < program->num_roles; r++) {
    const ftl_warp_role *role = &program->roles[r];
    bool elected = false, all = false;
    for (int32_t i = 0, depth = 0; i < role->num_insts; i++) {
      const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
      depth += (inst->opcode == FTL_OP_LOOP) - (inst->opcode == FTL_OP_END_LOOP);
      if (depth == 0 || inst->opcode == FTL_OP_LOOP) continue;
      elected |= inst->flags & FTL_INST_WARP0;
      all |= !(inst->flags & FTL_INST_WARP0);
    }
    if (elected && !all) warps -= role->num_warps - 1;
  }
  return warps;
}

static void fill_sm(const ftl_launch *launch, const ftl_static_work *work, const ftl_gpu_steps *steps,
                    const ftl_sm_counters *typical, const ftl_sm_counters *storing, ftl_sm_counters *sm) {
  sm->warp_insts = work->warp_insts;
  sm->tensor_insts = work->tensor_insts;
  sm->tensor_busy_cycles = work->tensor_busy_cycles;
  sm->issue_active_cycles = work->warp_insts;
  sm->shared_wavefronts = work->shared_wavefronts;
  sm->bank_conflicts = work->bank_conflicts;
  sm->active_cycles = steps->sm_active_cycles;
  sm->resident_warp_cycles = steps->cta_cycles * lasting_warps(launch->warps);
  int64_t insts = typical->warp_insts;
  sm->l1_load_sectors = scaled_down(typical->l1_load_sectors, work->warp_insts, insts);
  sm->l1_load_hit_sectors = scaled_down(typical->l1_load_hit_sectors, work->warp_insts, insts);
  sm->l1_local_load_sectors = scaled_down(typical->l1_local_load_sectors, work->warp_insts, insts);
  sm->l1_local_load_hit_sectors = scaled_down(typical->l1_local_load_hit_sectors, work->warp_insts, insts);
  sm->l1_again_load_sectors = scaled_down(typical->l1_again_load_sectors, work->warp_insts, insts);
  sm->l1_store_sectors = scaled_down(typical->l1_store_sectors, work->warp_insts, insts);
  sm->l1_store_hit_sectors = scaled_down(typical->l1_store_hit_sectors, work->warp_insts, insts);
  sm->local_sectors = scaled_down(typical->local_sectors, work->warp_insts, insts);
  sm->global_store_bytes = scaled_down(storing->global_store_bytes, work->warp_insts, storing->warp_insts);
  sm->global_store_sectors = scaled_down(storing->global_store_sectors, work->warp_insts, storing->warp_insts);
  sm->added_bytes = scaled_down(storing->added_bytes, work->warp_insts, storing->warp_insts);
  sm->added_sectors = scaled_down(storing->added_sectors, work->warp_insts, storing->warp_insts);
  fill_stalls(typical, sm);
}

// An atomic's sectors are sent for each instruction that has words of them.
static int64_t added_sectors(const ftl_traffic_counts *counts, const ftl_sm_counters *sm) {
  int64_t once = sm->added_bytes / FTL_SECTOR_BYTES,
          sent = scaled_down(counts->atomic_sectors, sm->added_sectors, once);
  return sent > counts->atomic_sectors ? sent : counts->atomic_sectors;
}

// A sector that is stored in parts is sent for each of those that L1 does not merge, as in the SM that ran in detail,
// which says how many it sends for what it stores; sectors that rows share with others are among them.
static int64_t written_sectors(const ftl_traffic_counts *counts, const ftl_sm_counters *sm) {
  int64_t once = sm->global_store_bytes / FTL_SECTOR_BYTES, touched = counts->store_sectors - counts->atomic_sectors;
  int64_t sent = scaled_down(counts->store_bytes / FTL_SECTOR_BYTES, sm->global_store_sectors, once);
  return (sent > touched ? sent : touched) + added_sectors(counts, sm);
}

// Of lines that several tiles share the sample may have too few that are fetched.
static int64_t dram_read_bytes(const ftl_launch *launch, int64_t sectors) {
  bool is_cold = launch->l2_before != FTL_L2_KEPT;
  int64_t bytes = FTL_SECTOR_BYTES * sectors;
  return is_cold && bytes < launch->least_read_bytes ? launch->least_read_bytes : bytes;
}

// As often as loads of tiles hit in the SM that ran in detail; those of spilled registers, of which L1 may have nearly
// all, say nothing about tiles. Of sectors that several loads of a tile share one is asked for here: what L1 has for
// the others saves nothing, and what it has lost until they come is asked for again.
static int64_t tile_hits_in_l1(const ftl_traffic_counts *counts, const ftl_sm_counters *sm) {
  int64_t hits = sm->l1_load_hit_sectors - sm->l1_local_load_hit_sectors, again = sm->l1_again_load_sectors;
  return scaled_down(counts->asked_sectors, hits - again, sm->l1_load_sectors - sm->l1_local_load_sectors - again);
}

static void fill_memory(const ftl_launch *launch, const ftl_traffic *traffic, const ftl_gpu_steps *steps,
                        bool has_direct, ftl_totals *out) {
  const ftl_traffic_counts *counts = &steps->counts;
  ftl_memory_counters *memory = &out->memory;
  // Only LDG looks into L1 for tiles; cp.async and TMA pass it by. Loads into registers that hit were not asked for.
  if (has_direct) {
    out->sm.l1_load_sectors = counts->asked_sectors + counts->l1_hit_sectors;
    out->sm.l1_load_hit_sectors = counts->l1_hit_sectors;
  }
  int64_t l1_hits = launch->warps->copy == FTL_COPY_LDG && !has_direct ? tile_hits_in_l1(counts, &out->sm) : 0;
  // The coalescer stands behind L1, so it joins the same share of what L1 lets through.
  int64_t past_l1 = counts->asked_sectors - l1_hits;
  memory->coalesced_sectors = scaled_down(counts->coalesced_sectors, past_l1, counts->asked_sectors);
  memory->l2_read_sectors = past_l1 - memory->coalesced_sectors;
  memory->l2_write_sectors = written_sectors(counts, &out->sm);
  memory->l2_sectors_from_sms = memory->l2_read_sectors + memory->l2_write_sectors + out->sm.local_sectors;
  memory->local_sectors = out->sm.local_sectors;
  int64_t with_ecc = 1000 + launch->arch->dram_ecc_inline_milli;
  int64_t read_sectors = ftl_traffic_dram_read_sectors(traffic);
  memory->dram_read_bytes = scaled_down(dram_read_bytes(launch, read_sectors), with_ecc, 1000);
  memory->dram_write_bytes = scaled_down(FTL_SECTOR_BYTES * ftl_traffic_dram_write_sectors(traffic), with_ecc, 1000);
  // Reads of tiles hit as those in the sample did; writes and spills count as hits.
  int64_t read_hits = scaled_down(memory->l2_read_sectors, counts->hit_sectors, counts->looked_up_sectors);
  memory->l2_miss_sectors = memory->l2_read_sectors - read_hits;
  memory->l2_hit_sectors = memory->l2_sectors_from_sms - memory->l2_miss_sectors;
  // Between the sides go what the other side had, and half of what neither had.
  int64_t sides = launch->arch->l2_num_sides;
  memory->l2_fabric_hit_sectors = ftl_traffic_scale(traffic, counts->far_sectors);
  memory->l2_fabric_sectors = memory->l2_fabric_hit_sectors + read_sectors * (sides - 1) / 2;
  memory->dirty_sectors = ftl_l2_tags_scale(traffic->tags, ftl_l2_tags_dirty_sectors(traffic->tags));
}

static ftl_status prepare_tags(const ftl_launch *launch, const ftl_walk_plan *plan, ftl_l2_tags **tags,
                               ftl_error *error) {
  if (launch->l2_before == FTL_L2_KEPT) return FTL_OK;
  ftl_status status = ftl_traffic_create_tags(tags, launch->arch, plan->tile_lines, error);
  if (status == FTL_OK) ftl_l2_tags_foul(*tags, ftl_launch_foul_bytes(launch));
  return status;
}

static ftl_status init_steps(const ftl_launch *launch, const ftl_segments *segments, int64_t sm_khz,
                             ftl_step_times *times, ftl_error *error) {
  int64_t hit, far, miss;
  ftl_traffic_latencies(launch->arch, sm_khz, &hit, &far, &miss);
  int64_t unloaded = hit + far + miss;
  int64_t refreshing = ftl_traffic_refreshing_latency(launch->arch, sm_khz);  // no tile waits for longer
  int64_t latencies[FTL_NUM_STEP_LATENCIES] = {hit, unloaded, refreshing, 2 * unloaded, 6 * unloaded};
  return ftl_step_times_init(times, launch, segments, sm_khz, latencies, error);
}

// How much longer than with the latencies assumed here an iteration takes if L2 answers half again as late, which
// contention in the network may do: nothing where the next tiles are fetched ahead. The loop that reacts most counts.
static double latency_risk_pct(const ftl_segments *segments, ftl_step_times *times) {
  double risk = 0;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t hit = times->latency_cycles[0];
    int64_t usual = ftl_step_times_get(times, 2 * k + 1, times->most_ctas, hit);
    int64_t late = ftl_step_times_get(times, 2 * k + 1, times->most_ctas, hit + hit / 2);
    if (usual > 0 && late > usual) risk = fmax(risk, 100.0 * (double)(late - usual) / (double)usual);
  }
  return risk;
}

// An iteration's time hangs on how its warps fall into step, which runs that differ in a hidden latency show: `full` is
// one more such run.
static double scatter_risk_pct(const ftl_segments *segments, ftl_step_times *times) {
  double risk = 0;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    int64_t usual = ftl_step_times_get(times, 2 * k + 1, times->most_ctas, times->latency_cycles[0]);
    if (usual > 0) risk = fmax(risk, 100.0 * (double)times->scatter_sixteenths[2 * k + 1] / (double)usual);
  }
  return risk;
}

// Lines of local memory come as from an idle L2 here, whatever the latency that tiles are waited for. If they come half
// again as late, what warps wait for them lasts as much longer: of that wait, their share of the SM's sectors.
static double local_risk_pct(const ftl_sm_counters *sm) {
  double sectors = (double)(sm->read_sectors + sm->write_sectors), warp_cycles = (double)sm->resident_warp_cycles;
  if (sectors <= 0 || warp_cycles <= 0) return 0;
  double waiting = (double)sm->stall_cycles[FTL_STALL_LONG_SCOREBOARD] / warp_cycles;
  return 50.0 * waiting * (double)sm->local_sectors / sectors;
}

static int64_t bytes_of_tensors(const ftl_tile_program *tile) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < tile->num_tensors; i++) bytes += tile->tensors[i].size_bytes;
  return bytes;
}

// Spills never come from DRAM here. Nor do they in `full` where half of L2, each side for itself, holds the slots of
// all threads that are there at a time and the tensors. Where it holds those slots DRAM sees at most them; where not,
// it may see all that L1 lets through. `full` has that on top of what is predicted here.
static double spill_risk_pct(const ftl_launch *launch, const ftl_memory_counters *memory) {
  double bytes = (double)(memory->dram_read_bytes + memory->dram_write_bytes);
  int64_t spilled = FTL_SECTOR_BYTES * memory->local_sectors, l2_bytes = launch->arch->l2_size_bytes;
  int64_t ctas = ftl_smaller(ftl_launch_num_ctas(launch), launch->arch->chip_num_sms * launch->occupancy.ctas_per_sm);
  int64_t slots = ctas * launch->warps->num_warps * FTL_WARP_LANES * launch->warps->spill_registers * 4;
  if (2 * launch->arch->l2_num_sides * (slots + bytes_of_tensors(launch->tile)) <= l2_bytes) return 0;
  if (2 * slots <= l2_bytes && slots < spilled) spilled = slots;
  return spilled > 0 ? 100.0 * (double)spilled / (bytes + (double)spilled) : 0;
}

// The start and the end of a launch, where nothing is periodic, count by two DRAM latencies: much in a short one.
static double ends_risk_pct(ftl_step_times *times, const ftl_gpu_steps *steps) {
  return steps->end_cycle > 0 ? 200.0 * (double)times->latency_cycles[1] / (double)steps->end_cycle : 0;
}

// Here the CTAs of an SM share it equally; a scheduler that favours the youngest warp makes them end one after another.
// The last one starts when all but its own work is done at the latest, and then has the SM more and more alone: it ends
// by what it takes alone later, less what its work takes where all share.
static double fairness_risk_pct(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times) {
  double risk = 0, ctas = (double)times->most_ctas;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    double alone = (double)ftl_step_times_get(times, 2 * k + 1, 1, times->latency_cycles[0]);
    double shared = (double)ftl_step_times_get(times, 2 * k + 1, times->most_ctas, times->latency_cycles[0]);
    if (shared > 0) risk = fmax(risk, 100.0 * (alone - shared / ctas) / shared);
  }
  double waves = (double)ftl_launch_num_ctas(launch) / (ctas * (double)launch->arch->chip_num_sms);
  return waves > 1 ? risk / waves : 0;
}

// Of cycles, for walking in groups (tests/unit/engine/walk_plan_test.c).
static double group_risk_pct(ftl_walk_plan plan) { return plan.group > 1 ? 2.0 : 0; }

// What DRAM gives beyond what the launch needs of each tensor that it loads, once.
static double again_bytes(const ftl_launch *launch, const ftl_memory_counters *memory) {
  const ftl_tile_program *tile = launch->tile;
  bool is_loaded[FTL_TILE_MAX_TENSORS] = {false};
  for (int32_t i = 0; i < tile->num_ops; i++)
    if (ftl_tile_op_loads(tile->ops[i].kind)) is_loaded[tile->ops[i].ref.tensor] = true;
  double again = (double)memory->dram_read_bytes;
  for (int32_t i = 0; i < tile->num_tensors; i++)
    if (is_loaded[i]) again -= (double)tile->tensors[i].needed_bytes;
  return fmax(again, 0);
}

// Of HBM bytes. Where L2 holds what is read again, groups change nothing; where it does not, which of the CTAs in
// flight reads a line again before it is gone hangs on their order, which groups blur: half of what is read more than
// once may go either way.
static double group_hbm_risk_pct(const ftl_launch *launch, ftl_walk_plan plan, const ftl_memory_counters *memory) {
  if (plan.group == 1) return 0;
  double again = again_bytes(launch, memory);
  return again > 0 ? 1.0 + 50.0 * again / (double)(memory->dram_read_bytes + memory->dram_write_bytes) : 1.0;
}

static bool loads_directly(const ftl_segment *segment) {
  for (int32_t i = 0; i < segment->num_refs; i++)
    if (segment->refs[i].is_direct) return true;
  return false;
}

// Whether loops that load into registers begin where one before them began, as passes over a row do.
static bool has_passes(const ftl_launch *launch, const ftl_segments *segments) {
  int64_t begin = 0, first;
  bool is_found = false;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    if (!loads_directly(&segments->segments[2 * k + 1])) continue;
    if (ftl_segments_trips(segments, launch->warps, k, 0, &first) == 0) continue;
    if (is_found && first == begin) return true;
    if (!is_found) begin = first;
    is_found = true;
  }
  return false;
}

// Of HBM bytes. Rows that pass through registers more than once, which L2 keeps in part: it holds those of the CTAs
// that are there, or it does not, by how near to each other they are. All that is read again may be found.
static double row_hbm_risk_pct(const ftl_launch *launch, const ftl_segments *segments,
                               const ftl_memory_counters *memory) {
  double again = again_bytes(launch, memory);
  double once = (double)(memory->dram_read_bytes + memory->dram_write_bytes) - again;
  return once > 0 && has_passes(launch, segments) ? 100.0 * again / once : 0;
}

static double cycles_bound_pct(const ftl_launch *launch, const ftl_segments *segments, ftl_step_times *times,
                               const ftl_gpu_steps *steps) {
  return CYCLES_BOUND_PCT + latency_risk_pct(segments, times) + scatter_risk_pct(segments, times) +
         ends_risk_pct(times, steps) + fairness_risk_pct(launch, segments, times) +
         (double)steps->period_spread_permille / 10.0;
}

// An SM that holds fewer CTAs than fit, as towards the end of a launch, gets on more slowly than a full one: by the
// times of its loops' iterations, between one CTA and all.
static int64_t full_sm_cycles(const ftl_segments *segments, ftl_step_times *times, const ftl_gpu_steps *steps) {
  double alone = 0, shared = 0, ctas = (double)times->most_ctas, active = (double)steps->sm_active_cycles;
  for (int32_t k = 0; k < segments->num_loops; k++) {
    alone += (double)ftl_step_times_get(times, 2 * k + 1, 1, times->latency_cycles[0]);
    shared += (double)ftl_step_times_get(times, 2 * k + 1, times->most_ctas, times->latency_cycles[0]);
  }
  if (times->most_ctas == 1 || alone <= 0 || active <= 0) return steps->sm_active_cycles;
  double of_one = fmin(shared / (ctas * alone), 1), held = ((double)steps->cta_cycles / active - 1) / (ctas - 1);
  return (int64_t)(active * (of_one + (1 - of_one) * held));
}

// What no launch exceeds, and averages over CTAs that are not alike may: an instruction a cycle of each sub-core, and
// what DRAM's bus carries.
static void hold_to_limits(const ftl_launch *launch, const ftl_static_work *work, const ftl_traffic *traffic,
                           ftl_gpu_steps *steps) {
  const ftl_arch *arch = launch->arch;
  int64_t issuing = work->warp_insts / arch->sm_num_subcores;
  if (steps->sm_active_cycles > 0 && steps->sm_active_cycles < issuing) {
    steps->end_cycle += (issuing - steps->sm_active_cycles) / arch->chip_num_sms;
    steps->cta_cycles = scaled_down(steps->cta_cycles, issuing, steps->sm_active_cycles);
    steps->sm_active_cycles = issuing;
  }
  int64_t sectors = ftl_traffic_dram_read_sectors(traffic) + ftl_traffic_dram_write_sectors(traffic);
  double carried = (double)(arch->dram_num_channels * arch->dram_burst_bytes) / (double)arch->dram_burst_cycles *
                   (double)arch->clock_dram_khz / (double)traffic->sm_khz;  // bytes an SM cycle
  int64_t passing = (int64_t)ceil((double)sectors * FTL_SECTOR_BYTES / carried);
  if (steps->end_cycle < passing) steps->end_cycle = passing;
}

static ftl_status run_steps(const ftl_launch *launch, const ftl_segments *segments, ftl_walk_plan plan,
                            const ftl_static_work *work, ftl_step_times *times, ftl_l2_tags **tags, ftl_totals *out,
                            ftl_error *error) {
  ftl_traffic traffic;
  ftl_gpu_steps steps;
  ftl_status status = prepare_tags(launch, &plan, tags, error);
  if (status == FTL_OK) status = ftl_traffic_init(&traffic, launch, out->sm_khz, *tags, error);
  if (status != FTL_OK) return status;
  if (plan.is_stream) traffic.tiles.max_entries = FTL_TILES_OF_STREAM;
  traffic.is_in_groups = plan.group > 1;
  ftl_l2_tags_set_hit_ratio(*tags, ftl_launch_hit_ratio_milli(launch));
  status = ftl_gpu_steps_run(launch, segments, times, plan, &traffic, &steps, error);
  if (status == FTL_OK) {
    hold_to_limits(launch, work, &traffic, &steps);
    out->cycles = steps.end_cycle;
    out->full_sm_cycles = full_sm_cycles(segments, times, &steps);
    fill_sm(launch, work, &steps, typical_counters(times, &steps), storing_counters(times, &steps), &out->sm);
    fill_memory(launch, &traffic, &steps, segments->has_direct, out);
    out->error_bound_cycles_pct = cycles_bound_pct(launch, segments, times, &steps) + group_risk_pct(plan) +
                                  local_risk_pct(typical_counters(times, &steps));
    out->error_bound_hbm_bytes_pct =
        HBM_BOUND_PCT + (double)steps.period_spread_permille / 10.0 + spill_risk_pct(launch, &out->memory) +
        group_hbm_risk_pct(launch, plan, &out->memory) + row_hbm_risk_pct(launch, segments, &out->memory);
    status = ftl_step_times_status(times, error);
  }
  ftl_traffic_fini(&traffic);
  return status;
}

ftl_status ftl_sampled_run(const ftl_launch *launch, ftl_walk_plan plan, const ftl_static_work *work, int64_t sm_khz,
                           ftl_l2_tags **tags, ftl_totals *out, ftl_error *error) {
  ftl_segments segments;
  ftl_step_times times;
  *out = (ftl_totals){.sm_khz = sm_khz};
  if (!ftl_segments_try_init(&segments, launch->warps))
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s: loops nest in more than one place or role, so it cannot be sampled; use detail=full",
                         launch->tile->name);
  ftl_status status = init_steps(launch, &segments, sm_khz, &times, error);
  if (status == FTL_OK) status = run_steps(launch, &segments, plan, work, &times, tags, out, error);
  ftl_step_times_fini(&times);
  return status;
}
