#include "engine/sampled/segment_code.h"

#include "engine/work.h"

enum { INST_BYTES = 16 };

// The loop's place, or -1 of one in it.
static int32_t place_of(const ftl_segments *segments, const ftl_warp_inst *inst) {
  return inst->opcode == FTL_OP_LOOP ? segments->place_of_loop[inst->arg] : -1;
}

static bool repeat_alike(const ftl_segments *segments, const ftl_warp_program *program, int64_t a, int64_t b) {
  int64_t first;
  for (int32_t k = 0; k < segments->num_loops; k++)
    if (ftl_segments_trips(segments, program, k, a, &first) != ftl_segments_trips(segments, program, k, b, &first))
      return false;
  return true;
}

// Whether more than half of the CTAs, or of as many picked all over the grid, repeat their loops as often.
static bool go_the_same_way(const ftl_segments *segments, const ftl_warp_program *program) {
  enum { MOST_COMPARED = 64 };
  const int64_t far_apart = 0x9e3779b1;  // the golden ratio of 2^32, a prime: no grid has its period
  int64_t num_ctas = program->tile->num_ctas, num = num_ctas < MOST_COMPARED ? num_ctas : MOST_COMPARED;
  for (int64_t i = 0; i < num; i++) {
    int64_t alike = 0;
    for (int64_t k = 0; k < num; k++)
      alike += repeat_alike(segments, program, i * far_apart % num_ctas, k * far_apart % num_ctas);
    if (2 * alike > num) return true;
  }
  return false;
}

void ftl_segment_code_init(ftl_segment_code *out, const ftl_segments *segments, const ftl_warp_program *program,
                           int64_t cache_bytes) {
  *out = (ftl_segment_code){.cache_bytes = cache_bytes, .stays = true};
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
    bool issues = ftl_work_class_of(inst->opcode) != FTL_WORK_MARK;
    int64_t bytes = issues ? (int64_t)INST_BYTES * inst->repeat : 0;
    out->bytes[segment] += bytes;
    all += bytes;
    if (i == loop_end) segment++;
  }
  out->stays = cache_bytes == 0 || all <= cache_bytes || go_the_same_way(segments, program);
}

bool ftl_segment_code_is_refetched(const ftl_segment_code *code, int32_t own, int64_t trips, int64_t iteration,
                                   uint64_t others) {
  uint64_t is_own = UINT64_C(1) << own;
  if (code->stays || others == 0) return false;
  if (trips <= 1) return true;
  if (iteration == 0 && !(others & is_own)) return true;
  int64_t together = code->bytes[own];
  for (others &= ~is_own; others != 0; others &= others - 1) {
    together += code->bytes[__builtin_ctzll(others)];
    if (together > code->cache_bytes) return true;
  }
  return false;
}
