// The warp program: what each warp issues, compressed: per role a list of instructions with loops, not a flat trace.
//
// The contract between lower/, which writes it, and machine/ and engine/, which time it. Expressions are those of the
// tile program it was lowered from (evaluated at the CTA and the warp's loop variables).
#ifndef FTL_LOWER_WARP_PROGRAM_H
#define FTL_LOWER_WARP_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "lower/product.h"
#include "tile/tile.h"

enum {
  FTL_NO_TOKEN = 0xffff,
  FTL_NO_ACCESS = 0xffff,
  FTL_NO_RING = 0xff,
  FTL_MAX_SOURCES = 4,
  FTL_MAX_TOKENS = 1024,
  FTL_MAX_BARRIER_IDS = 16,
  FTL_WIDE_INTERVALS = 2  // of the IMAD pipe that a 64-bit product takes: IMAD.HI 4.06 cycles, micro_wgmma_beside.csv
};

// X(name, pipe, text). Pipes: fp32, alu, imad, half, cvt, sfu (mapped by the arch model), tensor, mio (memory
// instructions: per sub-core queue, then the SM's shared LSU), tma, branch (control: issue slot only), none (pseudo).
// The formatter does not settle on a list with comments.
// clang-format off
#define FTL_OPCODES(X)                                                                                             \
  X(FFMA, FP32, "FFMA") /* also FADD, FMUL */                                                                      \
  X(FMNMX, ALU, "FMNMX")                                                                                           \
  X(IADD, ALU, "IADD3")                                                                                            \
  X(LOP, ALU, "LOP3")                                                                                              \
  X(ISETP, ALU, "ISETP") X(SEL, ALU, "SEL") X(PRMT, ALU, "PRMT") X(IMAD, IMAD, "IMAD")                             \
  X(IMAD_WIDE, IMAD, "IMAD.WIDE") /* 64-bit products: of random numbers, addresses */                              \
  X(MOV, IMAD, "MOV")                                                                                              \
  X(HFMA2, HALF, "HFMA2") X(HSET2, HALF, "HSET2") /* compares two numbers of 16 bits */                            \
  X(CVT, CVT, "F2FP") X(MUFU, SFU, "MUFU") /* arg: its ftl_elem_fn */                                              \
  X(S2R, ALU, "S2R") X(LDC, ALU, "LDC")                                                                            \
  X(UNIFORM, BRANCH,                                                                                               \
  "UIADD3") /* uniform datapath (UIADD3, UMOV, ULOP3, ELECT): an issue slot, no pipe of the warp's */              \
  X(R2UR, ALU, "R2UR") /* to a uniform register */                                                                 \
  X(MMA, TENSOR, "HMMA")                                                                                           \
  X(WGMMA_ARRIVE, BRANCH, "WARPGROUP.ARRIVE") /* wgmma.fence: operand registers are settled */                     \
  X(WGMMA, TENSOR, "HGMMA")                                                                                        \
  X(WGMMA_COMMIT, NONE, "WARPGROUP.COMMIT") /* closes a group of wgmmas; no instruction of its own */              \
  X(WGMMA_WAIT, BRANCH, "WARPGROUP.DEPBAR")     /* arg: groups that may still be in flight */                      \
  X(SHFL, MIO, "SHFL") X(LDS, MIO, "LDS") X(STS, MIO, "STS") X(LDSM, MIO, "LDSM") X(LDG, MIO, "LDG")               \
  X(STG, MIO, "STG") X(RED, MIO, "RED") X(LDL, MIO, "LDL") X(STL, MIO, "STL") /* local memory: spills */           \
  X(CP_ASYNC, MIO, "LDGSTS") X(CP_COMMIT, MIO, "LDGDEPBAR") /* closes this warp's group of cp.asyncs */            \
  X(CP_WAIT, BRANCH, "DEPBAR") /* arg: this warp's groups that may still be in flight */                           \
  X(TMA_LOAD, TMA, "UTMALDG")  /* one bulk tensor copy into the ring's stage being filled */                       \
  X(TMA_STORE, TMA, "UTMASTG") X(TMA_STORE_WAIT, BRANCH, "UTMACMDFLUSH") X(FENCE_PROXY, MIO, "FENCE.VIEW.ASYNC")   \
  X(BAR_SYNC, BRANCH, "BAR.SYNC")         /* arg: barrier id: waits until its warps have come (barrier_warps) */   \
  X(BAR_ARRIVE, BRANCH, "BAR.ARV")        /* arg: barrier id: counts as one of those warps, does not wait */       \
  X(TILE_ASK, MIO, "ATOMG") /* dynamic tiles: takes the CTA's next tile from the counter in memory */                \
  X(TILE_WAIT, BRANCH, "BAR.SYNC.TILE") /* waits until the number of the CTA's next tile has come */                 \
  X(MBAR_ACQUIRE, MIO, "SYNCS.TRYWAIT.EMPTY") /* ring: wait until the stage to fill is empty */                    \
  X(MBAR_EXPECT, MIO, "SYNCS.ARRIVE.TX")      /* ring: producer's arrival, expects the TMA bytes of this stage */  \
  X(MBAR_ADVANCE, NONE, "ADVANCE") /* ring (any kind): the stage this warp fills is the next one (pseudo) */       \
  X(MBAR_WAIT, MIO,                                                                                                \
  "SYNCS.TRYWAIT.FULL") /* ring: wait until the oldest unread stage is full; then it is being read */              \
  X(MBAR_RELEASE, MIO, "SYNCS.ARRIVE") /* ring: this warp has read the stage it waited for first */                \
  X(RING_READ, NONE, "ring.read") /* ring without mbarriers: this warp's reads are of its next stage from here on; \
  never issues, no effect on timing: for the checker */                                                            \
  X(RING_FREE, NONE,                                                                                               \
  "ring.free") /* ring without mbarriers: this warp reads the oldest stage it took no more; same */                \
  X(LABEL, NONE, "label") /* where the path around a guarded block joins; never issues */                          \
  X(RESERVE, NONE, "reserve") /* of drafts only: sets registers aside (select/operand_blocks.c) */                 \
  X(SETMAXREG, BRANCH, "USETMAXREG") X(BRA, BRANCH, "BRA") X(NOP, BRANCH, "NOP")                                   \
  X(BSYNC, BRANCH, "BSYNC") /* where the paths around a block of some lanes join: once for each path */            \
  X(EXIT, BRANCH, "EXIT") /* control of the compressed form: never issue, cost nothing */                          \
  X(LOOP, NONE, "loop")       /* loop: see ftl_warp_loop; skips to end + 1 when empty */                           \
  X(END_LOOP, NONE, "end")    /* back to begin + 1, or on */                                                       \
  X(TILE, NONE, "tile")       /* evaluates tile reference `access` for the accesses that follow */                 \
  X(NEXT_TILE, NONE, "next")  /* where a persistent CTA's warp goes on with each tile after its first */
// clang-format on

typedef enum ftl_opcode {
#define X(name, pipe, text) FTL_OP_##name,
  FTL_OPCODES(X)
#undef X
      FTL_OPCODE_COUNT
} ftl_opcode;

const char *ftl_opcode_name(ftl_opcode opcode);

enum {
  FTL_INST_WARP0 = 1,        // only warp 0 of the role executes it (elected); the others do not even issue it
  FTL_INST_LOOP_BRANCH = 2,  // BRA at a loop's end: taken unless it is the last iteration
  FTL_INST_IF_PRESENT = 4,   // issues always; acts only if its tile reference is present
  FTL_INST_BYPASS_L1 = 8,    // global access that does not allocate in L1 (cp.async.cg, TMA)
  FTL_INST_GUARD = 32,       // BRA around a guarded block to its LABEL: not taken
  FTL_INST_SKIPS = 64,       // of a GUARD: taken, over code for rare numbers that is not here
  FTL_INST_TRIED = 64,       // of an MBAR_WAIT: it was tried long before, and what is left is a branch on the result
  FTL_INST_WARPGROUP = 16,   // BAR_SYNC among the warps of one warpgroup instead of the role
  FTL_INST_RUNS_ON = 128,    // RING_FREE of a stage that wgmmas still read, until they are waited for in the next step
};

enum { FTL_SEL_DROPS = 1 };
enum { FTL_LOP_PACKS = 1, FTL_LOP_TESTS = 2 };
enum { FTL_FP32_BY_CONSTANT = 1, FTL_FP32_BY_ROW = 2 };

typedef struct ftl_warp_inst {
  uint8_t opcode;
  uint8_t repeat;  // a run of this many independent instructions of the class, each `interval` apart; >= 1
  uint8_t flags;
  uint8_t num_sources;
  uint8_t num_awaited;   // of these, the last ones: not read, their results share a scoreboard with one that is
  uint16_t destination;  // token, ready when the last of the run has finished; FTL_NO_TOKEN
  uint16_t sources[FTL_MAX_SOURCES];
  uint16_t access;  // LDG/STG/RED/CP_ASYNC/TMA_*/LDL/STL: index into accesses; TILE: into refs; else FTL_NO_ACCESS
  uint16_t
      wavefronts;  // LDS/STS/LDSM/CP_ASYNC/LDG/STG: shared-memory or L1 data cycles of ONE instruction, conflicts in
  uint16_t conflicts;  // of these, cycles beyond the conflict-free number (bank conflicts)
  uint16_t arg;        // WGMMA: N; *_WAIT: groups left in flight; BAR_SYNC: barrier id; MBAR_*, TMA_*: ring;
                       // LOOP/END_LOOP: index into loops; STS: bytes a lane, 0: 4; MUFU: ftl_elem_fn;
                       // SEL: FTL_SEL_DROPS where a random number decides; LOP: FTL_LOP_PACKS of predicates into a
                       // register (P2R), FTL_LOP_TESTS whose result is a predicate;
                       // FFMA: FTL_FP32_BY_* of a product whose second factor is no register, or the same for the run
  uint8_t
      ring_a;  // LDSM, LDS, WGMMA (A operand): ring whose waited-for stage it reads; CP_ASYNC, TMA_LOAD, STS, LDG:
               // ring whose stage being filled it (or, LDG, its STS) writes; else FTL_NO_RING (staging of stores too)
  uint8_t ring_b;      // WGMMA (B operand); else FTL_NO_RING
  uint8_t scoreboard;  // LDG: on which it counts among its warp's, from 1 on, where others do too; 0: on none of these
  uint8_t awaits;  // scoreboards that all loads have come of before it issues: a bit each, that of number 1 the first
} ftl_warp_inst;

// Whether the result is a predicate, and whether an instruction that reads one hangs on it altogether (@P): compares,
// selections and packing read it like a register.
static inline bool ftl_sets_predicate(int32_t opcode, int32_t arg) {
  return opcode == FTL_OP_ISETP || (opcode == FTL_OP_LOP && arg == FTL_LOP_TESTS);
}
static inline bool ftl_is_guarded_by_predicate(int32_t opcode, int32_t arg) {
  return opcode != FTL_OP_ISETP && opcode != FTL_OP_SEL && opcode != FTL_OP_BRA &&
         !(opcode == FTL_OP_LOP && arg == FTL_LOP_PACKS);
}

typedef struct ftl_warp_loop {
  int32_t loop_var;
  ftl_expr lo, hi;
  int32_t begin, end;  // indices of the LOOP and END_LOOP instructions, counted from the role's first_inst
} ftl_warp_loop;

// The sectors that one memory instruction of one warp touches: `num_rows` rows of the tile, starting at
// row + warp * warp_row_step, each `bytes` bytes from `column_byte` on. Rows and columns beyond the tensor are skipped.
// Where several warps share a row (row_warps > 1), those of one row follow each other: warp w has row
// row + w / row_warps * warp_row_step and the bytes from column_byte + w % row_warps * warp_column_bytes on.
enum { FTL_LANE_WORDS = 4, FTL_PAIR_WORDS = 2 };  // of 4 bytes that a lane's 16, or a fragment's 8, are
typedef struct ftl_access {
  uint16_t ref;  // tile reference
  uint16_t num_rows;
  int32_t row;            // within the tile, for warp 0
  int32_t warp_row_step;  // added per warp of the role (index within the role)
  int32_t row_step;       // distance between consecutive rows of this access (1 for adjacent rows)
  int32_t column_byte, bytes;
  int32_t row_warps;          // 0 and 1: a warp has rows of its own
  int32_t warp_column_bytes;  // 0: the warps of a row touch the same bytes
  bool first_of_row;          // only the first of the warps of a row touches anything
  bool is_reread;             // bytes that the warp has read before: each row of a page that looks its entry up
  bool in_words;              // each repetition (FTL_LANE_WORDS; RED: FTL_PAIR_WORDS) has a word of every lane
  bool in_subwords;           // less than 4 bytes a lane
  bool is_local;  // spill slots row .. row + num_rows - 1 of 128 bytes each, private to the warp; no ref, warp step
} ftl_access;

typedef struct ftl_warp_role {
  char name[FTL_TILE_NAME_BYTES];
  int32_t num_warps, first_warp;
  int32_t num_tokens;
  int32_t num_registers;  // per thread while this role runs
  int32_t first_inst, num_insts;
  int32_t tile_inst;  // of these: a persistent CTA's warp goes on here with its next tile (its NEXT_TILE, or 0)
} ftl_warp_role;

typedef struct ftl_warp_ring {
  int32_t num_stages;
  int32_t stage_bytes;
  int32_t box_bytes;           // of a row that one TMA_LOAD takes, past the tensor's last column too; 0: not by TMA
  int32_t num_consumer_warps;  // of this CTA: as many arrivals of each CTA that shares its loads empty a stage
  bool uses_mbarrier;
  ftl_multicast multicast;  // a TMA_LOAD names the whole tile; this CTA copies its share of the rows, to all that share
} ftl_warp_ring;

typedef enum ftl_copy { FTL_COPY_AUTO, FTL_COPY_LDG, FTL_COPY_CP_ASYNC, FTL_COPY_TMA } ftl_copy;
typedef enum ftl_mma { FTL_MMA_AUTO, FTL_MMA_MMA, FTL_MMA_WGMMA } ftl_mma;

typedef struct ftl_warp_program {
  const ftl_tile_program *tile;  // borrowed; must outlive this
  ftl_copy copy;                 // resolved, never AUTO
  ftl_mma mma;
  int32_t num_roles, num_insts, num_loops, num_refs, num_accesses, num_rings;
  ftl_warp_role roles[FTL_TILE_MAX_ROLES];
  ftl_warp_inst *insts;
  ftl_warp_loop *loops;
  ftl_tile_ref *refs;
  ftl_access *accesses;
  ftl_warp_ring rings[FTL_TILE_MAX_RINGS];

  int32_t num_warps;             // of a CTA
  int32_t registers_per_thread;  // as the compiler reports: launch__registers_per_thread
  int32_t spill_registers;       // per thread, beyond the cap
  int32_t shared_bytes;          // dynamic + static, without the driver's reserve
  int32_t num_barriers;
  int32_t barrier_warps[FTL_MAX_BARRIER_IDS];  // by id: warps that end a phase; 0: those of the role that uses it
  int32_t local_bytes_per_thread;
  ftl_product product;  // what its MMAs and WGMMAs multiply
  int32_t row_lanes;    // lanes of a warp that hold the same row of an accumulator, and so repeat what is done per row
  int32_t operand_copies;  // lanes that hold the same element of a 16-bit operand
  ftl_arena arena;         // owns all arrays
} ftl_warp_program;

void ftl_warp_program_destroy(ftl_warp_program *program);
// All CTAs run every loop as often.
bool ftl_warp_program_has_ctas_alike(const ftl_warp_program *program);

#endif
