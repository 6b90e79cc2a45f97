// The flat trace of a warp program as text, for people and other tools.
#ifndef FTL_LOWER_TRACE_H
#define FTL_LOWER_TRACE_H

#include <stdio.h>

#include "lower/warp_program.h"

// "warp pc opcode repeat dst srcs | sectors", one instruction a line, warp after warp; at most max_lines lines.
// dst: "T3" or "-"; srcs: "T1,T2" or "-"; sectors: "line:mask" in hexadecimal for each 128-byte line that a memory
// instruction touches (local memory counts from its own address 0), or "-". FTL_IO_FAILED when the file refuses.
FTL_MUST_USE ftl_status ftl_warp_trace_write(FILE *out, const ftl_warp_program *program, int64_t cta, int64_t max_lines,
                                             ftl_error *error);

#endif
