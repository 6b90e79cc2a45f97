// Kernels that a scenario writes, with the real engine: every operation, and what is refused and at which line.
#include <string.h>

#include <criterion/criterion.h>

#include "kernel_script.h"

// --- what is right ---

// Rows of an output against a Lua expression of the row `r` and the column `c` (from 1).
#define EQUALS(expression)                                                                                            \
  "assert(kernel:check { tolerance = 1e-6, reference = { y = function(t, r) local row = {}; for c = 1, 64 do row[c] " \
  "= " expression " end; return row end } })"

Test(unit_scenario_kernel, elementwise_terms_are_worked_out_in_their_destination) {
  passes(SKETCH(TILE "t:set(3); t:set(k:exp2(t * 2 - 4) + 1); t:set((t + t) / 4); t:store(y(0))", EQUALS("2.5")));
  passes(SKETCH(TILE "t:set(8); t:set(-k:log2(t)); t:set(k:max(t, -2)); t:set(k:fma(t, t, 0.5)); t:store(y(0))",
                EQUALS("4.5")));
  passes(SKETCH(TILE
                "local r = k:rows('r', 64); r:set(4); r:set(k:recip(r)); t:set(1); t:set(1 - t * r); t:store(y(0))",
                EQUALS("0.75")));
  passes(SKETCH(TILE "t:set(-math.huge); t:set(k:zero_if_neg_inf(t)); t:store(y(0))", EQUALS("0")));
}

Test(unit_scenario_kernel, a_sum_of_a_product_is_one_fma) {
  passes(SKETCH(TILE "t:set(1); t:set(t * 3 + t); t:store(y(0))",
                "local text = kernel:program()\n"
                "assert(text:find('t = t * 3 + t', 1, true), text)\n"));
}

Test(unit_scenario_kernel, rows_are_reduced_over_columns_and_lanes) {
  passes(SKETCH(TILE "local m = k:rows('m', 64); t:set(2); m:set(0); m:reduce('sum', t):reduce_lanes('sum'); "
                     "t:set(t * m); t:store(y(0))",
                EQUALS("256")));
  passes(SKETCH(TILE "local m = k:rows('m', 64); t:set(2); m:set(-math.huge); m:reduce('max', t):reduce_lanes('max'); "
                     "t:set(t * m); t:store(y(0))",
                EQUALS("4")));
}

Test(unit_scenario_kernel, rows_of_warps_side_by_side_are_reduced_through_a_ring) {
  passes(SKETCH(TILE "local w = k:tile('w', 'fp32', 64, 64, { warps_per_row = 2 }); "
                     "local m = k:rows('m', 64, { warps_per_row = 2 }); local e = k:ring('e', 'fp16', 64, 64, 1); "
                     "e:fill(x(0)); e:wait(); e:release(); w:set(2); m:set(0); m:reduce('sum', w):reduce_warps('sum', "
                     "e); w:set(w * m); w:store(y(0))",
                EQUALS("256")));
}

// X X^T of two warps with the same 64 rows, all of X in the registers of each, and half of the product's columns.
Test(unit_scenario_kernel, warps_that_repeat_a_share_the_columns_of_a_product) {
  passes(
      SKETCH(TENSORS
             "k:role('main', 8); "
             "local f = k:tile('f', 'fp16', 64, 64, { warps_per_row = 2, repeated = true }); "
             "local t = k:tile('t', 'fp32', 64, 64, { warps_per_row = 2 }); local a = k:ring('a', 'fp16', 64, 64, 1); "
             "a:acquire(); a:load(x(0)); a:commit(); a:wait(); f:fetch(a); t:set(0):mma(f, a.T); a:release(); "
             "t:store(y(0))",
             "assert(kernel:check { tolerance = 1e-4, reference = { y = function(t, r) local row, a = {}, t.x:row(r)\n"
             "for c = 1, 64 do local b, dot = t.x:row(c - 1), 0\n"
             "for i = 1, 64 do dot = dot + a[i] * b[i] end; row[c] = dot end; return row end } })\n"));
}

Test(unit_scenario_kernel, what_warps_repeat_is_said_by_warps_side_by_side) {
  fails(SKETCH(TILE "k:tile('f', 'fp16', 64, 64, { repeated = true })", "kernel:program()"),
        "test.lua:3: repeated: by warps side by side, warps_per_row of 2 and more");
  fails(SKETCH(TILE "k:tile('f', 'fp16', 64, 64, { warps_per_row = 2, repeated = 1 })", "kernel:program()"),
        "test.lua:3: repeated must be true or false, not ");
}

Test(unit_scenario_kernel, products_take_operands_from_rings_and_registers) {
  const char *reference =
      "assert(kernel:check { tolerance = 1e-4, reference = { y = function(t, r) local row, a = {}, t.x:row(r)\n"
      "for c = 1, 64 do local b, dot = t.x:row(c - 1), 0\n"
      "for i = 1, 64 do dot = dot + a[i] * b[i] end; row[c] = dot end; return row end } })\n";
  char script[4096];
  const char *const bodies[] = {
      SKETCH(TILE "local a = k:ring('a', 'fp16', 64, 64, 1); a:fill(x(0)); a:wait(); t:set(0); t:mma(a, a.T); "
                  "a:release(); t:store(y(0))",
             "%s"),
      SKETCH(TILE "local a = k:ring('a', 'fp16', 64, 64, 1); local f = k:tile('f', 'fp16', 64, 64); a:acquire(); "
                  "a:load(x(0)); a:commit(); a:wait(); f:fetch(a); t:set(0):mma(f, a.T); a:release(); t:store(y(0))",
             "%s"),
      // Through registers into another ring.
      SKETCH(TILE "local a = k:ring('a', 'fp16', 64, 64, 1); local b = k:ring('b', 'fp16', 64, 64, 1); "
                  "local f = k:tile('f', 'fp16', 64, 64); a:fill(x(0)); a:wait(); f:fetch(a); "
                  "b:acquire(); b:put(f); b:commit(); b:wait(); t:set(0); t:mma(b:from_row(0), a.T); a:release(); "
                  "b:release(); t:store(y(0))",
             "%s")};
  for (int i = 0; i < 3; i++) {
    snprintf(script, sizeof script, bodies[i], reference);
    passes(script);
  }
}

Test(unit_scenario_kernel, masks_hide_columns) {
  passes(SKETCH(TILE "t:set(1); t:mask { row = 0, column = 0, diagonal = 0, limit = 64 }; t:store(y(0))",
                EQUALS("c - 1 > r and -math.huge or 1")));
  passes(SKETCH(TILE "t:set(1); t:mask { row = 0, column = 0, diagonal = 0, left = -3, limit = 64 }; t:store(y(0))",
                EQUALS("(c - 1 > r or c - 1 < r - 3) and -math.huge or 1")));
  passes(SKETCH(TILE "local b = k:bits('b', 64, 64, function(r, c) return (r + c) % 3 == 0 end); t:set(1); "
                     "t:mask_bits(b(0)); t:store(y(0))",
                EQUALS("(r + c - 1) % 3 ~= 0 and -math.huge or 1")));
}

Test(unit_scenario_kernel, loops_and_tables_give_coordinates) {
  passes(PREFIX
         "local kernel = ft.kernel(function(k) k:grid(1)\n"
         "  local x, y = k:input('x', 'fp32', { 4, 16, 32 }), k:output('y', 'fp32', { 4, 16, 32 })\n"
         "  local list = k:table('list', { 2, 0, 3, 1 })\n"
         "  k:role('main', 1)\n"
         "  local t = k:tile('t', 'fp32', 16, 32, { threads_per_row = 8, vector_columns = 4 })\n"
         "  for i in k:range(0, 4) do t:load(x(list[i], 0)); t:set(t * 2); t:store(y(i, 0)) end\n"
         "end)\n"
         "assert(kernel:check { tolerance = 0, reference = { y = function(t, h, r) local row = {}\n"
         "  for c = 1, 32 do row[c] = 2 * t.x(({ 2, 0, 3, 1 })[h + 1], r, c - 1) end; return row end } })\n");
}

Test(unit_scenario_kernel, values_are_loaded_by_rows_and_columns_and_stored) {
  passes(PREFIX
         "local kernel = ft.kernel(function(k) k:grid(1)\n"
         "  local a, b = k:input('a', 'fp32', { 64 }), k:input('b', 'fp32', { 64 })\n"
         "  local y, s = k:output('y', 'fp32', { 64, 64 }), k:output('s', 'fp32', { 64 })\n"
         "  k:role('main', 4)\n"
         "  local t, r, c = k:tile('t', 'fp32', 64, 64), k:rows('r', 64), k:columns('c', 64)\n"
         "  r:load(a(0)); c:load(b(0)); t:set(r); t:set(t * 10 + c); t:store(y(0)); r:store(s(0))\n"
         "end)\n"
         "local report = kernel:check { tolerance = 1e-5, inputs = { a = function(r) return r end, b = function(r) "
         "return r end },\n"
         "  reference = { s = function(t, r) return r end, y = function(t, r)\n"
         "    local row = {}; for c = 1, 64 do row[c] = r * 10 + c - 1 end; return row end } }\n"
         "assert(report.max_error == 0 and report.errors.s == 0 and tostring(report):find('y within 0', 1, true))\n");
}

Test(unit_scenario_kernel, groups_merge_their_states) {
  passes(PREFIX
         "local kernel = ft.kernel(function(k) k:grid(1)\n"
         "  local q, key, o = k:input('q', 'fp16', { 16, 64 }), k:input('k', 'fp16', { 64, 64 }), k:output('o', "
         "'fp32', { 16, 64 })\n"
         "  k:role('main', 4, { groups = 4 })\n"
         "  local rq, rk = k:ring('q', 'fp16', 16, 64, 1), k:ring('k', 'fp16', 64, 64, 1)\n"
         "  local staging = k:ring('staging', 'fp16', 64, 128, 1)\n"
         "  local s, p, out = k:tile('s', 'fp32', 16, 16), k:tile('p', 'fp16', 16, 16), k:tile('o', 'fp32', 16, 64)\n"
         "  local m, l = k:rows('m', 16), k:rows('l', 16)\n"
         "  rq:fill(q(0)); rk:fill(key(0))\n"
         "  m:set(-math.huge); l:set(0); out:set(0); rq:wait(); rk:wait(); s:set(0); s:mma(rq, rk.T)\n"
         "  m:reduce('max', s):reduce_lanes('max'); s:set(s - m); s:set(k:exp2(s)); l:reduce('sum', "
         "s):reduce_lanes('sum')\n"
         "  p:convert(s); out:mma(p, rk); rq:release(); rk:release()\n"
         "  out:store_merged(o(0), m, l, 1, staging, rk)\n"
         "end)\n"
         "assert(kernel:check { tolerance = 5e-3, reference = { o = function(t, r)\n"
         "  local q, w, sum, row = t.q:row(r), {}, 0, {}\n"
         "  for j = 1, 64 do local kj, dot = t.k:row(j - 1), 0; for c = 1, 64 do dot = dot + q[c] * kj[c] end\n"
         "    w[j] = 2 ^ dot; sum = sum + w[j] end\n"
         "  for c = 1, 64 do row[c] = 0; for j = 1, 64 do row[c] = row[c] + w[j] / sum * t.k(j - 1, c - 1) end end\n"
         "  return row end } })\n");
}

Test(unit_scenario_kernel, roles_share_rings_and_take_turns_at_barriers) {
  passes(PREFIX
         "local kernel = ft.kernel(function(k) k:grid(1)\n"
         "  local x, y = k:input('x', 'fp16', { 256, 64 }), k:output('y', 'fp32', { 128, 64 })\n"
         "  local ring, turn = k:ring('x', 'fp16', 64, 64, 2), k:barrier('turn', { 'a', 'b' })\n"
         "  k:role('producer', 4, { registers = 40 })\n"
         "  for i in k:range(0, 4) do ring:fill(x(i * 64)) end\n"
         "  for i, name in ipairs { 'a', 'b' } do\n"
         "    k:role(name, 4, { registers = 232 })\n"
         "    local t = k:tile('t', 'fp32', 64, 64)\n"
         "    if name == 'b' then turn:arrive() end\n"
         "    k:tile_begins()\n"
         "    t:set(0)\n"
         "    for j in k:range(0, 4) do ring:wait(); t:mma(ring, ring.T); ring:release() end\n"
         "    if name == 'a' then turn:sync() end\n"
         "    k:sync_warps()\n"
         "    t:store(y((i - 1) * 64))\n"
         "  end\n"
         "end)\n"
         "local program = kernel:program()\n"
         "assert(program:find('ring x: fp16 64 x 64, 2 stages, producer -> a b', 1, true), program)\n"
         "assert(program:find('barrier turn: a b', 1, true), program)\n"
         "assert(ft.predict { arch = 'h200', workload = kernel }.feasible)\n");
}

Test(unit_scenario_kernel, atomics_add_what_several_ctas_bring) {
  passes(SKETCH_OF("3", MAIN "local t = k:tile('t', 'fp32', 64, 64); t:set(2); t:atomic_add(y(0))",
                   "assert(ft.predict { arch = 'a100_80', workload = kernel }.feasible)"));
}

// --- what is wrong ---

Test(unit_scenario_kernel, a_kernel_says_how_many_ctas_run_it) {
  fails(PREFIX "ft.kernel('alone', function(k)\nk:role('a', 4); k:sync_warps()\nend):program()",
        "alone has no k:grid(ctas): how many CTAs run it?");
}

Test(unit_scenario_kernel, a_kernel_whose_roles_do_nothing_is_refused) {
  fails(SKETCH("k:role('a', 4)", "kernel:program()"), "sketch: its roles do nothing");
}

Test(unit_scenario_kernel, what_a_kernel_says_once_is_refused_at_the_second_line) {
  const refusal refusals[] = {
      {SKETCH("k:role('a', 4)\nk:grid(8, { persistent = true })", "kernel:program()"),
       "test.lua:4: the kernel has its k:grid already"},
      {SKETCH("k:flops(1)\nk:flops(2)", "kernel:program()"), "test.lua:4: the kernel has its k:flops already"},
      {SKETCH("k:role('a', 4); k:sync_warps(); k:tile_begins()\nk:sync_warps()\nk:tile_begins()", "kernel:program()"),
       "test.lua:5: the tile of role a begins twice"},
  };
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel, shapes_that_do_not_fit_name_the_line) {
  const refusal refusals[] = {
      {SKETCH(TILE "\nlocal u = k:tile('u', 'fp16', 64, 32)\nt:set(0)\nu:convert(t)", "kernel:program()"),
       "test.lua:6: convert: u and t differ in shape"},
      {SKETCH(TILE "local a = k:ring('a', 'fp16', 32, 64, 1); a:fill(x(0)); a:wait(); t:set(0)\nt:mma(a, a.T)",
              "kernel:program()"),
       "test.lua:4: mma: rows 0 to 63 of ring a, which has 32"},
      {SKETCH(TILE "t:set(0)\nt:store(y(0, 0, 0))", "kernel:program()"),
       "test.lua:4: a tile of y begins at 1 coordinates, or 2 with the column; here are 3"},
      {SKETCH(TILE "local a = k:ring('a', 'fp32', 64, 64, 1)\na:fill(x(0))", "kernel:program()"),
       "test.lua:4: load: ring a has another dtype than its tensor"},
      {SKETCH(TILE "t:set(0)\nt:store(x(0))", "kernel:program()"), "test.lua:4: store: stores to the input x"},
      {SKETCH(TENSORS "\nlocal t = k:tile('t', 'fp32', 64, 64)", "kernel:program()"),
       "test.lua:4: operations and values belong to a role"},
      {SKETCH(MAIN "\nlocal t = k:tile('t', 'fp32', 64, 0)", "kernel:program()"),
       "test.lua:4: the columns of a tile is 0; allowed is 1 to 65536"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel, what_is_used_before_it_is_there_names_the_line) {
  const refusal refusals[] = {
      {SKETCH(TILE "\nt:store(y(0))", "kernel:program()"), "test.lua:4: store: t is read and nothing before wrote it"},
      {SKETCH(TILE
              "local a = k:ring('a', 'fp16', 64, 64, 1); t:set(0)\nt:mma(a, a.T)\na:fill(x(0)); a:wait(); a:release()",
              "kernel:program()"),
       "test.lua:4: mma a: reads a stage that was not waited for, or was released"},
      {SKETCH(MAIN "local a = k:ring('a', 'fp16', 64, 64, 1)\na:load(x(0))\na:wait()", "kernel:program()"),
       "test.lua:4: load a: no stage is acquired"},
      {SKETCH(MAIN "local a = k:ring('a', 'fp16', 64, 64, 1)\na:acquire() a:commit()", "kernel:program()"),
       "test.lua:4: commit: nothing was loaded into this stage of ring a"},
      {SKETCH(MAIN "\nlocal a = k:ring('a', 'fp16', 64, 64, 1)\na:fill(x(0))", "kernel:program()"),
       "test.lua:4: ring a is never read"},
      {SKETCH(MAIN "\nlocal a = k:ring('a', 'fp16', 64, 64, 1)\na:wait()", "kernel:program()"),
       "test.lua:4: ring a is never filled"},
      {SKETCH(MAIN "local a = k:ring('a', 'fp16', 64, 64, 1)\na:fill(x(0))\nfor i in k:range(0, k.cta) do a:wait() "
                   "a:release() end",
              "kernel:program()"),
       "test.lua:4: commit a: at the end of a CTA: a loaded stage was never waited for"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel, deadlocks_are_explained) {
  const refusal refusals[] = {
      {SKETCH("local go = k:barrier('go', { 'a', 'b' })\nk:role('a', 4)\ngo:sync()\nk:role('b', 4)\nk:sync_warps()",
              "kernel:program()"),
       "test.lua:5: sync go: role a waits for ever in CTA 0, for b (done)"},
      {SKETCH("local go, on = k:barrier('go', { 'a', 'b' }), k:barrier('on', { 'a', 'b' })\nk:role('a', 4)\ngo:sync() "
              "on:sync()\nk:role('b', 4)\non:sync() go:sync()",
              "kernel:program()"),
       "test.lua:5: sync go: role a waits for ever in CTA 0, for b; b waits at test.lua:7: sync on"},
      {SKETCH(MAIN "local a = k:ring('a', 'fp16', 64, 64, 1)\na:fill(x(0))\na:fill(x(0))\na:wait()",
              "kernel:program()"),
       "test.lua:5: acquire a: role main waits for ever in CTA 0, for itself"},
      {SKETCH("\nlocal go = k:barrier('go', { 'a', 'b' })\nk:role('a', 4)\ngo:sync()", "kernel:program()"),
       "test.lua:4: barrier go: no role is called b"},
      {SKETCH("local go = k:barrier('go', { 'a' })\nk:role('b', 4)\ngo:sync()", "kernel:program()"),
       "test.lua:5: sync: role b does not take part in barrier go"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel, wrong_arguments_say_what_is_wanted) {
  const refusal refusals[] = {
      {SKETCH(TILE "t:set(0)\nt:stor(y(0))", "kernel:program()"),
       "test.lua:4: a register tile has no \"stor\"; the nearest is :store()"},
      {SKETCH("k:rol('a', 4)", "kernel:program()"), "the kernel has no \"rol\"; the nearest is :role()"},
      {SKETCH(TILE "t:set('1')", "kernel:program()"),
       "a number, a register tile or an elementwise term is wanted here, not a string"},
      {SKETCH(TILE "t:mma(x, y)", "kernel:program()"), "B, a ring, is wanted here, not a tensor"},
      {SKETCH(TILE "t:set(0); t:store(y)", "kernel:program()"),
       "a tile of a tensor, as q(head, row) gives it, is wanted here, not a tensor"},
      {SKETCH(TILE "t:set(0); t:reduce('min', t)", "kernel:program()"), "a reduction is \"max\" or \"sum\", not min"},
      {SKETCH("k:input('x', 'fp64', { 4, 4 })", "kernel:program()"),
       "an element type is fp16, bf16, fp32, tf32, fp8_e4m3, fp8_e5m2, int8; here is fp64"},
      {SKETCH("k:input('x', 'fp16', { 4, 4.5 })", "kernel:program()"),
       "the shape is 4.5; allowed is a whole number of 1 to 70368744177664"},
      {SKETCH("k:role('a', 4, { warps = 3 })", "kernel:program()"),
       "no option is called warps; known are registers, groups"},
      {SKETCH("local e = k.cta / 2", "kernel:program()"), "an index expression is divided by //"},
      {SKETCH("local e = k.cta // k.cta", "kernel:program()"), "test.lua:3: a divisor must be a constant above 0"},
      {SKETCH(TILE "t:set(0); t:set(t // 2)", "kernel:program()"), "// and % are for index expressions"},
      {SKETCH(TILE "t:set(0); t:set(t * t + k:exp2(t))", "kernel:program()"), "was overwritten by an inner part"},
      {SKETCH(TILE "local u = k:tile('u', 'fp32', 64, 64); t:set(0); u:set(0); u:set(k:exp2(t) * k:log2(t))",
              "kernel:program()"),
       "two parts of this need a place of their own"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
}

Test(unit_scenario_kernel, loops_end_where_they_should) {
  const refusal refusals[] = {
      {SKETCH(TILE "\nfor i in k:range(0, 4) do break end\nt:set(0)", "kernel:program()"),
       "test.lua:4: this loop was left before its end"},
      {SKETCH(TILE "for i in k:range(0, 4) do\nfor j in k:range(0, 4) do break end\nend", "kernel:program()"),
       "the loop of line 4 was left before its end"},
      {SKETCH(MAIN "for i in k:range(0, 1 << 40) do\nfor j in k:range(0, 1 << 40) do k:sync_warps() end end",
              "kernel:program()"),
       "a CTA may run more than 16777216 operations up to here"}};
  fail_all(refusals, sizeof refusals / sizeof *refusals);
  passes(SKETCH(TILE "t:set(1); for i in k:range(2, 2) do error('never') end; t:store(y(0))", EQUALS("1")));
}

Test(unit_scenario_kernel, a_tile_outside_of_its_tensor_is_refused_whatever_the_cta) {
  fails(SKETCH(TILE "t:set(0)\nt:store(y(k.cta - 1))", "kernel:program()"),
        "test.lua:4: store: the row of y can be -1 to -1, as far as can be shown");
  passes(SKETCH(TILE "t:set(0)\nt:store(y(k:max(k.cta - 1, 0)))", "kernel:program()"));
}

Test(unit_scenario_kernel, objects_do_not_outlive_their_sketch) {
  fails(SKETCH("kept = k", "kernel:program()"), "sketch: no role");
  fails(PREFIX
        "local kept\nlocal kernel = ft.kernel(function(k) kept = k; k:infeasible('no') end)\n"
        "ft.predict { arch = 'h200', workload = kernel }\nkept:role('a', 4)",
        "test.lua:5: this belongs to the function of ft.kernel");
  fails(PREFIX
        "local kept\nlocal kernel = ft.kernel({ n = 1 }, function(k) k:grid(1); k:role('a', 4)\n"
        "if kept then kept:set(0) end; kept = k:tile('t', 'fp32', 64, 64); kept:set(1) end)\n"
        "kernel:program(); kernel:program { n = 2 }",
        "test.lua:4: a register tile belongs to a kernel that is finished");
  fails(PREFIX
        "local a = ft.kernel(function(k) k:grid(1); k:role('a', 4); k:sync_warps() end)\n"
        "ft.kernel(function(k) a:program() end):program()",
        "test.lua:3: a kernel is built inside the function of another");
  // An error in one sketch, caught, leaves nothing behind.
  passes(PREFIX
         "local bad = ft.kernel(function(k) error('bad') end)\nassert(not pcall(bad.program, bad))\n"
         "local good = ft.kernel(function(k) k:grid(1); k:role('a', 4); k:sync_warps() end)\nassert(good:program())");
}

Test(unit_scenario_kernel, a_check_that_fails_says_where_and_by_how_much) {
  fails(SKETCH(TILE "t:set(1); t:store(y(0))", "\n" EQUALS("r == 7 and c == 4 and 3 or 1")),
        "test.lua:6: sketch: y(7, 3) is 1.0, the reference 3.0: the error 2 is above the tolerance 1e-06");
  fails(
      SKETCH(
          TILE "t:set(1); t:store(y(0))",
          "kernel:check { tolerance = 1, reference = { y = function() local row = {}; for c = 1, 65 do row[c] = 1 end "
          "return row end } }"),
      "test.lua:5: the reference of y must give a row of 64 numbers, not 65");
  fails(SKETCH(TILE "t:set(1); t:store(y(0))", "kernel:check { reference = {}, tolerance = 1 }"),
        "reference.y must be function(t, …) of a row's coordinates");
  fails(SKETCH(TILE "t:set(1); t:store(y(0))", "kernel:check { reference = { y = function() return 1 end } }"),
        "kernel:check needs tolerance");
  fails(SKETCH(TILE "t:set(1); t:store(y(0))",
               "kernel:check { reference = { z = function() return 1 end }, tolerance = 1 }"),
        "z: sketch has no output of this name");
  fails(SKETCH(TILE "for i in k:range(0, k.cta) do t:set(1) end\nt:store(y(0))",
               "kernel:check { reference = { y = false }, tolerance = 1 }"),
        "test.lua:4: store: CTA 0: t was never written");
}

Test(unit_scenario_kernel, a_check_counts_as_the_scripts_work) {
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  limits.max_instructions = 20000;
  ftl_error error = {0};
  const char *script = SKETCH_OF("1000", TILE "t:set(1); t:store(y(0))", EQUALS("1"));
  cr_assert_eq(run_with(script, (ftl_evaluate_options){.num_threads = 1}, limits, &error), FTL_BAD_INPUT);
  cr_assert(strstr(error.message, "too much to compute for the limit of instructions") != NULL, "%s", error.message);
}
