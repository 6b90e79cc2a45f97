// What lowering takes of a specification. sim/lower knows no specifications, and workloads no lowering.
#ifndef FTL_ENGINE_LOWER_OPTIONS_H
#define FTL_ENGINE_LOWER_OPTIONS_H

#include "lower/lower.h"
#include "workloads/spec.h"

_Static_assert((int)FTL_COPY_TMA == (int)FTL_SPEC_COPY_TMA && (int)FTL_MMA_WGMMA == (int)FTL_SPEC_MMA_WGMMA,
               "copy and mma follow the order of params.def");

// Of a spec whose code is resolved; copy and mma may be `auto`.
static inline ftl_lower_options ftl_lower_options_of(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool is_rows = ftl_spec_takes(spec, FTL_PARAM_scaling) && !ftl_spec_takes(spec, FTL_PARAM_code);
  return (ftl_lower_options){.copy = (ftl_copy)v[FTL_PARAM_copy],
                             .mma = (ftl_mma)v[FTL_PARAM_mma],
                             .plain_code = v[FTL_PARAM_code] == FTL_CODE_PLAIN,
                             .is_cuda = v[FTL_PARAM_code] == FTL_CODE_PLAIN || v[FTL_PARAM_code] == FTL_CODE_STEPPED,
                             .fills_sm = is_rows && v[FTL_PARAM_scaling] == FTL_SCALING_EXPONENT,
                             .buffers_fragments = v[FTL_PARAM_code] == FTL_CODE_BUFFERED,
                             .keeps_denormals = v[FTL_PARAM_exp2] == FTL_EXP2_IEEE,
                             .max_registers = (int32_t)v[FTL_PARAM_max_registers],
                             .min_ctas = (int32_t)v[FTL_PARAM_min_ctas]};
}

#endif
