// What a launch's instructions amount to, counted from its programs without running them: exact for the whole grid.
//
// Only quantities that no timing can change: instructions, tensor operations, shared-memory wavefronts, sectors of
// global accesses. Loop trip counts are evaluated for every tile; bodies are counted once.
#ifndef FTL_ENGINE_WORK_H
#define FTL_ENGINE_WORK_H

#include <stdint.h>

#include "arch/arch.h"
#include "lower/warp_program.h"
#include "tile/tile.h"

// What an instruction keeps busy: the column of FTL_OPCODES. MARK: of the compressed form, never issues.
typedef enum ftl_work_class {
  FTL_WORK_MARK,
  FTL_WORK_FP32,
  FTL_WORK_ALU,
  FTL_WORK_IMAD,
  FTL_WORK_HALF,
  FTL_WORK_CVT,
  FTL_WORK_SFU,
  FTL_WORK_TENSOR,
  FTL_WORK_MIO,
  FTL_WORK_TMA,
  FTL_WORK_BRANCH,
  FTL_WORK_COUNT
} ftl_work_class;

// Which of an SM's parts the opcode keeps busy.
ftl_work_class ftl_work_class_of(ftl_opcode opcode);

typedef struct ftl_static_work {
  int64_t warp_insts, tensor_insts;
  int64_t tensor_macs;         // multiply-adds, padding and masked tiles included
  int64_t tensor_fp16_macs;    // fp16 multiply-adds that read as many operand bytes: what energy goes by
  int64_t tensor_busy_cycles;  // sub-core cycles of the tensor pipe
  int64_t shared_wavefronts, bank_conflicts;
  int64_t insts[FTL_WORK_COUNT];  // warp_insts by class
} ftl_static_work;

// `num_started`: CTAs that start; of a persistent program, fewer than it has tiles.
ftl_static_work ftl_static_work_of(const ftl_warp_program *program, int64_t num_started);

// The same for one CTA and cut at the outermost loops: segments[2k] is the straight code before loop k,
// segments[2k + 1] one iteration of it without the loops in it, the last the code behind all loops. All roles together:
// place_of_loop[i] is k of the program's loop i, or -1 of one whose body is cut as the code around it, with a loop that
// never runs where it begins and where it ends; what a role has beyond `num_segments` is left out.
void ftl_static_work_of_segments(const ftl_warp_program *program, const int32_t *place_of_loop,
                                 ftl_static_work *segments, int32_t num_segments);

// What a launch has to read and write, each byte once.
typedef struct ftl_compulsory_bytes {
  int64_t read, written;
} ftl_compulsory_bytes;
// By what the tensors that it touches need: those that it stores to are written, the others read.
ftl_compulsory_bytes ftl_compulsory_bytes_of(const ftl_tile_program *program);

#endif
