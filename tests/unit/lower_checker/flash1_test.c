// FlashAttention-1's kernels do what their tile programs say, on every generation.
#include <criterion/criterion.h>
#include <string.h>

#include "lower/checker.h"
#include "programs.h"

static const char *const archs[] = {"v100", "t4", "a100_80", "rtx4090", "h200"};
enum { NUM_ARCHS = sizeof archs / sizeof *archs };

static void prove(const char *arch, const char *workload, const char *parameters, int launch) {
  programs p;
  ftl_error error = {0};
  ftl_status status = lower_launch(&p, arch, workload, parameters, launch, &error);
  cr_assert_eq(status, FTL_OK, "%s %s: %s", arch, parameters, error.message);
  int64_t last = p.tile->num_ctas - 1, ctas[] = {0, last};
  for (size_t i = 0; i < sizeof ctas / sizeof *ctas; i++)
    cr_assert_eq(ftl_checker_prove(p.warps, ctas[i], &error), FTL_OK, "%s %s: %s", arch, parameters, error.message);
  programs_fini(&p);
}

// Three blocks of keys, one after the other, and nine in a loop.
Test(unit_lower_flash1, the_forward_kernel_is_proved) {
  static const char *const parameters[] = {
      "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=128",
      "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=32 head_dim_v=64 block_n=64",
      "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=520 head_dim=40 block_n=64 causal=1 num_stages=1",
      "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=128 kv_operand=registers",
      "heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=520 head_dim=32 head_dim_v=48 block_n=128 kv_operand=registers",
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) prove(archs[a], "flash1_fwd", parameters[i], 0);
}

// One block of 256 keys, 4 warps, head_dim 64: K and V of a warp are 16 blocks of 16 x 16 each, read once, and Q is 4 a
// step of the loop. In shared memory K and V are read in each step too, and have a buffer each: 64 KB, of which an SM
// of an A100 has no room for two beside the 16 KB that the warps exchange.
Test(unit_lower_flash1, keys_held_in_registers_are_read_once_and_share_a_buffer) {
  static const char *const operands[] = {"shared", "registers"};
  static const int64_t expected[] = {4 + 16 + 16, 4 + 16 + 16};
  int64_t shared_bytes[2];
  for (int i = 0; i < 2; i++) {
    char parameters[128];
    snprintf(parameters, sizeof parameters, "heads=1 seqlen=256 head_dim=64 kv_operand=%s", operands[i]);
    programs p;
    ftl_error error = {0};
    cr_assert_eq(lower_launch(&p, "a100_40", "flash1_fwd", parameters, 0, &error), FTL_OK, "%s", error.message);
    int64_t in_loop = 0, all = 0;
    int depth = 0;
    for (int32_t at = 0; at < p.warps->num_insts; at++) {
      const ftl_warp_inst *inst = &p.warps->insts[at];
      if (inst->opcode == FTL_OP_LOOP) depth++;
      if (inst->opcode == FTL_OP_END_LOOP) depth--;
      if (inst->opcode != FTL_OP_LDSM) continue;
      all += inst->repeat;
      in_loop += depth > 0 ? inst->repeat : 0;
    }
    cr_expect_eq(all, expected[i], "%s: %lld LDSM", operands[i], (long long)all);
    cr_expect_eq(in_loop, i == 0 ? expected[0] : 4, "%s: %lld LDSM a step", operands[i], (long long)in_loop);
    shared_bytes[i] = p.warps->shared_bytes;
    programs_fini(&p);
  }
  cr_expect_gt(2 * shared_bytes[0], 164 * 1024);
  cr_expect_lt(2 * shared_bytes[1], 164 * 1024);
}

Test(unit_lower_flash1, the_backward_kernels_are_proved) {
  static const struct {
    const char *parameters;
    int num_launches;
  } cases[] = {
      {"heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=64 num_warps=4", 2},
      {"heads=2 kv_heads=1 seqlen_q=100 seqlen_kv=300 head_dim=64 head_dim_v=32 block_n=64 num_warps=4", 3},
      {"heads=4 kv_heads=2 seqlen_q=70 seqlen_kv=620 head_dim=40 block_n=64 num_warps=4 causal=1 num_stages=1", 3},
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
      for (int launch = 0; launch < cases[i].num_launches; launch++)
        prove(archs[a], "flash1_bwd", cases[i].parameters, launch);
  prove("a100_80", "flash1_bwd", "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64", 1);
  prove("h200", "flash1_bwd", "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=128", 1);
}

Test(unit_lower_flash1, kernels_that_drop_or_hide_are_proved) {
  static const char *const parameters[] = {
      "heads=2 seqlen_q=100 seqlen_kv=300 head_dim=64 block_n=64 num_warps=2 dropout_p=0.1",
      "heads=2 seqlen=300 head_dim=64 block_n=64 num_warps=2 mask=strided mask_width=3 mask_block=64",
      "heads=2 seqlen=300 head_dim=64 block_n=64 num_warps=2 mask=butterfly mask_block=64 causal=1 dropout_p=0.1",
      "heads=2 lengths=300:1:130 head_dim=64 block_n=64 num_warps=2 dropout_p=0.1",
  };
  for (int a = 0; a < NUM_ARCHS; a++)
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
      prove(archs[a], "flash1_fwd", parameters[i], 0);
      prove(archs[a], "flash1_bwd", parameters[i], 1);
    }
}

Test(unit_lower_flash1, what_cannot_be_is_the_reason) {
  static const struct {
    const char *parameters, *reason;
  } cases[] = {
      {"heads=1 seqlen=128 head_dim=64 block_m=32", "has 16 queries"},
      {"heads=1 seqlen=128 head_dim=64 block_n=32", "each a multiple of 16"},
      {"heads=1 seqlen=128 head_dim=64 mma=wgmma", "mma=mma"},
      {"heads=1 lengths=512:512 head_dim=64 mask=butterfly", "not with lengths"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    programs p;
    ftl_error error = {0};
    cr_expect_eq(lower_workload(&p, "h200", "flash1_fwd", cases[i].parameters, &error), FTL_INFEASIBLE);
    cr_expect_not_null(strstr(error.message, cases[i].reason), "\"%s\" does not say \"%s\"", error.message,
                       cases[i].reason);
    programs_fini(&p);
  }
}
