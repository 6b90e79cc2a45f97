#include "engine/sampled/loop_marks.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"

static bool is_within(const ftl_warp_loop *loop, ptrdiff_t pc) { return pc > loop->begin && pc < loop->end; }

// An iteration of the outer loop has ended. Unless it was the last that is kept, its marks give way to the next one's.
static void mark_outer(ftl_loop_marks *marks, int32_t slot, int64_t cycle) {
  const ftl_outer_loop *outer = &marks->segments->outer;
  ftl_outer_marks *o = &marks->outer[slot];
  bool first = o->count == 0;
  FTL_CHECK(o->count < FTL_KEPT_OUTER, "loop %d runs longer than it was cut to", (int)outer->loop);
  o->cycle[o->count++] = cycle;
  for (int32_t k = outer->first / 2; first && k < outer->last / 2; k++) o->first_count[k] = marks->count[slot][k];
}

// The first iteration of a loop in a further iteration of the outer one.
static void forget_earlier(ftl_loop_marks *marks, int32_t slot, int32_t k) {
  const ftl_outer_loop *outer = &marks->segments->outer;
  const ftl_outer_marks *o = &marks->outer[slot];
  if (outer->loop < 0 || k < outer->first / 2 || k >= outer->last / 2 || o->count == 0) return;
  int32_t count = marks->count[slot][k];
  if (count > 0 && marks->cycle[slot][k][count - 1] <= o->cycle[o->count - 1]) marks->count[slot][k] = 0;
}

void ftl_loop_marks_mark(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                         const ftl_warp_inst *inst) {
  ftl_loop_marks *marks = context;
  if (warp != marks->warp) return;
  if (inst->opcode == FTL_OP_EXIT && cta == marks->tile_before) marks->tile_start = cycle;
  if (inst->opcode == FTL_OP_EXIT && cta == marks->tile) marks->tile_end = cycle;
  if (!(inst->flags & FTL_INST_LOOP_BRANCH) || (marks->tile >= 0 && cta != marks->tile)) return;
  const ftl_warp_role *role = &marks->program->roles[marks->segments->leading_role];
  ptrdiff_t pc = inst - marks->program->insts - role->first_inst;
  for (int32_t k = 0; k < marks->segments->num_loops; k++) {
    if (marks->segments->loops[k] < 0 || !is_within(&marks->program->loops[marks->segments->loops[k]], pc)) continue;
    forget_earlier(marks, slot, k);
    int32_t *count = &marks->count[slot][k];
    FTL_CHECK(*count < FTL_MOST_ITERATIONS, "loop %d runs longer than it was cut to", (int)k);
    marks->cycle[slot][k][(*count)++] = cycle;
    return;
  }
  int32_t outer = marks->segments->outer.loop;
  if (outer >= 0 && is_within(&marks->program->loops[outer], pc)) mark_outer(marks, slot, cycle);
}

static int64_t last_mark(const ftl_loop_marks *marks, int32_t slot, int32_t k) {
  return marks->cycle[slot][k][marks->count[slot][k] - 1];
}

// Iterations of loop k, in sixteenths of one, that a slot has ended by `cycle`, those under way by their share.
static int64_t iterations_by(const ftl_loop_marks *marks, int32_t slot, int32_t k, int64_t cycle) {
  const int64_t *mark = marks->cycle[slot][k];
  int32_t count = marks->count[slot][k], i = 0;
  while (i < count && mark[i] <= cycle) i++;
  if (i == 0 || i == count) return (int64_t)i * FTL_SIXTEENTHS_PER_CYCLE;
  return (int64_t)i * FTL_SIXTEENTHS_PER_CYCLE +
         (cycle - mark[i - 1]) * FTL_SIXTEENTHS_PER_CYCLE / (mark[i] - mark[i - 1]);
}

typedef struct cycle_span {
  int64_t from, until;
} cycle_span;

// In which all CTAs run loop k; empty where one has fewer than four iterations.
static cycle_span common_span(const ftl_loop_marks *marks, int32_t k, int32_t num_ctas) {
  cycle_span span = {.from = 0, .until = INT64_MAX};
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    if (marks->count[slot][k] < 4) return (cycle_span){0};
    if (marks->cycle[slot][k][0] > span.from) span.from = marks->cycle[slot][k][0];
    if (last_mark(marks, slot, k) < span.until) span.until = last_mark(marks, slot, k);
  }
  return span;
}

// The time of one iteration while all CTAs run the loop: their number over the rate at which they end iterations
// together. Schedulers that favour a warp let CTAs advance unequally, so one CTA's own pace says little. 0 where they
// do not run it together for at least two iterations each on average.
static int64_t common_iteration_time(const ftl_loop_marks *marks, int32_t k, int32_t num_ctas) {
  cycle_span span = common_span(marks, k, num_ctas);
  int64_t iterations = 0;
  if (span.until <= span.from) return 0;
  for (int32_t slot = 0; slot < num_ctas; slot++)
    iterations += iterations_by(marks, slot, k, span.until) - iterations_by(marks, slot, k, span.from);
  if (iterations < 2 * num_ctas * FTL_SIXTEENTHS_PER_CYCLE) return 0;
  return (span.until - span.from) * FTL_SIXTEENTHS_PER_CYCLE * FTL_SIXTEENTHS_PER_CYCLE * num_ctas / iterations;
}

bool ftl_loop_marks_are_apart(const ftl_loop_marks *marks, int32_t k, int32_t num_ctas) {
  return common_iteration_time(marks, k, num_ctas) == 0;
}

// The mean over the CTAs of each one's own pace in the second half of its iterations.
static int64_t own_iteration_time(const ftl_loop_marks *marks, int32_t k, int32_t num_ctas, const int64_t *before) {
  int64_t sum = 0, num = 0;
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    int32_t count = marks->count[slot][k], from = count > 2 ? count / 2 - 1 : 0;
    const int64_t *cycle = marks->cycle[slot][k];
    if (count == 0) continue;
    sum += count > 1 ? (cycle[count - 1] - cycle[from]) * FTL_SIXTEENTHS_PER_CYCLE / (count - 1 - from)
                     : (cycle[0] - before[slot]) * FTL_SIXTEENTHS_PER_CYCLE;
    num++;
  }
  return num > 0 ? sum / num : 0;
}

// When each slot ended what comes before the code that is looked at.
typedef struct slot_cycles {
  int64_t at[FTL_MARKED_CTAS];
} slot_cycles;

// What a loop took beyond its periodic iterations belongs to the code before it. A loop that ran once cannot be told
// from that code: all of it is the iteration.
static void fill_loop(const ftl_loop_marks *marks, int32_t num_ctas, int32_t k, slot_cycles *before,
                      int64_t *sixteenths) {
  int64_t iteration = common_iteration_time(marks, k, num_ctas), sum_around = 0;
  if (iteration == 0) iteration = own_iteration_time(marks, k, num_ctas, before->at);
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    if (marks->count[slot][k] == 0) continue;
    sum_around +=
        (last_mark(marks, slot, k) - before->at[slot]) * FTL_SIXTEENTHS_PER_CYCLE - iteration * marks->count[slot][k];
    before->at[slot] = last_mark(marks, slot, k);
  }
  sixteenths[2 * k + 1] = iteration;
  sixteenths[2 * k] = sum_around > 0 ? sum_around / num_ctas : 0;
}

// The code in the outer loop, from its last iteration. The code before it is what is left of the time until its first
// iteration ended, had that been like the last but for the number of iterations in it.
static void fill_outer(const ftl_loop_marks *marks, int32_t num_ctas, slot_cycles *before, int64_t *sixteenths) {
  const ftl_outer_loop *outer = &marks->segments->outer;
  slot_cycles at = *before;
  int64_t sum_last = 0, sum_before = 0;
  for (int32_t slot = 0; slot < num_ctas; slot++)
    if (marks->outer[slot].count > 1) at.at[slot] = marks->outer[slot].cycle[marks->outer[slot].count - 2];
  slot_cycles begin = at;
  for (int32_t k = outer->first / 2; k < outer->last / 2; k++) fill_loop(marks, num_ctas, k, &at, sixteenths);
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    const ftl_outer_marks *o = &marks->outer[slot];
    if (o->count == 0) continue;
    int64_t end = o->cycle[o->count - 1], as_last = (end - begin.at[slot]) * FTL_SIXTEENTHS_PER_CYCLE;
    sum_last += end - at.at[slot];
    for (int32_t k = outer->first / 2; k < outer->last / 2; k++)
      as_last += (o->first_count[k] - marks->count[slot][k]) * sixteenths[2 * k + 1];
    if (o->count > 1) sum_before += (o->cycle[0] - before->at[slot]) * FTL_SIXTEENTHS_PER_CYCLE - as_last;
    before->at[slot] = end;
  }
  sixteenths[outer->last] = sum_last * FTL_SIXTEENTHS_PER_CYCLE / num_ctas;
  sixteenths[outer->first - 2] = sum_before > 0 ? sum_before / num_ctas : 0;
}

void ftl_loop_marks_times(const ftl_loop_marks *marks, int32_t num_ctas, const int64_t *starts, const int64_t *ends,
                          int64_t *sixteenths) {
  const ftl_segments *segments = marks->segments;
  int32_t num_loops = segments->num_loops;
  slot_cycles before;
  int64_t sum_end = 0;
  memcpy(before.at, starts, (size_t)num_ctas * sizeof *starts);
  for (int32_t k = 0; k < num_loops; k++) {
    if (segments->outer.loop >= 0 && 2 * k + 2 == segments->outer.first) {
      fill_outer(marks, num_ctas, &before, sixteenths);
      k = segments->outer.last / 2;  // the loop that never runs behind it
    } else {
      fill_loop(marks, num_ctas, k, &before, sixteenths);
    }
  }
  for (int32_t slot = 0; slot < num_ctas; slot++) sum_end += ends[slot] - before.at[slot];
  sixteenths[2 * num_loops] = sum_end * FTL_SIXTEENTHS_PER_CYCLE / num_ctas;
}

// A slot's time of one iteration, of those that it begins and ends in the span; 0 where there is none.
static double pace_in(const ftl_loop_marks *marks, int32_t slot, int32_t k, cycle_span span) {
  const int64_t *mark = marks->cycle[slot][k];
  int32_t count = marks->count[slot][k], first = 0;
  while (first < count && mark[first] < span.from) first++;
  int32_t last = first;
  while (last + 1 < count && mark[last + 1] <= span.until) last++;
  return last > first ? (double)(mark[last] - mark[first]) / (last - first) : 0;
}

// CTAs that started before a slot's, less half of all others: -(num_ctas - 1) / 2 to (num_ctas - 1) / 2.
static double place_in_order(const int64_t *starts, int32_t slot, int32_t num_ctas) {
  double place = -(num_ctas - 1) / 2.0;
  for (int32_t other = 0; other < num_ctas; other++)
    place += starts[other] < starts[slot] || (starts[other] == starts[slot] && other < slot);
  return place;
}

// By how much the slots' times grow from the CTA that started first to the last.
static double growth_over_order(const double *time, const int64_t *starts, int32_t num_ctas) {
  double sum_by_place = 0, sum_of_squares = 0;
  for (int32_t slot = 0; slot < num_ctas; slot++) {
    double place = place_in_order(starts, slot, num_ctas);
    sum_by_place += place * time[slot];
    sum_of_squares += place * place;
  }
  return num_ctas > 1 ? sum_by_place / sum_of_squares * (num_ctas - 1) : 0;
}

void ftl_loop_marks_age_cycles(const ftl_loop_marks *marks, int32_t num_ctas, const int64_t *starts,
                               const int64_t *ends, double *cycles) {
  int32_t num_loops = marks->segments->num_loops;
  double time[FTL_MARKED_CTAS], pace[FTL_MARKED_CTAS];
  slot_cycles before;
  memset(cycles, 0, (size_t)(2 * num_loops + 1) * sizeof *cycles);
  if (marks->segments->outer.loop >= 0) return;
  memcpy(before.at, starts, (size_t)num_ctas * sizeof *starts);
  for (int32_t k = 0; k < num_loops; k++) {
    cycle_span span = common_span(marks, k, num_ctas);
    bool together = true;
    span.from += (span.until - span.from) / 2;
    for (int32_t slot = 0; slot < num_ctas; slot++) {
      pace[slot] = pace_in(marks, slot, k, span);
      together &= pace[slot] > 0;
    }
    if (!together) continue;
    for (int32_t slot = 0; slot < num_ctas; slot++) {
      time[slot] = (double)(last_mark(marks, slot, k) - before.at[slot]) - pace[slot] * marks->count[slot][k];
      before.at[slot] = last_mark(marks, slot, k);
    }
    cycles[2 * k + 1] = growth_over_order(pace, starts, num_ctas);
    cycles[2 * k] = growth_over_order(time, starts, num_ctas);
  }
  for (int32_t slot = 0; slot < num_ctas; slot++) time[slot] = (double)(ends[slot] - before.at[slot]);
  cycles[2 * num_loops] = growth_over_order(time, starts, num_ctas);
}
