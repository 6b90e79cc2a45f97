// What tests of kernels that a scenario writes share: the beginnings of scripts, and running one with the real engine.
#ifndef TESTS_UNIT_SCENARIO_KERNEL_SCRIPT_H
#define TESTS_UNIT_SCENARIO_KERNEL_SCRIPT_H

#include "script/scenario.h"

#define PREFIX "local ft = require 'foretile'\n"
// The body of a kernel begins at line 3; what follows it, below.
#define SKETCH(body, rest) SKETCH_OF("1", body, rest)
#define SKETCH_OF(ctas, body, rest) \
  PREFIX "local kernel = ft.kernel('sketch', { n = 64 }, function(k, p) k:grid(" ctas ")\n" body "\nend)\n" rest
#define TENSORS "local x, y = k:input('x', 'fp16', { p.n, 64 }), k:output('y', 'fp32', { p.n, 64 }); "
#define MAIN TENSORS "k:role('main', 4); "
#define TILE MAIN "local t = k:tile('t', 'fp32', 64, 64); "

ftl_status run_with(const char *script, ftl_evaluate_options evaluate, ftl_sandbox_limits limits, ftl_error *error);
void passes(const char *script);
// It is bad input, and the error contains the text.
void fails(const char *script, const char *expected);

typedef struct refusal {
  const char *script, *error;
} refusal;
void fail_all(const refusal *refusals, size_t count);

#endif
