#include "lower/spill.h"

ftl_status ftl_spill(ftl_draft *draft, const ftl_arch *arch, int32_t limit, ftl_spill_context *spill, ftl_arena *arena,
                     ftl_error *error) {
  (void)draft, (void)arch, (void)limit, (void)spill, (void)arena, (void)error;
  return FTL_OK;
}
