#include "lower/op_timing.h"

#include <string.h>

#include "base/integer.h"

enum { WGMMA_M = 64 };

// What ptxas believes of an HMMA of fp16 for compute capability 8.0, and for 8.6 and 8.9 alike, though these chips take
// it at a half or a quarter of that rate: the least stall cycles from one to the next, and to one that adds to its
// sums.
enum { PTXAS_8X_MMA_INTERVAL_CYCLES = 8, PTXAS_8X_MMA_LATENCY_CYCLES = 24 };

// Stall cycles from an ldmatrix to the first product that reads it: the median of seven kernels for each of 8.0, 8.6,
// 8.9 and 9.0 in kernels/measurements/sass_order.csv. They cannot be compiled for 7.5, which has that of 8.0.
static int32_t fragment_lead_cycles(const ftl_arch *arch) {
  static const struct { int32_t since_compute_capability, cycles; } leads[] = {{90, 37}, {86, 49}, {0, 45}};
  int i = 0;
  while (arch->chip_compute_capability < leads[i].since_compute_capability) i++;
  return leads[i].cycles;
}

static ftl_op_timing entry(ftl_pipe pipe, int64_t interval_cycles, int64_t latency_cycles) {
  return (ftl_op_timing){(int32_t)pipe, (int32_t)interval_cycles, (int32_t)latency_cycles};
}

static ftl_pipe pipe_named(const char *name) {
  if (strcmp(name, "fp32") == 0) return FTL_PIPE_FP32;
  if (strcmp(name, "half") == 0) return FTL_PIPE_HALF;
  if (strcmp(name, "sfu") == 0) return FTL_PIPE_SFU;
  return FTL_PIPE_ALU;
}

static void set_math(ftl_op_timing *of, const ftl_arch *arch) {
  static const uint8_t alu[] = {FTL_OP_FMNMX, FTL_OP_IADD, FTL_OP_LOP, FTL_OP_ISETP,
                                FTL_OP_SEL,   FTL_OP_PRMT, FTL_OP_S2R, FTL_OP_LDC};
  for (size_t i = 0; i < sizeof alu; i++)
    of[alu[i]] = entry(FTL_PIPE_ALU, arch->alu_interval_cycles, arch->alu_latency_cycles);
  ftl_op_timing imad = entry(pipe_named(arch->imad_pipe), arch->imad_interval_cycles, arch->imad_latency_cycles);
  of[FTL_OP_IMAD] = of[FTL_OP_IMAD_WIDE] = of[FTL_OP_MOV] = imad;
  of[FTL_OP_IMAD_WIDE].interval_cycles *= FTL_WIDE_INTERVALS;
  of[FTL_OP_UNIFORM] = entry(FTL_PIPE_BRANCH, 1, arch->uniform_latency_cycles);
  of[FTL_OP_R2UR] = entry(FTL_PIPE_ALU, arch->alu_interval_cycles, arch->uniform_move_latency_cycles);
  of[FTL_OP_FFMA] = entry(FTL_PIPE_FP32, arch->fp32_interval_cycles, arch->fp32_latency_cycles);
  of[FTL_OP_HFMA2] = of[FTL_OP_HSET2] = entry(FTL_PIPE_HALF, arch->half_interval_cycles, arch->half_latency_cycles);
  of[FTL_OP_CVT] = entry(pipe_named(arch->cvt_pipe), arch->cvt_interval_cycles, arch->cvt_latency_cycles);
  of[FTL_OP_MUFU] = entry(FTL_PIPE_SFU, arch->sfu_interval_cycles, arch->sfu_latency_cycles);
}

static ftl_op_timing mma_timing(const ftl_arch *arch, const ftl_product *product) {
  int64_t interval = product->mma_interval_cycles, latency = product->mma_latency_cycles;
  if (arch->chip_compute_capability > 80 && arch->chip_compute_capability < 90) {
    interval = ftl_divide_up(interval * PTXAS_8X_MMA_INTERVAL_CYCLES, arch->tensor_mma_fp32_interval_cycles);
    latency = PTXAS_8X_MMA_LATENCY_CYCLES + (interval - PTXAS_8X_MMA_INTERVAL_CYCLES) / 2;
  }
  return entry(FTL_PIPE_TENSOR, interval, latency);
}

// Global loads are expected to hit L2: L2 cycles are taken as SM cycles, which is near enough to order instructions.
// Asynchronous copies, with what announces them, are as long: a fence after them is what waits.
static void set_memory(ftl_op_timing *of, const ftl_arch *arch) {
  for (int32_t op = FTL_OP_SHFL; op <= FTL_OP_FENCE_PROXY; op++)
    of[op] = entry(FTL_PIPE_MIO, arch->mio_warp_interval_cycles, 1);
  of[FTL_OP_CP_WAIT] = of[FTL_OP_TMA_STORE_WAIT] = entry(FTL_PIPE_BRANCH, 1, 1);
  of[FTL_OP_TILE_ASK] = entry(FTL_PIPE_MIO, arch->mio_warp_interval_cycles, 1);
  of[FTL_OP_SHFL].latency_cycles = (int32_t)arch->shared_shuffle_latency_cycles;
  of[FTL_OP_LDS].latency_cycles = (int32_t)arch->shared_load_latency_cycles;
  of[FTL_OP_LDSM].latency_cycles = (int32_t)arch->shared_ldmatrix_latency_cycles;
  of[FTL_OP_LDL].latency_cycles = (int32_t)arch->l1_hit_latency_cycles;
  int32_t l2_cycles = (int32_t)(arch->noc_request_cycles + arch->l2_hit_cycles + arch->noc_reply_cycles);
  of[FTL_OP_LDG].latency_cycles = (int32_t)arch->l1_hit_latency_cycles + l2_cycles;
  of[FTL_OP_MBAR_EXPECT].latency_cycles = (int32_t)arch->tma_latency_cycles + l2_cycles;
  // What a copy or a store gives its token for is that its registers are read.
  of[FTL_OP_TMA_LOAD].latency_cycles = (int32_t)arch->tma_release_cycles;
  of[FTL_OP_CP_ASYNC].latency_cycles = of[FTL_OP_STG].latency_cycles = (int32_t)arch->l1_operand_release_cycles;
  of[FTL_OP_CP_COMMIT].latency_cycles = of[FTL_OP_LDG].latency_cycles;
}

void ftl_op_timings_init(ftl_op_timings *timings, const ftl_arch *arch, const ftl_product *product) {
  ftl_op_timing *of = timings->of;
  for (int op = 0; op < FTL_OPCODE_COUNT; op++) of[op] = entry(FTL_PIPE_BRANCH, 1, 1);
  set_math(of, arch);
  of[FTL_OP_MMA] = mma_timing(arch, product);
  set_memory(of, arch);
  static const uint8_t pseudo[] = {FTL_OP_WGMMA_COMMIT, FTL_OP_MBAR_ADVANCE, FTL_OP_RING_READ, FTL_OP_RING_FREE,
                                   FTL_OP_LABEL,        FTL_OP_RESERVE,      FTL_OP_LOOP,      FTL_OP_END_LOOP,
                                   FTL_OP_TILE,         FTL_OP_NEXT_TILE};
  for (size_t i = 0; i < sizeof pseudo; i++) of[pseudo[i]] = entry(FTL_PIPE_NONE, 0, 0);
  timings->wgmma_fma_per_cycle = product->wgmma_fma_per_cycle;
  timings->wgmma_k = product->operand_columns;
  timings->wgmma_tail_cycles = (int32_t)arch->tensor_wgmma_tail_cycles;
  timings->guard_latency_cycles = (int32_t)arch->branch_predicate_latency_cycles;
}

void ftl_op_timings_move_fragments(ftl_op_timings *timings, const ftl_arch *arch) {
  int32_t *latency_cycles = &timings->of[FTL_OP_LDSM].latency_cycles;
  int32_t lead_cycles = fragment_lead_cycles(arch);
  if (*latency_cycles < lead_cycles) *latency_cycles = lead_cycles;
}

void ftl_op_timings_near_fragments(ftl_op_timings *timings) {
  timings->of[FTL_OP_LDSM].latency_cycles = 2 * timings->of[FTL_OP_MMA].interval_cycles;
}

ftl_op_timing ftl_op_timing_of(const ftl_op_timings *timings, const ftl_warp_inst *inst) {
  ftl_op_timing timing = timings->of[inst->opcode];
  if (inst->opcode == FTL_OP_WGMMA && timings->wgmma_fma_per_cycle > 0) {
    int64_t macs = (int64_t)WGMMA_M * timings->wgmma_k * inst->arg;
    int32_t math_cycles = (int32_t)ftl_divide_up(macs, timings->wgmma_fma_per_cycle);
    timing = entry(FTL_PIPE_TENSOR, math_cycles, math_cycles + timings->wgmma_tail_cycles);
  }
  return timing;
}

int32_t ftl_op_background_cycles(const ftl_op_timings *timings, const ftl_warp_inst *inst) {
  switch (inst->opcode) {
    case FTL_OP_CP_ASYNC:
      return timings->of[FTL_OP_LDG].latency_cycles;
    case FTL_OP_CP_COMMIT:
      return timings->of[FTL_OP_CP_COMMIT].latency_cycles;
    case FTL_OP_TMA_LOAD:
    case FTL_OP_MBAR_EXPECT:
      return timings->of[FTL_OP_MBAR_EXPECT].latency_cycles;
    default:
      return 0;
  }
}
