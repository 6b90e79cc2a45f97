/* Which instructions behind bar.sync a warp issues while it waits for the others to come.
 *
 * Two warps on sub-cores of their own. One comes to the barrier, has 64 of one instruction behind it and then reads
 * shared memory; the other comes x cycles after the start. `behind`: the first warp's cycles from the start to the end
 * of that read. What is issued while it waits adds nothing to x = 6000; what is not adds what it takes (x = 0). The row
 * needs a number that was asked for before the barrier, or it would be put there. */
#include <utility>

#include "bench.h"
using namespace bench;

enum class Op {
  nothing,
  fmul,
  ffma,
  fmnmx,
  imad,
  lop3,
  f2fp,
  vote,
  hmma,
  mufu,
  shfl,
  redux,
  lds,
  ldsm,
  sts,
  ldg,
  stg,
  cp_async,
  commit,
  branch,
  s2r
};
static const char *const names[] = {"nothing", "FMUL", "FFMA", "FMNMX",  "IMAD",      "LOP3", "F2FP",
                                    "VOTE",    "HMMA", "MUFU", "SHFL",   "REDUX",     "LDS",  "LDSM",
                                    "STS",     "LDG",  "STG",  "LDGSTS", "LDGDEPBAR", "BRA",  "S2R"};
constexpr int row_insts = 64;

struct Values {
  float x, a, y[row_insts];
  uint32_t u, v[row_insts], shared;
  uint64_t offset;
  float *global;
};

template <Op op>
__device__ __forceinline__ void one(Values &s, int i) {
  if (op == Op::fmul) asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(s.x) : "f"(s.a));
  if (op == Op::ffma) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(s.x) : "f"(s.a));
  if (op == Op::fmnmx) asm volatile("{ neg.f32 %0, %0; max.f32 %0, %0, %1; }" : "+f"(s.x) : "f"(s.a));
  if (op == Op::imad) asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(s.u));
  if (op == Op::lop3) asm volatile("{ add.u32 %0, %0, %1; xor.b32 %0, %0, %1; }" : "+r"(s.u) : "r"(s.shared));
  if (op == Op::f2fp)
    asm volatile("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %0, %1; mov.b32 %0, p; }" : "+f"(s.x) : "f"(s.a));
  if (op == Op::vote)
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 77; vote.sync.ballot.b32 %0, p, -1; }" : "+r"(s.u));
  float *d = &s.y[4 * (i % 16)]; /* 16 products that do not depend on each other, by turns */
  if (op == Op::hmma)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%4,%5}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(s.v[0]), "r"(s.v[1]), "r"(s.v[2]), "r"(s.v[3]));
  if (op == Op::mufu) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(s.y[i]));
  if (op == Op::shfl) asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+r"(s.v[i]));
  if (op == Op::redux) asm volatile("redux.sync.add.u32 %0, %0, -1;" : "+r"(s.u));
  if (op == Op::lds) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(s.v[i]) : "r"(s.shared + 4 * i) : "memory");
  if (op == Op::ldsm)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(s.v[i])
                 : "r"(s.shared + 16 * i)
                 : "memory");
  if (op == Op::sts) asm volatile("st.shared.u32 [%0], %1;" ::"r"(s.shared), "r"(s.u) : "memory");
  if (op == Op::ldg)
    asm volatile("{ .reg .b64 p; add.u64 p, %1, %0; ld.global.u64 %0, [p]; }"
                 : "+l"(s.offset)
                 : "l"(s.global)
                 : "memory");
  if (op == Op::stg) asm volatile("st.global.f32 [%0], %1;" ::"l"(s.global + 64 + threadIdx.x), "f"(s.x) : "memory");
  if (op == Op::cp_async)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s.shared + 16 * threadIdx.x),
                 "l"(s.global + 4 * threadIdx.x)
                 : "memory");
  if (op == Op::commit) asm volatile("cp.async.commit_group;" ::: "memory");
  if (op == Op::branch) asm volatile("add.u32 %0, %0, %1;" : "+r"(s.u) : "r"(s.shared));
  if (op == Op::s2r) asm volatile("{ .reg .b32 p; mov.u32 p, %%warpid; add.u32 %0, %0, p; }" : "+r"(s.u));
}

template <Op op>
__device__ __forceinline__ void row_of(Values &s) {
  if (op == Op::branch) {
#pragma unroll 1
    for (int i = 0; i < row_insts; i++) one<op>(s, i);
  } else {
#pragma unroll
    for (int i = 0; i < row_insts; i++) one<op>(s, i);
  }
}

/* `zero` is 0, and so is all that is loaded. */
template <Op op>
__global__ __launch_bounds__(64, 1) void early(int late, uint32_t *cycles, float *global, float a, uint32_t zero) {
  __shared__ __align__(128) uint32_t words[1024];
  for (int i = (int)threadIdx.x; i < 1024; i += 64) words[i] = zero;
  Values s = {};
  s.a = s.x = a + (float)(threadIdx.x * zero);
  s.u = zero * threadIdx.x;
  uint32_t at; /* not to be worked out again behind the barrier */
  asm volatile("mov.u32 %0, %1;" : "=r"(at) : "r"((uint32_t)__cvta_generic_to_shared(words)));
  s.shared = at;
  s.global = global;
#pragma unroll
  for (int i = 0; i < row_insts; i++) s.y[i] = s.a + (float)i, s.v[i] = zero * (threadIdx.x + i);
  __syncthreads();
  uint32_t start = clock32();
  if (threadIdx.x >= 32) {
    while ((int)(clock32() - start) < late)
      ;
    __syncthreads();
    return;
  }
  uint32_t later;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(later) : "l"(global + 1024 + threadIdx.x) : "memory");
  __syncthreads();
  s.u += later, s.x += __uint_as_float(later), s.shared += later, s.offset += later;
#pragma unroll
  for (int i = 0; i < row_insts; i++) s.y[i] += __uint_as_float(later), s.v[i] += later;
  row_of<op>(s);
  float sum = s.x + __uint_as_float(s.u) + __uint_as_float((uint32_t)s.offset);
#pragma unroll
  for (int i = 0; i < row_insts; i++) sum += s.y[i] + __uint_as_float(s.v[i]);
  uint32_t read; /* needs what the row made, or it would be put before it */
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(read) : "r"(at + 64 + (__float_as_uint(sum) & zero)) : "memory");
  uint32_t end = clock32() + (read & zero);
  if (threadIdx.x == 0) *cycles = end - start;
  global[128 + threadIdx.x] = sum;
}

template <Op op>
static void measure(uint32_t *cycles, float *global) {
  for (int late : {0, 6000}) {
    for (int warm = 0; warm < 2; warm++) early<op><<<1, 64>>>(late, cycles, global, 1.0f, 0);
    row("barrier_defer", names[(int)op], "late_cycles", late, "behind", to_host(cycles, 1)[0], "cycles");
  }
}

template <int... ops>
static void measure_all(std::integer_sequence<int, ops...>, uint32_t *cycles, float *global) {
  (measure<(Op)ops>(cycles, global), ...);
}

int main() {
  constexpr int num_ops = sizeof names / sizeof *names;
  measure_all(std::make_integer_sequence<int, num_ops>(), device_alloc<uint32_t>(1), device_alloc<float>(4096));
  finish();
  return 0;
}
