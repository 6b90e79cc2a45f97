#include "results/foreign_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/integer.h"
#include "results/measured_columns.h"
#include "workloads/code_form.h"

#define SET_NUMBERS(spec, numbers, error) \
  ftl_columns_set_numbers(spec, numbers, (int)(sizeof(numbers) / sizeof *(numbers)), error)

// The kernel that a profiled row is of, or those that a timed one ran.
static const char *kernel_of(const ftl_measurement *row) {
  return ftl_column_or(row, "kernel", ftl_column_or(row, "kernel_names", ""));
}

static ftl_status set_instructions(ftl_spec *spec, const char *mma, const char *copy, ftl_error *error) {
  ftl_status status = ftl_columns_set(spec, FTL_PARAM_mma, mma, error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_copy, copy, error) : status;
}

// A row of a product has seqlen_q x head_dim by head_dim x seqlen_kv.
static ftl_status set_product_sizes(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const struct {
    ftl_param param;
    const char *column;
  } sizes[] = {{FTL_PARAM_m, "seqlen_q"}, {FTL_PARAM_n, "seqlen_kv"}, {FTL_PARAM_k, "head_dim"}};
  ftl_status status = FTL_OK;
  for (size_t i = 0; status == FTL_OK && i < sizeof sizes / sizeof *sizes; i++)
    status = ftl_columns_set(spec, sizes[i].param, ftl_column_or(row, sizes[i].column, "1"), error);
  return status;
}

// ---- Triton ----

// Nothing in its kernels' names says their tile: without one here the number would still be open, 0.
static ftl_status need_triton_tile(const ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  static const ftl_param tile[] = {FTL_PARAM_block_m, FTL_PARAM_block_n, FTL_PARAM_num_warps};
  for (size_t i = 0; i < sizeof tile / sizeof *tile; i++) {
    if (spec->value[tile[i]] < 1)
      return ftl_error_set(error, FTL_INFEASIBLE, "%.16s without %s", ftl_column_or(row, "source", ""),
                           ftl_param_get(tile[i])->name);
  }
  return FTL_OK;
}

static bool is_mma_sync(const ftl_measurement *row) { return strcmp(ftl_column_or(row, "mma", "wgmma"), "mma") == 0; }

// It counts a buffer more than it keeps where it waits with mma.sync; K and V have num_stages buffers with wgmma.
static ftl_status set_triton_buffers(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  long stages = strtol(ftl_column_or(row, "num_stages", "1"), NULL, 10);
  const ftl_param_number buffers[] = {{FTL_PARAM_num_stages, is_mma_sync(row) && stages > 1 ? stages - 1 : stages}};
  ftl_status status = SET_NUMBERS(spec, buffers, error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_copy, "cp_async", error) : status;
}

enum { ROWS_OF_A_WARP = 16, COLUMNS_OF_A_WARP = 16 };  // at least: of mma.sync and of wgmma; of P

// Of two products with mma.sync one behind the other warps lie side by side along the columns of both where the second
// one's tile has more columns than rows (warpsPerTileV2 of AccelerateMatmul.cpp).
static int64_t warps_n_of_mma_sync(const int64_t *v) {
  return v[FTL_PARAM_block_m] < v[FTL_PARAM_head_dim] ? v[FTL_PARAM_num_warps] : 1;
}

// With wgmma warpgroups stand one below the other while there are rows. Those beyond repeat the first product, another
// behind which has all warps along its rows, and share the columns of the second (warpsPerTileV3, the same file; the
// tensor instructions that were counted).
static int64_t warps_n_of_wgmma(const int64_t *v) {
  int64_t rows = ROWS_OF_A_WARP * v[FTL_PARAM_num_warps];
  return v[FTL_PARAM_block_m] < rows ? ftl_divide_up(rows, v[FTL_PARAM_block_m]) : 1;
}

// With mma.sync its pipeliner refills the buffers that a step has read.
static ftl_status set_triton_warps(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const int64_t *v = spec->value;
  const ftl_param_number warps[] = {
      {FTL_PARAM_warps_n, is_mma_sync(row) ? warps_n_of_mma_sync(v) : warps_n_of_wgmma(v)}};
  ftl_status status = is_mma_sync(row) ? ftl_columns_set(spec, FTL_PARAM_refill, "behind", error) : FTL_OK;
  return status == FTL_OK ? SET_NUMBERS(spec, warps, error) : status;
}

static ftl_status set_triton_attention(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const int64_t *v = spec->value;
  ftl_status status = need_triton_tile(spec, row, error);
  if (status != FTL_OK) return status;
  if (is_mma_sync(row) && v[FTL_PARAM_block_n] % (COLUMNS_OF_A_WARP * warps_n_of_mma_sync(v)) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "triton with fewer than 16 keys a warp");
  status = set_triton_warps(spec, row, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_schedule, "stages", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  return status == FTL_OK ? set_triton_buffers(spec, row, error) : status;
}

// The same with tensor descriptors: K and V have num_stages buffers each, and barriers of their own.
static ftl_status set_triton_descriptors(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  ftl_status status = need_triton_tile(spec, row, error);
  if (status != FTL_OK) return status;
  if (is_mma_sync(row)) return ftl_error_set(error, FTL_INFEASIBLE, "triton_descriptors with mma.sync");
  const ftl_param_number buffers[] = {{FTL_PARAM_num_stages, strtol(ftl_column_or(row, "num_stages", "1"), NULL, 10)}};
  status = set_triton_warps(spec, row, error);
  if (status == FTL_OK) status = SET_NUMBERS(spec, buffers, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_schedule, "stages", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_copy, "tma", error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_code, "lean", error) : status;
}

// The backward pass in two kernels of products (kernels/foreign/triton_backward.py). Its pipeliner leaves loops of one
// stage alone: tiles come through registers.
static ftl_status set_triton_backward(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  ftl_status status = need_triton_tile(spec, row, error);
  if (status != FTL_OK) return status;
  if (is_mma_sync(row)) return ftl_error_set(error, FTL_INFEASIBLE, "triton_backward with mma.sync");
  status = ftl_columns_set(spec, FTL_PARAM_dq, "kernel", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  if (status == FTL_OK) status = set_triton_buffers(spec, row, error);
  if (status != FTL_OK || spec->value[FTL_PARAM_num_stages] > 1) return status;
  return ftl_columns_set(spec, FTL_PARAM_copy, "ldg", error);
}

// Triton's pipeliner puts ceil((num_stages - 2) / 2) stages between the entries of a block table and the copies that
// need them (AssignLatencies, one level of indirection): of num_stages, half are left as buffers of K and V.
static ftl_status set_triton_paged(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const int64_t *v = spec->value;
  ftl_status status = need_triton_tile(spec, row, error);
  if (status != FTL_OK) return status;
  int64_t warps_n = warps_n_of_mma_sync(v);
  if (v[FTL_PARAM_block_n] % (COLUMNS_OF_A_WARP * warps_n) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "triton_paged with fewer than 16 keys a warp");
  long stages = strtol(ftl_column_or(row, "num_stages", "1"), NULL, 10);
  const ftl_param_number buffers[] = {{FTL_PARAM_num_stages, stages > 1 ? stages / 2 : 1},
                                      {FTL_PARAM_warps_n, warps_n}};
  status = SET_NUMBERS(spec, buffers, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_copy, "cp_async", error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_code, "lean", error) : status;
}

// Its tiles are launched rows first, in no groups; warpgroups lie side by side along the columns where a warp would
// have fewer than 16 rows (warpsPerTileV3 of AccelerateMatmul.cpp).
static ftl_status set_triton_product(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const int64_t *v = spec->value;
  ftl_status status = need_triton_tile(spec, row, error);
  if (status != FTL_OK) return status;
  if (is_mma_sync(row)) return ftl_error_set(error, FTL_INFEASIBLE, "triton_product with mma.sync");
  status = set_product_sizes(spec, row, error);
  const ftl_param_number known[] = {{FTL_PARAM_warps_n, warps_n_of_wgmma(v)}, {FTL_PARAM_tile_strip, 0}};
  if (status == FTL_OK) status = SET_NUMBERS(spec, known, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  return status == FTL_OK ? set_triton_buffers(spec, row, error) : status;
}

// A program a row, whose exponentials it keeps in registers.
static ftl_status set_triton_softmax(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  (void)row;
  const ftl_param_number rows[] = {{FTL_PARAM_block_m, 1}};
  ftl_status status = SET_NUMBERS(spec, rows, error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_schedule, "exponentials", error) : status;
}

// What PyTorch makes of flex_attention with Triton: scores are multiplied by the scale, then by log2(e). It walks lists
// of blocks, also where its mask leaves all. Packed documents have no lists in flash2_fwd. Its grid is (tiles, batch,
// heads) (flex_attention_grid of torch/_inductor/kernel/flex/flex_attention.py). With wgmma ptxas adds up the
// exponentials beside the product with V (SASS).
static ftl_status set_flex(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  ftl_status status = ftl_columns_set(spec, FTL_PARAM_scaling, "twice", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_head_order, "sequences_first", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_guard, "always", error);
  if (status == FTL_OK && !is_mma_sync(row)) status = ftl_columns_set(spec, FTL_PARAM_row_sums, "behind", error);
  if (status == FTL_OK && *ftl_column_or(row, "lengths", "") == '\0')
    status = ftl_columns_set(spec, FTL_PARAM_mask_steps, "blocks", error);
  return status == FTL_OK ? set_triton_attention(spec, row, error) : status;
}

// ---- FlashAttention-2's CUDA kernels in PyTorch ----

// The tile of the forward kernels is in their names; that of splits is named by its second launch too.
static ftl_status set_flash_tile(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  static const char before_tile[] = "kernel<Flash_fwd_kernel_traits<";
  const char *source = ftl_column_or(row, "source", ""), *traits = strstr(kernel_of(row), before_tile);
  int head_dim = 0, block_m = 0, block_n = 0, num_warps = 0;
  if (traits == NULL ||
      sscanf(traits + sizeof before_tile - 1, "%d, %d, %d, %d", &head_dim, &block_m, &block_n, &num_warps) != 4)
    return ftl_error_set(error, FTL_INFEASIBLE, "%.16s with another kernel", source);
  const ftl_param_number tile[] = {
      {FTL_PARAM_block_m, block_m}, {FTL_PARAM_block_n, block_n}, {FTL_PARAM_num_warps, num_warps}};
  ftl_status status = SET_NUMBERS(spec, tile, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_schedule, "interleaved", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "buffered", error);
  return status == FTL_OK ? set_instructions(spec, "mma", "cp_async", error) : status;
}

static ftl_status set_sdpa_flash(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  ftl_status status = set_flash_tile(spec, row, error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_layout, "bhsd", error) : status;
}

// The operator itself, with windows, dropout and packed sequences. Of one query a head it packs the heads of a group
// into a tile, which flash2_fwd does not.
static ftl_status set_aten_flash(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const int64_t *v = spec->value;
  ftl_status status = set_flash_tile(spec, row, error);
  if (status != FTL_OK) return status;
  const char *heads = ftl_column_or(row, "heads", "1");
  if (v[FTL_PARAM_seqlen_q] == 1 && strcmp(heads, ftl_column_or(row, "kv_heads", heads)) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "aten_flash of one query: heads of a group in a tile");
  return ftl_columns_set(spec, FTL_PARAM_layout, "bshd", error);
}

// Its split kernel. Of one query the heads of a group are rows of a tile (seqlenq_ngroups_swapped); of more it has a
// head's rows in a tile, as flash_decode where layout is bshd.
static ftl_status set_flash_splits(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const char *heads = ftl_column_or(row, "heads", "1");
  bool has_groups = strcmp(heads, ftl_column_or(row, "kv_heads", heads)) != 0;
  ftl_status status = set_flash_tile(spec, row, error);
  if (status != FTL_OK) return status;
  bool is_aten = strcmp(ftl_column_or(row, "source", ""), "aten_flash") == 0;
  if (has_groups && spec->value[FTL_PARAM_seqlen_q] > 1 && !is_aten)
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash with splits: several queries of grouped heads");
  return ftl_columns_set(spec, FTL_PARAM_layout, is_aten ? "bshd" : "bhsd", error);
}

// CUTLASS's fused attention as PyTorch has it: the tile is in the kernel's name. Of wider heads O goes through memory
// (..._gmem_...). Inputs keep their layout; what it writes is [batch][tokens][heads][head_dim].
static ftl_status set_sdpa_efficient(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  int block_m = 0, block_n = 0;
  char accumulator[8] = "";
  const char *name = strstr(kernel_of(row), "fmha_cutlassF_");
  if (name != NULL) name = strstr(name, "aligned_");
  if (name == NULL || sscanf(name, "aligned_%dx%d_%7[a-z]", &block_m, &block_n, accumulator) != 3)
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_efficient with another kernel");
  if (strcmp(accumulator, "rf") != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_efficient with O in memory between keys");
  const ftl_param_number tile[] = {{FTL_PARAM_block_m, block_m}, {FTL_PARAM_block_n, block_n}};
  ftl_status status = SET_NUMBERS(spec, tile, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_schedule, "back_to_back", error);
  return status == FTL_OK ? set_instructions(spec, "mma", "cp_async", error) : status;
}

// Their backward kernels on GPUs with 144 KB of shared memory a CTA and more (csrc/flash_attn/src/
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
static ftl_status set_sdpa_flash_bwd(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  static const char before_tile[] = "Flash_bwd_kernel_traits<";
  const char *traits = strstr(ftl_column_or(row, "kernel", ""), before_tile), *heads = ftl_column_or(row, "heads", "1");
  if (traits == NULL || strcmp(heads, ftl_column_or(row, "kv_heads", heads)) != 0)
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash backward: copies and sums of the framework");
  int head_dim = 0, block_m = 0;
  bwd_tile tile;
  if (sscanf(traits + sizeof before_tile - 1, "%d, %d,", &head_dim, &block_m) != 2 ||
      !try_find_bwd_tile(head_dim, &tile) || block_m != tile.block_m)
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_flash backward with another tile");
  const ftl_param_number known[] = {{FTL_PARAM_block_m, tile.block_m},
                                    {FTL_PARAM_block_n, tile.block_n},
                                    {FTL_PARAM_num_warps, 8},
                                    {FTL_PARAM_num_stages, 2}};
  ftl_status status = ftl_columns_set(spec, FTL_PARAM_dq, "atomics", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  if (status == FTL_OK) status = SET_NUMBERS(spec, known, error);
  if (status == FTL_OK) status = set_instructions(spec, "mma", "cp_async", error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_layout, "bhsd", error) : status;
}

// ---- NVIDIA's libraries ----

// What the name of one of cuBLAS's kernels for Hopper says: nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT has tiles of
// 256 columns and 128 rows of a row-major C, a K step of 64, 4 stages, clusters of one tile along those columns and two
// along the rows; hsh: fp16 with fp32 sums, tst: bf16, qqtst: fp8 to bf16.
typedef struct cublas_name {
  int columns, rows, block_k, num_stages, cluster_columns, cluster_rows;
  char direction;        // h: tiles follow each other along the columns, v: along the rows
  bool columns_are_m;    // ..T: wgmma's M lies along the columns, ..N: along the rows, by the number of wgmmas counted
  bool is_side_by_side;  // coopB: its two warpgroups divide wgmma's N; else its M (counted as well)
} cublas_name;

// Names come from outside: numbers that no kernel has are no name of one.
static bool is_side(int value) { return value >= 1 && value <= 1024; }

static bool is_cluster_side(int value) { return value >= 1 && value <= 16; }

static bool try_read_cublas_name(const char *kernel, cublas_name *out) {
  const char *name = strstr(kernel, "nvjet_sm90_");
  *out = (cublas_name){0};
  // algo2 adds up what the tensor cores have summed in registers of its own, every few steps.
  if (name == NULL || strstr(name, "splitK") != NULL || strstr(name, "_algo2") != NULL ||
      sscanf(name, "nvjet_sm90_%*[a-z]_%dx%d_%dx%d_%dx%d_%c_", &out->columns, &out->rows, &out->block_k,
             &out->num_stages, &out->cluster_columns, &out->cluster_rows, &out->direction) != 7)
    return false;
  if (!is_side(out->columns) || !is_side(out->rows) || !is_side(out->block_k) || !is_side(out->num_stages) ||
      !is_cluster_side(out->cluster_columns) || !is_cluster_side(out->cluster_rows))
    return false;
  size_t size = strcspn(name, "|\"");  // of several kernels the first
  out->columns_are_m = name[size - 1] == 'T';
  out->is_side_by_side = strstr(name, "coopB") != NULL;
  return true;
}

// The order of its tiles (measurements/tile_order.csv): strips of sqrt(clusters on the GPU x sides of a tile) clusters.
// Strides here, a counter after two strides there.
static int64_t cublas_strip(const cublas_name *name) {
  enum { H200_SMS = 132, H200_SMS_OF_LARGE_CLUSTERS = 120, SMALL_CLUSTER = 2 };  // micro_launch.csv
  int cluster = name->cluster_columns * name->cluster_rows;
  int num_clusters = (cluster <= SMALL_CLUSTER ? H200_SMS : H200_SMS_OF_LARGE_CLUSTERS) / cluster;
  bool along_columns = name->direction == 'h';
  int along = along_columns ? name->columns : name->rows, across = along_columns ? name->rows : name->columns;
  int width = 1;
  while ((2 * width + 1) * (2 * width + 1) * across < 4 * num_clusters * along) width++;  // the root, rounded
  return (int64_t)width * (along_columns ? name->cluster_columns : name->cluster_rows);
}

// Up to 8 tiles of rows are launched for each of columns, then the next 8 (GemmIdentityThreadblockSwizzle of CUTLASS,
// get_log_tile; measurements/cutlass_grids.csv).
static int64_t cutlass_strip(int64_t num_tiles) { return num_tiles >= 6 ? 8 : num_tiles >= 3 ? 4 : num_tiles; }

// CUTLASS's kernel for Ampere, which cuBLAS runs on integers:
// cutlass_80_tensorop_i16832gemm_s8_128x256_128x3_tn_align16 has tiles of 128 rows and 256 columns of a column-major C,
// a K step of 128 and 3 stages. A warp has 64 x 64 of the tile, or half of those columns where that made two warps
// (128 threads for tiles of 128 x 64 and 128 x 128, 256 for 128 x 256: launch__block_size).
static ftl_status set_cutlass_80(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  enum { WARP_SIDE = 64, LEAST_WARPS = 4 };
  const char *name = strstr(kernel_of(row), "cutlass_80_tensorop_i16832gemm_s8_");
  int block_m = 0, block_n = 0, block_k = 0, num_stages = 0;
  if (name == NULL ||
      sscanf(name, "cutlass_80_tensorop_i16832gemm_s8_%dx%d_%dx%d_tn", &block_m, &block_n, &block_k, &num_stages) !=
          4 ||
      !is_side(block_m) || !is_side(block_n) || !is_side(block_k) || !is_side(num_stages))
    return ftl_error_set(error, FTL_INFEASIBLE, "cublas with another kernel, or split K");
  ftl_status status = set_product_sizes(spec, row, error);
  const int64_t *v = spec->value;
  int64_t warps_m = ftl_divide_up(block_m, WARP_SIDE), warps_n = ftl_divide_up(block_n, WARP_SIDE);
  while (warps_m * warps_n < LEAST_WARPS) warps_n *= 2;
  const ftl_param_number known[] = {{FTL_PARAM_m, v[FTL_PARAM_n]},
                                    {FTL_PARAM_n, v[FTL_PARAM_m]},
                                    {FTL_PARAM_transpose_b, 1},
                                    {FTL_PARAM_block_m, block_m},
                                    {FTL_PARAM_block_n, block_n},
                                    {FTL_PARAM_block_k, block_k},
                                    {FTL_PARAM_num_stages, num_stages},
                                    {FTL_PARAM_num_warps, warps_m * warps_n},
                                    {FTL_PARAM_warps_n, warps_n},
                                    {FTL_PARAM_tile_strip, cutlass_strip(ftl_divide_up(v[FTL_PARAM_n], block_m))}};
  if (status == FTL_OK) status = SET_NUMBERS(spec, known, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_tile_order, "m_first", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "buffered", error);
  return status == FTL_OK ? set_instructions(spec, "mma", "cp_async", error) : status;
}

// A kernel whose M lies along the columns is one of C^T = B^T A^T, here also stored so: as many bytes. Split K: neither
// the number of parts nor the second kernel is known.
static ftl_status set_cublas(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  cublas_name name;
  if (strstr(kernel_of(row), "cutlass_80_") != NULL) return set_cutlass_80(spec, row, error);
  if (!try_read_cublas_name(kernel_of(row), &name))
    return ftl_error_set(error, FTL_INFEASIBLE, "cublas with another kernel, or split K");
  ftl_status status = set_product_sizes(spec, row, error);
  bool turned = name.columns_are_m;
  const int64_t *v = spec->value;
  const ftl_param_number known[] = {{FTL_PARAM_m, v[turned ? FTL_PARAM_n : FTL_PARAM_m]},
                                    {FTL_PARAM_n, v[turned ? FTL_PARAM_m : FTL_PARAM_n]},
                                    {FTL_PARAM_transpose_a, turned && v[FTL_PARAM_transpose_b] == 0},
                                    {FTL_PARAM_transpose_b, turned || v[FTL_PARAM_transpose_b] != 0},
                                    {FTL_PARAM_block_m, turned ? name.columns : name.rows},
                                    {FTL_PARAM_block_n, turned ? name.rows : name.columns},
                                    {FTL_PARAM_block_k, name.block_k},
                                    {FTL_PARAM_num_stages, name.num_stages},
                                    {FTL_PARAM_num_warps, 8},
                                    {FTL_PARAM_groups_n, name.is_side_by_side ? 2 : 1},
                                    {FTL_PARAM_tile_strip, cublas_strip(&name)},
                                    {FTL_PARAM_persistent, 1}};
  if (status == FTL_OK) status = SET_NUMBERS(spec, known, error);
  char cluster[32];
  snprintf(cluster, sizeof cluster, "%dx%d", turned ? name.cluster_columns : name.cluster_rows,
           turned ? name.cluster_rows : name.cluster_columns);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_cluster, cluster, error);
  // 16 KB of its shared memory are no stages, and no kernel stores by STG (launch__shared_mem_per_block).
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_store, "staged", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  bool m_first = turned == (name.direction == 'h');
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_tile_order, m_first ? "m_first" : "n_first", error);
  return status == FTL_OK ? set_instructions(spec, "wgmma", "tma", error) : status;
}

// cuDNN's forward kernel for Hopper names rows and keys of a warpgroup's tile and the columns that head_dim is padded
// to, as 64x128x128 for 96 and 128. The rest was
// read from its launches, as many CTAs as SMs or tiles of 128 rows (persistent), and from its SASS as Nsight Compute
// shows it: a producer warp and two consumer warpgroups that wait for each product and take turns at the exponentials,
// to which scores are multiplied and shifted apart; two stages of K and V and two of Q, where head_dim is above 128 one
// of each; O through a buffer of its own (above 128 in pieces, here through Q's). The producer asks a counter for the
// next tile behind a tile's last copy, and a CTA that has an SM for itself takes all tiles, a head's in ascending order
// (measurements/tile_order.csv). Where keys end inside a tile and nothing else is masked it masks all tiles: by the
// counters of its pipes a warp issues 126 to 139 more instructions a step, on ALU and FMA, two for each of a thread's
// 64 scores (7 launches with such lengths, head_dim 64 to 256), causal kernels none. It was asked for no LSE, which
// flash3_fwd writes.
static ftl_status set_sdpa_cudnn(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  static const char before_tile[] = "sm90_flash_fprop_wgmma_f16_knob_";
  const char *tile = strstr(kernel_of(row), before_tile);
  int knob = 0, group_rows = 0, block_n = 0, head_dim = 0, end = 0;
  if (tile != NULL)
    sscanf(tile + sizeof before_tile - 1, "%d_%dx%dx%d_4x1x1_cga1x1x1%n", &knob, &group_rows, &block_n, &head_dim,
           &end);
  if (end == 0 || !is_side(group_rows) || !is_side(block_n) || !is_side(head_dim))
    return ftl_error_set(error, FTL_INFEASIBLE, "sdpa_cudnn with another kernel");
  const ftl_param_number known[] = {{FTL_PARAM_block_m, 2 * group_rows},
                                    {FTL_PARAM_block_n, block_n},
                                    {FTL_PARAM_head_dim_multiple, head_dim},
                                    {FTL_PARAM_num_warps, 8},
                                    {FTL_PARAM_num_stages, head_dim > 128 ? 1 : 2},
                                    {FTL_PARAM_q_stages, head_dim > 128 ? 1 : 2},
                                    {FTL_PARAM_persistent, 1}};
  ftl_status status = SET_NUMBERS(spec, known, error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_tile_scheduler, "dynamic_late", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_turns, "softmax", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_code, "lean", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_scaling, "apart", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_row_sums, "end", error);
  if (status == FTL_OK) status = ftl_columns_set(spec, FTL_PARAM_guard, "always", error);
  if (status == FTL_OK && ftl_spec_masks_end_alone(spec))
    status = ftl_columns_set(spec, FTL_PARAM_mask_steps, "all", error);
  return status == FTL_OK ? ftl_columns_set(spec, FTL_PARAM_layout, "bhsd", error) : status;
}

// ---- all of them ----

// `kernel`: what its name has in it, where a source launches several; the first that fits.
static const struct {
  const char *source, *pass, *kernel, *workload;
  ftl_status (*set)(ftl_spec *, const ftl_measurement *, ftl_error *);
} foreign_kernels[] = {
    {"triton", "fwd", "", "flash2_fwd", set_triton_attention},
    {"triton_descriptors", "fwd", "", "flash2_fwd", set_triton_descriptors},
    {"triton_backward", "bwd", "", "flash2_bwd", set_triton_backward},
    {"triton_paged", "fwd", "", "paged_decode", set_triton_paged},
    {"triton_product", "fwd", "", "matmul_tiled", set_triton_product},
    {"triton_softmax", "fwd", "", "softmax_safe", set_triton_softmax},
    {"flex", "fwd", "", "flash2_fwd", set_flex},
    {"sdpa_flash", "fwd", "flash_fwd_splitkv", "flash_decode", set_flash_splits},
    {"sdpa_flash", "fwd", "", "flash2_fwd", set_sdpa_flash},
    {"sdpa_flash", "bwd", "", "flash2_bwd", set_sdpa_flash_bwd},
    {"aten_flash", "fwd", "flash_fwd_splitkv", "flash_decode", set_flash_splits},
    {"aten_flash", "fwd", "", "flash2_fwd", set_aten_flash},
    {"sdpa_cudnn", "fwd", "", "flash3_fwd", set_sdpa_cudnn},
    {"sdpa_efficient", "fwd", "", "flash2_fwd", set_sdpa_efficient},
    {"cublas", "fwd", "", "matmul_tiled", set_cublas},
};

// What kernels/independent says of its kernels is what a user knows of one that is not written yet.
static ftl_status set_independent(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const char *workload = ftl_measurement_fact(row, "workload");
  if (workload == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "a row that names no workload");
  return ftl_columns_begin(spec, workload, row, error);
}

ftl_status ftl_foreign_kernel_set(ftl_spec *spec, const ftl_measurement *row, const char *source, ftl_error *error) {
  if (strcmp(source, FTL_INDEPENDENT) == 0) return set_independent(spec, row, error);
  const char *pass = ftl_column_or(row, "pass", "fwd");
  for (size_t i = 0; i < sizeof foreign_kernels / sizeof *foreign_kernels; i++) {
    if (strcmp(source, foreign_kernels[i].source) != 0 || strcmp(pass, foreign_kernels[i].pass) != 0) continue;
    if (strstr(kernel_of(row), foreign_kernels[i].kernel) == NULL) continue;
    ftl_status status = ftl_columns_begin(spec, foreign_kernels[i].workload, row, error);
    return status == FTL_OK ? foreign_kernels[i].set(spec, row, error) : status;
  }
  return ftl_error_set(error, FTL_INFEASIBLE, "%.64s%s", source, strcmp(pass, "bwd") == 0 ? " backward" : "");
}
