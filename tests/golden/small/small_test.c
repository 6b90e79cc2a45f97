// Exact counters of small `full` runs: a change that moves one says by how much and why.
#include "../../unit/engine/fixture.h"

typedef struct golden {
  const char *arch;
  int64_t cycles, insts, tensor_insts, dram_read, dram_write, l2_sectors, registers;
} golden;

// On every chip.
static const golden goldens[] = {
#include "goldens.inc"
};

// The sum of both launches.
static const golden decode_goldens[] = {
#include "decode_goldens.inc"
};

static const golden tree_goldens[] = {
#include "tree_goldens.inc"
};

static const golden varlen_goldens[] = {
#include "varlen_goldens.inc"
};

static const golden paged_goldens[] = {
#include "paged_goldens.inc"
};

// The same of flash_decode, of a quantised cache.
static const golden decode_int8_goldens[] = {
#include "decode_int8_goldens.inc"
};

// The sum of five launches.
static const golden sparq_goldens[] = {
#include "sparq_goldens.inc"
};

// The sum of three launches.
static const golden standard_goldens[] = {
#include "standard_goldens.inc"
};

static const golden softmax_goldens[] = {
#include "softmax_goldens.inc"
};

// The sum of both launches.
static const golden matmul_goldens[] = {
#include "matmul_goldens.inc"
};

// One-byte operands: into int32, and into fp32.
static const golden int8_goldens[] = {
#include "int8_goldens.inc"
};
static const golden fp8_goldens[] = {
#include "fp8_goldens.inc"
};

// Fused.
static const golden glu_goldens[] = {
#include "glu_goldens.inc"
};

// The sum of the four launches.
static const golden backward_goldens[] = {
#include "backward_goldens.inc"
};

static const golden standard_backward_goldens[] = {
#include "standard_backward_goldens.inc"
};
static const golden flash1_goldens[] = {
#include "flash1_goldens.inc"
};
static const golden flash1_backward_goldens[] = {
#include "flash1_backward_goldens.inc"
};
static const golden backward_atomics_goldens[] = {
#include "backward_atomics_goldens.inc"
};

// One tile a CTA; persistent CTAs of several tiles.
static const golden flash3_goldens[] = {
#include "flash3_goldens.inc"
};
static const golden flash3_fp8_goldens[] = {
#include "flash3_fp8_goldens.inc"
};
static const golden flash3_persistent_goldens[] = {
#include "flash3_persistent_goldens.inc"
};

// Clusters of two CTAs that share keys and values; of 2 x 2 that share both factors.
static const golden cluster_goldens[] = {
#include "cluster_goldens.inc"
};
// Persistent CTAs that take tiles from a counter.
static const golden dynamic_goldens[] = {
#include "dynamic_goldens.inc"
};
static const golden matmul_cluster_goldens[] = {
#include "matmul_cluster_goldens.inc"
};

// A window with dropout; a block mask; unfused with padding and dropout, forward and backward.
static const golden window_goldens[] = {
#include "window_goldens.inc"
};
static const golden block_mask_goldens[] = {
#include "block_mask_goldens.inc"
};
static const golden elementwise_goldens[] = {
#include "elementwise_goldens.inc"
};
static const golden elementwise_backward_goldens[] = {
#include "elementwise_backward_goldens.inc"
};

// Prints the line as it is now, and gives true, if it moved.
static bool moved(const golden *g, const char *parameters) {
  ftl_arch *arch = shipped_arch(g->arch);
  ftl_spec spec = spec_of(parameters);
  ftl_prediction p;
  ftl_error error = {0};
  cr_assert_eq(ftl_predict(&spec, arch, NULL, &p, &error), FTL_OK, "%s", error.message);
  golden now = {.arch = g->arch,
                .cycles = (int64_t)p.metrics.value[FTL_METRIC_cycles],
                .insts = (int64_t)p.metrics.value[FTL_METRIC_insts],
                .tensor_insts = (int64_t)p.metrics.value[FTL_METRIC_tensor_insts],
                .dram_read = (int64_t)p.metrics.value[FTL_METRIC_dram_read],
                .dram_write = (int64_t)p.metrics.value[FTL_METRIC_dram_write],
                .l2_sectors = (int64_t)p.metrics.value[FTL_METRIC_l2_sectors],
                .registers = (int64_t)p.metrics.value[FTL_METRIC_registers]};
  bool same = now.cycles == g->cycles && now.insts == g->insts && now.tensor_insts == g->tensor_insts &&
              now.dram_read == g->dram_read && now.dram_write == g->dram_write && now.l2_sectors == g->l2_sectors &&
              now.registers == g->registers;
  if (!same)
    fprintf(stderr, "    {\"%s\", %lld, %lld, %lld, %lld, %lld, %lld, %lld},\n", now.arch, (long long)now.cycles,
            (long long)now.insts, (long long)now.tensor_insts, (long long)now.dram_read, (long long)now.dram_write,
            (long long)now.l2_sectors, (long long)now.registers);
  ftl_arch_destroy(arch);
  return !same;
}

Test(golden_small, counters_of_flash2_fwd_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++)
    num_moved += moved(&goldens[i],
                       "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=32 "
                       "num_warps=4 num_stages=1 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/goldens.inc)");
}

Test(golden_small, counters_of_flash_decode_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof decode_goldens / sizeof *decode_goldens; i++)
    num_moved += moved(&decode_goldens[i],
                       "flash_decode batch=2 heads=8 kv_heads=2 seqlen_q=2 seqlen_kv=777 head_dim=128 causal=1 "
                       "block_m=16 block_n=64 num_warps=4 num_stages=2 splits=5 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/decode_goldens.inc)");
}

Test(golden_small, counters_of_tree_decode_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof tree_goldens / sizeof *tree_goldens; i++)
    num_moved += moved(&tree_goldens[i],
                       "tree_decode batch=2 heads=8 kv_heads=2 tree=eagle seqlen_kv=777 head_dim=128 block_m=64 "
                       "block_n=64 num_warps=4 splits=5 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/tree_goldens.inc)");
}

Test(golden_small, counters_of_packed_sequences_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof varlen_goldens / sizeof *varlen_goldens; i++)
    num_moved += moved(&varlen_goldens[i],
                       "heads=4 kv_heads=2 lengths=333:1:200x2 head_dim=64 causal=1 block_m=64 block_n=32 num_warps=4 "
                       "num_stages=2 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/varlen_goldens.inc)");
}

Test(golden_small, counters_of_paged_decode_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof paged_goldens / sizeof *paged_goldens; i++)
    num_moved += moved(&paged_goldens[i],
                       "paged_decode heads=8 kv_heads=2 seqlen_q=2 lengths=777:300x2:50 head_dim=128 causal=1 "
                       "page_size=8 page_layout=shared_prefix prefix=45 block_m=16 block_n=64 num_warps=4 num_stages=2 "
                       "splits=5 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/paged_goldens.inc)");
}

Test(golden_small, counters_of_sparq_decode_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof sparq_goldens / sizeof *sparq_goldens; i++)
    num_moved += moved(&sparq_goldens[i],
                       "sparq_decode batch=2 heads=8 kv_heads=2 seqlen_kv=3000 head_dim=128 sparq_r=32 sparq_k=100 "
                       "copy=cp_async mma=mma clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/sparq_goldens.inc)");
}

Test(golden_small, counters_of_unfused_kernels_are_what_they_were) {
  const struct {
    const golden *lines;
    size_t num_lines;
    const char *parameters;
  } kernels[] = {
      {standard_goldens, sizeof standard_goldens / sizeof *standard_goldens,
       "standard_attention heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 block_n=64 "
       "num_warps=4 clock_mhz=1200 detail=full"},
      {standard_backward_goldens, sizeof standard_backward_goldens / sizeof *standard_backward_goldens,
       "standard_attention pass=bwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=64 "
       "block_n=64 num_warps=4 clock_mhz=1200 detail=full"},
      {softmax_goldens, sizeof softmax_goldens / sizeof *softmax_goldens,
       "softmax_online heads=4 seqlen_q=300 seqlen_kv=3000 clock_mhz=1200 detail=full"},
      {matmul_goldens, sizeof matmul_goldens / sizeof *matmul_goldens,
       "matmul_tiled m=504 n=600 k=700 transpose_a=1 block_m=128 block_n=64 block_k=32 num_warps=4 splits=3 "
       "clock_mhz=1200 detail=full"},
      {decode_int8_goldens, sizeof decode_int8_goldens / sizeof *decode_int8_goldens,
       "flash_decode batch=2 heads=8 kv_heads=2 seqlen_q=1 seqlen_kv=777 head_dim=128 kv_dtype=int8 kv_group_size=64 "
       "block_m=16 block_n=64 num_warps=4 num_stages=2 splits=5 clock_mhz=1200 detail=full"},
      {int8_goldens, sizeof int8_goldens / sizeof *int8_goldens,
       "matmul_tiled m=504 n=608 k=704 dtype=int8 block_m=128 block_n=64 num_warps=4 clock_mhz=1200 detail=full"},
      {fp8_goldens, sizeof fp8_goldens / sizeof *fp8_goldens,
       "matmul_tiled m=504 n=608 k=704 dtype=fp8_e4m3 block_m=128 block_n=64 num_warps=4 clock_mhz=1200 detail=full"},
      {glu_goldens, sizeof glu_goldens / sizeof *glu_goldens,
       "glu m=504 n=600 k=696 transpose_b=1 block_m=128 block_n=64 block_k=32 num_warps=4 clock_mhz=1200 detail=full"},
  };
  int num_moved = 0;
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++)
    for (size_t i = 0; i < kernels[k].num_lines; i++) num_moved += moved(&kernels[k].lines[i], kernels[k].parameters);
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/*_goldens.inc)");
}

Test(golden_small, counters_of_flash2_bwd_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof backward_goldens / sizeof *backward_goldens; i++)
    num_moved += moved(&backward_goldens[i],
                       "flash2_bwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_m=32 "
                       "block_n=64 num_warps=4 num_stages=1 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/backward_goldens.inc)");
}

Test(golden_small, counters_of_flash2_bwd_with_atomics_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof backward_atomics_goldens / sizeof *backward_atomics_goldens; i++)
    num_moved +=
        moved(&backward_atomics_goldens[i],
              "flash2_bwd dq=atomics mma=mma heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 "
              "block_m=64 block_n=64 num_warps=8 num_stages=1 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0,
               "the lines above are what the runs give now (tests/golden/small/backward_atomics_goldens.inc)");
}

Test(golden_small, counters_of_flash1_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof flash1_goldens / sizeof *flash1_goldens; i++)
    num_moved += moved(&flash1_goldens[i],
                       "flash1_fwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_n=128 "
                       "clock_mhz=1200 detail=full");
  for (size_t i = 0; i < sizeof flash1_backward_goldens / sizeof *flash1_backward_goldens; i++)
    num_moved += moved(&flash1_backward_goldens[i],
                       "flash1_bwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_n=64 "
                       "num_warps=4 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/flash1_*goldens.inc)");
}

Test(golden_small, counters_of_flash3_are_what_they_were) {
  // 50 heads of 3 tiles of 192 rows: 18 of the 132 persistent CTAs walk two.
  int num_moved = moved(&flash3_goldens[0],
                        "flash3_fwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_n=96 "
                        "clock_mhz=1200 detail=full");
  num_moved += moved(&flash3_fp8_goldens[0],
                     "flash3_fwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 block_n=96 "
                     "dtype=fp8_e4m3 clock_mhz=1200 detail=full");
  num_moved += moved(&flash3_persistent_goldens[0],
                     "flash3_fwd heads=50 kv_heads=25 seqlen_q=500 seqlen_kv=200 head_dim=128 num_warps=12 block_n=64 "
                     "persistent=1 clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (tests/golden/small/flash3_*.inc)");
}

Test(golden_small, counters_of_clusters_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof cluster_goldens / sizeof *cluster_goldens; i++)
    num_moved += moved(&cluster_goldens[i],
                       "flash3_fwd heads=2 kv_heads=1 seqlen_q=500 seqlen_kv=333 head_dim=64 block_n=64 cluster=2x1 "
                       "clock_mhz=1200 detail=full");
  cr_expect_eq(num_moved, 0, "the lines above are what the runs give now (cluster_goldens.inc)");
  num_moved = 0;
  for (size_t i = 0; i < sizeof matmul_cluster_goldens / sizeof *matmul_cluster_goldens; i++)
    num_moved += moved(&matmul_cluster_goldens[i],
                       "matmul_tiled m=500 n=520 k=200 block_m=64 block_n=64 num_stages=3 persistent=1 cluster=2x2 "
                       "clock_mhz=1200 detail=full");
  cr_expect_eq(num_moved, 0, "the lines above are what the runs give now (matmul_cluster_goldens.inc)");
}

Test(golden_small, counters_of_dynamic_tiles_are_what_they_were) {
  int num_moved = 0;
  for (size_t i = 0; i < sizeof dynamic_goldens / sizeof *dynamic_goldens; i++)
    num_moved += moved(&dynamic_goldens[i],
                       "flash2_fwd batch=9 heads=32 seqlen=128 head_dim=128 causal=1 block_m=128 block_n=64 "
                       "num_warps=4 num_stages=2 persistent=1 tile_scheduler=dynamic clock_mhz=1200 detail=full");
  cr_assert_eq(num_moved, 0, "the lines above are what the runs give now (dynamic_goldens.inc)");
}

Test(golden_small, counters_of_masks_and_dropout_are_what_they_were) {
  const struct {
    const golden *lines;
    size_t num_lines;
    const char *parameters;
  } kernels[] = {
      {window_goldens, sizeof window_goldens / sizeof *window_goldens,
       "heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 causal=1 window=100 dropout_p=0.1 block_m=64 "
       "block_n=32 num_warps=4 num_stages=1 clock_mhz=1200 detail=full"},
      {block_mask_goldens, sizeof block_mask_goldens / sizeof *block_mask_goldens,
       "heads=4 kv_heads=2 seqlen=500 head_dim=64 mask=butterfly mask_block=64 block_m=64 block_n=32 num_warps=4 "
       "num_stages=2 clock_mhz=1200 detail=full"},
      {elementwise_goldens, sizeof elementwise_goldens / sizeof *elementwise_goldens,
       "standard_attention heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 block_m=64 block_n=64 "
       "num_warps=4 padding_mask=1 dropout_p=0.1 clock_mhz=1200 detail=full"},
      {elementwise_backward_goldens, sizeof elementwise_backward_goldens / sizeof *elementwise_backward_goldens,
       "standard_attention pass=bwd heads=4 kv_heads=2 seqlen_q=200 seqlen_kv=333 head_dim=64 block_m=64 block_n=64 "
       "num_warps=4 dropout_p=0.1 clock_mhz=1200 detail=full"},
  };
  for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
    int num_moved = 0;
    for (size_t i = 0; i < kernels[k].num_lines; i++) num_moved += moved(&kernels[k].lines[i], kernels[k].parameters);
    cr_expect_eq(num_moved, 0, "the lines above are what the runs give now: %s", kernels[k].parameters);
  }
}
