#!/usr/bin/env python3
"""Writes wgmma_ops.h: wgmma.mma_async m64nNk16, f16 operands, f32 accumulators, for the N that the kernels use."""
import sys

SIZES = (8, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 256)


def operation(n, rs):
    count = n // 2
    accumulators = ",".join(f"%{i}" for i in range(count))
    a_count = 4 if rs else 1
    a = "{" + ",".join(f"%{count + i}" for i in range(4)) + "}" if rs else f"%{count}"
    at = count + a_count
    name = "rs" if rs else "ss"
    arguments = "const uint32_t (&a)[4]" if rs else "uint64_t a"
    a_inputs = ", ".join(f'"r"(a[{i}])' for i in range(4)) if rs else '"l"(a)'
    immediates = f"p, 1, 1, %{at + 2}" if rs else f"p, 1, 1, 0, %{at + 2}"
    outputs = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    return f"""    template <int transpose_b> static __device__ __forceinline__ void {name}(float (&d)[{count}], {arguments}, uint64_t b, int accumulate)
    {{
        asm volatile(
            "{{\\n.reg .pred p;\\nsetp.ne.b32 p, %{at + 1}, 0;\\n"
            "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{accumulators}}}, {a}, %{at}, {immediates};\\n}}\\n"
            : {outputs}
            : {a_inputs}, "l"(b), "r"(accumulate), "n"(transpose_b));
    }}
"""


def main():
    with open(sys.argv[1], "w") as out:
        out.write("#pragma once\n#include <cstdint>\n\ntemplate <int n> struct Wgmma;\n\n")
        for n in SIZES:
            out.write(f"template <> struct Wgmma<{n}> {{\n{operation(n, False)}{operation(n, True)}}};\n\n")


main()
