// ft.measurements, with an engine that answers by a formula (fake/fake_engine.h).
#include <stdlib.h>
#include <string.h>

#include "script/scenario.h"
#include "unit/results/fixture.h"

#define PREFIX "local ft = require 'foretile'; "
// Four rows of one shape. By the formula, of 8 heads and 1024 x 1024: block_m = 64, block_n = 64 and 4 warps take 4096
// ns, 128 x 64 half of that. HBM bytes are 16,000,000 read and 0 written.
#define HEADER                                                                               \
  "workload,heads,seqlen,head_dim,block_m,block_n,status,condition,gpu,date,time_median_us," \
  "gpu__time_duration.sum,dram__bytes_read.sum\n"
#define ROW(m, n, rest) "flash2_fwd,8,1024,64," #m "," #n ",ok," rest "\n"
#define ROWS                                                                                 \
  HEADER ROW(64, 64, "ncu,NVIDIA H200,2026-01-02,,5120,20000000")                            \
      ROW(128, 64, "ncu,NVIDIA H200,2026-01-02,,2048,16000000")                              \
          ROW(256, 128, "ncu,NVIDIA H200,2026-01-02,,1000,") /* infeasible by the formula */ \
      ROW(64, 64, "stream,Tesla T4,2026-01-03,4.0,,")

static ftl_status run(const char *script, int num_threads, ftl_sandbox_limits limits, ftl_error *error) {
  ftl_session session;
  ftl_session_init(&session);
  session.evaluate.num_threads = num_threads;
  ftl_status status = ftl_scenario_run_text(&session, "test.lua", script, strlen(script), limits, error);
  ftl_session_fini(&session);
  return status;
}

// The script asserts, with `file` the name of a file that holds `rows`, which --allow-io lets it read.
static ftl_status run_about(const char *rows, const char *script, int num_threads, ftl_error *error) {
  folder f = make_folder();
  FILE *out = fopen(f.file, "w");
  cr_assert_not_null(out);
  fputs(rows, out);
  fclose(out);
  ftl_text whole = {0};
  ftl_text_add(&whole, PREFIX "local file = '%s'; %s", f.file, script);
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.allow_io = true;
  ftl_status status = run(ftl_text_get(&whole), num_threads, limits, error);
  ftl_text_fini(&whole);
  remove(f.file);
  remove_folder(&f);
  return status;
}

static void passes(const char *script) {
  ftl_error error = {0};
  cr_assert_eq(run_about(ROWS, script, 2, &error), FTL_OK, "%s", error.message);
}

static void fails_about(const char *rows, const char *script, const char *expected) {
  ftl_error error = {0};
  cr_assert_eq(run_about(rows, script, 1, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
}

static void fails(const char *script, const char *expected) {
  ftl_error error = {0};
  cr_assert_eq(run(script, 1, ftl_sandbox_limits_default(), &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
}

Test(unit_scenario_measurements, a_case_says_what_was_measured_and_where) {
  passes(
      "local cases = ft.measurements{ files = file }\n"
      "assert(#cases == 4 and cases[5] == nil)\n"
      "local c = cases[1]\n"
      "assert(c.arch == 'h200' and c.workload == 'flash2_fwd' and c.part == 'yours' and c.source == 'own')\n"
      "assert(c.block_m == 64 and c.conditions == 'ncu' and c.num_stages == 2 and c.causal == false)\n"
      "assert(c.measured['dram__bytes_read.sum'] == 20000000 and c.measured['gpu__time_duration.sum'] == 5120)\n"
      "assert(c.measured['smsp__inst_executed.sum'] == nil and c.predicted == nil)\n"
      "assert(c.provenance.gpu == 'NVIDIA H200' and c.provenance.date == '2026-01-02' and c.provenance.line == 2)\n"
      "assert(c.provenance.profiles == 1 and c.provenance.driver == nil)\n"
      "assert(c.place == c.provenance.file .. ':2')\n"
      "assert(cases[4].arch == 't4' and cases[4].measured['foretile__stream_time.sum'] == 4000)\n"
      "assert(tostring(c):find('flash2_fwd batch=1', 1, true))\n"
      "local seen = 0; for i, one in cases:each() do assert(one.place == cases[i].place); seen = seen + 1 end\n"
      "assert(seen == 4)\n");
}

Test(unit_scenario_measurements, its_parameters_are_what_the_row_says_and_ask_the_same_question) {
  passes(
      "local c = ft.measurements{ files = file }[1]\n"
      "assert(c.params.arch == 'h200' and c.params.workload == 'flash2_fwd' and c.params.block_m == 64)\n"
      "assert(c.params.num_stages == nil and c.params.code == 'plain')\n"
      "local r = ft.predict(c.params)\n"
      "assert(r.time_ns == 4096 and c:predict().time_ns == 4096)\n"
      "for name, value in pairs(r.params) do assert(c[name] == value or c[name] == 'auto', name) end\n");
}

// Errors by hand: time 4096 for 5120 is -20 %, reads 16 for 20 MB -20 %; the second row is met.
Test(unit_scenario_measurements, comparisons_are_signed_errors_in_percent) {
  passes(
      "local cases = ft.measurements{ files = file }\n"
      "local rows = cases:compare()\n"
      "assert(#rows == 4 and rows[1].case.place == cases[1].place)\n"
      "local t = rows[1].time\n"
      "assert(t.measured == 5120 and t.predicted == 4096 and t.error == -20 and t.unit == '%')\n"
      "assert(rows[1]['dram__bytes_read.sum'].error == -20 and rows[1].hbm_read.error == -20)\n"
      "assert(rows[2].time.error == 0 and rows[1].stream_time == nil)\n"
      "assert(rows[3].time.measured == 1000 and rows[3].time.predicted == nil and rows[3].time.error == nil)\n"
      "assert(cases[1]:compare().time.error == -20 and rows[1].case.predicted.time_ns == 4096)\n"
      "assert(not rows[3].case.predicted.feasible)\n");
}

// Of -20 and 0: mean and median 10, p90 and max 20, bias -10. The infeasible row has no error.
Test(unit_scenario_measurements, summaries_are_those_of_validate) {
  passes(
      "local s = ft.measurements{ files = file, conditions = 'ncu' }:predict():summary()\n"
      "assert(s.time.cases == 2 and s.time.mape == 10 and s.time.mean == 10 and s.time.median == 10)\n"
      "assert(s.time.p90 == 20 and s.time.max == 20 and s.time.bias == -10 and s.time.unit == '%')\n"
      "assert(s.insts == nil and s.stream_time == nil and s.hbm_read.cases == 2)\n"
      "local one = ft.measurements{ files = file }:summary 'gpu__time_duration.sum'\n"
      "assert(one.mape == 10 and ft.measurements{ files = file }:summary 'insts' == nil)\n");
}

// By the formula 8192, 4096, 2048 and 1024 ns, a quarter of that at half the length, where all measured times are the
// same; one condition more of the first shape has too few. Two of the first are the wrong way round: rho is
// 1 - 6 * (1 + 1) / (4 * 15).
Test(unit_scenario_measurements, choices_are_those_of_validate_worst_first) {
#define HALF_ROW(m, n, rest) "flash2_fwd,8,512,64," #m "," #n ",ok," rest "\n"
#define NCU "ncu,NVIDIA H200,2026-01-02,,"
  const char *rows = HEADER HALF_ROW(64, 32, NCU "500,") HALF_ROW(64, 64, NCU "500,") HALF_ROW(128, 64, NCU "500,")
      HALF_ROW(128, 128, NCU "500,") ROW(64, 32, NCU "8000,") ROW(64, 64, NCU "4000,") ROW(128, 64, NCU "1000,")
          ROW(128, 128, NCU "2000,") ROW(256, 128, NCU "1,") ROW(64, 64, "stream,NVIDIA H200,2026-01-03,4.0,,");
  const char *script =
      "local cases = ft.measurements{ files = file }\n"
      "local choices = cases:choices()\n"
      "assert(#choices == 2 and choices[1].cases == 4 and choices[1].case.seqlen_q == 1024)\n"
      "assert(math.abs(choices[1].rho - 0.8) < 1e-12 and choices[1].best_pct == 50 and choices[1].best_of_3_pct == "
      "100)\n"
      "assert(choices[1].case.predicted.time_ns == 8192)\n"
      "assert(choices[2].case.seqlen_q == 512 and choices[2].rho == nil and choices[2].best_pct == 100)\n"
      "assert(choices.rho_mean == choices[1].rho and choices.rho_least == choices[1].rho)\n"
      "assert(choices.best_mean_pct == 75 and choices.best_least_pct == 50)\n"
      "assert(choices.best_of_3_mean_pct == 100 and choices.best_of_3_least_pct == 100)\n"
      "local same = cases:filter(function(c) return c.seqlen_q == 512 end):predict():choices()\n"
      "assert(#same == 1 and same.rho_mean == nil and same.rho_least == nil and same.best_least_pct == 100)\n"
      "local none = cases:top(3):choices()\n"
      "assert(#none == 0 and next(none) == nil)\n";
  ftl_error error = {0};
  cr_assert_eq(run_about(rows, script, 2, &error), FTL_OK, "%s", error.message);
}

Test(unit_scenario_measurements, filters_take_one_value_or_several) {
  passes(
      "local function count(filter) filter.files = file; return #ft.measurements(filter) end\n"
      "assert(count{ block_m = 64 } == 2 and count{ block_m = { 64, 128 } } == 3 and count{ block_m = 32 } == 0)\n"
      "assert(count{ arch = 't4' } == 1 and count{ arch = { ft.arch 'h200', 't4' } } == 4 and count{ arch = 'v100' } "
      "== 0)\n"
      "assert(count{ workload = { 'glu', 'flash2_fwd' } } == 4 and count{ workload = 'glu' } == 0)\n"
      "assert(count{ part = 'yours' } == 4 and count{ part = { 'reserved', 'held-out' } } == 0)\n"
      "assert(count{ source = 'own' } == 4 and count{ source = 'triton' } == 0)\n"
      "assert(count{ conditions = 'stream' } == 1 and count{ conditions = 'ncu', block_n = 64 } == 2)\n"
      "assert(count{ seqlen = 1024, causal = false } == 4 and count{ seqlen = 512 } == 0 and count{ causal = true } == "
      "0)\n"
      "assert(count{ every = 3 } == 2 and count{ every = 3, block_m = { 64, 128 } } == 1)\n");
}

Test(unit_scenario_measurements, sets_come_from_sets_and_predict_on_another_gpu) {
  passes(
      "local cases = ft.measurements{ files = file }\n"
      "local some = cases:filter(function(c) return c.block_n == 64 and c.conditions == 'ncu' end)\n"
      "assert(#some == 2 and #cases:top(3) == 3 and #cases:top(9) == 4 and #cases:top(0) == 0)\n"
      "local p = some:predict{ arch = 'v100', detail = 'full' }\n"
      "assert(p[1].arch == 'h200' and p[1].predicted.arch == 'v100' and p[1].predicted.detail == 'full')\n"
      "assert(some[1].predicted == nil and p[1].predicted.time_ns == 4096)\n"
      "local what_if = ft.arch('h200'){ l2 = { ways = 8 } }\n"
      "assert(some[1]:predict{ arch = what_if }.arch == 'h200*')\n"
      "assert(cases:worst('time')[1].block_m == 128 or cases:worst('time')[1].block_m == 256)\n"
      "assert(some:worst('time')[1].block_m == 64 and some:worst()[2].block_m == 128)\n"
      "assert(#ft.measurements{ files = file, block_m = 32 }:predict() == 0)\n");
}

Test(unit_scenario_measurements, tables_have_the_measured_then_the_predicted_beside_it) {
  passes(
      "local cases = ft.measurements{ files = file, conditions = 'ncu' }:top(2)\n"
      "local t = cases:table{ 'block_m', 'gpu__time_duration.sum', 'hbm_read' }\n"
      "assert(t == 'block_m  time us  hbm_read MB\\n     64      5.1         20.0\\n    128      2.0         16.0\\n', "
      "t)\n"
      "t = cases:predict():table{ 'block_m', 'time' }\n"
      "assert(t:find '64      5.1        4.1    %-20.0\\n', t)\n"
      "assert(tostring(cases) == cases:table() and cases:table():find 'own     ncu         1x8 1024 d64')\n");
}

Test(unit_scenario_measurements, the_answer_does_not_depend_on_the_number_of_threads) {
  const char *script =
      "local t = ft.measurements{ files = 'attention_other_ncu.csv', every = 5 }:predict():table()\n"
      "local sum = 0\n"
      "for i = 1, #t do sum = (31 * sum + t:byte(i)) % 1000000007 end\n"
      "error(#t .. ' characters, sum ' .. sum)";
  ftl_error one = {0}, four = {0};
  cr_assert_eq(run_about(ROWS, script, 1, &one), FTL_BAD_INPUT);
  cr_assert_eq(run_about(ROWS, script, 4, &four), FTL_BAD_INPUT);
  cr_assert_str_eq(one.message, four.message);
  cr_assert_not_null(strstr(one.message, " characters, sum "), "%s", one.message);
}

Test(unit_scenario_measurements, committed_files_are_read_by_name_and_no_others_without_io) {
  ftl_error error = {0};
  const char *script = PREFIX
      "local cases = ft.measurements{ files = { 'attention_flash2_ncu.csv', 'attention_flash2_stream.csv' }, every = "
      "40 }\n"
      "assert(#cases > 10 and cases[1].part == 'calibration' and cases[1].place == 'attention_flash2_ncu.csv:2')\n"
      "local p = cases:predict()\n"
      "for _, c in p:each() do\n"
      "  for name, value in pairs(ft.predict(c.params).params) do assert(c.predicted.params[name] == value, name) end\n"
      "end\n";
  cr_assert_eq(run(script, 2, ftl_sandbox_limits_default(), &error), FTL_OK, "%s", error.message);
  fails(PREFIX "ft.measurements{ files = '/etc/hosts' }",
        "test.lua:1: files[1]: /etc/hosts is none of the measurements");
  fails(PREFIX "ft.measurements{ files = { 'attention_flash2_ncu.csv', '../README.md' } }",
        "files[2]: ../README.md is none");
  fails(PREFIX "ft.measurements{ files = 'h100/../../README.md' }", "other files need --allow-io");
}

Test(unit_scenario_measurements, bad_arguments_are_named_with_what_is_allowed) {
  fails(PREFIX "ft.measurements{ file = 'x.csv' }", "not \"file\"; the nearest is files");
  fails(PREFIX "ft.measurements{ blok_m = 64, zzz = 1 }", "not \"blok_m\"; the nearest is block_m");
  fails(PREFIX "ft.measurements{ 'x.csv' }", "is written name = value");
  fails(PREFIX "ft.measurements{ part = 'held' }",
        "part=held: allowed are calibration, reserved, held-out, independent, yours");
  fails(PREFIX "ft.measurements{ workload = 'flash' }", "unknown workload flash; known are");
  fails(PREFIX "ft.measurements{ arch = 'h20' }", "unknown GPU \"h20\"");
  fails(PREFIX "ft.measurements{ block_m = 'wide' }", "block_m=wide: allowed is a whole number");
  fails(PREFIX "ft.measurements{ workload = 'glu', block_q = 1 }", "not \"block_q\"");
  fails(PREFIX "ft.measurements{ workload = 'glu', lengths = '5' }", "glu does not take the parameter lengths");
  fails(PREFIX "ft.measurements{ every = 0 }", "every must be a whole number from 1");
  fails(PREFIX "ft.measurements{ files = {} }", "files is an empty list");
  fails(PREFIX "ft.measurements{ head_dim = {} }", "head_dim is an empty list");
  const char *const uses[][2] = {{":table{ 'hbn' }", "\"hbn\"; the nearest is hbm"},
                                 {":summary 'tim'", "\"tim\"; the nearest is time"},
                                 {":sort()", "a set of measured cases has no \"sort\""},
                                 {":predict{ gpu = 'h200' }", ":predict takes arch and detail, not \"gpu\""},
                                 {"[1].blok_m", "of which the nearest is block_m"}};
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    char script[160];
    snprintf(script, sizeof script, "print(ft.measurements{ files = file }%s)", uses[i][0]);
    fails_about(ROWS, script, uses[i][1]);
  }
}

Test(unit_scenario_measurements, files_with_nothing_to_compare_are_refused_as_by_validate) {
  const char *ask = "ft.measurements{ files = file }";
  fails_about(
      "workload,heads,seqlen,head_dim,status,condition,gpu,dram__byte_red.sum\n"
      "flash2_fwd,8,64,64,ok,ncu,NVIDIA H200,5\n",
      ask, "the nearest to dram__byte_red.sum is dram__bytes_read.sum");
  fails_about("workload,status,condition,gpu\nabc,ok,ncu,NVIDIA H200\n", ask, "can be predicted: workload abc");
  fails_about(HEADER "flash2_fwd,8,1024,64,64,64,ok,profile,NVIDIA H200,,,5,5\n", ask, ":2: condition=profile");
  fails_about("no,header\n1,2\n", ask, "no header of measurements");
}

Test(unit_scenario_measurements, limits_hold) {
  ftl_error error = {0};
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.max_memory_bytes = 1 << 20;
  const char *script = PREFIX "ft.measurements{ files = 'attention_flash2_ncu.csv' }";
  cr_assert_eq(run(script, 1, limits, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, "memory"), "%s", error.message);
  limits = ftl_sandbox_limits_default();
  limits.max_instructions = 20000;
  cr_assert_eq(run(script, 1, limits, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, "instructions"), "%s", error.message);
}
