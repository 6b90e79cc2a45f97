#!/usr/bin/env python3
"""Writes the header that it is given: wgmma.m64nNk16 for scores (Q and K in shared memory) and values (P in registers, V transposed)."""
import sys

SCORE_WIDTHS, VALUE_WIDTHS = (64, 128, 176), (64, 128)

HEAD = """/* Written by gen_wgmma.py. */
#pragma once

#include <cstdint>

#include "number.h"

namespace mixed_e {
"""


def numbered(first, count):
    return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


def wrapped(items, indent, width=116):
    lines, line = [], ""
    for item in items:
        if line and indent + len(line) + len(item) + 2 > width:
            lines.append(line + ",")
            line = item
        else:
            line = f"{line}, {item}" if line else item
    return (",\n" + " " * indent).join([l.rstrip(",") for l in lines] + [line])


def statement(width, dtype, in_registers):
    count = width // 2
    name = f"wgmma.mma_async.sync.aligned.m64n{width}k16.f32.{dtype}.{dtype}"
    if in_registers:
        operands = f"{numbered(count, 4)}, %{count + 4}, p, 1, 1, 1;"
        inputs = [f'"r"(a[{i}])' for i in range(4)] + ['"l"(b)']
        before = "setp.eq.b32 p, 0, 0;"
    else:
        operands = f"%{count}, %{count + 1}, p, 1, 1, 0, 0;"
        inputs = ['"l"(a)', '"l"(b)', '"r"(accumulate)']
        before = f"setp.ne.b32 p, %{count + 2}, 0;"
    outputs = wrapped([f'"+f"(d[{i}])' for i in range(count)], 10)
    return f'''    asm volatile(
        "{{.reg .pred p; {before} {name} "
        "{numbered(0, count)}, "
        "{operands}}}"
        : {outputs}
        : {", ".join(inputs)});
'''


def function(width, in_registers):
    kind, a = ("values", "const uint32_t (&a)[4]") if in_registers else ("scores", "uint64_t a")
    last = "" if in_registers else ", int accumulate"
    return f"""
template <class T>
__device__ inline void wgmma_{kind}(float (&d)[{width // 2}], {a}, uint64_t b{last}) {{
  if constexpr (independent::is_bf16<T>)
{statement(width, "bf16", in_registers)}  else
{statement(width, "f16", in_registers)}}}
"""


def main():
    text = HEAD + "".join(function(n, False) for n in SCORE_WIDTHS) + "".join(function(n, True) for n in VALUE_WIDTHS)
    with open(sys.argv[1], "w") as output:
        output.write(text + "\n}  // namespace mixed_e\n")


main()
