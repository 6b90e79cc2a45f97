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
  if (v[FTL_PARAM_refill] == FTL_REFILL_LATE &&
      (v[FTL_PARAM_schedule] != FTL_SCHEDULE_STAGES || v[FTL_PARAM_num_stages] == 1))
    return ftl_error_set(error, FTL_INFEASIBLE,
                         "refill=late: buffers to refill are those of schedule=stages, num_stages >= 2");
  if (v[FTL_PARAM_refill] == FTL_REFILL_WHEN_FREE && v[FTL_PARAM_copy] == FTL_SPEC_COPY_LDG)
    return ftl_error_set(
        error, FTL_INFEASIBLE,
        "refill=when_free: copy=ldg keeps one tile in flight, and no buffer that is filled as it falls free");
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
