#include "results/measured_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ftl_measured_gpu_arch(const char *gpu) {
  static const struct {
    const char *start, *arch;  // the first that the name starts with
  } known[] = {
      {"NVIDIA H200", "h200"},
      {"NVIDIA H100 PCIe", "h100_pcie"},
      {"NVIDIA H100", "h100_sxm"},
      {"NVIDIA A100-SXM4-40GB", "a100_40"},
      {"NVIDIA A100-PCIE-40GB", "a100_40"},
      {"NVIDIA A100", "a100_80"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA GeForce RTX 4090", "rtx4090"},
      {"NVIDIA GeForce RTX 3090", "rtx3090"},
      {"NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"},
      {"Tesla T4", "t4"},
      {"Tesla V100", "v100"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strncmp(gpu, known[i].start, strlen(known[i].start)) == 0) return known[i].arch;
  }
  return NULL;
}

static const char *fact_or(const ftl_measurement *row, const char *name, const char *otherwise) {
  const char *text = ftl_measurement_fact(row, name);
  return text != NULL ? text : otherwise;
}

static ftl_status set(ftl_measured_case *c, ftl_param param, const char *text, ftl_error *error) {
  return ftl_spec_set_text(&c->spec, ftl_param_get(param)->name, text, error);
}

// Every column that is named as a parameter and that the workload takes.
static ftl_status set_named_columns(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < FTL_PARAM_COUNT; i++) {
    const char *text = ftl_measurement_fact(row, ftl_param_get((ftl_param)i)->name);
    bool is_taken = (c->spec.workload->accepts >> i & 1) != 0;
    if (text != NULL && is_taken) status = set(c, (ftl_param)i, text, error);
  }
  return status;
}

// Triton, and what PyTorch makes of flex_attention with it. It counts a buffer more than it keeps where it waits with
// mma.sync; K and V have num_stages buffers with wgmma.
static ftl_status set_triton(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  const char *stages_text = fact_or(row, "num_stages", "1");
  long stages = strtol(stages_text, NULL, 10);
  bool is_mma_sync = strcmp(fact_or(row, "mma", "wgmma"), "mma") == 0;
  if (is_mma_sync && stages > 1) stages--;
  char text[16];
  snprintf(text, sizeof text, "%ld", stages);
  ftl_status status = set(c, FTL_PARAM_schedule, "stages", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_num_stages, text, error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_copy, "cp_async", error);
  return status;
}

// The FlashAttention-2 CUDA kernel; its tile is in its name.
static ftl_status set_sdpa_flash(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  const char *kernel = fact_or(row, "kernel", fact_or(row, "kernel_names", ""));
  static const char before_tile[] = "flash_fwd_kernel<Flash_fwd_kernel_traits<";
  const char *traits = strstr(kernel, before_tile);
  const char *tile_text = traits != NULL ? traits + sizeof before_tile - 1 : "";
  int head_dim = 0, block_m = 0, block_n = 0, num_warps = 0;
  if (sscanf(tile_text, "%d, %d, %d, %d", &head_dim, &block_m, &block_n, &num_warps) != 4) {
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash with another kernel");
  }
  const struct {
    ftl_param param;
    int value;
  } tile[] = {{FTL_PARAM_block_m, block_m}, {FTL_PARAM_block_n, block_n}, {FTL_PARAM_num_warps, num_warps}};
  ftl_status status = FTL_OK;
  for (int i = 0; status == FTL_OK && i < 3; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", tile[i].value);
    status = set(c, tile[i].param, text, error);
  }
  if (status == FTL_OK) status = set(c, FTL_PARAM_schedule, "interleaved", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_mma, "mma", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_copy, "cp_async", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_layout, "bhsd", error);
  return status;
}

// FlashAttention-2's backward kernels on GPUs with 144 KB of shared memory a CTA and more (csrc/flash_attn/src/
// flash_bwd_launch_template.h; 176 KB for head_dim 256): Q has two buffers, 8 warps. Nsight Compute's names are cut
// before the tile's columns, so that the rows say less than this table.
typedef struct bwd_tile {
  int head_dim, block_m, block_n;
} bwd_tile;

static bool try_find_bwd_tile(int head_dim, bwd_tile *out) {
  static const bwd_tile tiles[] = {{32, 128, 128}, {64, 128, 128}, {96, 64, 128},
                                   {128, 64, 128}, {192, 64, 64},  {256, 64, 64}};
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    *out = tiles[i];
    if (head_dim == tiles[i].head_dim) return true;
  }
  return false;
}

// Copies of gradients that the framework makes first, and sums over grouped heads, are no part of flash2_bwd; the time
// of a stream has them in it.
static ftl_status set_sdpa_flash_bwd(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  static const char before_tile[] = "Flash_bwd_kernel_traits<";
  const char *traits = strstr(fact_or(row, "kernel", ""), before_tile), *heads = fact_or(row, "heads", "1");
  if (traits == NULL || strcmp(heads, fact_or(row, "kv_heads", heads)) != 0) {
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash backward: copies and sums of the framework");
  }
  int head_dim = 0, block_m = 0;
  bwd_tile tile;
  if (sscanf(traits + sizeof before_tile - 1, "%d, %d,", &head_dim, &block_m) != 2 ||
      !try_find_bwd_tile(head_dim, &tile) || block_m != tile.block_m) {
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash backward with another tile");
  }
  const struct {
    ftl_param param;
    int value;
  } known[] = {{FTL_PARAM_block_m, tile.block_m},
               {FTL_PARAM_block_n, tile.block_n},
               {FTL_PARAM_num_warps, 8},
               {FTL_PARAM_num_stages, 2}};
  ftl_status status = set(c, FTL_PARAM_dq, "atomics", error);
  for (size_t i = 0; status == FTL_OK && i < sizeof known / sizeof *known; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", known[i].value);
    status = set(c, known[i].param, text, error);
  }
  if (status == FTL_OK) status = set(c, FTL_PARAM_mma, "mma", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_copy, "cp_async", error);
  return status == FTL_OK ? set(c, FTL_PARAM_layout, "bhsd", error) : status;
}

// cuBLAS's kernels for Hopper carry their tile in their name: nvjet_sm90_hsh_256x128_64x4_... is 256 columns and 128
// rows of a row-major C (cuBLAS itself computes the transposed product), a K step of 64, 4 stages. A row has
// seqlen_q x head_dim by head_dim x seqlen_kv. ..._1x2_ is a cluster of one tile along those columns and two along the
// rows. Not in the name, and left at the defaults: the order of tiles. Split K: neither the number of parts nor the
// second kernel.
static ftl_status set_cublas(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  const char *kernel = fact_or(row, "kernel", fact_or(row, "kernel_names", ""));
  int block_m = 0, block_n = 0, block_k = 0, num_stages = 0, cluster_m = 0, cluster_n = 0;
  if (sscanf(kernel, "nvjet_sm90_hsh_%dx%d_%dx%d_%dx%d_", &block_n, &block_m, &block_k, &num_stages, &cluster_n,
             &cluster_m) != 6 ||
      strstr(kernel, "splitK") != NULL) {
    return ftl_error_set(error, FTL_INFEASIBLE, "cublas with another kernel, or split K");
  }
  const struct {
    ftl_param param;
    int value;
  } tile[] = {{FTL_PARAM_block_m, block_m},       {FTL_PARAM_block_n, block_n}, {FTL_PARAM_block_k, block_k},
              {FTL_PARAM_num_stages, num_stages}, {FTL_PARAM_num_warps, 8},     {FTL_PARAM_persistent, 1}};
  const struct {
    ftl_param param;
    const char *column;
  } sizes[] = {{FTL_PARAM_m, "seqlen_q"}, {FTL_PARAM_n, "seqlen_kv"}, {FTL_PARAM_k, "head_dim"}};
  ftl_status status = FTL_OK;
  for (size_t i = 0; status == FTL_OK && i < sizeof tile / sizeof *tile; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", tile[i].value);
    status = set(c, tile[i].param, text, error);
  }
  for (size_t i = 0; status == FTL_OK && i < sizeof sizes / sizeof *sizes; i++)
    status = set(c, sizes[i].param, fact_or(row, sizes[i].column, "1"), error);
  char cluster[32];
  snprintf(cluster, sizeof cluster, "%dx%d", cluster_m, cluster_n);
  if (status == FTL_OK) status = set(c, FTL_PARAM_cluster, cluster, error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_mma, "wgmma", error);
  if (status == FTL_OK) status = set(c, FTL_PARAM_copy, "tma", error);
  return status;
}

// cuDNN's forward kernel for Hopper names rows and keys of a warpgroup's tile and head_dim, as 64x128x128. The rest was
// read from its launches: 384 threads of which 9 warps stay (a producer and two consumer warpgroups), as many CTAs as
// SMs or tiles of 128 rows (persistent), no store by STG (TMA), 168 registers, and in 228 KB (head_dim 128) or 132 KB
// (64) of shared memory three stages beside Q. Not known: whether the consumers take turns, what overlaps inside one,
// the order in which a CTA walks the tiles. With a mask that order decides time and HBM traffic, so causal rows would
// be a test of nothing and are left out. It was asked for no LSE, which flash3_fwd writes.
static ftl_status set_sdpa_cudnn(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  const char *kernel = fact_or(row, "kernel", fact_or(row, "kernel_names", ""));
  static const char before_tile[] = "sm90_flash_fprop_wgmma_f16_knob_";
  const char *tile = strstr(kernel, before_tile);
  int knob = 0, group_rows = 0, block_n = 0, head_dim = 0;
  if (tile == NULL || sscanf(tile + sizeof before_tile - 1, "%d_%dx%dx%d_4x1x1_cga1x1x1", &knob, &group_rows, &block_n,
                             &head_dim) != 4) {
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_cudnn with another kernel");
  }
  if (c->spec.value[FTL_PARAM_causal] != 0) {
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_cudnn causal: its order of tiles is not known");
  }
  const struct {
    ftl_param param;
    int value;
  } known[] = {{FTL_PARAM_block_m, 2 * group_rows},
               {FTL_PARAM_block_n, block_n},
               {FTL_PARAM_num_warps, 8},
               {FTL_PARAM_num_stages, head_dim > 128 ? 1 : 3},
               {FTL_PARAM_persistent, 1}};
  ftl_status status = FTL_OK;
  for (size_t i = 0; status == FTL_OK && i < sizeof known / sizeof *known; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", known[i].value);
    status = set(c, known[i].param, text, error);
  }
  return status == FTL_OK ? set(c, FTL_PARAM_layout, "bhsd", error) : status;
}

static const struct {
  const char *source, *pass, *workload;
  ftl_status (*set)(ftl_measured_case *, const ftl_measurement *, ftl_error *);
} foreign_kernels[] = {
    {"triton", "fwd", "flash2_fwd", set_triton},         {"flex", "fwd", "flash2_fwd", set_triton},
    {"sdpa_flash", "fwd", "flash2_fwd", set_sdpa_flash}, {"sdpa_flash", "bwd", "flash2_bwd", set_sdpa_flash_bwd},
    {"sdpa_cudnn", "fwd", "flash3_fwd", set_sdpa_cudnn}, {"cublas", "fwd", "matmul_tiled", set_cublas},
};

static ftl_status begin(ftl_measured_case *c, const char *workload, ftl_error *error) {
  if (ftl_workload_find(workload) == NULL) {
    return ftl_error_set(error, FTL_INFEASIBLE, "workload %.64s", workload);
  }
  return ftl_spec_init(&c->spec, workload, error);
}

static ftl_status set_foreign(ftl_measured_case *c, const ftl_measurement *row, const char *source, ftl_error *error) {
  const char *pass = fact_or(row, "pass", "fwd");
  snprintf(c->source, sizeof c->source, "%s", source);
  for (size_t i = 0; i < sizeof foreign_kernels / sizeof *foreign_kernels; i++) {
    if (strcmp(source, foreign_kernels[i].source) != 0 || strcmp(pass, foreign_kernels[i].pass) != 0) continue;
    ftl_status status = begin(c, foreign_kernels[i].workload, error);
    if (status == FTL_OK) status = set_named_columns(c, row, error);
    return status == FTL_OK ? foreign_kernels[i].set(c, row, error) : status;
  }
  return ftl_error_set(error, FTL_INFEASIBLE, "%.64s%s", source, strcmp(pass, "bwd") == 0 ? " backward" : "");
}

// kernels/attention is plain code and reads Q from shared memory in every step; the column `schedule` of unfused
// attention names its softmax.
static ftl_status set_own(ftl_measured_case *c, const ftl_measurement *row, ftl_error *error) {
  const char *workload = ftl_measurement_fact(row, "workload");
  if (workload == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "a row that names no workload");
  snprintf(c->source, sizeof c->source, "own");
  ftl_status status = begin(c, workload, error);
  if (status == FTL_OK) status = set_named_columns(c, row, error);
  if (status != FTL_OK) return status;
  ftl_param_set accepts = c->spec.workload->accepts;
  if (accepts >> FTL_PARAM_q_operand & 1) status = set(c, FTL_PARAM_q_operand, "shared", error);
  if (status == FTL_OK && (accepts >> FTL_PARAM_code & 1) != 0) status = set(c, FTL_PARAM_code, "plain", error);
  if (status != FTL_OK || (accepts >> FTL_PARAM_softmax & 1) == 0) return status;
  return set(c, FTL_PARAM_softmax, fact_or(row, "schedule", "safe"), error);
}

// kernels/measurements/HELDOUT.md.
static ftl_part part_of(const ftl_measured_case *c, const ftl_measurement *row) {
  const int64_t *value = c->spec.value;
  if (strcmp(c->source, "own") != 0) return FTL_PART_HELD_OUT;
  if (strcmp(fact_or(row, "part", "calibration"), "calibration") != 0) return FTL_PART_RESERVED;
  bool is_long_causal = value[FTL_PARAM_seqlen_kv] >= 16384 && value[FTL_PARAM_causal] != 0;
  return value[FTL_PARAM_head_dim] == 256 || is_long_causal ? FTL_PART_RESERVED : FTL_PART_CALIBRATION;
}

const char *ftl_part_name(ftl_part part) {
  static const char *const names[] = {"calibration", "reserved", "held-out"};
  return names[part];
}

ftl_status ftl_measured_case_make(ftl_measured_case *out, const ftl_measurement *row, ftl_error *error) {
  *out = (ftl_measured_case){0};
  const char *gpu = fact_or(row, "gpu", ""), *source = ftl_measurement_fact(row, "source");
  const char *arch = ftl_measured_gpu_arch(gpu);
  if (arch == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "GPU %.64s", gpu[0] != '\0' ? gpu : "not named");
  snprintf(out->arch, sizeof out->arch, "%s", arch);
  ftl_status status = source != NULL ? set_foreign(out, row, source, error) : set_own(out, row, error);
  if (status == FTL_OK) {
    status = ftl_spec_set_text(&out->spec, "conditions", fact_or(row, "condition", "ncu"), error);
  }
  if (status == FTL_OK) status = ftl_spec_complete(&out->spec, error);
  if (status == FTL_OK) out->part = part_of(out, row);
  return status;
}
