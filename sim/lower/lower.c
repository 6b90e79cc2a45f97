// Lowering: selects each role's instructions for the chip, and puts the roles together.
#include "lower/lower.h"

#include <stdlib.h>
#include <string.h>

#include "lower/chip_features.h"
#include "lower/occupancy_steps.h"
#include "lower/register_cap.h"
#include "lower/select/select.h"
#include "lower/shared_places.h"
#include "lower/wgmma_pressure.h"

// Of the registers of an occupancy step: by how much a role may miss it and still be made to fit, with mma.sync at the
// cost of instructions, with products where their order alone has to change, and without. EAGER: the same for steps
// that ptxas does more for. Chosen on the calibration part of the measurements (docs/model_lowering.md).
enum { MAX_SQUEEZE_PCT = 3, MAX_ORDER_SQUEEZE_PCT = 14, MAX_ROW_SQUEEZE_PCT = 4 };
enum { EAGER_SQUEEZE_PCT = 8, EAGER_ORDER_SQUEEZE_PCT = 17 };
enum { STEPPED_SQUEEZE_PCT = 2, FILLING_SQUEEZE_PCT = 25 };

// Share of the registers that a thread may have beyond which stepped code loads each fragment right before its product.
enum { CROWDED_PCT = 85 };
// ptxas gives accumulators and operands of wgmmas registers from R24 on, whatever else a thread has (SASS of
// kernels/products/product_wgmma.h and kernels/foreign/triton_descriptors.py), and reports two more than the last one
// used.
enum { FIRST_ACCUMULATOR = 24, RESERVED_REGISTERS = 2 };
// Of attention beyond the order that is run: four blocks of fragments. ptxas has 8 to 12 alive at once (SASS of eight
// loops of kernels/attention/flash2_mma.h with several stages), that order four.
enum { MAX_REGISTERS_AHEAD = 4 * 4, STEPPED_REGISTERS_AHEAD = 8 * 4, WARPS_WITH_NONE_AHEAD = 3 };

// ---- building ----
typedef struct builder {
  const ftl_tile_program *tile;
  const ftl_arch *arch;
  ftl_lower_options options;  // resolved
  ftl_shared_layout layouts[FTL_TILE_MAX_RINGS];
  ftl_select_lists lists;
  ftl_warp_inst *insts;
  int32_t num_insts;
  uint32_t barriers;  // bit per id used
  ftl_warp_program *program;
} builder;

static uint16_t add_local_access(void *context, int32_t slot, int32_t num_registers) {
  ftl_select *s = context;
  int32_t bytes = (slot + num_registers) * 4;
  if (bytes > s->lists->local_bytes_per_thread) s->lists->local_bytes_per_thread = bytes;
  return ftl_select_access(s, (ftl_access){.is_local = true,
                                           .num_rows = (uint16_t)num_registers,
                                           .row = slot,
                                           .row_step = 1,
                                           .bytes = FTL_WARP_LANES * 4});
}

static ftl_status append_insts(builder *b, const ftl_select *s, int32_t num_tokens, int32_t num_registers,
                               ftl_error *error) {
  const ftl_draft *draft = &s->draft;
  ftl_warp_inst *larger = realloc(b->insts, sizeof *larger * (size_t)(b->num_insts + draft->num_insts));
  if (!larger) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", b->tile->name);
  b->insts = larger;
  ftl_warp_role *role = &b->program->roles[s->role_idx];
  *role = (ftl_warp_role){.num_warps = s->role->num_warps,
                          .first_warp = s->role->first_warp,
                          .num_tokens = num_tokens,
                          .num_registers = num_registers,
                          .first_inst = b->num_insts,
                          .num_insts = draft->num_insts};
  memcpy(role->name, s->role->name, sizeof role->name);
  for (int32_t i = 0; i < draft->num_insts; i++) {
    const ftl_warp_inst *inst = &draft->insts[i].inst;
    b->insts[b->num_insts++] = *inst;
    if (inst->opcode == FTL_OP_LOOP) b->lists.loops[inst->arg].begin = i;
    if (inst->opcode == FTL_OP_END_LOOP) b->lists.loops[inst->arg].end = i;
    if (inst->opcode == FTL_OP_BAR_SYNC || inst->opcode == FTL_OP_BAR_ARRIVE) b->barriers |= 1u << inst->arg;
    if (inst->opcode == FTL_OP_NEXT_TILE) role->tile_inst = i;
  }
  return FTL_OK;
}

// What a thread needs for the wgmmas of its role alone, of code that threads run from its begin; 0: it has none.
static int32_t registers_of_wgmmas(const builder *b, const ftl_draft_result *result) {
  bool has_wgmmas = b->options.mma == FTL_MMA_WGMMA && result->wgmma_registers > 0;
  return has_wgmmas ? FIRST_ACCUMULATOR + result->wgmma_registers + RESERVED_REGISTERS : 0;
}

// What the compiler reports: a role with registers of its own (setmaxnreg) starts with an even share of the file; one
// without products takes what costs no CTA, one that multiplies by wgmma what lies below its accumulators too.
static int32_t reported_registers(const builder *b, const ftl_select *s, const ftl_draft_result *result) {
  int32_t cap = ftl_register_cap(b->arch, b->options, b->program->num_warps), registers = result->registers_per_thread;
  if (s->role->num_registers > 0) return cap;
  int32_t least = registers_of_wgmmas(b, result);
  if (registers < least) registers = least;
  if (!ftl_select_has_products(b->tile, s->role))
    registers = ftl_registers_taken(b->arch, b->program->num_warps, registers);
  return registers < cap ? registers : cap;
}

static ftl_status finish_role(builder *b, ftl_select *s, ftl_draft_result result, ftl_error *error) {
  if (b->lists.failed) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", b->tile->name);
  ftl_warp_program *program = b->program;
  int32_t reported = reported_registers(b, s, &result);
  if (reported > program->registers_per_thread) program->registers_per_thread = reported;
  if (result.spilled_registers > program->spill_registers) program->spill_registers = result.spilled_registers;
  return append_insts(b, s, result.num_tokens, s->role->num_registers > 0 ? s->role->num_registers : reported, error);
}

// How a role's instructions are drafted.
typedef struct role_draft {
  int32_t role_idx;
  const ftl_fragment_shape *shape;
  const ftl_op_order *orders;
  int32_t cap;        // registers a thread may have
  int32_t order_cap;  // the same once instructions are selected; 0: as many
  bool serial_wgmma, is_short_of_registers, fragments_early, fragments_near;
  bool crowds;                  // fragments are loaded right before their products where few registers are left
  bool fragments_a_step_ahead;  // two sets of them, whatever the source has
} role_draft;

// Attention with mma.sync by an unknown author, for sm_90: kernels/measurements/registers_independent.csv.
static bool is_stepped(const builder *b, const ftl_select *s) {
  bool is_by_hand = b->options.is_cuda && !b->options.plain_code && !b->options.buffers_fragments;
  if (!b->arch->sm_has_wgmma) return false;
  return is_by_hand && b->options.mma == FTL_MMA_MMA && !ftl_select_multiplies_one_a(s);
}

// Whether the role loads a fragment right before its product where few registers are left. Decoding by groups of warps
// was not looked at.
static bool has_crowded_products(const builder *b, const ftl_select *s) {
  return is_stepped(b, s) && s->role->num_groups == 1;
}

// Selects the role's instructions and orders them; *result says what registers they need.
static ftl_status draft_role(builder *b, ftl_select *s, const role_draft *how, ftl_draft_result *result,
                             ftl_error *error) {
  *s = (ftl_select){.tile = b->tile,
                    .arch = b->arch,
                    .copy = b->options.copy,
                    .mma = b->options.mma,
                    .shape = *how->shape,
                    .product = &b->program->product,
                    .layouts = b->layouts,
                    .register_cap = how->cap,
                    .most_registers = ftl_register_cap(b->arch, b->options, b->program->num_warps),
                    .plain_code = b->options.plain_code,
                    .is_cuda = b->options.is_cuda,
                    .buffers_fragments = b->options.buffers_fragments || how->fragments_a_step_ahead,
                    .buffered_code = b->options.buffers_fragments,
                    .keeps_denormals = b->options.keeps_denormals,
                    .lists = &b->lists,
                    .role = &b->tile->roles[how->role_idx],
                    .role_idx = how->role_idx,
                    .orders = how->orders,
                    .is_short_of_registers = how->is_short_of_registers,
                    .serial_wgmma = how->serial_wgmma};
  s->draft.product = b->program->product;
  s->draft.buffers_fragments = b->options.buffers_fragments;
  s->draft.fragments_early = how->fragments_early;
  s->draft.fragments_near = how->fragments_near;
  s->draft.crowded_above = how->crowds ? how->cap * CROWDED_PCT / 100 : 0;
  ftl_status status = ftl_select_role(s, error);
  if (status != FTL_OK) return status;
  int32_t cap = how->order_cap > 0 ? how->order_cap : how->cap;
  return ftl_draft_finish(&s->draft, b->arch, cap, add_local_access, s, result, error);
}

static ftl_status draft_role_again(builder *b, ftl_select *s, const role_draft *how, const ftl_select_lists *before,
                                   ftl_draft_result *result, ftl_error *error) {
  ftl_draft_fini(&s->draft);
  b->lists.num_refs = before->num_refs;
  b->lists.num_accesses = before->num_accesses;
  b->lists.num_loops = before->num_loops;
  b->lists.local_bytes_per_thread = before->local_bytes_per_thread;
  return draft_role(b, s, how, result, error);
}

// Whether a step is one for which ptxas does more than for others, in attention with mma.sync for sm_90: that of a
// third CTA of a warp a sub-core, or of a second CTA of more (docs/model_lowering.md).
static bool is_eager_for(const builder *b, const ftl_select *s, int32_t step) {
  int32_t num_warps = b->program->num_warps, sides = (int32_t)b->arch->sm_num_subcores;
  if (b->options.mma != FTL_MMA_MMA || !b->options.is_cuda || !b->arch->sm_has_wgmma) return false;
  if (b->options.buffers_fragments || ftl_select_multiplies_one_a(s)) return false;
  return step == ftl_registers_for_ctas(b->arch, num_warps, num_warps > sides ? 2 : 3);
}

// By how much of an occupancy step registers may miss it for another order to be looked for, and for instructions to be
// added. Stepped addresses leave little to be worked out again: ptxas goes for no other step than the eager ones.
static int32_t order_squeeze_pct(const builder *b, const ftl_select *s, bool is_eager) {
  if (is_stepped(b, s)) return is_eager ? STEPPED_SQUEEZE_PCT : 0;
  return is_eager ? EAGER_ORDER_SQUEEZE_PCT : MAX_ORDER_SQUEEZE_PCT;
}

static int32_t squeeze_pct(bool is_eager) { return is_eager ? EAGER_SQUEEZE_PCT : MAX_SQUEEZE_PCT; }

// Without products. All twelve launches of kernels/independent that read rows again have 26 to 32 registers, by three
// authors by hand and one in Triton, so that an SM is full of warps: of up to 40 that the free order needs 32 are 25 %.
static int32_t row_squeeze_pct(const builder *b, int32_t cap) {
  bool fills = b->options.fills_sm && cap == ftl_fewest_registers(b->arch, b->program->num_warps);
  return fills ? FILLING_SQUEEZE_PCT : MAX_ROW_SQUEEZE_PCT;
}

// Whether a role that misses an occupancy step by so much may take more instructions to fit it. Roles with wgmma never
// do: with one buffer ptxas gives 130 and 132 registers where the step is 128 (kernels/measurements/registers.csv).
static bool may_add_instructions(const builder *b, const ftl_role *role, int32_t missed_by, int32_t step,
                                 bool is_eager) {
  if (!ftl_select_has_products(b->tile, role)) return true;
  int32_t most_pct = squeeze_pct(is_eager);
  return b->options.mma != FTL_MMA_WGMMA && missed_by <= step * most_pct / 100;
}

// The warps of a CTA, as which the steps of occupancy go that a role is made to fit. Code with mma.sync gathers below
// those of a warp a sub-core, whatever its CTA has: of six loops of 8 warps read along their SASS five have 148 to 166
// registers live at once, below the 168 of three warps a sub-core, though no CTA more fits (docs/model_lowering.md).
static int32_t warps_of_step(const builder *b, const ftl_role *role) {
  bool by_warps =
      b->options.mma == FTL_MMA_MMA && !b->options.buffers_fragments && ftl_select_has_products(b->tile, role);
  return by_warps ? (int32_t)b->arch->sm_num_subcores : b->program->num_warps;
}

// Drafts the role to fit tight->cap registers. `fits`: nothing has to be stored in loops for it, and no instruction is
// added that may not be.
static ftl_status draft_tightly(builder *b, ftl_select *s, const role_draft *tight, const ftl_select_lists *before,
                                int32_t most_insts, ftl_draft_result *result, bool *fits, ftl_error *error) {
  ftl_status status = draft_role_again(b, s, tight, before, result, error);
  *fits =
      status == FTL_OK && result->spilled_registers == result->reloaded_registers && s->draft.num_insts <= most_insts;
  return status;
}

// Wgmmas that cannot all be in flight within the role's registers are drafted again, one at a time. A role that misses
// an occupancy step by little is drafted again to fit it, as ptxas does for the block size of __launch_bounds__, and
// stays so if nothing has to be stored in loops for it, and if the order is all that changes where it may not add
// instructions. With mma.sync what alignment leaves empty is left out of the order, if one fits so. Operands of wgmmas
// have registers of their own only where that spills nothing. *how says in the end how it was drafted.
static ftl_status draft_role_to_fit(builder *b, ftl_select *s, role_draft *how, const ftl_select_lists *before,
                                    ftl_draft_result *result, ftl_error *error) {
  const ftl_role *role = &b->tile->roles[how->role_idx];
  ftl_status status = draft_role(b, s, how, result, error);
  if (status != FTL_OK) return status;
  if (result->spilled_registers > 0) {
    how->is_short_of_registers = true;
    how->crowds = has_crowded_products(b, s);
    status = draft_role_again(b, s, how, before, result, error);
    if (status != FTL_OK) return status;
  }
  if (result->wgmma_registers >= how->cap) {
    how->serial_wgmma = true;
    return draft_role_again(b, s, how, before, result, error);
  }
  if (role->num_registers > 0 || b->tile->num_roles > 1) return FTL_OK;
  role_draft tight = *how;
  tight.cap = ftl_next_occupancy_step(b->arch, warps_of_step(b, role), result->registers_per_thread);
  int32_t missed_by = result->registers_per_thread - tight.cap;
  if (tight.cap < registers_of_wgmmas(b, result)) return FTL_OK;
  bool has_products = ftl_select_has_products(b->tile, role), is_eager = is_eager_for(b, s, tight.cap);
  int32_t most_pct = has_products ? order_squeeze_pct(b, s, is_eager) : row_squeeze_pct(b, tight.cap);
  if (missed_by > tight.cap * most_pct / 100) return FTL_OK;
  int32_t most_insts = may_add_instructions(b, role, missed_by, tight.cap, is_eager) ? INT32_MAX : s->draft.num_insts;
  bool fits = false;
  if (has_products && b->options.mma == FTL_MMA_MMA) {
    tight.order_cap = tight.cap - FTL_DRAFT_ALIGNMENT_REGISTERS;
    status = draft_tightly(b, s, &tight, before, most_insts, result, &fits, error);
    if (fits) result->registers_per_thread += FTL_DRAFT_ALIGNMENT_REGISTERS;
  }
  if (status == FTL_OK && !fits) {
    tight.order_cap = 0;
    status = draft_tightly(b, s, &tight, before, most_insts, result, &fits, error);
  }
  if (status != FTL_OK) return status;
  if (!fits) return draft_role_again(b, s, how, before, result, error);
  *how = tight;
  return FTL_OK;
}

static bool loads_fragments(const ftl_draft *draft) {
  for (int32_t i = 0; i < draft->num_insts; i++)
    if (draft->insts[i].inst.opcode == FTL_OP_LDSM) return true;
  return false;
}

// Of stepped code whose registers let three warps onto a sub-core none.
static int32_t most_registers_ahead(const builder *b, const ftl_select *s, int32_t registers) {
  if (ftl_select_multiplies_one_a(s)) return INT32_MAX;
  if (!is_stepped(b, s)) return MAX_REGISTERS_AHEAD;
  int32_t sides = (int32_t)b->arch->sm_num_subcores;
  return registers > ftl_registers_for_ctas(b->arch, sides, WARPS_WITH_NONE_AHEAD) ? STEPPED_REGISTERS_AHEAD : 0;
}

// What ptxas reports where it loads fragments a k step ahead, in the registers that cost no warp a sub-core: the role
// is drafted so, and its registers are counted; of attention few blocks more than in the order that is run.
// The order with them is not run (docs/model_lowering.md).
static ftl_status count_registers(builder *b, ftl_select *s, const role_draft *how, const ftl_select_lists *before,
                                  int32_t *registers, ftl_error *error) {
  const ftl_role *role = &b->tile->roles[how->role_idx];
  int32_t step = ftl_registers_taken(b->arch, warps_of_step(b, role), *registers),
          cap = ftl_register_cap_of_role(b->tile, role, b->arch, b->options, how->shape);
  int32_t most_ahead = most_registers_ahead(b, s, *registers);
  if (step - *registers > most_ahead) step = *registers + most_ahead;
  role_draft ahead = *how;
  ahead.fragments_early = ahead.fragments_a_step_ahead = true;
  ahead.order_cap = step < cap ? step : cap;
  ftl_draft_result result;
  ftl_status status = draft_role_again(b, s, &ahead, before, &result, error);
  if (status == FTL_OK && result.spilled_registers == 0 && result.registers_per_thread > *registers)
    *registers = result.registers_per_thread;
  return status;
}

// Of stepped code that has no registers for fragments ahead ptxas loads most of them two products before their own.
// Source: SASS of kernels/independent/forward_a and mixed_d, whose kernels of 132 to 137 and 172 to 177 registers have
// 0 to 4 HMMAs between an LDSM and its first one in the median, others 5 to 14 (docs/model_lowering.md).
static ftl_status draft_fragments_near(builder *b, ftl_select *s, const role_draft *how, const ftl_select_lists *before,
                                       ftl_draft_result *result, ftl_error *error) {
  role_draft near = *how;
  near.fragments_near = near.crowds = true;
  int32_t registers = result->registers_per_thread;
  ftl_status status = draft_role_again(b, s, &near, before, result, error);
  if (status == FTL_OK && result->spilled_registers > 0) status = draft_role_again(b, s, how, before, result, error);
  result->registers_per_thread = registers;
  return status;
}

// ptxas loads fragments farther ahead of their products than they take, where registers are left. The role has been
// drafted as `how` says, with each as late as its latency allows; it is again, with the registers that it needed so.
// Where groups of warps share a key tile in plain code those of the next k step stand ahead of this one's products
// (SASS of kernels/attention/flash1_mma.h and decode_mma.h).
static ftl_status draft_fragments_early(builder *b, ftl_select *s, const role_draft *how,
                                        const ftl_select_lists *before, ftl_draft_result *result, ftl_error *error) {
  if (result->spilled_registers > 0 || b->tile->num_roles > 1 || !loads_fragments(&s->draft)) return FTL_OK;
  bool is_one_group = s->role->num_groups == 1;  // decoding by groups of warps was not looked at
  if (is_one_group && is_stepped(b, s) && most_registers_ahead(b, s, result->registers_per_thread) == 0)
    return draft_fragments_near(b, s, how, before, result, error);
  role_draft early = *how;
  early.fragments_early = true;
  early.crowds = has_crowded_products(b, s);
  early.fragments_a_step_ahead = b->options.plain_code && s->role->num_groups > 1;
  early.order_cap = result->ordered_registers;
  int32_t reported = result->registers_per_thread;
  bool is_full = reported > result->ordered_registers, is_counted = ftl_select_has_step_ahead(s);
  ftl_status status = is_counted ? count_registers(b, s, how, before, &reported, error) : FTL_OK;
  if (status == FTL_OK) status = draft_role_again(b, s, &early, before, result, error);
  if (status != FTL_OK) return status;
  if (result->spilled_registers > 0) return draft_role_again(b, s, how, before, result, error);
  if (is_full || is_counted) result->registers_per_thread = reported;
  return FTL_OK;
}

static ftl_status lower_role(builder *b, int32_t role_idx, const ftl_fragment_shape *shape, ftl_error *error) {
  const ftl_role *role = &b->tile->roles[role_idx];
  ftl_select *s = calloc(1, sizeof *s);
  ftl_op_order *orders = calloc((size_t)role->num_ops + 1, sizeof *orders);
  ftl_status status = s && orders ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", b->tile->name);
  bool alone = b->tile->num_roles == 1;
  if (status == FTL_OK && alone) status = ftl_ring_order_find(b->tile, role, b->options.copy, orders, error);
  if (status == FTL_OK) {
    ftl_draft_result result = {0};
    ftl_select_lists before = b->lists;
    role_draft how = {.role_idx = role_idx, .shape = shape, .orders = alone ? orders : NULL};
    how.cap = ftl_register_cap_of_role(b->tile, role, b->arch, b->options, shape);
    bool by_threads = b->options.mma == FTL_MMA_WGMMA && b->options.copy == FTL_COPY_CP_ASYNC && alone;
    how.serial_wgmma = by_threads && !b->options.plain_code && ftl_wgmma_moves_accumulators(b->tile, role);
    status = draft_role_to_fit(b, s, &how, &before, &result, error);
    if (status == FTL_OK) status = draft_fragments_early(b, s, &how, &before, &result, error);
    if (status == FTL_OK) status = finish_role(b, s, result, error);
    ftl_draft_fini(&s->draft);
  }
  free(orders);
  free(s);
  return status;
}

static void *copy_array(ftl_arena *arena, const void *from, int32_t count, size_t element_bytes) {
  void *copy = ftl_arena_alloc(arena, (size_t)count * element_bytes);
  if (copy && count > 0) memcpy(copy, from, (size_t)count * element_bytes);
  return copy;
}

static ftl_status take_lists(builder *b, ftl_error *error) {
  ftl_warp_program *p = b->program;
  p->num_insts = b->num_insts;
  p->num_refs = b->lists.num_refs;
  p->num_accesses = b->lists.num_accesses;
  p->num_loops = b->lists.num_loops;
  p->insts = copy_array(&p->arena, b->insts, p->num_insts, sizeof *p->insts);
  p->refs = copy_array(&p->arena, b->lists.refs, p->num_refs, sizeof *p->refs);
  p->accesses = copy_array(&p->arena, b->lists.accesses, p->num_accesses, sizeof *p->accesses);
  p->loops = copy_array(&p->arena, b->lists.loops, p->num_loops, sizeof *p->loops);
  p->local_bytes_per_thread = b->lists.local_bytes_per_thread;
  p->num_barriers = __builtin_popcount(b->barriers);
  if (p->insts && p->refs && p->accesses && p->loops) return FTL_OK;
  return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", b->tile->name);
}

// Roles that setmaxnreg gives registers share out those of the whole SM.
static ftl_status check_launch_bounds(const builder *b, ftl_error *error) {
  bool reallocates = false;
  for (int32_t r = 0; r < b->tile->num_roles; r++) reallocates |= b->tile->roles[r].num_registers > 0;
  if (!reallocates || b->options.min_ctas <= 1) return FTL_OK;
  return ftl_error_set(
      error, FTL_INFEASIBLE,
      "min_ctas=%d: the registers that setmaxnreg gives to the roles of %s fill an SM; allowed is 0 or 1",
      b->options.min_ctas, b->tile->name);
}

static ftl_status build(builder *b, ftl_error *error) {
  ftl_status status = ftl_product_of_tile(&b->program->product, b->tile, b->arch, error);
  if (status == FTL_OK) status = ftl_lower_check_features(b->tile, b->arch, b->options.copy, error);
  if (status == FTL_OK) status = check_launch_bounds(b, error);
  if (status != FTL_OK) return status;
  ftl_fragment_shape shape = ftl_fragment_shape_of(b->arch, b->options.mma == FTL_MMA_WGMMA);
  status = ftl_shared_places_take(b->program, b->layouts, b->arch, &b->options, &shape, error);
  b->program->row_lanes = shape.row_lanes;
  b->program->operand_copies = shape.operand_registers * FTL_WARP_LANES * 2 / (FTL_SLAB_ROWS * FTL_OPERAND_COLUMNS);
  for (int32_t r = 0; r < b->tile->num_roles && status == FTL_OK; r++) status = lower_role(b, r, &shape, error);
  return status == FTL_OK ? take_lists(b, error) : status;
}

ftl_status ftl_lower(const ftl_tile_program *tile, const ftl_arch *arch, ftl_lower_options options,
                     ftl_warp_program **out, ftl_error *error) {
  *out = NULL;
  ftl_status status = ftl_lower_resolve(arch, &options, error);
  if (status != FTL_OK) return status;
  ftl_warp_program *program = calloc(1, sizeof *program);
  if (!program) return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", tile->name);
  program->tile = tile;
  program->copy = options.copy;
  program->mma = options.mma;
  program->num_roles = tile->num_roles;
  program->num_rings = tile->num_rings;
  program->num_warps = ftl_tile_num_warps(tile);
  builder b = {.tile = tile, .arch = arch, .options = options, .program = program};
  status = build(&b, error);
  ftl_select_lists_fini(&b.lists);
  free(b.insts);
  if (status == FTL_OK)
    *out = program;
  else
    ftl_warp_program_destroy(program);
  return status;
}
