#!/usr/bin/env python3
"""Who waits for operands beside a product, and what stands still meanwhile: cycles an instruction of two warps of a sub-core, whose stall counts
we choose, while a third one multiplies.

    control_fields.py [OUT.csv]    default measurements/control_fields.csv; needs nvcc and a GPU, loads cubins through the driver

One CTA; of each sub-core's three warps the first multiplies (HMMA, or wgmma of a warpgroup), the others loop over independent instructions of one
kind each. Before the code is loaded the stall counts of these instructions and of HMMA are overwritten, and HMMA's flags of operands to be kept
for the next one. Each of the three is timed while the other two go on for longer."""
import csv
import ctypes
import itertools
import pathlib
import subprocess
import sys
import tempfile

import sass
import tools

ARCH, BODY, ROUNDS, CHAINS, WGMMAS = "sm_90a", 128, 30, 8, 8
HMMA = 0x03C
KINDS = {  # opcode, PTX
    "FMUL": (0x020, "{ .reg .f32 f; mov.b32 f, %0; mul.rn.f32 f, f, 0f3F800001; mov.b32 %0, f; }"),
    "FADD": (0x021, "{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; add.rn.f32 f, f, g; mov.b32 %0, f; }"),
    "FFMA": (0x023, "{ .reg .f32 f, g, h; mov.b32 f, %0; mov.b32 g, %1; mov.b32 h, %2; fma.rn.f32 f, f, g, h; mov.b32 %0, f; }"),
    "FMNMX": (0x009, "{ .reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; max.f32 f, f, g; mov.b32 %0, f; }"),
    "LOP3": (0x012, "lop3.b32 %0, %0, %1, %2, 0x6a;"),
    "MUFU": (0x108, "{ .reg .f32 f; mov.b32 f, %0; ex2.approx.ftz.f32 f, f; mov.b32 %0, f; }"),
    "SHFL": (0x189, "shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;"),
    "LDGSTS": (0x1AE, "cp.async.cg.shared.global [%3], [%4], 16, 0;"),
}
PAIRS = [("FMUL", "FMNMX"), ("FADD", "FMNMX"), ("FFMA", "FMNMX"), ("FMNMX", "FMUL"), ("LOP3", "FMUL"), ("MUFU", "FMNMX"), ("SHFL", "FMNMX"), ("LDGSTS", "FMNMX")]
PRODUCTS = ["HMMA", "HMMA with A kept", "m64n64k16", "m64n128k16", "m64n256k16", "m64n128k16 of registers"]
STALLS_OF_SECOND, STALLS_OF_THIRD = (0, 1, 2, 3, 4, 5, 6, 8, 11), (0, 4, 8)  # 0: it does nothing


def loop(kind):
    return "\n".join(f'asm volatile("{KINDS[kind][1]}" : "+r"(x[{i % CHAINS}]) : "r"(y), "r"(z), "r"(at), "l"(out));' for i in range(BODY))


def hmma():
    d = "".join(f'asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%0,%1,%2,%3}}, {{%4,%5,%6,%7}}, {{%8,%9}}, {{%0,%1,%2,%3}};" : '
                f'"+f"(d[{4 * i}]), "+f"(d[{4 * i + 1}]), "+f"(d[{4 * i + 2}]), "+f"(d[{4 * i + 3}]) : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(p[4]), "r"(p[5]));\n'
                for i in [i % CHAINS for i in range(BODY)])
    return 4 * CHAINS, d


def wgmma(n, a_in_registers):
    num = n // 2
    sums = ",".join(f"%{i}" for i in range(num))
    a = "{" + ",".join(f"%{num + 2 + i}" for i in range(4)) + "}" if a_in_registers else f"%{num}"
    outs = ",".join(f'"+f"(d[{i}])' for i in range(num))
    ins = '"l"(da), "l"(db)' + ("".join(f',"r"(p[{i}])' for i in range(4)) if a_in_registers else "")
    one = f'asm volatile("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{sums}}}, {a}, %{num + 1}, 1, 1, 1{"" if a_in_registers else ", 0"}, 0;" : {outs} : {ins});\n'
    return num, ('asm volatile("wgmma.fence.sync.aligned;" ::: "memory");\n' + one * WGMMAS +
                 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");\n')


def source(product, second, third):
    num_sums, multiply = hmma() if product.startswith("HMMA") else wgmma(int(product[4:].split("k")[0]), product.endswith("registers"))
    return f"""extern "C" __global__ void __launch_bounds__(384, 1) kernel(unsigned *out, int first, int second, int third) {{
  __shared__ __align__(1024) unsigned char tile[45056];
  unsigned begin, end, sum = 0, p[6];
  int role = threadIdx.x / 128;
  for (int i = threadIdx.x; i < 45056 / 4; i += 384) ((unsigned *)tile)[i] = 0;
  for (int i = 0; i < 6; i++) p[i] = threadIdx.x + i;
  unsigned shared = (unsigned)__cvta_generic_to_shared(tile);
  __syncthreads();
  if (role == 0) {{
    float d[{num_sums}];
    for (int i = 0; i < {num_sums}; i++) d[i] = threadIdx.x;
    unsigned long long da = (shared >> 4 & 0x3fff) | 1ull << 16 | 64ull << 32 | 1ull << 62, db = da + 512;
    begin = clock();
#pragma unroll 1
    for (int round = 0; round < first; round++) {{ {multiply} }}
    end = clock();
    for (int i = 0; i < {num_sums}; i++) sum += (unsigned)d[i];
    sum += (unsigned)(da + db) + p[4] + p[5];
  }} else {{
    unsigned x[{CHAINS}], at = shared + 43008 + threadIdx.x % 128 * 16, y = threadIdx.x * 7 + 0x3f800000, z = threadIdx.x * 5 + 0x3f800000;
    for (int i = 0; i < {CHAINS}; i++) x[i] = 0x3f800000 + threadIdx.x + i;
    begin = clock();
    if (role == 1) {{
#pragma unroll 1
      for (int round = 0; round < second; round++) {{ {loop(second)} }}
    }} else {{
#pragma unroll 1
      for (int round = 0; round < third; round++) {{ {loop(third)} }}
    }}
    end = clock();
    for (int i = 0; i < {CHAINS}; i++) sum += x[i];
    sum += at + y + z;
  }}
  if (threadIdx.x % 32 == 0) {{ out[2 * (threadIdx.x / 32)] = begin; out[2 * (threadIdx.x / 32) + 1] = end; }}
  if (sum == 12345) out[1000] = sum;
}}
"""


def cubin_of(*what):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "k.cu").write_text(source(*what))
        subprocess.run(["nvcc", "-O3", "-w", f"-arch={ARCH}", "-cubin", "-o", folder / "k.cubin", folder / "k.cu"], check=True)
        return (folder / "k.cubin").read_bytes()


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.memory = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(8192))

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            sys.exit(f"{name}: error {status}")

    def cycles(self, cubin, rounds):
        """Of each role, in the mean of its four warps; the last of three launches."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"kernel")
        ints = [ctypes.c_int(r) for r in rounds]
        args = (ctypes.c_void_p * 4)(ctypes.addressof(self.memory), *(ctypes.addressof(i) for i in ints))
        for _ in range(3):
            self.call("cuLaunchKernel", function, 1, 1, 1, 384, 1, 1, 0, None, args, None)
        self.call("cuCtxSynchronize")
        values = (ctypes.c_uint32 * 24)()
        self.call("cuMemcpyDtoH_v2", values, self.memory, ctypes.c_size_t(96))
        self.call("cuModuleUnload", module)
        taken = [values[2 * i + 1] - values[2 * i] & 0xFFFFFFFF for i in range(12)]
        return [sum(taken[4 * role:4 * role + 4]) / 4 for role in range(3)]


def measure(driver, product, second, third, of_second, of_third, cubin):
    fields = {KINDS[second][0]: (of_second or 1, None), KINDS[third][0]: (of_third or 1, None)}
    insts_a_round, least_cycles = WGMMAS, 0
    if product.startswith("HMMA"):
        fields[HMMA] = (6, 1 if product.endswith("kept") else 0)
        insts_a_round, least_cycles = BODY, 6
    else:
        least_cycles = int(product[4:].split("k")[0]) / 2
    code = sass.with_fields(cubin, fields, BODY)
    span = ROUNDS * BODY * 20
    lasting = [int(2 * span / insts_a_round / least_cycles), -(-2 * span // BODY // (of_second or 1)), -(-2 * span // BODY // (of_third or 1))]
    timed = [int(span / insts_a_round / least_cycles / 3), ROUNDS, ROUNDS]
    of_round = [insts_a_round, BODY, BODY]
    there = [True, of_second > 0, of_third > 0]
    cycles = []
    for role in range(3):
        rounds = [(timed if r == role else lasting)[r] if there[r] else 0 for r in range(3)]
        cycles.append(f"{driver.cycles(code, rounds)[role] / rounds[role] / of_round[role]:.3f}" if there[role] else "")
    return {"product": product, "second": second if of_second else "", "third": third if of_third else "", "stall_second": of_second or "",
            "stall_third": of_third or "", "cycles_product": cycles[0], "cycles_second": cycles[1], "cycles_third": cycles[2]}


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent / "measurements" / "control_fields.csv"
    driver, rows = Driver(), []
    for product, (second, third) in itertools.product(PRODUCTS, PAIRS):
        cubin = cubin_of(product, second, third)
        rows += [measure(driver, product, second, third, a, b, cubin) for a, b in itertools.product(STALLS_OF_SECOND, STALLS_OF_THIRD)]
    with open(out, "w", newline="") as file:
        for key, value in {**tools.provenance(), "clocks": "as found", "by": "kernels/control_fields.py"}.items():
            file.write(f"# {key}: {value}\n")
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
