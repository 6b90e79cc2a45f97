#include "engine/sampled/segment_code.h"

enum { INST_BYTES = 16 };

static bool is_code(int32_t opcode) {
  enum {
    PIPE_NONE,
    PIPE_FP32,
    PIPE_ALU,
    PIPE_IMAD,
    PIPE_HALF,
    PIPE_CVT,
    PIPE_SFU,
    PIPE_TENSOR,
    PIPE_MIO,
    PIPE_TMA,
    PIPE_BRANCH
  };
  static const bool issues[FTL_OPCODE_COUNT] = {
#define X(name, pipe, text) [FTL_OP_##name] = PIPE_##pipe != PIPE_NONE,
      FTL_OPCODES(X)
#undef X
  };
  return issues[opcode];
}

// The loop's place, or -1 of one in it.
static int32_t place_of(const ftl_segments *segments, const ftl_warp_inst *inst) {
  return inst->opcode == FTL_OP_LOOP ? segments->place_of_loop[inst->arg] : -1;
}

void ftl_segment_code_init(ftl_segment_code *out, const ftl_segments *segments, const ftl_warp_program *program,
                           int64_t cache_bytes) {
  *out = (ftl_segment_code){.cache_bytes = cache_bytes, .fits = true};
  if (program->num_roles != 1 || program->tile->cluster_ctas > 1 || segments->outer.loop >= 0) return;
  const ftl_warp_role *role = &program->roles[0];
  int64_t all = 0;
  int32_t segment = 0, loop_end = -1;
  for (int32_t i = 0; i < role->num_insts; i++) {
    const ftl_warp_inst *inst = &program->insts[role->first_inst + i];
    if (i > loop_end && place_of(segments, inst) >= 0) {
      segment = 2 * place_of(segments, inst) + 1;
      loop_end = program->loops[inst->arg].end;
    }
    int64_t bytes = is_code(inst->opcode) ? (int64_t)INST_BYTES * inst->repeat : 0;
    out->bytes[segment] += bytes;
    all += bytes;
    if (i == loop_end) segment++;
  }
  out->fits = all <= cache_bytes;
}

bool ftl_segment_code_is_refetched(const ftl_segment_code *code, int32_t own, int64_t trips, int64_t iteration,
                                   uint64_t others) {
  uint64_t is_own = UINT64_C(1) << own;
  if (code->fits || others == 0) return false;
  if (trips <= 1) return true;
  if (iteration == 0 && !(others & is_own)) return true;
  int64_t together = code->bytes[own];
  for (others &= ~is_own; others != 0; others &= others - 1) {
    together += code->bytes[__builtin_ctzll(others)];
    if (together > code->cache_bytes) return true;
  }
  return false;
}
