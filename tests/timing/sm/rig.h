// One SM with round numbers, hand-written warp code, and a memory of fixed latency.
#ifndef TESTS_TIMING_SM_RIG_H
#define TESTS_TIMING_SM_RIG_H

#include "machine/sm/sm.h"

// The arch of these tests: 4 sub-cores, gto; fp32 and alu interval 1 latency 4; imad on fp32, interval 2 latency 5; sfu
// interval 8 latency 20; cvt on alu interval 2 latency 6; half interval 1 latency 5; tensor interval 8 latency 30;
// branch redirect 6; shared memory 128 B a cycle, LDS 24, ldmatrix 28, SHFL 22 (interval 2), barrier 16 (2 an arrival),
// mbarrier 10; MIO queue 4, intervals 2 and 1; L1 hit 32, 64 lines in flight, fill 128 B a cycle, 16 KiB in 4 ways; TMA
// issue 3, latency 40, 1 line a cycle, 32 lines in flight; wgmma 2048 FMA a cycle, issue 2 (RS 6), tail 12, queue 4;
// one cycle of dispatch each; copies as fast beside them.
ftl_arch rig_arch(void);

enum { RIG_MAX_INSTS = 800, RIG_MAX_LOG = 1 << 16, RIG_TENSOR_ROW_BYTES = 256 };

typedef struct rig_issue {
  int64_t cycle;
  int32_t slot, warp, inst;  // inst: index in the role's code
  int64_t cta;
} rig_issue;

typedef struct rig {
  ftl_arch arch;
  ftl_tile_program tile;  // one tensor of 1024 rows of 256 bytes at address 0, one ref: rows 8 * loop variable 0 on
  ftl_warp_program program;
  ftl_expr_node exprs[32];
  ftl_warp_inst insts[RIG_MAX_INSTS];
  ftl_warp_loop loops[8];
  ftl_tile_ref refs[4];
  ftl_access accesses[8];
  ftl_sm *sm;
  int64_t latency;  // of memory, cycles; 200
  int64_t window;   // cycles an advance; 100, at most the latency
  bool bulk, observe, is_alone, is_code_far, ctas_alike, dynamic_tiles;
  int64_t next_tile;  // of the counter of dynamic tiles
  int64_t num_slots, persistent_stride;
  rig_issue *log;
  int32_t num_issues;
  ftl_mem_request *requests;  // all of them, in order
  int32_t num_requests;
  int64_t end_cycle[32];  // by CTA index mod 32
} rig;

// A program of one role with `num_warps` warps and 32 tokens; roles and the rest can be changed until the first run.
rig *rig_create(int32_t num_warps);
void rig_destroy(rig *r);
int32_t rig_const(rig *r, int64_t value);  // an expression

// Adds an instruction to the role added last; destination and sources are tokens, -1: none.
ftl_warp_inst *rig_add(rig *r, ftl_opcode opcode, int32_t destination, int32_t source);
ftl_warp_inst *rig_add_access(rig *r, ftl_opcode opcode, int32_t destination, uint16_t access);  // of one wavefront
void rig_add_tile(rig *r);                                                                       // TILE of the only ref
// Further roles; the instructions added from here on are theirs.
void rig_role(rig *r, int32_t num_warps);
int32_t rig_loop(rig *r, int32_t variable, int64_t lo, int64_t hi);  // adds LOOP, gives its index
void rig_end_loop(rig *r, int32_t loop);
// `rows` rows of 128 bytes from the tile's row on, warp w starting w * rows further; gives the access's index.
uint16_t rig_access(rig *r, int32_t row, int32_t rows);
int32_t rig_ring(rig *r, int32_t num_stages, int32_t num_consumer_warps);

// Starts CTAs 0 .. num_ctas-1 in their slots at cycle 0 and runs to the end; gives the last CTA's end. 10,000 windows
// at most.
int64_t rig_run(rig *r, int32_t num_ctas);
// The cycle in which instruction `inst` of its role issued first, n-th time (from 0) on `warp` of slot 0; -1: never.
int64_t rig_cycle(const rig *r, int32_t warp, int32_t inst, int32_t nth);
const ftl_sm_counters *rig_counters(const rig *r);
// That every resident warp cycle has one reason.
void rig_check_stalls(const rig *r);

#endif
