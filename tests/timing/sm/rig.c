#include "rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

ftl_arch rig_arch(void) {
  ftl_arch a = {.name = "rig", .die = "rig"};
  a.sm_num_subcores = 4, a.sm_max_warps = 64, a.sm_max_ctas = 32, a.sm_num_barriers = 16;
  strcpy(a.sm_scheduler, "gto");
  strcpy(a.imad_pipe, "fp32");
  strcpy(a.cvt_pipe, "alu");
  a.fp32_interval_cycles = 1, a.fp32_latency_cycles = 4;
  a.alu_interval_cycles = 1, a.alu_latency_cycles = 4;
  a.imad_interval_cycles = 2, a.imad_latency_cycles = 5;
  a.half_interval_cycles = 1, a.half_latency_cycles = 5;
  a.cvt_interval_cycles = 2, a.cvt_latency_cycles = 6;
  a.sfu_interval_cycles = 8, a.sfu_latency_cycles = 20, a.sfu_kept_cycles = 1;
  a.branch_redirect_cycles = 6;
  a.uniform_latency_cycles = 4;
  a.uniform_move_latency_cycles = 13;
  a.tensor_wgmma_issue_cycles = 2, a.tensor_wgmma_rs_issue_cycles = 6;
  a.tensor_wgmma_tail_cycles = 12, a.tensor_wgmma_queue_depth = 4;
  a.tensor_wgmma_copy_bytes_per_cycle = 128, a.tensor_wgmma_wavefront_cycles = 1;
  a.tensor_wgmma_window_cycles = 1;
  a.tensor_wgmma_dispatch_cycles = 1, a.tensor_wgmma_open_cycles = 2;
  a.tensor_wgmma_wide_cycles = 12, a.tensor_wgmma_wide_taken_cycles = 5;
  a.shared_bytes_per_cycle = 128, a.shared_unit_bytes = 1024, a.shared_reserved_bytes_per_cta = 0;
  a.shared_load_latency_cycles = 24, a.shared_ldmatrix_latency_cycles = 28;
  a.shared_shuffle_latency_cycles = 22, a.shared_shuffle_interval_cycles = 2;
  a.shared_barrier_latency_cycles = 16, a.shared_named_barrier_latency_cycles = 16,
  a.shared_barrier_interval_cycles = 2, a.shared_mbarrier_latency_cycles = 10;
  a.mio_queue_entries = 4, a.mio_lg_queue_entries = 4, a.mio_issue_interval_cycles = 2, a.mio_warp_interval_cycles = 1,
  a.mio_lsu_interval_cycles = 1;
  a.l1_unified_bytes = 16384, a.l1_line_bytes = 128, a.l1_sector_bytes = 32, a.l1_ways = 4;
  a.l1_protected_bytes = 8192, a.l1_once_used_bytes = 4096;
  a.l1_hit_latency_cycles = 32, a.l1_bytes_per_cycle = 128, a.l1_max_pending_lines = 64,
  a.l1_max_pending_load_lines = 64, a.l1_fill_bytes_per_cycle = 128, a.l1_store_bytes_per_cycle = 128,
  a.l1_copy_latency_cycles = 0;
  a.l1_operand_release_cycles = 1, a.l1_subword_miss_cycles = 1;
  a.tma_issue_cycles = 3, a.tma_release_cycles = 7, a.tma_latency_cycles = 40, a.tma_lines_per_cycle_milli = 1000,
  a.tma_max_pending_lines = 32;
  return a;
}

enum { NODE_ZERO, NODE_CTA, NODE_LOOP0, NODE_EIGHT, NODE_ROW, NUM_NODES };

static void make_tile(rig *r) {
  r->exprs[NODE_CTA] = (ftl_expr_node){.kind = FTL_EXPR_CTA};
  r->exprs[NODE_LOOP0] = (ftl_expr_node){.kind = FTL_EXPR_LOOP, .value = 0};
  r->exprs[NODE_EIGHT] = (ftl_expr_node){.kind = FTL_EXPR_CONST, .value = 8};
  r->exprs[NODE_ROW] = (ftl_expr_node){.kind = FTL_EXPR_MUL, .a = NODE_LOOP0, .b = NODE_EIGHT};
  r->exprs[NODE_ZERO] = (ftl_expr_node){.kind = FTL_EXPR_CONST};
  r->tile = (ftl_tile_program){
      .name = "rig", .num_ctas = 32, .num_tensors = 1, .num_exprs = NUM_NODES, .num_loop_vars = 2, .exprs = r->exprs};
  r->tile.tensors[0] = (ftl_tensor){.name = "x",
                                    .dtype = FTL_FP16,
                                    .num_batches = 1,
                                    .num_heads = 1,
                                    .num_rows = 1024,
                                    .num_columns = 128,
                                    .batch_stride = 131072,
                                    .head_stride = 131072,
                                    .row_stride = 128,
                                    .size_bytes = 262144};
  r->refs[0] = (ftl_tile_ref){
      .batch = NODE_ZERO, .head = NODE_ZERO, .row = NODE_ROW, .present = FTL_ALWAYS, .rows = 256, .columns = 128};
}

rig *rig_create(int32_t num_warps) {
  rig *r = calloc(1, sizeof *r);
  cr_assert_not_null(r);
  *r = (rig){.arch = rig_arch(), .latency = 200, .window = 100, .num_slots = 1, .observe = true};
  make_tile(r);
  r->log = malloc(RIG_MAX_LOG * sizeof *r->log);
  r->requests = malloc(RIG_MAX_LOG * sizeof *r->requests);
  r->program = (ftl_warp_program){
      .tile = &r->tile, .insts = r->insts, .loops = r->loops, .refs = r->refs, .accesses = r->accesses, .num_refs = 1};
  r->program.product = (ftl_product){.operand_columns = 16,
                                     .mma_num_insts = 1,
                                     .mma_interval_cycles = 8,
                                     .mma_dispatch_cycles = 1,
                                     .mma_latency_cycles = 30,
                                     .wgmma_fma_per_cycle = 2048};
  rig_role(r, num_warps);
  return r;
}

void rig_destroy(rig *r) {
  ftl_sm_destroy(r->sm);
  free(r->log);
  free(r->requests);
  free(r);
}

int32_t rig_const(rig *r, int64_t value) {
  r->exprs[r->tile.num_exprs] = (ftl_expr_node){.kind = FTL_EXPR_CONST, .value = value};
  return r->tile.num_exprs++;
}

void rig_role(rig *r, int32_t num_warps) {
  ftl_warp_program *p = &r->program;
  p->roles[p->num_roles++] = (ftl_warp_role){
      .name = "role", .num_warps = num_warps, .first_warp = p->num_warps, .num_tokens = 32, .first_inst = p->num_insts};
  p->num_warps += num_warps;
}

ftl_warp_inst *rig_add(rig *r, ftl_opcode opcode, int32_t destination, int32_t source) {
  ftl_warp_inst *inst = &r->insts[r->program.num_insts++];
  cr_assert_leq(r->program.num_insts, RIG_MAX_INSTS);
  *inst = (ftl_warp_inst){
      .opcode = (uint8_t)opcode, .repeat = 1, .access = FTL_NO_ACCESS, .ring_a = FTL_NO_RING, .ring_b = FTL_NO_RING};
  inst->destination = destination < 0 ? FTL_NO_TOKEN : (uint16_t)destination;
  if (source >= 0) inst->sources[inst->num_sources++] = (uint16_t)source;
  r->program.roles[r->program.num_roles - 1].num_insts++;
  return inst;
}

ftl_warp_inst *rig_add_access(rig *r, ftl_opcode opcode, int32_t destination, uint16_t access) {
  ftl_warp_inst *inst = rig_add(r, opcode, destination, -1);
  inst->access = access;
  inst->wavefronts = 1;
  return inst;
}

void rig_add_tile(rig *r) { rig_add(r, FTL_OP_TILE, -1, -1)->access = 0; }

int32_t rig_loop(rig *r, int32_t variable, int64_t lo, int64_t hi) {
  int32_t loop = r->program.num_loops++;
  r->loops[loop] = (ftl_warp_loop){.loop_var = variable,
                                   .lo = rig_const(r, lo),
                                   .hi = rig_const(r, hi),
                                   .begin = r->program.roles[r->program.num_roles - 1].num_insts};
  rig_add(r, FTL_OP_LOOP, -1, -1)->arg = (uint16_t)loop;
  return loop;
}

void rig_end_loop(rig *r, int32_t loop) {
  r->loops[loop].end = r->program.roles[r->program.num_roles - 1].num_insts;
  rig_add(r, FTL_OP_END_LOOP, -1, -1)->arg = (uint16_t)loop;
}

uint16_t rig_access(rig *r, int32_t row, int32_t rows) {
  r->accesses[r->program.num_accesses] =
      (ftl_access){.num_rows = (uint16_t)rows, .row = row, .warp_row_step = rows, .row_step = 1, .bytes = 128};
  return (uint16_t)r->program.num_accesses++;
}

int32_t rig_ring(rig *r, int32_t num_stages, int32_t num_consumer_warps) {
  r->program.rings[r->program.num_rings] = (ftl_warp_ring){
      .num_stages = num_stages, .stage_bytes = 1024, .num_consumer_warps = num_consumer_warps, .uses_mbarrier = true};
  return r->program.num_rings++;
}

static void log_issue(void *context, int64_t cycle, int32_t slot, int32_t warp, int64_t cta,
                      const ftl_warp_inst *inst) {
  rig *r = context;
  int32_t role = 0, index = (int32_t)(inst - r->insts);
  while (role + 1 < r->program.num_roles && index >= r->program.roles[role + 1].first_inst) role++;
  cr_assert_lt(r->num_issues, RIG_MAX_LOG);
  r->log[r->num_issues++] = (rig_issue){
      .cycle = cycle, .slot = slot, .warp = warp, .cta = cta, .inst = index - r->program.roles[role].first_inst};
}

static int64_t note_window(rig *r, int64_t end) {
  int32_t count;
  const ftl_mem_request *requests = ftl_sm_requests(r->sm, &count);
  for (int32_t i = 0; i < count; i++) {
    cr_assert_lt(r->num_requests, RIG_MAX_LOG);
    cr_assert(r->num_requests == 0 || r->requests[r->num_requests - 1].time <= requests[i].time);
    r->requests[r->num_requests++] = requests[i];
    if (requests[i].tile_slot > 0) ftl_sm_assign_tile(r->sm, requests[i].tile_slot - 1, r->next_tile++);
    ftl_sm_deliver(r->sm,
                   &(ftl_mem_reply){.time = requests[i].time + r->latency, .transaction = requests[i].transaction});
  }
  const ftl_sm_finished *finished = ftl_sm_finished_ctas(r->sm, &count);
  for (int32_t i = 0; i < count; i++) {
    r->end_cycle[finished[i].cta % 32] = finished[i].time;
    if (finished[i].time > end) end = finished[i].time;
  }
  return end;
}

int64_t rig_run(rig *r, int32_t num_ctas) {
  ftl_sm_config config = {.arch = &r->arch,
                          .program = &r->program,
                          .num_slots = (int32_t)r->num_slots,
                          .persistent_stride = r->persistent_stride,
                          .is_alone = r->is_alone,
                          .is_code_far = r->is_code_far,
                          .ctas_alike = r->ctas_alike,
                          .dynamic_tiles = r->dynamic_tiles,
                          .bulk = r->bulk};
  ftl_error error;
  cr_assert_eq(ftl_sm_create(&r->sm, &config, &error), FTL_OK, "%s", error.message);
  if (r->observe) ftl_sm_observe(r->sm, log_issue, r);
  for (int32_t i = 0; i < num_ctas; i++) ftl_sm_launch(r->sm, i, i, 0);
  int64_t end = 0;
  for (int64_t now = 0; ftl_sm_is_busy(r->sm); now += r->window) {
    char text[2048];
    ftl_sm_describe(r->sm, text, sizeof text);
    cr_assert_lt(now, 10000 * r->window, "stuck:\n%s", text);
    ftl_sm_advance(r->sm, now + r->window);
    end = note_window(r, end);
  }
  rig_check_stalls(r);
  return end;
}

int64_t rig_cycle(const rig *r, int32_t warp, int32_t inst, int32_t nth) {
  for (int32_t i = 0; i < r->num_issues; i++)
    if (r->log[i].slot == 0 && r->log[i].warp == warp && r->log[i].inst == inst && nth-- == 0) return r->log[i].cycle;
  return -1;
}

const ftl_sm_counters *rig_counters(const rig *r) { return ftl_sm_counters_get(r->sm); }

void rig_check_stalls(const rig *r) {
  const ftl_sm_counters *c = rig_counters(r);
  int64_t sum = 0;
  for (int i = 0; i < FTL_STALL_COUNT; i++) sum += c->stall_cycles[i];
  cr_assert_eq(sum, c->resident_warp_cycles);
  cr_assert_eq(c->stall_cycles[FTL_STALL_SELECTED], c->warp_insts);
}
