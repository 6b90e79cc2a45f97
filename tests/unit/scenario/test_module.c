// The Lua module, with an engine that answers by a formula (fake/fake_engine.h).
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "script/scenario.h"
#include "unit/results/fixture.h"

#define PREFIX "local ft = require 'foretile'; "
#define QUESTION "workload = 'flash2_fwd', heads = 8, seqlen = 1024, head_dim = 64"

static ftl_status run(const char *script, ftl_error *error) {
  ftl_session session;
  ftl_session_init(&session);
  session.evaluate.num_threads = 2;
  ftl_status status =
      ftl_scenario_run_text(&session, "test.lua", script, strlen(script), ftl_sandbox_limits_default(), error);
  ftl_session_fini(&session);
  return status;
}

// The script asserts; a failed assert is its error.
static void passes(const char *script) {
  ftl_error error = {0};
  cr_assert_eq(run(script, &error), FTL_OK, "%s", error.message);
}

static void fails(const char *script, const char *expected) {
  ftl_error error = {0};
  cr_assert_eq(run(script, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
}

Test(unit_scenario_module, predict_gives_metrics_by_nsight_name_and_by_short_name) {
  passes(PREFIX "local r = ft.predict{ arch = 'h200', " QUESTION
                ", block_m = 64 }\n"
                "assert(r.feasible and r.arch == 'h200' and r.workload == 'flash2_fwd')\n"
                "assert(r['gpu__time_duration.sum'] == 4096, r['gpu__time_duration.sum'])\n"
                "assert(r.time_us == 4.096 and r.time_ns == 4096)\n"
                "assert(math.type(r.hbm_read) == 'integer' and r.hbm_read == 16000000)\n"
                "assert(r.block_m == 64 and r.block_n == 64 and r.causal == false and r.copy == 'ldg')\n"
                "assert(r.params.kv_heads == 8 and r.kernels[1].name == 'fake')\n"
                "assert(r.kernels[1].metrics['dram__bytes_read.sum'] == 16000000)\n"
                "assert(r.reason == nil and r.bottleneck == 'tensor pipe')\n");
}

// By the formula nothing hangs on the GPU, twice block_m halves the time, and 128 x 256 do not fit.
Test(unit_scenario_module, explain_gives_the_answer_what_ifs_and_neighbours) {
  passes(PREFIX "local e = ft.explain{ arch = 'h200', " QUESTION
                ", block_m = 128, block_n = 128, num_warps = 8 }\n"
                "assert(e.result.feasible and e.result.time_us == 0.512, e.result.time_us)\n"
                "assert(e.what_ifs[1].resource == 'hbm_bandwidth' and e.what_ifs[1].elasticity == 0)\n"
                "assert(e.what_ifs[1].factor == 1.25 and e.what_ifs[1].change == 'dram.num_channels 188 -> 235')\n"
                "local seen = {}\n"
                "for _, n in ipairs(e.neighbours) do seen[n.parameter .. '=' .. n.value] = n end\n"
                "assert(seen['block_m=64'].feasible and seen['block_m=64'].time_change_pct == 100)\n"
                "assert(not seen['block_m=256'].feasible and seen['block_m=256'].reason:find 'holds')\n"
                "assert(e.text:find 'in short' and e.text:find 'what another kernel would bring')\n");
  fails(PREFIX "ft.explain{ arch = 'h200', " QUESTION ", block_m = { 64, 128 } }\n", "test.lua:1: block_m is a list");
  fails(PREFIX "ft.explain{ arch = 'h200', " QUESTION ", blok = 1 }\n", "unknown parameter \"blok\"");
  fails(PREFIX "ft.explain{ workload = 'flash2_fwd' }\n", "arch = \"...\" is missing");
}

Test(unit_scenario_module, real_parameters_are_given_and_answered_as_numbers) {
  passes(PREFIX "local r = ft.predict{ arch = 'h200', " QUESTION
                ", block_m = 64, softmax_scale = 0.1 }\n"
                "assert(r.softmax_scale == 0.1 and r.params.softmax_scale == 0.1)\n");
}

Test(unit_scenario_module, a_list_is_taken_whole_however_long_its_text) {
  passes(PREFIX
         "local r = ft.predict{ arch = 'h200', workload = 'paged_decode', heads = 8, head_dim = 64, seqlen_q = 1,\n"
         "  lengths = ('1290:'):rep(99) .. '37' }\n"
         "assert(r.batch == 100, r.batch)\n");
  fails(PREFIX
        "ft.predict{ arch = 'h200', workload = 'paged_decode', heads = 8, head_dim = 64, seqlen_q = 1,\n"
        "  lengths = ('1290:'):rep(9999) .. '37' }\n",
        "lengths is longer than");
}

Test(unit_scenario_module, a_list_may_be_a_table_and_a_list_of_lists_is_explored) {
  passes(PREFIX
         "local q = { arch = 'h200', workload = 'flash2_fwd', heads = 8, head_dim = 64, lengths = { 512, 77, 77 } }\n"
         "local r = ft.predict(q)\n"
         "assert(r.lengths == '512:77x2' and r.batch == 3 and r.seqlen_q == 512, r.lengths)\n"
         "q.lengths = { { 512, 77 }, '64x2' }\n"
         "local s = ft.explore(q)\n"
         "assert(#s == 2 and s[1].lengths == '512:77' and s[2].lengths == '64x2')\n");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", lengths = { 512, 'x' } }\n",
        "lengths[2] must be a whole number");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", lengths = { 512, 0 } }\n", "lengths=512:0: allowed are whole");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = { 64 } }\n",
        "block_m is a list; ft.predict takes one");
}

Test(unit_scenario_module, a_clock_that_the_gpu_lacks_is_refused_with_its_range) {
  fails(PREFIX "ft.predict{ arch = 't4', " QUESTION ", clock_mhz = 1600 }\n",
        "clock_mhz=1600: t4 holds 300 to 1590 MHz");
  fails(PREFIX "ft.explore{ arch = 't4', " QUESTION ", clock_mhz = { 1600, 200 } }\n", "clock_mhz=1600: t4 holds");
  passes(PREFIX "local s = ft.explore{ arch = 't4', " QUESTION
                ", clock_mhz = { 1600, 900 } }\n"
                "assert(#s == 2 and #s:feasible() == 1 and s:infeasible()[1].reason:find 'clock_mhz=1600')\n");
}

Test(unit_scenario_module, an_infeasible_prediction_has_a_reason_and_no_time) {
  passes(PREFIX "local r = ft.predict{ arch = 'h200', " QUESTION
                ", block_m = 256, block_n = 128 }\n"
                "assert(r.feasible == false and r.time_us == nil)\n"
                "assert(r.reason == 'block_m=256 block_n=128 is more than h200 holds', r.reason)\n");
}

Test(unit_scenario_module, explore_tries_every_combination_and_ranks) {
  passes(PREFIX
         "local s = ft.explore{ arch = 'h200', " QUESTION
         ", block_m = {64, 128, 256}, block_n = {64, 128} }\n"
         "assert(#s == 6 and #s:feasible() == 5 and #s:infeasible() == 1)\n"
         "local ranked = s:rank 'time'\n"
         "assert(ranked[1].block_m == 128 and ranked[1].block_n == 128)\n"
         "assert(not ranked[6].feasible and ranked[7] == nil)\n"
         "assert(s[1].block_m == 64, 'rank makes a new set')\n"
         "assert(s:best().block_m == 128 and s:best('hbm').block_m == 256)\n"
         "local n = 0; for i, r in s:each() do n = n + i; assert(r.block_m) end; assert(n == 21)\n"
         "for i, r in ipairs(ranked) do assert(i == 1 or not r.feasible or r.time_ns >= ranked[i - 1].time_ns) end\n"
         "assert(#s:top(2) == 2 and #s:filter(function(r) return r.block_n == 64 end) == 3)\n");
}

Test(unit_scenario_module, explore_takes_several_gpus_and_a_condition) {
  passes(PREFIX
         "local big = ft.arch 'h200' { l2 = { persisting_max_bytes = 4096 } }\n"
         "assert(big.name == 'h200*' and big['l2.persisting_max_bytes'] == 4096)\n"
         "local s = ft.explore{ arch = { 'v100', big }, " QUESTION
         ", block_m = {64, 128}, num_warps = {4, 8},\n"
         "  where = function(p) return p.block_m // p.num_warps >= 16 end }\n"
         "assert(#s == 6 and s[1].arch == 'v100' and s[4].arch == 'h200*')\n");
}

Test(unit_scenario_module, a_condition_on_a_parameter_that_is_not_there_is_an_error) {
  fails(PREFIX "ft.explore{ arch = 'h200', " QUESTION
               ", block_m = {64, 128},\n  where = function(p) return p.blok_m end }",
        "test.lua:2: where: there is no parameter \"blok_m\"; the nearest is block_m");
}

Test(unit_scenario_module, tables_bars_and_pictures_are_text) {
  passes(PREFIX
         "local s = ft.explore{ arch = 'h200', " QUESTION
         ", block_n = {64, 128} }:rank()\n"
         "local t = s:table{ 'block_n', 'time_us', 'bottleneck' }\n"
         "assert(t == 'block_n  time_us  bottleneck\\n    128      1.0  tensor pipe\\n     64      2.0  tensor "
         "pipe\\n', t)\n"
         "local bars = s:plot{ y = 'time_ns', width = 10 }\n"
         "assert(bars:find('block_n=128') and bars:find('##########\\n') and not bars:find('###########'), bars)\n"
         "local none = ft.explore{ arch = 'h200', " QUESTION
         ", block_m = {512, 1024}, block_n = 1024 }:table()\n"
         "assert(none:find('\\ninfeasible:\\n  [^\\n]+: block_m=512 block_n=1024 is more'), none)\n"
         "local same = ft.explore{ arch = 'h200', " QUESTION
         ", block_m = 1024, block_n = 1024, num_warps = {4, 8} }:table()\n"
         "assert(same:find('\\n  num_warps=4 and 1 more: [^\\n]+ than h200 holds\\n$'), same)\n"
         "assert(not s:table():find 'infeasible')\n"
         "assert(s:why():find('^block_n=128 wins'))\n"
         "assert(s:svg():find('^<svg') and tostring(s):find('hbm_read') and tostring(s[1]):find('on h200'))\n");
}

Test(unit_scenario_module, a_combination_that_contradicts_itself_is_infeasible_where_another_does_not) {
  passes(PREFIX
         "local asked = 0\n"
         "local s = ft.explore{ arch = 'h200', " QUESTION
         ", mask = {'none', 'bits'}, mask_bits = '1x64', where = function(p) asked = asked + 1; return true end }\n"
         "assert(#s == 2 and asked == 1 and not s[1].feasible and s[2].feasible)\n"
         "assert(s[1].reason:find 'mask_bits: only with mask=bits', s[1].reason)\n"
         "assert(s:table():find('\\n  mask=none: mask_bits: only with mask=bits\\n'), s:table())\n");
  fails(PREFIX "ft.explore{ arch = 'h200', " QUESTION ", mask = {'none', 'strided'}, mask_bits = '1x64' }",
        "test.lua:1: mask_bits: only with mask=bits");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", mask_bits = '1x64' }", "mask_bits: only with mask=bits");
}

Test(unit_scenario_module, mistakes_name_the_line_and_what_is_near) {
  fails(PREFIX "\n\nft.predict{ arch = 'h200', " QUESTION ", blok_m = 64 }",
        "test.lua:3: unknown parameter \"blok_m\"; the nearest is block_m");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", ldx = 1 }", "foretile workload show flash2_fwd lists");
  fails(PREFIX "ft.predict{ arch = 'h20', " QUESTION " }", "test.lua:1: unknown GPU \"h20\"");
  fails(PREFIX
        "local many = {}; for i = 1, 70000 do many[i] = i end\n"
        "ft.explore { arch = 'h200', workload = 'flash2_fwd', heads = many, seqlen = 64, head_dim = 64 }",
        "test.lua:2: heads: more than 65536 combinations; split the exploration");
  fails(PREFIX "ft.predict{ arch = 'h200', workload = 'flash' }", "unknown workload flash; known are flash1_fwd");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = -1 }", "from 1 to 1024");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = 1/0 }", "block_m=inf");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = 64.5 }", "block_m=64.5");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = {64, 128} }", "ft.explore takes lists");
  fails(PREFIX "ft.predict{ arch = 'h200', " QUESTION ", block_m = print }", "not a function");
  fails(PREFIX "ft.explore{ arch = 'h200', " QUESTION ", block_m = {} }", "block_m is an empty list");
  fails(PREFIX "ft.predict{ " QUESTION " }", "arch = ");
  fails(PREFIX "ft.predict{ arch = 'h200' }", "workload = ");
  fails(PREFIX "ft.predict{ 'h200' }", "a value without a name");
  fails(PREFIX "local r = ft.predict{ arch = 'h200', " QUESTION " }\nprint(r.tmie_us)",
        "test.lua:2: no metric, parameter or alias is called \"tmie_us\"; the nearest is time_us");
  fails(PREFIX "local s = ft.explore{ arch = 'h200', " QUESTION " }\ns:rnak()",
        "test.lua:2: a result set has no \"rnak\"");
  fails(PREFIX "\nft.predit{ arch = 'h200', " QUESTION " }",
        "test.lua:2: the module foretile has no \"predit\"; the nearest is predict");
  fails(PREFIX "ft[1]()", "test.lua:1: the module foretile is indexed by names");
  fails(PREFIX "ft.arch 'h200' { l2 = { size = 1 } }", "l2.size");
  fails(PREFIX "print(ft.arch('h200')['l2.way'])", "the nearest is l2.ways");
  fails("require 'fortile'", "there is no module");
}

Test(unit_scenario_module, a_failed_prediction_fails_the_run_even_if_the_script_goes_on) {
  ftl_error error = {0};
  cr_assert_eq(run(PREFIX "pcall(ft.predict, { arch = 'h200', " QUESTION ", block_n = 24 })", &error), FTL_RUN_FAILED);
  cr_assert_not_null(strstr(error.message, "this engine cannot do block_n=24"), "%s", error.message);
}

Test(unit_scenario_module, a_set_that_is_dropped_frees_its_memory, .timeout = 60) {
  // Each set holds about 5 kB a point: without collection 400 sets of 200 points would be 400 MB, above the limit.
  passes(PREFIX
         "local m = {}; for i = 1, 50 do m[i] = 16 * i end\n"
         "for i = 1, 400 do ft.explore{ arch = 'h200', " QUESTION
         ", block_m = m, num_warps = {4, 8}, num_stages = {1, 2} } end\n");
}

Test(unit_scenario_module, what_if_models_cannot_be_hoarded, .timeout = 60) {
  fails(PREFIX "for i = 1, 5000 do ft.arch 'h200' { l2 = { persisting_max_bytes = i } } end",
        "more than 4096 arch models in one run");
}

static void *stop(void *flag) {
  struct timespec wait = {.tv_nsec = 50000000};
  nanosleep(&wait, NULL);
  atomic_store((atomic_bool *)flag, true);
  return NULL;
}

Test(unit_scenario_module, an_interrupted_explore_ends_the_script, .timeout = 20) {
  static atomic_bool cancel;
  const char *script =
      PREFIX "pcall(ft.explore, { arch = 'h200', " QUESTION ", block_n = {64, 128}, block_m = {64, 128} })";
  ftl_session session;
  ftl_error error = {0};
  pthread_t thread;
  ftl_session_init(&session);
  session.evaluate.cancel = &cancel;
  setenv("FTL_FAKE_DELAY_MS", "10000", 1);
  cr_assert_eq(pthread_create(&thread, NULL, stop, &cancel), 0);
  cr_assert_eq(ftl_scenario_run_text(&session, "t.lua", script, strlen(script), ftl_sandbox_limits_default(), &error),
               FTL_INTERRUPTED);
  pthread_join(thread, NULL);
  ftl_session_fini(&session);
}
