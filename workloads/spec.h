// One configuration: a workload's name and all its parameters. Its canonical text is the key of a result.
#ifndef FTL_WORKLOADS_SPEC_H
#define FTL_WORKLOADS_SPEC_H

#include <stdint.h>

#include "arch/arch.h"
#include "base/status.h"
#include "base/text.h"
#include "tile/tile.h"

enum {
  FTL_PARAM_REQUIRED = INT32_MIN,              // no default: an error when absent
  FTL_PARAM_SAME_AS_HEADS = INT32_MIN + 1,     // default: the value of `heads`
  FTL_PARAM_SAME_AS_HEAD_DIM = INT32_MIN + 2,  // default: the value of `head_dim`
};

typedef enum ftl_param {
#define FTL_PARAM_INT(name, unit, min, max, default_value, doc) FTL_PARAM_##name,
#define FTL_PARAM_ENUM(name, allowed, default_index, doc) FTL_PARAM_##name,
#define FTL_PARAM_REAL(name, unit, min, max, default_value, doc) FTL_PARAM_##name,
#define FTL_PARAM_LIST(name, unit, min, max, doc) FTL_PARAM_##name,
#include "workloads/params.def"
#undef FTL_PARAM_INT
#undef FTL_PARAM_ENUM
#undef FTL_PARAM_REAL
#undef FTL_PARAM_LIST
  FTL_PARAM_COUNT
} ftl_param;

// A set of parameters, a bit each.
__extension__ typedef unsigned __int128 ftl_param_set;

// A real parameter is held as a whole number of these, so that equal texts are equal values.
enum { FTL_PARAM_UNITS_PER_ONE = 1000000000 };

// Numbers in a list, and characters that all lists of a specification take together.
enum { FTL_PARAM_MOST_LISTED = 65536, FTL_SPEC_LIST_BYTES = 2048 };

// Values of the enumerated parameters, in the order of their lists.
enum {
  FTL_SCHEDULE_STAGES,
  FTL_SCHEDULE_INTERLEAVED,
  FTL_SCHEDULE_PINGPONG,
  FTL_SCHEDULE_REREAD,
  FTL_SCHEDULE_REGISTERS,
  FTL_SCHEDULE_EXPONENTIALS,
  FTL_SCHEDULE_BACK_TO_BACK,
};
enum {
  FTL_SCALING_AUTO,
  FTL_SCALING_EXPONENT,
  FTL_SCALING_SCORES,
  FTL_SCALING_TWICE,
  FTL_SCALING_APART,
  FTL_SCALING_BY_TILE
};
enum { FTL_TURNS_PRODUCTS, FTL_TURNS_SOFTMAX };
enum { FTL_ROW_SUMS_AUTO, FTL_ROW_SUMS_END, FTL_ROW_SUMS_STEP, FTL_ROW_SUMS_BEHIND };
enum { FTL_GUARD_AUTO, FTL_GUARD_MASKED, FTL_GUARD_ALWAYS };
enum { FTL_EXP2_AUTO, FTL_EXP2_FTZ, FTL_EXP2_IEEE };
enum { FTL_SOFTMAX_SAFE, FTL_SOFTMAX_ONLINE };
enum {
  FTL_ELEMENTWISE_EPILOGUE,
  FTL_ELEMENTWISE_FUSED,
  FTL_ELEMENTWISE_SEPARATE,
  FTL_ELEMENTWISE_EAGER_BADDBMM,
  FTL_ELEMENTWISE_EAGER_EINSUM,
  FTL_ELEMENTWISE_EAGER_MATMUL
};
enum { FTL_ACTIVATION_SILU, FTL_ACTIVATION_GELU, FTL_ACTIVATION_RELU, FTL_ACTIVATION_SIGMOID };
enum { FTL_SPEC_STORE_DIRECT, FTL_SPEC_STORE_STAGED };
enum { FTL_SPEC_COPY_AUTO, FTL_SPEC_COPY_LDG, FTL_SPEC_COPY_CP_ASYNC, FTL_SPEC_COPY_TMA };
enum { FTL_SPEC_MMA_AUTO, FTL_SPEC_MMA_MMA, FTL_SPEC_MMA_WGMMA };
enum { FTL_ORDER_M_FIRST, FTL_ORDER_HEAD_FIRST, FTL_ORDER_N_FIRST };
enum { FTL_HEAD_ORDER_AUTO, FTL_HEADS_FIRST, FTL_SEQUENCES_FIRST };
enum { FTL_PASS_FWD, FTL_PASS_BWD };
enum { FTL_CONDITIONS_NCU, FTL_CONDITIONS_STREAM };
enum { FTL_CACHE_AUTO, FTL_CACHE_COLD, FTL_CACHE_WARM, FTL_CACHE_CHAIN };
enum { FTL_DETAIL_SAMPLED, FTL_DETAIL_FULL };
enum { FTL_DQ_KERNEL, FTL_DQ_ATOMICS };
enum { FTL_P_OPERAND_AUTO, FTL_P_OPERAND_SHARED, FTL_P_OPERAND_REGISTERS };
enum { FTL_DQ_ADDS_AUTO, FTL_DQ_ADDS_LINES, FTL_DQ_ADDS_PAIRS, FTL_DQ_ADDS_WORDS };
enum { FTL_KV_GROUP_AUTO, FTL_KV_GROUP_GRID, FTL_KV_GROUP_LOOP };
enum { FTL_PAGES_CONTIGUOUS, FTL_PAGES_SCATTERED, FTL_PAGES_SHARED_PREFIX };
enum { FTL_Q_OPERAND_AUTO, FTL_Q_OPERAND_SHARED, FTL_Q_OPERAND_REGISTERS };
enum { FTL_KV_OPERAND_SHARED, FTL_KV_OPERAND_REGISTERS };
enum {
  FTL_REFILL_AUTO,
  FTL_REFILL_EARLY,
  FTL_REFILL_LATE,
  FTL_REFILL_BEHIND,
  FTL_REFILL_WHEN_FREE,
  FTL_REFILL_AMID,
  FTL_REFILL_JOINT
};
enum { FTL_CODE_AUTO, FTL_CODE_LEAN, FTL_CODE_PLAIN, FTL_CODE_BUFFERED, FTL_CODE_STEPPED };
enum { FTL_LAYOUT_BHSD, FTL_LAYOUT_BSHD };
enum {
  FTL_MASK_STEPS_AUTO,
  FTL_MASK_STEPS_EDGES,
  FTL_MASK_STEPS_WINDOW,
  FTL_MASK_STEPS_BLOCKS,
  FTL_MASK_STEPS_ALL,
  FTL_MASK_STEPS_UNROLLED
};
enum { FTL_MASK_NONE, FTL_MASK_STRIDED, FTL_MASK_LOCAL_GLOBAL, FTL_MASK_BUTTERFLY, FTL_MASK_BITS };
enum {
  FTL_SPEC_FP16,
  FTL_SPEC_BF16,
  FTL_SPEC_TF32,
  FTL_SPEC_FP8_E4M3,
  FTL_SPEC_FP8_E5M2,
  FTL_SPEC_INT8,
  FTL_SPEC_INT4
};
enum { FTL_SPEC_ACC_FP32, FTL_SPEC_ACC_FP16, FTL_SPEC_ACC_INT32 };
enum { FTL_KV_FP16, FTL_KV_BF16, FTL_KV_FP8, FTL_KV_INT8, FTL_KV_INT4 };
enum { FTL_TILE_SCHEDULER_STATIC, FTL_TILE_SCHEDULER_DYNAMIC, FTL_TILE_SCHEDULER_DYNAMIC_LATE };
enum { FTL_L2_OF_NONE, FTL_L2_OF_QO, FTL_L2_OF_KV };

typedef struct ftl_param_info {
  const char *name, *unit, *doc;
  const char *allowed;              // "fp16|bf16", or NULL for numbers
  bool is_real;                     // min, max and default count 10^-9
  bool is_list;                     // of numbers from min to max; by default empty
  int64_t min, max, default_value;  // of an enumeration only default_value, an index
} ftl_param_info;

const ftl_param_info *ftl_param_get(ftl_param param);
// Whether an enumerated parameter has the value that `text` names.
bool ftl_param_takes(ftl_param param, const char *text);
bool ftl_param_is_text(ftl_param param);          // an enumeration or a list: in databases and JSON a string
bool ftl_param_is_of_shape(ftl_param param);      // no number by default: required, or the value of another parameter
int ftl_param_find(const char *name);             // -1: none
const char *ftl_param_nearest(const char *name);  // "seqlen" is among the candidates

typedef struct ftl_workload ftl_workload;
// Of those that the workload takes; NULL: with none do half of its letters agree.
const char *ftl_workload_param_nearest(const ftl_workload *workload, const char *name);

typedef struct ftl_spec {
  const ftl_workload *workload;
  int64_t value[FTL_PARAM_COUNT];   // valid where set or after ftl_spec_complete; of a list 0 if empty, else its hash
  ftl_param_set given;              // that the user set
  bool is_code_open;                // set by ftl_spec_resolve_code: `code` was auto
  char lists[FTL_SPEC_LIST_BYTES];  // spec_list.c
  int64_t shared_bytes_per_cta;     // that the GPU allows, once copy and mma are resolved for one; 0: no limit is known
} ftl_spec;

// FTL_BAD_INPUT: unknown workload; the line lists the known ones.
FTL_MUST_USE ftl_status ftl_spec_init(ftl_spec *spec, const char *workload_name, ftl_error *error);
// Sets one parameter from text ("128", "true", "fp16"); `seqlen` sets both lengths. A later value replaces an earlier
// one. FTL_BAD_INPUT names the parameter, the value and what is allowed.
FTL_MUST_USE ftl_status ftl_spec_set_text(ftl_spec *spec, const char *name, const char *text, ftl_error *error);
FTL_MUST_USE ftl_status ftl_spec_set_int(ftl_spec *spec, const char *name, int64_t value, ftl_error *error);
// Fills defaults (with `lengths` batch is their number and seqlen_kv the longest; num_stages: 1 under
// schedule=interleaved, which has one buffer each) and checks rules between parameters that hold on every GPU.
// FTL_BAD_INPUT names the parameter.
FTL_MUST_USE ftl_status ftl_spec_complete(ftl_spec *spec, ftl_error *error);

// Columns of V and O: head_dim of workloads that do not take head_dim_v.
static inline int64_t ftl_spec_head_dim_v(const ftl_spec *spec) {
  int64_t columns = spec->value[FTL_PARAM_head_dim_v];
  return columns > 0 ? columns : spec->value[FTL_PARAM_head_dim];
}
// The wider of the two heads.
static inline int64_t ftl_spec_widest_head(const ftl_spec *spec) {
  int64_t of_keys = spec->value[FTL_PARAM_head_dim], of_values = ftl_spec_head_dim_v(spec);
  return of_keys > of_values ? of_keys : of_values;
}

// What a value of `cluster` says: "2x1" is 2 along m.
typedef struct ftl_cluster_shape {
  int32_t m, n;
} ftl_cluster_shape;
ftl_cluster_shape ftl_cluster_of_value(int64_t value);
static inline ftl_cluster_shape ftl_spec_cluster(const ftl_spec *spec) {
  return ftl_cluster_of_value(spec->value[FTL_PARAM_cluster]);
}
static inline ftl_tile_handout ftl_spec_handout(const ftl_spec *spec) {
  static const ftl_tile_handout of[] = {FTL_TILES_BY_STRIDE, FTL_TILES_ASKED_AHEAD, FTL_TILES_ASKED_LATE};
  return of[spec->value[FTL_PARAM_tile_scheduler]];
}

// For set_defaults: the value of a parameter that the user left open.
void ftl_spec_set_default(ftl_spec *spec, ftl_param param, int64_t value);

// The number that a real parameter holds.
double ftl_spec_real(const ftl_spec *spec, ftl_param param);

// The numbers of a list, as many as the buffer holds; gives how many there are.
int64_t ftl_spec_list(const ftl_spec *spec, ftl_param param, int32_t *out, int64_t capacity);

// The element type that `dtype` or `acc_dtype` of a completed spec names; int4 is pairs of them in a byte.
ftl_dtype ftl_spec_dtype(const ftl_spec *spec);
ftl_dtype ftl_spec_acc_dtype(const ftl_spec *spec);

// "128", "0.1", "true", "fp16" or "512:77x3" of a completed spec, as a user would write it. Lists: the spec's own;
// others into a caller's buffer of at least 32 bytes.
const char *ftl_spec_text(const ftl_spec *spec, ftl_param param, char *buffer);
// "flash2_fwd batch=1 heads=32 …": every parameter that the workload takes, in list order. Of a user's kernel its own
// parameters first, and the hash of its program.
void ftl_spec_canonical(const ftl_spec *spec, ftl_text *out);

// ---- workloads ----
enum { FTL_MAX_LAUNCHES = 24 };

// Bits of ftl_workload.accepts.
#define FTL_TAKES(param) ((ftl_param_set)1 << FTL_PARAM_##param)
#define FTL_TAKES_STRIDES \
  (FTL_TAKES(lda) | FTL_TAKES(ldb) | FTL_TAKES(ldc) | FTL_TAKES(stride_a) | FTL_TAKES(stride_b) | FTL_TAKES(stride_c))
#define FTL_TAKES_MATRICES                                                                                      \
  (FTL_TAKES(m) | FTL_TAKES(n) | FTL_TAKES(k) | FTL_TAKES(transpose_a) | FTL_TAKES(transpose_b) |               \
   FTL_TAKES(transpose_c) | FTL_TAKES_STRIDES | FTL_TAKES(block_k) | FTL_TAKES(fused) | FTL_TAKES(activation) | \
   FTL_TAKES(acc_dtype) | FTL_TAKES(tile_strip) | FTL_TAKES(groups_n) | FTL_TAKES(store))
// What a source says of registers: a cap, or CTAs that shall fit.
#define FTL_TAKES_LAUNCH_BOUNDS (FTL_TAKES(max_registers) | FTL_TAKES(min_ctas))
#define FTL_TAKES_PAGES (FTL_TAKES(page_size) | FTL_TAKES(page_layout) | FTL_TAKES(prefix))
#define FTL_TAKES_TREE (FTL_TAKES(tree) | FTL_TAKES(parents))
#define FTL_TAKES_MASK (FTL_TAKES(mask) | FTL_TAKES(mask_block) | FTL_TAKES(mask_width) | FTL_TAKES(mask_bits))
#define FTL_TAKES_KV_CACHE (FTL_TAKES(kv_dtype) | FTL_TAKES(kv_group_size))
#define FTL_TAKES_SPARQ (FTL_TAKES(sparq_r) | FTL_TAKES(sparq_k) | FTL_TAKES(sparq_local))
#define FTL_TAKES_L2_PRIORITIES (FTL_TAKES(l2_persist) | FTL_TAKES(l2_evict_first))
// Of unfused kernels alone.
#define FTL_TAKES_UNFUSED FTL_TAKES(elementwise)
// How CTAs stand together, and come to their tiles.
#define FTL_TAKES_CLUSTERS (FTL_TAKES(cluster) | FTL_TAKES(tile_scheduler))
// How a kernel's source writes its softmax.
#define FTL_TAKES_SOFTMAX_FORM (FTL_TAKES(scaling) | FTL_TAKES(row_sums) | FTL_TAKES(guard) | FTL_TAKES(exp2))
#define FTL_TAKES_DQ_FORM (FTL_TAKES(dq) | FTL_TAKES(p_operand) | FTL_TAKES(dq_adds) | FTL_TAKES(kv_group))
#define FTL_TAKES_BACKWARD (FTL_TAKES(pass) | FTL_TAKES_DQ_FORM)
// Attention's forward pass: all but those of matrix products and of backward passes, L2's priorities, lengths, pages,
// trees, SparQ, quantised caches, block masks, dropout, clusters, FlashAttention-3's overlap, forms of the softmax,
// steps that mask, times of refills, columns of padding, warps side by side, the order of heads and where K and V are.
#define FTL_TAKES_ALL                                                                                           \
  ((((ftl_param_set)1 << FTL_PARAM_COUNT) - 1) & ~FTL_TAKES_UNFUSED &                                           \
   ~(FTL_TAKES_MATRICES | FTL_TAKES_BACKWARD | FTL_TAKES_L2_PRIORITIES | FTL_TAKES(lengths) | FTL_TAKES_PAGES | \
     FTL_TAKES_TREE | FTL_TAKES_SPARQ | FTL_TAKES_KV_CACHE | FTL_TAKES_MASK | FTL_TAKES(padding_mask) |         \
     FTL_TAKES(dropout_p) | FTL_TAKES_CLUSTERS | FTL_TAKES(overlap) | FTL_TAKES(turns) | FTL_TAKES(q_stages) |  \
     FTL_TAKES(producer) | FTL_TAKES_SOFTMAX_FORM | FTL_TAKES(mask_steps) | FTL_TAKES(refill) |                 \
     FTL_TAKES(head_dim_multiple) | FTL_TAKES(warps_n) | FTL_TAKES(head_order) | FTL_TAKES(kv_operand)))

struct ftl_workload {
  const char *name, *doc;
  ftl_param_set accepts;      // parameters that it reads
  bool decodes;               // one query a head (seqlen_q) unless given
  bool keeps_spilling_tiles;  // narrower tiles cost more than spills: all results pass through memory once for each
  bool packs_queries;         // `lengths` are those of the queries too, else of the keys alone
  uint32_t schedules;         // bit per value of `schedule` that it knows, if it takes that parameter
  uint32_t dtypes;            // likewise of `dtype`; 0: fp16 and bf16
  // May be NULL: replaces general defaults of parameters that the user left open by the workload's own.
  void (*set_defaults)(ftl_spec *spec);
  // May be NULL: values that depend on the GPU, as `auto` of copy and mma does.
  void (*resolve)(ftl_spec *spec, const ftl_arch *arch);
  // May be NULL: whether a configuration has no form with mma.sync, which mma=auto may otherwise become.
  bool (*needs_wgmma)(const ftl_spec *spec);
  // Builds the tile program of each launch for a completed and resolved spec (copy and mma never `auto`).
  // FTL_INFEASIBLE with the reason where the configuration cannot exist (warps against rows, ...).
  ftl_status (*build)(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error);
  const struct ftl_user_kernel *user_kernel;  // NULL: a workload of the list (user_kernel.h)
};

// What a user may write for a parameter of this workload: "1 to 65536", "true|false", "stages|interleaved"; and what it
// is when left open: "128", "required", "as heads", "as head_dim", "by shape". Into a caller's buffer.
enum { FTL_PARAM_TEXT_BYTES = 128 };
const char *ftl_workload_allowed(const ftl_workload *workload, ftl_param param, char buffer[FTL_PARAM_TEXT_BYTES]);
const char *ftl_workload_default(const ftl_workload *workload, ftl_param param, char buffer[FTL_PARAM_TEXT_BYTES]);

// Whether the workload reads the parameter.
static inline bool ftl_workload_takes(const ftl_workload *workload, ftl_param param) {
  return (workload->accepts >> param & 1) != 0;
}
// By its name or, of a matrix product, that of QK^T's: seqlen_q is m there, seqlen_kv n, head_dim k.
bool ftl_spec_takes_name(const ftl_spec *spec, const char *name);
static inline bool ftl_spec_takes(const ftl_spec *spec, ftl_param param) {
  return ftl_workload_takes(spec->workload, param);
}

const ftl_workload *ftl_workload_find(const char *name);  // NULL: none
int ftl_workload_count(void);
const ftl_workload *ftl_workload_get(int workload_idx);

#endif
