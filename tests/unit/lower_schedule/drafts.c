#include "drafts.h"

#include <criterion/criterion.h>
#include <string.h>

ftl_arch round_arch(void) {
  ftl_arch arch = {0};
  arch.fp32_interval_cycles = arch.alu_interval_cycles = arch.imad_interval_cycles = arch.half_interval_cycles = 1;
  arch.cvt_interval_cycles = arch.sfu_interval_cycles = arch.mio_warp_interval_cycles = 1;
  arch.fp32_latency_cycles = arch.alu_latency_cycles = arch.imad_latency_cycles = arch.half_latency_cycles = 1;
  arch.cvt_latency_cycles = 1;
  arch.sfu_latency_cycles = 20;
  arch.shared_load_latency_cycles = 10;
  arch.shared_ldmatrix_latency_cycles = 24;
  arch.shared_shuffle_latency_cycles = 10;
  arch.l1_hit_latency_cycles = 30;
  arch.noc_request_cycles = arch.l2_hit_cycles = 100;
  arch.noc_reply_cycles = 70;
  strcpy(arch.imad_pipe, "fp32");
  strcpy(arch.cvt_pipe, "alu");
  return arch;
}

ftl_product round_product(void) {
  return (ftl_product){
      .operand_columns = 16, .mma_interval_cycles = 8, .mma_latency_cycles = 8, .wgmma_fma_per_cycle = 1024};
}

ftl_draft_inst *put(ftl_draft *draft, ftl_opcode opcode, int tag, int32_t d, int32_t a, int32_t b) {
  ftl_draft_inst *inst = ftl_draft_add(draft, opcode, 1);
  inst->inst.arg = (uint16_t)tag;
  inst->destination = d;
  if (a != FTL_NO_VALUE) inst->sources[inst->num_sources++] = a;
  if (b != FTL_NO_VALUE) inst->sources[inst->num_sources++] = b;
  if (opcode == FTL_OP_LDS || opcode == FTL_OP_LDSM || opcode == FTL_OP_STS) inst->effects = FTL_EFFECT_MEMORY;
  return inst;
}

ftl_draft_inst *put_update(ftl_draft *draft, ftl_opcode opcode, int tag, int32_t d, int32_t a, int32_t b) {
  ftl_draft_inst *inst = put(draft, opcode, tag, d, a, b);
  inst->effects |= FTL_EFFECT_READS_DESTINATION;
  return inst;
}

void put_loop(ftl_draft *draft) { put(draft, FTL_OP_LOOP, 0, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE); }
void put_end_loop(ftl_draft *draft) { put(draft, FTL_OP_END_LOOP, 0, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE); }

static uint16_t add_local_access(void *context, int32_t slot, int32_t num_registers) {
  finished *out = context;
  (void)slot;
  out->num_local_registers += num_registers;
  return (uint16_t)(1000 + out->num_local_accesses++);
}

finished finish(ftl_draft *draft, int32_t cap) {
  ftl_arch arch = round_arch();
  return finish_on(&arch, draft, cap);
}

finished finish_on(const ftl_arch *arch, ftl_draft *draft, int32_t cap) {
  finished out = {0};
  ftl_error error = {0};
  draft->product = round_product();
  ftl_status status = ftl_draft_finish(draft, arch, cap, add_local_access, &out, &out.result, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  return out;
}

int32_t position_of(const ftl_draft *draft, int tag) {
  for (int32_t i = 0; i < draft->num_insts; i++) {
    if (draft->insts[i].inst.arg == tag) return i;
  }
  return -1;
}

int32_t count_of(const ftl_draft *draft, ftl_opcode opcode, int32_t begin, int32_t end) {
  int32_t count = 0;
  for (int32_t i = begin; i < end; i++) count += draft->insts[i].inst.opcode == opcode;
  return count;
}
