// Of which launches no two CTAs of a period read the same.
#include "engine/sampled/stream.h"
#include "engine/sampled/walk_plan.h"
#include "fixture.h"

// With an L2 of so many bytes; 0: the chip's.
static bool is_stream(const char *parameters, int64_t l2_bytes) {
  lowered l = lower_flash2("h200", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  if (l2_bytes > 0) l.arch->l2_size_bytes = l2_bytes;
  ftl_launch launch = {
      .arch = l.arch, .tile = l.tile, .warps = l.warps, .occupancy = ftl_occupancy_of(l.warps, l.arch)};
  ftl_walk_plan plan = ftl_walk_plan_make(&launch, &segments);
  cr_assert_gt(plan.period, 0);
  release_lowered(&l);
  return plan.is_stream;
}

Test(unit_engine_stream, rows_of_their_own_are_streamed) {
  cr_expect(is_stream("softmax_safe heads=2 seqlen_q=64 seqlen_kv=65536", 0));
  cr_expect(is_stream("softmax_online heads=2 seqlen_q=64 seqlen_kv=65536 block_m=4", 0));
}

// CTAs of a row of tiles read the same rows of A; those of a head the same keys.
Test(unit_engine_stream, what_several_ctas_read_is_not) {
  cr_expect_not(is_stream("matmul_tiled m=1024 n=8192 k=8192", 0));
  cr_expect_not(is_stream("heads=2 seqlen=16384 head_dim=128", 0));
}

// Q, K and V of 4 heads of 512 rows of 64 numbers of 2 bytes are 256 KiB each, which is 1/64 of 16 MiB.
Test(unit_engine_stream, what_is_a_small_part_of_l2_does_not_count) {
  cr_expect(is_stream("heads=4 seqlen=512 head_dim=64 block_m=64", 16 << 20));
  cr_expect_not(is_stream("heads=4 seqlen=512 head_dim=64 block_m=64", (16 << 20) - 64));
}

// Its period is one CTA, all of which read the same 8 MiB of B.
Test(unit_engine_stream, what_each_cta_reads_again_is_not) {
  cr_expect_not(is_stream("matmul_tiled m=65536 n=64 k=65536 block_n=64", 0));
}

static bool read_apart(const char *parameters) {
  lowered l = lower_flash2("h200", parameters);
  ftl_segments segments;
  cr_assert(ftl_segments_try_init(&segments, l.warps));
  bool apart = ftl_ctas_read_apart(&segments, l.warps, l.arch, l.tile->num_ctas);
  release_lowered(&l);
  return apart;
}

// A CTA has a head: it reads the head's queries once for each block of its keys, in a loop around another.
Test(unit_engine_stream, ctas_with_a_head_each_read_apart) {
  cr_expect(read_apart("flash1_fwd heads=4 seqlen=8192 head_dim=64"));
  cr_expect(read_apart("flash1_bwd heads=4 seqlen=8192 head_dim=64"));
  cr_expect_not(read_apart("heads=4 seqlen=8192 head_dim=64"));
}
