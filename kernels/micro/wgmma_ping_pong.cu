/* The main loop of flash3 (attention/flash3.h) without loads: warpgroups that take turns to issue QK and PV, and run
 * parts of the softmax beside each other's products. Which part costs what?
 *
 * Variant: the parts of the softmax that run (max; exp: FFMA and MUFU; sum; conversion of P; scaling of O), N of QK
 * (block_n), head_dim, whether warpgroups take turns or issue freely; x: warpgroups. K and V stay in shared memory,
 * nothing waits for a copy. Rows: cycles of an iteration of one CTA on one SM. ptxas puts the FFMAs of `exp` alone
 * before its MUFUs, and in turn with them where there are sums. `at_J_groupG_*`, traced (which costs 150 to 250 cycles
 * an iteration): when warpgroup G took its turn in iteration J, passed it on, had its scores, its softmax, its output
 * and its next P, in cycles after warpgroup 0 took its turn in iteration 2. */
#include "bench.h"
#include "wgmma_tiles.h"
using namespace bench;
using namespace wgmma_tiles;

enum Part { MAX = 1, EXP = 2, SUM = 4, CONVERT = 8, SCALE = 16, ALL = 31 };
enum Point { TURN, PASSED, SCORES, SOFTMAX, OUTPUT, STEP, num_points };
constexpr int num_traced = 8, max_groups = 3;

template <int parts, int block_n>
__device__ __forceinline__ void softmax(float (&s)[1][block_n / 2], RowState<1> &rows, float (&correction)[1][2],
                                        float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = rows.max[0][half];
    if (parts & MAX) {
#pragma unroll
      for (int n = 0; n < block_n / 8; n++) top = fmaxf(top, fmaxf(s[0][n * 4 + half * 2], s[0][n * 4 + half * 2 + 1]));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, 2));
    }
    float base = top * scale_log2;
    correction[0][half] = exp2_fast(rows.max[0][half] * scale_log2 - base);
    rows.max[0][half] = top;
    float sum = rows.sum[0][half] * correction[0][half];
#pragma unroll
    for (int n = 0; n < block_n / 8; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float &x = s[0][n * 4 + half * 2 + i];
        if (parts & EXP) x = exp2_fast(x * scale_log2 - base);
        if (parts & SUM) sum += x;
      }
    rows.sum[0][half] = sum;
  }
}

template <int groups, int block_n, int head_dim, int parts, bool turns, bool traced>
__global__ __launch_bounds__(groups * 128, 1) void run(int iterations, float scale_log2, uint64_t *took, float *sink,
                                                       uint32_t *trace) {
  extern __shared__ __align__(1024) uint8_t raw[];
  constexpr int block_m = groups * 64;
  uint32_t q = (hopper::smem(raw) + 1023) / 1024 * 1024, k = q + block_m * head_dim * 2, v = k + block_n * head_dim * 2;
  for (uint32_t i = threadIdx.x; i < (v - q + block_n * head_dim * 2) / 4; i += blockDim.x)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(q + i * 4), "r"(0x2C002C00 + (i * 2654435761u >> 24)));
  hopper::proxy_fence();
  int group = (int)threadIdx.x / 128;
  float s[1][block_n / 2], o[1][head_dim / 2], correction[1][2];
  uint32_t p[1][block_n / 16][4];
  RowState<1> rows;
  rows.clear();
  rows.max[0][0] = rows.max[0][1] = 4;
  fill_zero(o);
  fill_zero(s);
  make_p<block_n>(p, s);
  uint32_t at[num_points];
  __syncthreads();
  if (turns) {
    if (group > 0) hopper::named_arrive(2, groups * 128);
    if (groups == 3 && group > 1) hopper::named_arrive(3, groups * 128);
  }
  uint64_t start = cycles64();
#pragma unroll 1
  for (int j = 0; j < iterations; j++) {
    if (turns && groups > 1) hopper::named_sync(2 + group, groups * 128);
    if (traced) at[TURN] = (uint32_t)clock64();
    keep_all(s);
    keep_all(o);
    hopper::wgmma_fence();
    issue_scores<block_m, block_n, head_dim>(s, q, (uint32_t)group * 64, k);
    hopper::wgmma_commit();
    hopper::wgmma_fence();
    issue_output<block_n, head_dim>(o, p, v);
    hopper::wgmma_commit();
    if (turns) {
      if (groups > 1) hopper::named_arrive(2 + (group + 1) % groups, groups * 128);
      if (groups == 3) hopper::named_arrive(2 + (group + 2) % groups, groups * 128);
    }
    if (traced) at[PASSED] = (uint32_t)clock64();
    hopper::wgmma_wait<1>();
    keep_all(s);
    if (traced) at[SCORES] = (uint32_t)clock64();
    softmax<parts, block_n>(s, rows, correction, scale_log2);
    if (traced) keep_all(s), at[SOFTMAX] = (uint32_t)clock64();
    hopper::wgmma_wait<0>();
    keep_all(o);
    if (traced) at[OUTPUT] = (uint32_t)clock64();
    if (parts & SCALE) rescale(o, correction);
    if (parts & CONVERT) make_p<block_n>(p, s);
    if (traced) {
      keep_all(o);
      at[STEP] = (uint32_t)clock64();
      int index = j - iterations + num_traced;
      if (index >= 0 && threadIdx.x % 128 == 0)
        for (int i = 0; i < num_points; i++) trace[(index * max_groups + group) * num_points + i] = at[i];
    }
  }
  uint64_t end = cycles64();
  if (threadIdx.x % 128 == 0) took[group] = end - start;
  float sum = rows.sum[0][0] + rows.sum[0][1] + rows.max[0][0];
  for (int i = 0; i < head_dim / 2; i++) sum += o[0][i];
  for (int i = 0; i < block_n / 2; i++) sum += s[0][i];
  sink[threadIdx.x] = sum;
}

template <int groups, int block_n, int head_dim, int parts, bool turns, bool traced = false>
static void measure(const char *what) {
  const int iterations = 256;
  static uint64_t *took = device_alloc<uint64_t>(max_groups);
  static float *sink = device_alloc<float>(384);
  static uint32_t *trace = device_alloc<uint32_t>(num_traced * max_groups * num_points);
  int shared = 1024 + (groups * 64 + 2 * block_n) * head_dim * 2;
  auto kernel = run<groups, block_n, head_dim, parts, turns, traced>;
  allow_shared(kernel, shared);
  for (int warm = 0; warm < 2; warm++) kernel<<<1, groups * 128, shared>>>(iterations, 0.25f, took, sink, trace);
  finish();
  uint64_t most = 0;
  for (uint64_t t : to_host(took, groups)) most = std::max(most, t);
  char variant[96];
  snprintf(variant, sizeof variant, "%s_n%d_d%d_%s", what, block_n, head_dim, turns ? "turns" : "free");
  row("wgmma_ping_pong", variant, "warpgroups", groups, traced ? "iteration_traced" : "iteration",
      (double)most / iterations, "cycles");
  if (!traced) return;
  static const char *const names[num_points] = {"turn", "passed", "scores", "softmax", "output", "step"};
  std::vector<uint32_t> all = to_host(trace, num_traced * max_groups * num_points);
  for (int j = 2; j < 5; j++)
    for (int group = 0; group < groups; group++)
      for (int i = 0; i < num_points; i++) {
        char metric[64];
        snprintf(metric, sizeof metric, "at_%d_group%d_%s", j, group, names[i]);
        row("wgmma_ping_pong", variant, "warpgroups", groups, metric,
            (double)(int32_t)(all[(size_t)((j * max_groups + group) * num_points + i)] -
                              all[(size_t)(2 * max_groups * num_points)]),
            "cycles");
      }
}

template <int groups, int block_n, int head_dim, bool turns>
static void sweep() {
  measure<groups, block_n, head_dim, 0, turns>("products");
  measure<groups, block_n, head_dim, MAX, turns>("max");
  measure<groups, block_n, head_dim, EXP, turns>("exp");
  measure<groups, block_n, head_dim, MAX | EXP | SUM, turns>("max_exp_sum");
  measure<groups, block_n, head_dim, MAX | EXP | SUM | CONVERT, turns>("no_scale");
  measure<groups, block_n, head_dim, ALL, turns>("softmax");
  measure<groups, block_n, head_dim, ALL, turns, true>("softmax");
}

int main() {
  sweep<1, 128, 64, false>();
  sweep<2, 128, 64, true>();
  sweep<3, 64, 64, true>();
  sweep<3, 128, 64, true>();
  sweep<3, 128, 64, false>();
  sweep<2, 128, 128, true>();
  sweep<2, 128, 64, false>();
  sweep<1, 128, 128, false>();
  return 0;
}
