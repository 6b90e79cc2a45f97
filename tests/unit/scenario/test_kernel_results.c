#define _GNU_SOURCE  // asprintf
// Kernels that a scenario writes: one beside a workload of the list, parameters of their own, and stored results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "kernel_script.h"
#include "tests/spec_words.h"

// --- beside a workload of the list ---

// FlashAttention-2 forward as flash2_fwd writes it for Triton: schedule=stages, Q in shared memory.
#define FLASH2                                                                                                     \
  PREFIX                                                                                                           \
  "local kernel = ft.kernel('fa2', { heads = 2, n = 256, d = 64, bm = 64, bn = 64, stages = 2 }, function(k, p)\n" \
  "  local function t(declare, name, dtype, d) return declare(k, name, dtype, { 1, p.heads, p.n, d }) end\n"       \
  "  local q, key, v = t(k.input, 'q', 'fp16', p.d), t(k.input, 'k', 'fp16', p.d), t(k.input, 'v', 'fp16', p.d)\n" \
  "  local o, lse = t(k.output, 'o', 'fp16', p.d), t(k.output, 'lse', 'fp32', 1)\n"                                \
  "  local tiles, m, bn = p.n // p.bm, p.bm, p.bn\n"                                                               \
  "  local batch, head, row = k.cta // tiles // p.heads, k.cta // tiles % p.heads, k.cta % tiles * m\n"            \
  "  k:grid(p.heads * tiles); k:flops(4 * p.heads * p.n * p.n * p.d); k:role('main', 4)\n"                         \
  "  local rq, rk, rv = k:ring('q', 'fp16', m, p.d, 1), k:ring('k', 'fp16', bn, p.d, p.stages),\n"                 \
  "    k:ring('v', 'fp16', bn, p.d, p.stages)\n"                                                                   \
  "  local s, probs, out = k:tile('s', 'fp32', m, bn), k:tile('p', 'fp16', m, bn), k:tile('o', 'fp32', m, p.d)\n"  \
  "  local max, previous, shift = k:rows('max', m), k:rows('previous_max', m), k:rows('shift', m)\n"               \
  "  local correction, sum = k:rows('correction', m), k:rows('sum', m)\n"                                          \
  "  local last, scale = p.n // bn, 1 / math.sqrt(p.d)\n"                                                          \
  "  local scale_log2 = scale * 1.4426950408889634\n"                                                              \
  "  local function fill(ring, x, j) ring:fill(x(batch, head, j * bn, { present = last - j })) end\n"              \
  "  rq:fill(q(batch, head, row))\n"                                                                               \
  "  for j = 0, p.stages - 2 do fill(rk, key, j); fill(rv, v, j) end\n"                                            \
  "  out:set(0); max:set(-math.huge); sum:set(0); rq:wait()\n"                                                     \
  "  for j in k:range(0, last) do\n"                                                                               \
  "    rk:wait(); fill(rk, key, j + p.stages - 1)\n"                                                               \
  "    s:set(0):mma(rq, rk.T); rk:release()\n"                                                                     \
  "    previous:set(max); max:reduce('max', s):reduce_lanes('max')\n"                                              \
  "    shift:set(max * -scale_log2)\n"                                                                             \
  "    correction:set(k:exp2(previous * scale_log2 + shift)); s:set(k:exp2(s * scale_log2 + shift))\n"             \
  "    sum:set(sum * correction); sum:reduce('sum', s); probs:convert(s); out:set(out * correction)\n"             \
  "    rv:wait(); fill(rv, v, j + p.stages - 1); out:mma(probs, rv); rv:release()\n"                               \
  "  end\n"                                                                                                        \
  "  rq:release(); sum:reduce_lanes('sum'); out:set(out / sum)\n"                                                  \
  "  sum:set(k:log(sum)); max:set(max * scale + sum)\n"                                                            \
  "  out:store(o(batch, head, row), { through = rq }); max:store(lse(batch, head, row))\n"                         \
  "end)\n"

// The program of the workload as text, without its first line, which has its name.
static char *text_of_flash2(void) {
  static const char *const settings[][2] = {{"heads", "2"},       {"seqlen", "256"}, {"head_dim", "64"},
                                            {"block_m", "64"},    {"block_n", "64"}, {"num_stages", "2"},
                                            {"copy", "cp_async"}, {"mma", "mma"},    {"q_operand", "shared"}};
  ftl_spec spec;
  ftl_error error = {0};
  cr_assert_eq(ftl_spec_init(&spec, "flash2_fwd", &error), FTL_OK);
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    cr_assert_eq(ftl_spec_set_text(&spec, settings[i][0], settings[i][1], &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_spec_complete(&spec, &error), FTL_OK, "%s", error.message);
  spec_use_bare_code(&spec);
  ftl_tile_program *launches[FTL_MAX_LAUNCHES];
  int num_launches = 0;
  cr_assert_eq(spec.workload->build(&spec, launches, &num_launches, &error), FTL_OK, "%s", error.message);
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  ftl_tile_program_write(out, launches[0]);
  fclose(out);
  ftl_tile_program_destroy(launches[0]);
  memmove(text, strchr(text, '\n') + 1, strlen(strchr(text, '\n')));
  return text;
}

Test(unit_scenario_kernel_results, a_sketch_of_flash_attention_2_is_the_workload_op_by_op) {
  char *expected = text_of_flash2(), *script = NULL;
  const char *compare = "local text = kernel:program():match('\\n(.*)')\nassert(text == [==[\n";
  cr_assert_gt(asprintf(&script, "%s%s%s]==], text)", FLASH2, compare, expected), 0);
  passes(script);
  free(script);
  free(expected);
}

Test(unit_scenario_kernel_results, a_sketch_of_flash_attention_2_is_predicted_as_the_workload) {
  passes(FLASH2
         "for _, arch in ipairs { 'a100_80', 'h200' } do\n"
         "  local own = ft.predict { arch = arch, workload = kernel, code = 'lean', copy = 'cp_async' }\n"
         "  local listed = ft.predict { arch = arch, workload = 'flash2_fwd', heads = 2, seqlen = 256, head_dim = 64,\n"
         "    block_m = 64, block_n = 64, q_operand = 'shared', code = 'lean', copy = 'cp_async',\n"
         "    scaling = 'exponent', row_sums = 'end', refill = 'early' }\n"
         "  for name, value in pairs(listed.metrics) do\n"
         "    local mine = own.metrics[name]\n"
         "    assert(mine == value or (mine ~= mine and value ~= value), name .. ' ' .. value .. ' ' .. mine)\n"
         "  end\n"
         "end\n");
}

Test(unit_scenario_kernel_results, clusters_and_dropout_are_in_the_program) {
  passes(PREFIX
         "local kernel = ft.kernel(function(k)\n"
         "  local x, y = k:input('x', 'fp16', { 64, 64 }), k:output('y', 'fp32', { 256, 64 })\n"
         "  k:grid(4, { cluster = 2 })\n"
         "  local ring = k:ring('x', 'fp16', 64, 64, 1, { multicast = 2 })\n"
         "  k:role('producer', 4); ring:fill(x(0)); k:role('main', 4)\n"
         "  local t, p = k:tile('t', 'fp32', 64, 64), k:tile('p', 'fp16', 64, 64)\n"
         "  ring:wait(); t:set(0):mma(ring, ring.T); ring:release()\n"
         "  p:convert(t); p:dropout { p = 0.5, head = 0, row = k.cta * 64, column = 0 }; p:store(y(k.cta * 64))\n"
         "end)\n"
         "local text = kernel:program()\n"
         "assert(text:find('clusters of 2 CTAs', 1, true) and text:find('dropout', 1, true), text)\n"
         "assert(ft.predict { arch = 'h200', workload = kernel }.feasible)\n"
         "assert(not ft.predict { arch = 'a100_80', workload = kernel }.feasible)\n");
}

// --- parameters and results ---

#define COUNTED                                                                                                      \
  PREFIX                                                                                                             \
  "local kernel = ft.kernel('counted', { rows = 64, tiles = 8, fast = true, kind = 'plain' }, function(k, p)\n"      \
  "  if p.rows > 128 then return k:infeasible('rows=' .. p.rows .. ' is more than this kernel has') end\n"           \
  "  local x, y = k:input('x', 'fp32', { p.tiles * p.rows, 64 }), k:output('y', 'fp32', { p.tiles * p.rows, 64 })\n" \
  "  k:grid(p.tiles)\n"                                                                                              \
  "  k:role('main', 4)\n"                                                                                            \
  "  local t = k:tile('t', 'fp32', p.rows, 64, { threads_per_row = 16, vector_columns = 4 })\n"                      \
  "  t:load(x(k.cta * p.rows)); t:set(t * 2); t:store(y(k.cta * p.rows))\n"                                          \
  "end)\n"

Test(unit_scenario_kernel_results, a_prediction_knows_its_own_parameters) {
  passes(COUNTED
         "local r = ft.predict { arch = 'h200', workload = kernel, rows = 32, tiles = 4, clock_mhz = 1500 }\n"
         "assert(r.feasible and r.workload == 'counted' and r.kernels[1].name == 'counted')\n"
         "assert(r.rows == 32 and r.tiles == 4 and r.fast == true and r.kind == 'plain' and r.clock_mhz == 1500)\n"
         "assert(r.params.rows == 32 and r.params.clock_mhz == 1500 and r.params.block_m == nil)\n"
         "assert(r.least_read == 32 * 4 * 64 * 4, r.least_read)\n"
         "assert(tostring(r):find('its own: fast=true kind=plain rows=32 tiles=4', 1, true), tostring(r))\n"
         "assert(tostring(kernel) == 'kernel counted fast=true kind=plain rows=64 tiles=8', tostring(kernel))\n");
}

Test(unit_scenario_kernel_results, full_and_sampled_agree_on_a_small_kernel) {
  passes(
      COUNTED
      "local s = ft.predict { arch = 't4', workload = kernel }\n"
      "local f = ft.predict { arch = 't4', workload = kernel, detail = 'full' }\n"
      "assert(s.insts == f.insts and math.abs(s.hbm_read / f.hbm_read - 1) < 0.01, s.hbm_read .. ' ' .. f.hbm_read)\n");
}

// A ring may be deeper than num_stages goes: what arrives a dozen steps on is waited for then, in `sampled` too. With
// two stages a step takes a latency (210 thousand cycles for 256 steps), with eight and more they overlap.
Test(unit_scenario_kernel_results, deep_rings_take_as_long_sampled_as_in_full) {
  passes(PREFIX
         "local kernel = ft.kernel('deep', { n = 256, stages = 12 }, function(k, p)\n"
         "  local q, x = k:input('q', 'fp16', { 4, 16, 64 }), k:input('x', 'fp16', { 4, p.n * 16, 64 })\n"
         "  local y = k:output('y', 'fp32', { 4, 16, 16 })\n"
         "  k:grid(4); k:role('main', 1)\n"
         "  local rq, rx = k:ring('q', 'fp16', 16, 64, 1), k:ring('x', 'fp16', 16, 64, p.stages)\n"
         "  local sum = k:tile('sum', 'fp32', 16, 16)\n"
         "  local function fill(j) rx:fill(x(k.cta, j * 16, { present = p.n - j })) end\n"
         "  rq:fill(q(k.cta, 0)); for j = 0, p.stages - 2 do fill(j) end\n"
         "  sum:set(0); rq:wait()\n"
         "  for j in k:range(0, p.n) do\n"
         "    rx:wait(); fill(j + p.stages - 1); sum:mma(rq, rx.T); rx:release()\n"
         "  end\n"
         "  rq:release(); sum:store(y(k.cta, 0))\n"
         "end)\n"
         "local function cycles(stages, detail)\n"
         "  return ft.predict { workload = kernel, arch = 'h200', stages = stages, detail = detail }.cycles\n"
         "end\n"
         "for _, stages in ipairs { 8, 10, 18, 34, 64 } do\n"
         "  local sampled, full = cycles(stages, 'sampled'), cycles(stages, 'full')\n"
         "  assert(math.abs(sampled / full - 1) < 0.005, stages .. ': ' .. sampled .. ' for ' .. full)\n"
         "end\n");
}

Test(unit_scenario_kernel_results, exploring_ranks_own_parameters_and_names_what_cannot_be) {
  passes(
      COUNTED
      "local s = ft.explore { arch = { 'h200', 't4' }, workload = kernel, rows = { 32, 64, 256 }, tiles = { 4, 16 },\n"
      "  where = function(p) return not (p.rows == 32 and p.tiles == 4) end }\n"
      "assert(#s == 10 and #s:infeasible() == 4)\n"
      "assert(s:infeasible()[1].reason == 'rows=256 is more than this kernel has', s:infeasible()[1].reason)\n"
      "local best = s:best('time')\n"
      "assert(best.rows * best.tiles <= 32 * 16 and best.arch)\n"
      "local text = s:feasible():rank('rows'):table { 'rows', 'tiles', 'time_us' }\n"
      "assert(text:find('^ *rows +tiles +time_us'), text)\n"
      "assert(tostring(s):find('rows', 1, true) and s:feasible():why():find('rows=', 1, true), s:feasible():why())\n"
      "assert(s:feasible():plot('tiles'):find('rows=64', 1, true))\n"
      "assert(s:feasible():svg(2):find('tiles=', 1, true))\n");
}

// Two choices of its own, two clocks and two GPUs: eight answers, two programs.
Test(unit_scenario_kernel_results, a_program_is_built_once_for_all_that_differ_in_other_parameters) {
  passes(PREFIX
         "local num_built = 0\n"
         "local kernel = ft.kernel('built', { tiles = 4 }, function(k, p)\n"
         "  num_built = num_built + 1\n"
         "  local x, y = k:input('x', 'fp32', { p.tiles * 64, 64 }), k:output('y', 'fp32', { p.tiles * 64, 64 })\n"
         "  k:grid(p.tiles); k:role('main', 4)\n"
         "  local t = k:tile('t', 'fp32', 64, 64, { threads_per_row = 16, vector_columns = 4 })\n"
         "  t:load(x(k.cta * 64)); t:store(y(k.cta * 64))\n"
         "end)\n"
         "num_built = 0\n"
         "local s = ft.explore { arch = { 'h200', 't4' }, workload = kernel, tiles = { 4, 8 }, clock_mhz = { 900, 1200 "
         "} }\n"
         "assert(#s == 8 and num_built == 2, num_built)\n");
}

Test(unit_scenario_kernel_results, parameters_are_checked_by_name_and_kind) {
  const refusal refusals[] = {
      {COUNTED "ft.predict { arch = 'h200', workload = kernel, row = 1 }",
       "counted has no parameter \"row\"; the nearest is rows"},
      {SKETCH("\nk:grid(p.m)", "kernel:program()"), "test.lua:4: the kernel has no parameter \"m\""},
      {COUNTED "ft.predict { arch = 'h200', workload = kernel, rows = 'many' }",
       "rows must be a number, as its default 64 is"},
      {COUNTED "ft.predict { arch = 'h200', workload = kernel, rows = { 1, 2 } }",
       "rows is a list; ft.predict takes one value"},
      {COUNTED "ft.explore { arch = 'h200', workload = kernel, rows = {} }", "rows is an empty list"},
      {COUNTED "local many = {}; for i = 1, 257 do many[i] = i end\n"
               "ft.explore { arch = 'h200', workload = kernel, rows = many, tiles = many }",
       "more than 65536 combinations"},
      {COUNTED "local many = {}; for i = 1, 200 do many[i] = i end\n"
               "ft.explore { arch = { 'h200', 't4' }, workload = kernel, rows = many, tiles = many }",
       "more than 65536 combinations"},
      {COUNTED "ft.predict { arch = 'h200', workload = kernel, mma = 'many' }", "mma=many: allowed are auto|mma|wgmma"},
      {PREFIX "ft.kernel({ reason = 1 }, function() end)", "a result has a reason already"},
      {PREFIX "ft.kernel({ copy = 1 }, function() end)", "every kernel takes copy"},
      {PREFIX "ft.kernel({ ['a b'] = 1 }, function() end)", "a parameter's name is 1 to 31 letters, digits and _"},
      {PREFIX "ft.kernel({ a = 'x y' }, function() end)", "a must be a name of 1 to 31 letters"},
      {PREFIX "ft.kernel({ a = {} }, function() end)", "a must be a number, a name, or true or false, not a table"},
      {PREFIX "ft.kernel('flash2_fwd', function() end)", "flash2_fwd is a workload of the list"},
      {PREFIX "ft.kernel('two words', function() end)", "a kernel's name is 1 to 23 letters"},
      {PREFIX "ft.kernel('x')", "ft.kernel takes a name, a table of parameters"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel_results, stored_results_are_found_again_by_the_same_program_only) {
  char path[] = "/tmp/ftl_kernel_XXXXXX";
  int file = mkstemp(path);
  cr_assert_geq(file, 0);
  close(file);
  unlink(path);
  ftl_error error = {0};
  ftl_evaluate_options evaluate = {.num_threads = 1};
  cr_assert_eq(ftl_database_open(&evaluate.database, path, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_database_begin_run(evaluate.database, "run", NULL, NULL, &evaluate.run_id, &error), FTL_OK);
  // The host's seconds are stored with an answer: one that is predicted again has others.
  const char *script = PREFIX
      "local function kernel(factor)\n"
      "  return ft.kernel('doubled', { rows = 64 }, function(k, p) k:grid(1)\n"
      "    local y = k:output('y', 'fp32', { p.rows, 64 })\n"
      "    k:role('main', 4); local t = k:tile('t', 'fp32', p.rows, 64); t:set(factor); t:store(y(0))\n"
      "  end)\n"
      "end\n"
      "local function ask(k) return ft.predict { arch = 'h200', workload = k } end\n"
      "local first = ask(kernel(2))\n"
      "assert(ask(kernel(2)).wall_s == first.wall_s, 'the same program is predicted twice')\n"
      "assert(ask(kernel(3)).wall_s ~= first.wall_s, 'another program has the answer of the first')\n"
      "assert(ask(kernel(2)).rows == 64 and ask(kernel(2)).time_us == first.time_us)\n";
  cr_assert_eq(run_with(script, evaluate, ftl_sandbox_limits_default(), &error), FTL_OK, "%s", error.message);
  ftl_database_close(evaluate.database);
  unlink(path);
}
