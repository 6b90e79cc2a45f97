// What hides keys is lowered as the tile program says, on every generation: windows, block masks, dropout.
#include <criterion/criterion.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};

// Every launch of a workload on every architecture that can run it; gives how many can.
static int prove(const char *workload, const char *parameters, int num_launches) {
  int feasible = 0;
  for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
    for (int launch = 0; launch < num_launches; launch++) {
      programs p;
      ftl_error error = {0};
      bool can = lower_launch(&p, archs[a], workload, parameters, launch, &error) == FTL_OK;
      feasible += can && launch == 0;
      for (int64_t i = 0; can && i < 5; i++) {
        int64_t cta = i * (p.tile->num_ctas - 1) / 4;
        cr_assert_eq(ftl_checker_prove(p.warps, cta, &error), FTL_OK, "%s %s %s CTA %d: %s", archs[a], workload,
                     parameters, (int)cta, error.message);
      }
      programs_fini(&p);
    }
  return feasible;
}

Test(unit_lower_checker_masks, windows_are_proved) {
  static const char shape[] = "heads=2 seqlen_q=300 seqlen_kv=410 head_dim=64 window=150 causal=1 ";
  static const struct {
    const char *workload, *how;
    int num_launches, least_feasible;
  } cases[] = {
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 num_stages=2", 1, 5},
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 schedule=interleaved", 1, 5},
      {"flash2_fwd", "block_m=128 block_n=128 num_warps=4 schedule=interleaved mask_steps=window mma=mma code=buffered",
       1, 5},
      {"flash2_fwd", "block_m=64 block_n=32 num_warps=4 causal=0", 1, 5},
      {"flash2_bwd", "block_m=32 block_n=64 num_warps=4 num_stages=1", 3, 5},
      {"flash3_fwd", "block_n=64", 1, 1},
      {"flash_decode", "block_m=32 block_n=64 num_warps=4 seqlen_q=3 splits=2 mma=mma", 2, 5},
      {"standard_attention", "block_m=64 block_n=64 num_warps=4 mma=mma", 3, 5},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s", shape, cases[i].how);
    cr_expect_eq(prove(cases[i].workload, parameters, cases[i].num_launches), cases[i].least_feasible, "%s %s",
                 cases[i].workload, parameters);
  }
}

Test(unit_lower_checker_masks, block_masks_are_proved) {
  static const char shape[] = "heads=2 seqlen=800 head_dim=64 mask=local_global mask_width=2 causal=1 ";
  static const struct {
    const char *workload, *how;
    int feasible;
  } cases[] = {{"flash2_fwd", "block_m=64 block_n=32 num_warps=4 num_stages=2", 5},
               {"flash2_fwd", "block_m=64 block_n=64 num_warps=4 schedule=interleaved", 5},
               {"flash3_fwd", "block_n=64", 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s", shape, cases[i].how);
    cr_expect_eq(prove(cases[i].workload, parameters, 1), cases[i].feasible, "%s %s", cases[i].workload, parameters);
  }
}

Test(unit_lower_checker_masks, dropout_is_proved) {
  static const char shape[] = "heads=2 seqlen_q=300 seqlen_kv=410 head_dim=64 dropout_p=0.1 causal=1 block_m=64 ";
  static const char *const how[] = {"block_n=32 num_warps=4 num_stages=2",
                                    "block_n=64 num_warps=2 num_stages=1 mma=mma",
                                    "block_n=96 num_warps=4 schedule=interleaved",
                                    "block_n=64 num_warps=4 schedule=interleaved mma=mma code=buffered"};
  for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s", shape, how[i]);
    cr_expect_eq(prove("flash2_fwd", parameters, 1), 5, "%s", parameters);
  }
}

// Instructions of one step of 64 x 64 scores, 32 elements a thread of 4 warps, that dropout adds.
typedef struct added {
  int64_t of[FTL_OPCODE_COUNT];
} added;

static added added_by_dropout(const char *arch, const char *how) {
  static const char shape[] = "heads=1 seqlen_q=64 seqlen_kv=64 head_dim=64 block_m=64 block_n=64 num_warps=4 mma=mma ";
  added count = {{0}};
  for (int dropped = 0; dropped < 2; dropped++) {
    char parameters[256];
    snprintf(parameters, sizeof parameters, "%s%s%s", shape, how, dropped ? " dropout_p=0.1" : "");
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_launch(&p, arch, "flash2_fwd", parameters, 0, &error), FTL_OK, "%s", error.message);
    for (int32_t i = 0; i < p.warps->num_insts; i++)
      count.of[p.warps->insts[i].opcode] += (dropped ? 1 : -1) * p.warps->insts[i].repeat;
    programs_fini(&p);
  }
  return count;
}

// Two calls of 10 IMAD.WIDE and 12 LOP3 and, once, 4 and 2; a PRMT, an HSET2 and a LOP3 for each two elements.
Test(unit_lower_checker_masks, dropout_costs_what_philox_of_seven_rounds_costs) {
  added count = added_by_dropout("a100_80", "");
  cr_expect_eq(count.of[FTL_OP_IMAD_WIDE], 2 * 10 + 4);
  cr_expect_eq(count.of[FTL_OP_LOP], 2 * 12 + 2 + 16);
  cr_expect_eq(count.of[FTL_OP_PRMT], 16);
  cr_expect_eq(count.of[FTL_OP_HSET2], 16);
}

// PyTorch's FlashAttention-2 takes the bytes of each of the calls' 2 x 4 words apart first: 3 SHF and 3 LOP3.
Test(unit_lower_checker_masks, dropout_of_buffered_code_takes_bytes_apart) {
  added count = added_by_dropout("h200", "schedule=interleaved code=buffered");
  cr_expect_eq(count.of[FTL_OP_LOP], 2 * 12 + 2 + 16 + 8 * (3 + 3));
  cr_expect_eq(count.of[FTL_OP_PRMT], 16);
}
