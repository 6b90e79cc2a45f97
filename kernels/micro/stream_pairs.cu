/* What two warps of a sub-core that run different streams of instructions cost each other, by whose CTA came first.
 *
 * Every SM has two warps a sub-core, one of each stream: of two CTAs (`ctas`: the first stream is that of the CTA that
 * came first) or of one (`warps`: of the lower indices). The second stream's rounds are so many that it alone would
 * last 1.6 times as long as the first alone. Variant: mode, first, second; x: which. Rows: cycles until it ends, in
 * cycles of a round of its own, means over sub-cores and SMs; of `alone` nothing runs beside it. */
#include <algorithm>

#include "bench.h"
#include "instructions.h"
using namespace bench;

constexpr int num_values = 64;

struct Values {
  float x[num_values];
  float f, g;
  uint32_t a[4], b[8];  // fragments of products
  uint32_t from;        // in shared memory, of this lane
};

__device__ __forceinline__ void lop3(float &x, float a, float b) {
  asm volatile(
      "{ .reg .b32 p, q, r; mov.b32 p, %0; mov.b32 q, %1; mov.b32 r, %2; lop3.b32 p, p, q, r, 0x6a; mov.b32 %0, p; }"
      : "+f"(x)
      : "f"(a), "f"(b));
}
/* m16n8k16, fp16; c: 4 values from c on. */
__device__ __forceinline__ void mma(float *c, const uint32_t *a, const uint32_t *b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void ldsm(uint32_t *to, uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}
__device__ __forceinline__ void shfl(float &x) { asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(x)); }

#define STREAM(Name, n, ...)                                        \
  struct Name {                                                     \
    static __device__ __forceinline__ void round(Values &v) {       \
      _Pragma("unroll") for (int i = 0; i < n; i++) { __VA_ARGS__ } \
    }                                                               \
  };
STREAM(Fmul, 64, fmul(v.x[i % 16]);)
STREAM(Fmul_512, 512, fmul(v.x[i % 16]);)
STREAM(Fmul_chain2, 64, fmul(v.x[i % 2]);)
STREAM(Fmnmx, 64, fmnmx(v.x[i % 16], v.g);)
STREAM(Fmnmx_512, 512, fmnmx(v.x[i % 16], v.g);)
STREAM(Fmnmx_chain2, 64, fmnmx(v.x[i % 2], v.g);)
STREAM(F2fp, 64, f2fp(v.x[i % 16], v.g);)
STREAM(Lop3, 64, lop3(v.x[i % 16], v.f, v.g);)
STREAM(Mufu, 64, mufu(v.x[i % 16]);)
STREAM(Mufu_512, 512, mufu(v.x[i % 16]);)
STREAM(Mufu_chain, 64, mufu(v.x[0]);)
STREAM(Shfl, 64, shfl(v.x[i % 16]);)
STREAM(Ffma_mufu, 64, ffma(v.x[i % 16], v.f, v.g); mufu(v.x[16 + i % 16]);)
STREAM(Ffma_to_mufu, 64, ffma(v.x[i % 16], v.f, v.g); mufu(v.x[i % 16]);)
STREAM(Fmnmx_mufu, 64, fmnmx(v.x[i % 16], v.g); mufu(v.x[16 + i % 16]);)
STREAM(Ffma3_mufu, 64, ffma(v.x[i % 16], v.f, v.g); ffma(v.x[32 + i % 16], v.f, v.g); ffma(v.x[48 + i % 16], v.f, v.g);
       mufu(v.x[16 + i % 16]);)
STREAM(Mufu_from_fadd, 64, mufu(v.x[i % 16]); fadd(v.f, v.x[(i + 8) % 16]);)
STREAM(Fmul_fmnmx, 64, fmul(v.x[i % 16]); fmnmx(v.x[16 + i % 16], v.g);)

/* Maximum, exponentials, sum and conversion of n elements in the order of ptxas's code of kernels/attention/flash3.h.
 */
template <int n, bool with_max, bool with_sum, bool with_cvt, int copies>
struct Softmax {
  static constexpr int lag = n < 16 ? n / 2 : 8;
  static __device__ __forceinline__ void round(Values &v) {
#pragma unroll
    for (int copy = 0; copy < copies; copy++) {
      float m[2] = {v.f, v.g}, s[2] = {0, 0};
#pragma unroll
      for (int i = 0; i < n && with_max; i++) fmnmx(m[i / 2 % 2], v.x[i]);
#pragma unroll
      for (int i = 0; i < n + lag; i++) {
        if (i < n) ffma(v.x[i], v.f, m[i / 2 % 2]), mufu(v.x[i]);
        if (i >= lag && with_sum) fadd(s[i / 2 % 2], v.x[i - lag]);
        if (i % 2 && i >= lag && with_cvt) f2fp(v.x[i - lag], v.x[i - lag + 1]);
      }
      v.x[0] += s[0] + s[1];
    }
  }
};
struct Max {
  static __device__ __forceinline__ void round(Values &v) {
#pragma unroll
    for (int i = 0; i < 64; i++) fmnmx(i / 2 % 2 ? v.f : v.g, v.x[i]);
  }
};

/* Products into 16 accumulators of 4 values, or into fewer; with ldmatrix, each of which brings B of two products one
 * pair ahead; with other instructions on the next accumulator; before a softmax of the 64 values. */
STREAM(Mma, 64, mma(&v.x[4 * (i % 16)], v.a, v.b);)
STREAM(Mma_chain2, 32, mma(&v.x[4 * (i % 2)], v.a, v.b);)
STREAM(Ldsm_mma, 32, ldsm(&v.b[4 * ((i + 1) % 2)], v.from + 512 * (i % 8));
       mma(&v.x[4 * (2 * i % 16)], v.a, &v.b[4 * (i % 2)]);
       mma(&v.x[4 * (2 * i % 16 + 1)], v.a, &v.b[4 * (i % 2) + 2]);)
STREAM(Mma_fmul, 64, mma(&v.x[4 * (i % 8)], v.a, v.b); fmul(v.x[32 + i % 32]);)
STREAM(Mma_mufu, 64, mma(&v.x[4 * (i % 8)], v.a, v.b); mufu(v.x[32 + i % 32]);)
struct Mma_softmax {
  static __device__ __forceinline__ void round(Values &v) {
    Mma::round(v);
    Softmax<64, true, true, true, 1>::round(v);
  }
};
struct Ldsm_mma_softmax {
  static __device__ __forceinline__ void round(Values &v) {
    Ldsm_mma::round(v);
    Softmax<64, true, true, true, 1>::round(v);
  }
};

// X(type, name)
// clang-format off
#define STREAMS(X)                                                                                                   \
  X(Fmul, "FMUL")                                                                                                    \
  X(Fmul_512, "FMUL_512") X(Fmul_chain2, "FMUL_chain2") X(Fmnmx, "FMNMX") X(Fmnmx_512, "FMNMX_512")                  \
      X(Fmnmx_chain2, "FMNMX_chain2") X(F2fp, "F2FP") X(Lop3, "LOP3") X(Mufu, "MUFU") X(Mufu_512, "MUFU_512")        \
          X(Mufu_chain, "MUFU_chain") X(Shfl, "SHFL") X(Ffma_mufu, "FFMA_and_MUFU") X(Ffma_to_mufu, "FFMA_to_MUFU")  \
              X(Fmnmx_mufu, "FMNMX_and_MUFU") X(Ffma3_mufu, "FFMA3_and_MUFU") X(Mufu_from_fadd, "MUFU_to_FADD")      \
                  X(Fmul_fmnmx, "FMUL_and_FMNMX") X(Max, "max") X(S_64, "softmax64") X(S_exp, "exp64")               \
                      X(S_exp_sum, "exp_sum64") X(S_exp_cvt, "exp_cvt64") X(S_all, "exp_sum_cvt64")                  \
                          X(S_32, "softmax32") X(S_16, "softmax16") X(S_8, "softmax8") X(S_twice, "softmax64_twice") \
                              X(S_copy, "softmax64_copy") X(Mma, "HMMA") X(Mma_chain2, "HMMA_chain2")                \
                                  X(Ldsm_mma, "LDSM_HMMA") X(Mma_fmul, "HMMA_and_FMUL")                              \
                                      X(Mma_mufu, "HMMA_and_MUFU") X(Mma_softmax, "HMMA_softmax64")                  \
                                          X(Ldsm_mma_softmax, "LDSM_HMMA_softmax64")
// clang-format on
using S_64 = Softmax<64, true, true, true, 1>;
using S_exp = Softmax<64, false, false, false, 1>;
using S_exp_sum = Softmax<64, false, true, false, 1>;
using S_exp_cvt = Softmax<64, false, false, true, 1>;
using S_all = Softmax<64, false, true, true, 1>;
using S_32 = Softmax<32, true, true, true, 1>;
using S_16 = Softmax<16, true, true, true, 1>;
using S_8 = Softmax<8, true, true, true, 1>;
using S_twice = Softmax<64, true, true, true, 2>;
struct S_copy : S_64 {};

static const char *const names[] = {
#define X(type, name) name,
    STREAMS(X)
#undef X
};
constexpr int num_streams = (int)(sizeof names / sizeof *names);

template <class X>
__device__ __noinline__ void rounds(int amount, uint32_t *sink, uint32_t r, uint64_t *span) {
  Values v;
  v.f = 0.5f + 0.001f * (float)r, v.g = 0.25f * (float)r;
#pragma unroll
  for (int i = 0; i < num_values; i++) v.x[i] = 1.0f + (float)(threadIdx.x + i) * 0.001f;
  for (int i = 0; i < 4; i++) v.a[i] = r + i;
  for (int i = 0; i < 8; i++) v.b[i] = r * i;
  extern __shared__ uint4 tile[];
  v.from = shared_address(&tile[threadIdx.x % 32]);
  span[0] = cycles64();
#pragma unroll 1
  for (int count = 0; count < amount; count++) X::round(v);
  float sum = v.f + v.g;
#pragma unroll
  for (int i = 0; i < num_values; i++) sum += v.x[i];
  sink[threadIdx.x] = __float_as_uint(sum);
  span[1] = cycles64();
}

__device__ __forceinline__ void stream(int id, int amount, uint32_t *sink, uint32_t r, uint64_t *span) {
  int k = 0;
#define X(type, name) \
  if (id == k++) rounds<type>(amount, sink, r, span);
  STREAMS(X)
#undef X
}

struct Note {
  uint64_t start, stop;
  uint32_t sm;
};

/* which[g], amount[g]: of group g of 4 warps, counted over CTAs in order of coming. */
struct Plan {
  int which[4], amount[4], groups_per_cta;
};

__global__ __launch_bounds__(512, 1) void share(Plan plan, Note *notes, uint32_t *sink, uint32_t r, int sms) {
  int group = (int)blockIdx.x / sms * plan.groups_per_cta + (int)threadIdx.x / 128;
  __shared__ uint64_t spans[16][2];
  uint64_t *span = spans[threadIdx.x / 32];
  __syncthreads();
  stream(plan.which[group], plan.amount[group], sink, r, span);
  __syncwarp();
  if (threadIdx.x % 32 == 0) notes[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = {span[0], span[1], sm_id()};
}

/* Cycles from the first start on the SM to the group's end. */
static std::vector<double> ends(const Plan &plan, int groups) {
  static Note *notes = device_alloc<Note>(1 << 14);
  static uint32_t *sink = device_alloc<uint32_t>(1024);
  int ctas = groups / plan.groups_per_cta, warps = 4 * plan.groups_per_cta, sms = num_sms();
  allow_shared(share, whole_sm_bytes);
  for (int warm = 0; warm < 2; warm++)
    share<<<sms * ctas, 32 * warps, whole_sm_bytes / ctas>>>(plan, notes, sink, 3, sms);
  finish();
  std::vector<Note> all = to_host(notes, (size_t)(sms * ctas * warps));
  std::vector<double> sum((size_t)groups);
  int used = 0;
  for (int sm = 0; sm < sms; sm++) {
    std::vector<Note> here;
    for (const Note &note : all)
      if ((int)note.sm == sm) here.push_back(note);
    if ((int)here.size() != ctas * warps) continue;
    uint64_t first = here[0].start;
    for (const Note &note : here) first = std::min(first, note.start);
    for (size_t i = 0; i < here.size(); i++) sum[i / 4] += (double)(here[i].stop - first) / 4;
    used++;
  }
  for (double &s : sum) s /= used;
  return sum;
}

int main() {
  const double wanted_cycles = 80000;
  std::vector<double> alone(num_streams);
  for (int a = 0; a < num_streams; a++) {
    Plan plan = {{a}, {128}, 1};
    alone[(size_t)a] = ends(plan, 1)[0] / 128;
    char variant[96];
    snprintf(variant, sizeof variant, "alone_%s", names[a]);
    row("stream_pairs", variant, "which", 0, "ended", alone[(size_t)a], "cycles");
  }
  for (int mode = 0; mode < 2; mode++)
    for (int a = 0; a < num_streams; a++)
      for (int b = 0; b < num_streams; b++) {
        int rounds_a = (int)(wanted_cycles / alone[(size_t)a]),
            rounds_b = (int)(wanted_cycles * 1.6 / alone[(size_t)b]);
        Plan plan = {{a, b}, {rounds_a, rounds_b}, mode + 1};
        std::vector<double> at = ends(plan, 2);
        char variant[96];
        snprintf(variant, sizeof variant, "%s_%s_%s", mode ? "warps" : "ctas", names[a], names[b]);
        row("stream_pairs", variant, "which", 0, "ended", at[0] / rounds_a, "cycles");
        row("stream_pairs", variant, "which", 1, "ended", at[1] / rounds_b, "cycles");
      }
  return 0;
}
