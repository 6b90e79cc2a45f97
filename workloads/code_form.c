#include "workloads/code_form.h"

#include "base/integer.h"
#include "workloads/backward_transposed.h"
#include "workloads/standard_attention.h"

typedef enum program {
  PROGRAM_PLAIN,        // as kernels/attention
  PROGRAM_BY_HAND,      // attention whose author is not known
  PROGRAM_TRITON,       // and what has its addresses: cuBLAS, and the libraries that eager PyTorch calls
  PROGRAM_DESCRIPTORS,  // Triton's tutorial with tensor descriptors
  PROGRAM_FLEX,
  PROGRAM_CUDNN,
  PROGRAM_FLASH2_FWD,
  PROGRAM_FLASH2_BWD,
  PROGRAM_CUTLASS
} program;

typedef struct form {
  int64_t code, scaling, row_sums, guard, exp2, mask_steps, q_operand, refill, head_order;
} form;

static const form forms[] = {
    [PROGRAM_PLAIN] = {FTL_CODE_PLAIN, FTL_SCALING_EXPONENT, FTL_ROW_SUMS_END, FTL_GUARD_ALWAYS, FTL_EXP2_FTZ,
                       FTL_MASK_STEPS_EDGES, FTL_Q_OPERAND_SHARED, FTL_REFILL_WHEN_FREE, FTL_HEADS_FIRST},
    [PROGRAM_BY_HAND] = {FTL_CODE_STEPPED, FTL_SCALING_EXPONENT, FTL_ROW_SUMS_END, FTL_GUARD_MASKED, FTL_EXP2_FTZ,
                         FTL_MASK_STEPS_EDGES, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_HEADS_FIRST},
    [PROGRAM_TRITON] = {FTL_CODE_LEAN, FTL_SCALING_SCORES, FTL_ROW_SUMS_STEP, FTL_GUARD_MASKED, FTL_EXP2_FTZ,
                        FTL_MASK_STEPS_EDGES, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_HEADS_FIRST},
    [PROGRAM_DESCRIPTORS] = {FTL_CODE_LEAN, FTL_SCALING_BY_TILE, FTL_ROW_SUMS_STEP, FTL_GUARD_MASKED, FTL_EXP2_FTZ,
                             FTL_MASK_STEPS_EDGES, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_HEADS_FIRST},
    [PROGRAM_FLEX] = {FTL_CODE_LEAN, FTL_SCALING_TWICE, FTL_ROW_SUMS_BEHIND, FTL_GUARD_ALWAYS, FTL_EXP2_FTZ,
                      FTL_MASK_STEPS_BLOCKS, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_SEQUENCES_FIRST},
    [PROGRAM_CUDNN] = {FTL_CODE_LEAN, FTL_SCALING_APART, FTL_ROW_SUMS_END, FTL_GUARD_ALWAYS, FTL_EXP2_FTZ,
                       FTL_MASK_STEPS_ALL, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_HEADS_FIRST},
    [PROGRAM_FLASH2_FWD] = {FTL_CODE_BUFFERED, FTL_SCALING_SCORES, FTL_ROW_SUMS_END, FTL_GUARD_ALWAYS, FTL_EXP2_IEEE,
                            FTL_MASK_STEPS_UNROLLED, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_SEQUENCES_FIRST},
    [PROGRAM_FLASH2_BWD] = {FTL_CODE_LEAN, FTL_SCALING_SCORES, FTL_ROW_SUMS_END, FTL_GUARD_ALWAYS, FTL_EXP2_IEEE,
                            FTL_MASK_STEPS_WINDOW, FTL_Q_OPERAND_AUTO, FTL_REFILL_AUTO, FTL_SEQUENCES_FIRST},
    [PROGRAM_CUTLASS] = {FTL_CODE_BUFFERED, FTL_SCALING_TWICE, FTL_ROW_SUMS_STEP, FTL_GUARD_MASKED, FTL_EXP2_IEEE,
                         FTL_MASK_STEPS_EDGES, FTL_Q_OPERAND_SHARED, FTL_REFILL_EARLY, FTL_HEADS_FIRST},
};

// Products in clusters, or whose tiles come in strips.
static bool is_cublas(const ftl_spec *spec) {
  bool is_product = ftl_spec_takes(spec, FTL_PARAM_tile_strip);
  return is_product && (spec->value[FTL_PARAM_cluster] != 0 || spec->value[FTL_PARAM_tile_strip] != 0);
}

static bool is_scheduled(const ftl_spec *spec, int64_t schedule) {
  return ftl_spec_takes(spec, FTL_PARAM_schedule) && spec->value[FTL_PARAM_schedule] == schedule;
}

// Buffers that TMA fills for warps which multiply by wgmma and ask for them themselves.
static bool is_by_descriptors(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_softmax_steps = ftl_spec_takes(spec, FTL_PARAM_scaling) && ftl_spec_takes(spec, FTL_PARAM_refill);
  return has_softmax_steps && is_scheduled(spec, FTL_SCHEDULE_STAGES) && v[FTL_PARAM_num_stages] > 1 &&
         v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_TMA;
}

// The tiles of FlashAttention-2's forward kernels (flash_fwd_launch_template.h of 2.x): one for a head, a mask, dropout
// and a chip. A head goes to the kernel of the next width. Compute capabilities 8.6 and 8.9 are "sm8x" there.
typedef struct flash2_tile {
  int64_t block_m, block_n, num_warps;
} flash2_tile;

static flash2_tile flash2_tile_of_128(bool drops, bool is_sm8x, bool causal) {
  if (drops) return (flash2_tile){128, 32, 4};
  if (is_sm8x) return causal ? (flash2_tile){64, 64, 4} : (flash2_tile){128, 32, 4};
  return (flash2_tile){128, 64, 4};
}

static flash2_tile flash2_tile_of_256(const ftl_arch *arch) {
  enum { BYTES_OF_WIDE_TILE = 128 * 1024, BYTES_OF_TWO_NARROW = 192 * 1024 };
  bool is_wide =
      arch->shared_max_bytes_per_cta >= BYTES_OF_WIDE_TILE && arch->shared_bytes_per_sm < BYTES_OF_TWO_NARROW;
  return is_wide ? (flash2_tile){128, 64, 8} : (flash2_tile){64, 64, 4};
}

static flash2_tile flash2_tile_of(const ftl_spec *spec, const ftl_arch *arch) {
  enum { A100 = 80, H100 = 90 };
  const int64_t *v = spec->value;
  int64_t head_dim = v[FTL_PARAM_head_dim];
  bool drops = v[FTL_PARAM_dropout_p] != 0, causal = v[FTL_PARAM_causal] != 0;
  bool is_sm8x = arch->chip_compute_capability > A100 && arch->chip_compute_capability < H100;
  if (head_dim <= 32) return (flash2_tile){128, 128, 4};
  if (head_dim <= 64) return (flash2_tile){128, drops ? 64 : 128, 4};
  if (head_dim <= 96) return is_sm8x && causal ? (flash2_tile){64, 64, 4} : (flash2_tile){128, 64, 4};
  if (head_dim <= 128) return flash2_tile_of_128(drops, is_sm8x, causal);
  if (head_dim <= 160) return is_sm8x && causal ? (flash2_tile){64, 64, 4} : (flash2_tile){128, 32, 4};
  if (head_dim <= 192) return drops ? (flash2_tile){64, 64, 4} : (flash2_tile){128, 64, 8};
  return flash2_tile_of_256(arch);
}

static bool has_tile_of_flash2(const ftl_spec *spec, const ftl_arch *arch) {
  const int64_t *v = spec->value;
  flash2_tile tile = flash2_tile_of(spec, arch);
  return v[FTL_PARAM_block_m] == tile.block_m && v[FTL_PARAM_block_n] == tile.block_n &&
         v[FTL_PARAM_num_warps] == tile.num_warps;
}

static program described_program(const ftl_spec *spec, const ftl_arch *arch) {
  const int64_t *v = spec->value;
  if (ftl_standard_is_eager(spec) || is_cublas(spec)) return PROGRAM_TRITON;
  if (ftl_spec_takes(spec, FTL_PARAM_turns) && v[FTL_PARAM_turns] == FTL_TURNS_SOFTMAX) return PROGRAM_CUDNN;
  if (ftl_spec_takes(spec, FTL_PARAM_mask_steps) && v[FTL_PARAM_mask_steps] == FTL_MASK_STEPS_BLOCKS)
    return PROGRAM_FLEX;
  if (is_scheduled(spec, FTL_SCHEDULE_INTERLEAVED) && has_tile_of_flash2(spec, arch)) return PROGRAM_FLASH2_FWD;
  if (is_scheduled(spec, FTL_SCHEDULE_BACK_TO_BACK)) return PROGRAM_CUTLASS;
  bool is_triton = v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] != FTL_SPEC_COPY_TMA;
  if (ftl_spec_takes(spec, FTL_PARAM_mma) && is_triton) return PROGRAM_TRITON;
  bool is_attention = ftl_spec_takes(spec, FTL_PARAM_scaling);
  return is_attention || spec->workload->user_kernel != NULL ? PROGRAM_BY_HAND : PROGRAM_PLAIN;
}

// dQ by atomics as FlashAttention-2's library has it is code=lean or buffered.
static bool is_backward_by_hand(const ftl_spec *spec) {
  return spec->value[FTL_PARAM_code] == FTL_CODE_AUTO || spec->value[FTL_PARAM_code] == FTL_CODE_STEPPED;
}

static program program_of(const ftl_spec *spec, const ftl_arch *arch) {
  if (spec->value[FTL_PARAM_code] == FTL_CODE_PLAIN) return PROGRAM_PLAIN;
  if (ftl_backward_adds_dq(spec)) return is_backward_by_hand(spec) ? PROGRAM_BY_HAND : PROGRAM_FLASH2_BWD;
  switch (spec->value[FTL_PARAM_code]) {
    case FTL_CODE_STEPPED:
      return PROGRAM_BY_HAND;
    case FTL_CODE_LEAN:
      return is_by_descriptors(spec) ? PROGRAM_DESCRIPTORS : PROGRAM_TRITON;
    case FTL_CODE_BUFFERED:
      return is_scheduled(spec, FTL_SCHEDULE_BACK_TO_BACK) ? PROGRAM_CUTLASS : PROGRAM_FLASH2_FWD;
    default:
      return described_program(spec, arch);
  }
}

// `auto` is the first value of each.
static void resolve(ftl_spec *spec, ftl_param param, int64_t value) {
  if (ftl_spec_takes(spec, param) && spec->value[param] == 0) spec->value[param] = value;
}

// With no row maximum to find, which needs scaled scores or scales itself, one multiply-add scales and shifts.
static int64_t scaling_of(const ftl_spec *spec, const form *f) {
  bool knows_lse = ftl_spec_takes(spec, FTL_PARAM_dq) && f != &forms[PROGRAM_FLASH2_BWD];
  return knows_lse ? FTL_SCALING_EXPONENT : f->scaling;
}

// Backward passes find a product's addresses once and step them: FlashAttention-2's, Triton's, and those written by
// hand (SASS of kernels/attention/flash2_bwd*.h).
static int64_t code_of(const ftl_spec *spec, const form *f) {
  bool is_dq_kernel = ftl_spec_takes(spec, FTL_PARAM_dq) && !ftl_backward_adds_dq(spec);
  return is_dq_kernel ? FTL_CODE_LEAN : f->code;
}

// K and V of a step are one group of cp.async in each of six kernels of kernels/independent with several buffers, by as
// many authors. With TMA 21 of 38 instances free a buffer by an mbarrier (amid) and 17 by a barrier of the CTA: neither
// is what an open kernel is taken for, and early is nearest to both.
static int64_t refill_by_hand(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  bool has_buffers = is_scheduled(spec, FTL_SCHEDULE_STAGES) && v[FTL_PARAM_num_stages] > 1;
  bool can_join = has_buffers && ftl_spec_takes(spec, FTL_PARAM_q_operand);
  return can_join && v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC ? FTL_REFILL_JOINT : FTL_REFILL_EARLY;
}

// Backward steps refill early, or late where Triton's pipeliner is at work.
static int64_t refill_of(const ftl_spec *spec, const form *f) {
  const int64_t *v = spec->value;
  if (f->code == FTL_CODE_STEPPED && !ftl_spec_takes(spec, FTL_PARAM_dq)) return refill_by_hand(spec);
  if (!ftl_spec_takes(spec, FTL_PARAM_dq)) return f->refill;
  bool is_pipelined = v[FTL_PARAM_dq] == FTL_DQ_KERNEL && v[FTL_PARAM_code] == FTL_CODE_LEAN &&
                      v[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA && v[FTL_PARAM_copy] == FTL_SPEC_COPY_CP_ASYNC;
  return is_pipelined && v[FTL_PARAM_num_stages] > 1 ? FTL_REFILL_LATE : FTL_REFILL_EARLY;
}

// Only beside a wgmma's product does ptxas add up exponentials.
static int64_t row_sums_of(const ftl_spec *spec, const form *f) {
  bool has_wgmma = spec->value[FTL_PARAM_mma] == FTL_SPEC_MMA_WGMMA;
  return f->row_sums == FTL_ROW_SUMS_BEHIND && !has_wgmma ? FTL_ROW_SUMS_STEP : f->row_sums;
}

bool ftl_spec_masks_end_alone(const ftl_spec *spec) {
  const int64_t *v = spec->value;
  return v[FTL_PARAM_causal] == 0 && v[FTL_PARAM_seqlen_kv] % v[FTL_PARAM_block_n] != 0;
}

// Triton's loops take lengths that cut tiles by a mask on every load and on all scores.
static bool masks_all_of_tritons(const ftl_spec *spec, program p) {
  const int64_t *v = spec->value;
  bool is_described = p == PROGRAM_TRITON && v[FTL_PARAM_code] == FTL_CODE_AUTO;
  return is_described && ftl_spec_takes(spec, FTL_PARAM_mask_steps) &&
         v[FTL_PARAM_seqlen_kv] % v[FTL_PARAM_block_n] != 0;
}

// Who masks all steps (cuDNN) does so for the end of the keys alone (kernels/measurements/foreign_library*_ncu.csv: by
// what its pipes execute a step). Where steps cannot be unrolled one loop masks what they would.
static int64_t mask_steps_of(const ftl_spec *spec, const form *f) {
  const int64_t *v = spec->value;
  if (f->mask_steps == FTL_MASK_STEPS_ALL && !ftl_spec_masks_end_alone(spec)) return FTL_MASK_STEPS_EDGES;
  if (f->mask_steps != FTL_MASK_STEPS_UNROLLED) return f->mask_steps;
  bool is_interleaved = is_scheduled(spec, FTL_SCHEDULE_INTERLEAVED);
  bool has_diagonal =
      v[FTL_PARAM_mask] == FTL_MASK_NONE && v[FTL_PARAM_block_m] <= FTL_MOST_UNROLLED_STEPS * v[FTL_PARAM_block_n];
  return is_interleaved && has_diagonal ? FTL_MASK_STEPS_UNROLLED : FTL_MASK_STEPS_WINDOW;
}

void ftl_spec_open_code(ftl_spec *spec) {
  static const ftl_param of_source[] = {FTL_PARAM_code,      FTL_PARAM_scaling, FTL_PARAM_row_sums,
                                        FTL_PARAM_guard,     FTL_PARAM_exp2,    FTL_PARAM_mask_steps,
                                        FTL_PARAM_q_operand, FTL_PARAM_refill,  FTL_PARAM_head_order,
                                        FTL_PARAM_p_operand, FTL_PARAM_dq_adds, FTL_PARAM_kv_group};
  for (size_t i = 0; i < sizeof of_source / sizeof *of_source; i++) {
    if (!ftl_spec_takes(spec, of_source[i])) continue;
    spec->value[of_source[i]] = 0;
    spec->given &= ~((ftl_param_set)1 << of_source[i]);
  }
}

// FlashAttention-2 takes window_size_left >= seqlen_k for none (mha_fwd, mha_bwd and their varlen forms in
// flash_api.cpp; the longest sequence there), and so runs the kernel without a window: of window - 1 keys to the left
// that is window > seqlen_kv. Queries that lie before the first key are left alone: a window hides keys behind it.
static bool is_window_dropped(const ftl_spec *spec, program p) {
  const int64_t *v = spec->value;
  if (p != PROGRAM_FLASH2_FWD && p != PROGRAM_FLASH2_BWD) return false;
  return v[FTL_PARAM_window] > v[FTL_PARAM_seqlen_kv] && v[FTL_PARAM_seqlen_q] <= v[FTL_PARAM_seqlen_kv];
}

// What only transposed scores have was asked for.
static bool asks_transposed(const ftl_spec *spec) {
  bool by_fragments = ftl_backward_adds_by_fragments(spec);
  return ftl_backward_adds_dq(spec) && (by_fragments || ftl_backward_loops_heads(spec));
}

// One CTA for the keys of all heads of a group leaves most SMs something to do. (Both authors of grouped heads in
// kernels/independent loop, with 128 CTAs and more on 132 SMs; nobody's kernel is known that has fewer.)
static bool loop_fills_chip(const ftl_spec *spec, const ftl_arch *arch) {
  const int64_t *v = spec->value;
  int64_t tiles = ftl_divide_up(v[FTL_PARAM_seqlen_kv], v[FTL_PARAM_block_n]);
  return 2 * v[FTL_PARAM_batch] * v[FTL_PARAM_kv_heads] * tiles >= arch->chip_num_sms;
}

// Where dQ is added up: what the products take, how sums are added to, and who walks grouped heads.
static void resolve_dq_form(ftl_spec *spec, program p, const ftl_arch *arch) {
  enum { PAIRS_SINCE_COMPUTE_CAPABILITY = 90 };  // red.global.add.v2.f32
  bool is_by_hand = p == PROGRAM_BY_HAND && ftl_backward_adds_dq(spec) && ftl_backward_suits_transposed(spec);
  bool by_hand = is_by_hand || asks_transposed(spec);
  resolve(spec, FTL_PARAM_p_operand, by_hand ? FTL_P_OPERAND_REGISTERS : FTL_P_OPERAND_SHARED);
  bool is_transposed = ftl_backward_adds_dq(spec) && spec->value[FTL_PARAM_p_operand] == FTL_P_OPERAND_REGISTERS;
  bool has_pairs = arch->chip_compute_capability >= PAIRS_SINCE_COMPUTE_CAPABILITY;
  int64_t by_fragments = has_pairs ? FTL_DQ_ADDS_PAIRS : FTL_DQ_ADDS_WORDS;
  resolve(spec, FTL_PARAM_dq_adds, is_transposed ? by_fragments : FTL_DQ_ADDS_LINES);
  bool loops = is_transposed && spec->value[FTL_PARAM_lengths] == 0 && loop_fills_chip(spec, arch);
  resolve(spec, FTL_PARAM_kv_group, loops ? FTL_KV_GROUP_LOOP : FTL_KV_GROUP_GRID);
}

// Of softmaxes of rows, which have no more of a form: Triton's, which keeps exponentials, or by hand.
static void resolve_rows(ftl_spec *spec) {
  bool is_kept = is_scheduled(spec, FTL_SCHEDULE_EXPONENTIALS);
  resolve(spec, FTL_PARAM_scaling, is_kept ? FTL_SCALING_APART : FTL_SCALING_EXPONENT);
}

void ftl_spec_resolve_code(ftl_spec *spec, const ftl_arch *arch) {
  if (!ftl_spec_takes(spec, FTL_PARAM_code)) {
    resolve_rows(spec);
    return;
  }
  program p = program_of(spec, arch);
  const form *f = &forms[p];
  spec->is_code_open = spec->value[FTL_PARAM_code] == FTL_CODE_AUTO;
  if (is_window_dropped(spec, p)) spec->value[FTL_PARAM_window] = 0;
  if (masks_all_of_tritons(spec, p)) resolve(spec, FTL_PARAM_mask_steps, FTL_MASK_STEPS_ALL);
  // Loads to registers are stored to shared memory by the step that waits for them: no buffer is refilled earlier.
  bool has_async_copies = spec->value[FTL_PARAM_copy] != FTL_SPEC_COPY_LDG;
  resolve(spec, FTL_PARAM_code, code_of(spec, f));
  resolve(spec, FTL_PARAM_scaling, scaling_of(spec, f));
  resolve(spec, FTL_PARAM_row_sums, row_sums_of(spec, f));
  resolve(spec, FTL_PARAM_guard, f->guard);
  resolve(spec, FTL_PARAM_exp2, f->exp2);
  resolve(spec, FTL_PARAM_mask_steps, mask_steps_of(spec, f));
  resolve(spec, FTL_PARAM_q_operand, f->q_operand);
  if (has_async_copies) resolve(spec, FTL_PARAM_refill, refill_of(spec, f));
  resolve_dq_form(spec, p, arch);
  // Packed sequences follow each other head by head, whatever the program (packed_batch.h).
  bool is_packed = ftl_spec_takes(spec, FTL_PARAM_lengths) && spec->value[FTL_PARAM_lengths] != 0;
  resolve(spec, FTL_PARAM_head_order, is_packed ? FTL_SEQUENCES_FIRST : f->head_order);
}
