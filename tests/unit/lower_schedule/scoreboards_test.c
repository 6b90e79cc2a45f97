// Results that share a scoreboard: on the round architecture a special function takes a cycle to issue and 20 to come,
// a load of global memory 300. Five scoreboards are given out, four where cp.async has one.
#include <criterion/criterion.h>

#include "drafts.h"
#include "lower/scoreboards.h"

enum { NONE = FTL_NO_VALUE, MOST_RESULTS = 8, RESULT = 1, READER = 11, LOAD = 21, LOAD_READER = 22, LAST = 23 };

static int32_t value(ftl_draft *draft) { return ftl_draft_value_add(draft, 1, 0); }

static void put_results(ftl_draft *draft, ftl_opcode opcode, int32_t count, int32_t *results) {
  for (int32_t i = 0; i < count; i++) {
    results[i] = value(draft);
    put(draft, opcode, RESULT + i, results[i], NONE, NONE);
  }
}

static void put_reader(ftl_draft *draft, int tag, int32_t result) {
  put(draft, FTL_OP_FFMA, tag, value(draft), result, NONE);
}

static void put_readers(ftl_draft *draft, int32_t count, const int32_t *results) {
  for (int32_t i = 0; i < count; i++) put_reader(draft, READER + i, results[i]);
}

// `end`: of the first of two stretches.
static void share(ftl_draft *draft, int32_t end) {
  ftl_arch arch = round_arch();
  ftl_arena arena = {0};
  ftl_stretch stretches[] = {{.begin = 0, .end = end}, {.begin = end, .end = draft->num_insts}};
  ftl_flow flow = {.num_stretches = 2, .stretches = stretches};
  draft->product = round_product();
  cr_assert(ftl_scoreboards_share(draft, &flow, &arch, &arena));
  ftl_arena_fini(&arena);
}

// The instruction tagged so, and nobody else, waits for `awaited` besides; tag 0: nobody waits for more than he reads.
static void expect_only(ftl_draft *draft, int tag, int32_t awaited) {
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_draft_inst *inst = &draft->insts[i];
    cr_expect_eq(inst->also_awaits, tag != 0 && inst->inst.arg == tag ? awaited : NONE, "tag %d awaits %d",
                 inst->inst.arg, inst->also_awaits);
  }
  ftl_draft_fini(draft);
}

// The six results come in cycles 20 to 25, and each is read in the cycle in which it comes. The sixth finds no free
// scoreboard: with that of the n-th (from 0) the n-th's reader would wait 25 - (20 + n) cycles more, the fewest with
// the fifth's.
Test(unit_lower_schedule_scoreboards, a_sixth_result_shares_where_its_neighbour_waits_a_cycle_more) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 6, results);
  put_readers(&draft, 6, results);
  share(&draft, draft.num_insts);
  expect_only(&draft, READER + 4, results[5]);
}

Test(unit_lower_schedule_scoreboards, five_results_share_none) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 5, results);
  put_readers(&draft, 5, results);
  share(&draft, draft.num_insts);
  expect_only(&draft, 0, NONE);
}

// Groups of cp.async have one: the fifth shares with the fourth.
Test(unit_lower_schedule_scoreboards, groups_of_copies_have_one) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 5, results);
  put_readers(&draft, 5, results);
  put(&draft, FTL_OP_CP_COMMIT, LAST, NONE, NONE, NONE);
  share(&draft, draft.num_insts);
  expect_only(&draft, READER + 3, results[4]);
}

// The first reader frees its scoreboard before the sixth result asks for one.
Test(unit_lower_schedule_scoreboards, one_that_was_waited_for_is_free_again) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 5, results);
  put_reader(&draft, READER, results[0]);
  put_results(&draft, FTL_OP_MUFU, 1, results + 5);
  put_readers(&draft, 5, results + 1);
  share(&draft, draft.num_insts);
  expect_only(&draft, 0, NONE);
}

// Of six results the first is read in the next stretch: five are left.
Test(unit_lower_schedule_scoreboards, what_another_stretch_reads_takes_none) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 6, results);
  put_readers(&draft, 5, results + 1);
  int32_t end = draft.num_insts;
  put_reader(&draft, LAST, results[0]);
  share(&draft, end);
  expect_only(&draft, 0, NONE);
}

// Five loads of shared memory, the last of which is read first: they come in order, and it alone counts. A special
// function that is read before them has one to itself.
Test(unit_lower_schedule_scoreboards, shared_loads_come_with_the_next_that_is_waited_for) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_LDSM, 5, results);
  put_results(&draft, FTL_OP_MUFU, 1, results + 5);
  put_reader(&draft, LAST, results[5]);
  put_reader(&draft, READER, results[4]);
  put_readers(&draft, 4, results);
  share(&draft, draft.num_insts);
  expect_only(&draft, 0, NONE);
}

// The load is believed to be there after 300 cycles, behind 510 of arithmetic. So its scoreboard costs the fifth of the
// results, all of which are read before it, nothing, and the fifth's reader waits for the load, however long it takes;
// with another's it would cost a cycle, as above.
Test(unit_lower_schedule_scoreboards, a_load_that_should_have_come_is_waited_for_by_others) {
  ftl_draft draft = {0};
  int32_t load = value(&draft), results[MOST_RESULTS];
  put(&draft, FTL_OP_LDG, LOAD, load, NONE, NONE);
  for (int i = 0; i < 2; i++) put(&draft, FTL_OP_FFMA, 0, value(&draft), NONE, NONE)->inst.repeat = 255;
  put_results(&draft, FTL_OP_MUFU, 5, results);
  put_readers(&draft, 5, results);
  put_reader(&draft, LOAD_READER, load);
  share(&draft, draft.num_insts);
  expect_only(&draft, READER + 4, load);
}

// The same without the arithmetic: the load would hold up the fifth's reader for 276 cycles.
Test(unit_lower_schedule_scoreboards, a_load_on_its_way_is_left_alone) {
  ftl_draft draft = {0};
  int32_t load = value(&draft), results[MOST_RESULTS];
  put(&draft, FTL_OP_LDG, LOAD, load, NONE, NONE);
  put_results(&draft, FTL_OP_MUFU, 5, results);
  put_readers(&draft, 5, results);
  put_reader(&draft, LOAD_READER, load);
  share(&draft, draft.num_insts);
  expect_only(&draft, READER + 3, results[4]);
}

// Three fragments of a second set, loaded long before they are multiplied, have one scoreboard, so that four special
// functions find one each; the first to read a fragment waits for all three.
Test(unit_lower_schedule_scoreboards, fragments_loaded_ahead_have_one_together) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS], fragments[3];
  put_results(&draft, FTL_OP_LDSM, 3, fragments);
  for (int i = 0; i < 3; i++) draft.insts[i].effects |= FTL_EFFECT_AHEAD;
  draft.buffers_fragments = true;
  put(&draft, FTL_OP_FFMA, 0, value(&draft), NONE, NONE)->inst.repeat = 255;
  put_results(&draft, FTL_OP_MUFU, 4, results);
  put_reader(&draft, LOAD_READER, fragments[0]);
  put_reader(&draft, 0, fragments[1]);
  put_reader(&draft, 0, fragments[2]);
  put_readers(&draft, 4, results);
  share(&draft, draft.num_insts);
  expect_only(&draft, LOAD_READER, fragments[2]);
}

// Read as soon as it is there, a fragment would have to wait for those behind it: they have scoreboards of their own.
Test(unit_lower_schedule_scoreboards, fragments_read_at_once_have_each_their_own) {
  ftl_draft draft = {0};
  int32_t fragments[3];
  put_results(&draft, FTL_OP_LDSM, 3, fragments);
  for (int i = 0; i < 3; i++) draft.insts[i].effects |= FTL_EFFECT_AHEAD;
  draft.buffers_fragments = true;
  put_readers(&draft, 3, fragments);
  share(&draft, draft.num_insts);
  expect_only(&draft, 0, NONE);
}

// What is waited for becomes a source: six results that one instruction behind a barrier could not read at once.
Test(unit_lower_schedule_scoreboards, what_is_awaited_has_a_token_that_the_machine_waits_for) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_MUFU, 6, results);
  put(&draft, FTL_OP_BAR_SYNC, LAST, NONE, NONE, NONE)->effects = FTL_EFFECT_FENCE;
  put_readers(&draft, 6, results);
  finish(&draft, 64);
  for (int i = 0; i < 6; i++) {
    const ftl_warp_inst *inst = &draft.insts[position_of(&draft, READER + i)].inst;
    cr_expect_eq(inst->num_sources, i == 4 ? 2 : 1, "reader %d: %d", i, inst->num_sources);
    cr_expect_eq(inst->num_awaited, i == 4 ? 1 : 0, "reader %d: %d", i, inst->num_awaited);
  }
  ftl_draft_fini(&draft);
}

// Seven loads that are read 510 cycles later: each of the last two costs nothing with the first one's scoreboard, whose
// reader waits for all three, however late each of them comes.
Test(unit_lower_schedule_scoreboards, who_waits_for_a_scoreboard_waits_for_all_its_loads) {
  ftl_draft draft = {0};
  int32_t results[MOST_RESULTS];
  put_results(&draft, FTL_OP_LDG, 7, results);
  for (int i = 0; i < 2; i++) put(&draft, FTL_OP_FFMA, 0, value(&draft), NONE, NONE)->inst.repeat = 255;
  put_readers(&draft, 7, results);
  share(&draft, draft.num_insts);
  for (int32_t i = 0; i < 7; i++) cr_expect_eq(draft.insts[i].inst.scoreboard, i < 5 ? 1 + i : 1, "load %d", i);
  for (int32_t i = 0; i < draft.num_insts; i++)
    cr_expect_eq(draft.insts[i].inst.awaits, draft.insts[i].inst.arg == READER ? 1 : 0);
  expect_only(&draft, READER, results[6]);
}
