// What of flash2_fwd cannot exist on any GPU.
#include "workloads/code_form.h"
#include "workloads/flash2.h"

static ftl_status check_unrolled(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_mask_steps] != FTL_MASK_STEPS_UNROLLED) return FTL_OK;
  if (v[FTL_PARAM_schedule] != FTL_SCHEDULE_INTERLEAVED)
    return ftl_error_set(error, FTL_INFEASIBLE, "mask_steps=unrolled: steps of schedule=interleaved");
  if (v[FTL_PARAM_mask] != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "mask_steps=unrolled: keys end at a diagonal, not with mask");
  if (v[FTL_PARAM_block_m] > FTL_MOST_UNROLLED_STEPS * v[FTL_PARAM_block_n])
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: mask_steps=unrolled writes at most %d steps of block_m=%lld",
                         (long long)v[FTL_PARAM_block_n], FTL_MOST_UNROLLED_STEPS, (long long)v[FTL_PARAM_block_m]);
  return FTL_OK;
}

static ftl_status check_refill(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  const struct {
    int64_t refill;
    const char *name;
    bool needs_buffers, needs_async_copies;
  } refills[] = {{FTL_REFILL_LATE, "late", true, false},
                 {FTL_REFILL_WHEN_FREE, "when_free", false, true},
                 {FTL_REFILL_AMID, "amid", true, true},
                 {FTL_REFILL_JOINT, "joint", true, true}};
  bool has_buffers = v[FTL_PARAM_schedule] == FTL_SCHEDULE_STAGES && v[FTL_PARAM_num_stages] > 1;
  for (size_t i = 0; i < sizeof refills / sizeof *refills; i++) {
    if (v[FTL_PARAM_refill] != refills[i].refill) continue;
    if (refills[i].needs_buffers && !has_buffers)
      return ftl_error_set(error, FTL_INFEASIBLE,
                           "refill=%s: buffers to refill are those of schedule=stages, num_stages >= 2",
                           refills[i].name);
    if (refills[i].needs_async_copies && v[FTL_PARAM_copy] == FTL_SPEC_COPY_LDG)
      return ftl_error_set(
          error, FTL_INFEASIBLE,
          "refill=%s: copy=ldg keeps one tile in flight, and no buffer that is filled as it falls free",
          refills[i].name);
  }
  return FTL_OK;
}

ftl_status ftl_flash2_check(const ftl_spec *spec, ftl_error *error) {
  const int64_t *v = spec->value;
  if (v[FTL_PARAM_schedule] == FTL_SCHEDULE_INTERLEAVED && v[FTL_PARAM_num_stages] != 1)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "num_stages=%lld: schedule=interleaved has one buffer of K and one of V, num_stages=1",
                         (long long)v[FTL_PARAM_num_stages]);
  ftl_status status = ftl_attention_check_stages(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_refill] == FTL_REFILL_BEHIND && v[FTL_PARAM_schedule] != FTL_SCHEDULE_STAGES)
    return ftl_error_set(error, FTL_INFEASIBLE, "refill=behind: buffers to refill are those of schedule=stages");
  if (v[FTL_PARAM_warps_n] > 1 && v[FTL_PARAM_q_operand] == FTL_Q_OPERAND_REGISTERS)
    return ftl_error_set(error, FTL_INFEASIBLE, "warps_n=%lld: warps side by side take Q from shared memory",
                         (long long)v[FTL_PARAM_warps_n]);
  status = check_refill(spec, error);
  if (status != FTL_OK) return status;
  if (v[FTL_PARAM_block_n] % 16 != 0)
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "block_n=%lld: it is the K of the second matrix product, a multiple of 16",
                         (long long)v[FTL_PARAM_block_n]);
  status = ftl_flash2_check_back_to_back(spec, error);
  if (status == FTL_OK) status = check_unrolled(spec, error);
  if (status == FTL_OK) status = ftl_attention_check_dropout(spec, error);
  if (status == FTL_OK) status = ftl_attention_check_warps_n(spec, error);
  return status == FTL_OK ? ftl_attention_check_warps(spec, error) : status;
}
