// What all operations use: adding instructions, fragments of values, references, accesses, barriers.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lower/select/shared_stages.h"

enum { MAX_INDEX = 0xfffe };

static void *grow(ftl_select_lists *lists, void *array, int32_t count, int32_t *capacity, size_t element_bytes) {
  if (count < *capacity) return array;
  int32_t wanted = *capacity ? *capacity * 2 : 64;
  void *larger = realloc(array, (size_t)wanted * element_bytes);
  if (!larger) {
    lists->failed = true;
    return array;
  }
  *capacity = wanted;
  return larger;
}

void ftl_select_lists_fini(ftl_select_lists *lists) {
  free(lists->refs);
  free(lists->accesses);
  free(lists->loops);
  *lists = (ftl_select_lists){0};
}

bool ftl_select_lists_grow_loops(ftl_select_lists *lists) {
  lists->loops = grow(lists, lists->loops, lists->num_loops, &lists->capacity_loops, sizeof *lists->loops);
  return !lists->failed;
}

ftl_draft_inst *ftl_select_add(ftl_select *s, ftl_opcode opcode, int32_t repeat, int32_t destination, int32_t a,
                               int32_t b, int32_t c) {
  ftl_draft_inst *inst = ftl_draft_add(&s->draft, opcode, repeat);
  const int32_t sources[] = {a, b, c};
  inst->destination = destination;
  for (int i = 0; i < 3; i++)
    if (sources[i] != FTL_NO_VALUE) inst->sources[inst->num_sources++] = sources[i];
  return inst;
}

int32_t ftl_select_temp(ftl_select *s, int32_t num_registers) {
  return ftl_draft_value_add(&s->draft, num_registers, false);
}

int32_t ftl_select_fragment(const ftl_select *s, int32_t value, int32_t slab, int32_t index) {
  const ftl_select_value *v = &s->values[value];
  return v->first + slab * v->map.per_slab + index;
}

int32_t ftl_select_slab_row(const ftl_select *s, int32_t value, int32_t slab) {
  return slab * ftl_role_row_warps(s->role) / s->tile->values[value].warps_per_row * FTL_SLAB_ROWS;
}

int32_t ftl_select_warp_columns(const ftl_select *s, int32_t value) {
  return ftl_value_warp_columns(&s->tile->values[value]);
}

void ftl_select_settle_fill(ftl_select *s, int32_t value) {
  if (value < 0 || !s->values[value].zero_pending) return;
  ftl_select_value *v = &s->values[value];
  v->zero_pending = false;
  // CS2R clears two registers at once
  for (int32_t i = 0; i < v->map.num_slabs * v->map.per_slab; i++)
    ftl_select_add(s, FTL_OP_MOV, (v->map.num_registers + 1) / 2, v->first + i, FTL_NO_VALUE, FTL_NO_VALUE,
                   FTL_NO_VALUE);
}

void ftl_select_fail(ftl_select *s, const char *format, ...) {
  if (s->status != FTL_OK) return;
  char text[FTL_ERROR_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  s->status = ftl_error_set_about(s->error, FTL_INFEASIBLE, s->tile->name, ": %s", text);
}

uint16_t ftl_select_ref(ftl_select *s, const ftl_tile_ref *ref) {
  ftl_select_lists *lists = s->lists;
  lists->refs = grow(lists, lists->refs, lists->num_refs, &lists->capacity_refs, sizeof *lists->refs);
  if (lists->num_refs >= MAX_INDEX) lists->failed = true;
  if (lists->failed) return 0;
  lists->refs[lists->num_refs] = *ref;
  return (uint16_t)lists->num_refs++;
}

uint16_t ftl_select_access(ftl_select *s, ftl_access access) {
  ftl_select_lists *lists = s->lists;
  lists->accesses =
      grow(lists, lists->accesses, lists->num_accesses, &lists->capacity_accesses, sizeof *lists->accesses);
  if (lists->num_accesses >= MAX_INDEX) lists->failed = true;
  if (lists->failed) return 0;
  lists->accesses[lists->num_accesses] = access;
  return (uint16_t)lists->num_accesses++;
}

void ftl_select_idle(ftl_select *s, int32_t count, uint8_t flags) {
  ftl_select_add(s, FTL_OP_NOP, count, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE)->inst.flags = flags;
}

void ftl_select_join(ftl_select *s) {
  ftl_select_add(s, FTL_OP_BSYNC, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE)->effects =
      FTL_EFFECT_PINNED;
}

bool ftl_select_is_ragged(const ftl_select *s, const ftl_tile_ref *ref) {
  if (s->by_threads) return false;
  const ftl_tensor *tensor = &s->tile->tensors[ref->tensor];
  return tensor->num_rows % ref->rows != 0 || tensor->num_columns % ref->columns != 0 ||
         ref->column_end != FTL_TENSOR_END || ref->row_end != FTL_TENSOR_END;
}

void ftl_select_add_tile(ftl_select *s, uint16_t ref, uint8_t flags) {
  ftl_draft_inst *tile = ftl_select_add(s, FTL_OP_TILE, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  tile->inst.access = ref;
  tile->inst.flags = flags;
  tile->effects = FTL_EFFECT_MEMORY | FTL_EFFECT_CHAIN;
}

void ftl_select_set_wavefronts(ftl_draft_inst *inst, ftl_wavefronts wavefronts) {
  inst->inst.wavefronts = (uint16_t)wavefronts.cycles;
  inst->inst.conflicts = (uint16_t)wavefronts.conflicts;
}

ftl_draft_inst *ftl_select_add_shared(ftl_select *s, ftl_opcode opcode, int32_t repeat, int32_t destination, int32_t a,
                                      int32_t b, int32_t num_wavefronts) {
  ftl_draft_inst *inst = ftl_select_add(s, opcode, repeat, destination, a, b, FTL_NO_VALUE);
  inst->effects = FTL_EFFECT_MEMORY;
  inst->inst.wavefronts = (uint16_t)num_wavefronts;
  return inst;
}

void ftl_select_barrier(ftl_select *s) {
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_BAR_SYNC, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  inst->inst.arg = (uint16_t)(s->tile->num_roles > 1 ? 1 + s->role_idx : 0);
  inst->effects = FTL_EFFECT_FENCE;
}

int32_t ftl_select_barrier_id(const ftl_tile_program *tile, int32_t named_barrier) {
  return 1 + tile->num_roles + named_barrier;
}

void ftl_select_named_barrier(ftl_select *s, const ftl_tile_op *op) {
  ftl_opcode opcode = op->kind == FTL_TILE_SYNC ? FTL_OP_BAR_SYNC : FTL_OP_BAR_ARRIVE;
  ftl_draft_inst *inst = ftl_select_add(s, opcode, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  inst->inst.arg = (uint16_t)ftl_select_barrier_id(s->tile, op->barrier);
  inst->effects = FTL_EFFECT_FENCE | FTL_EFFECT_PINNED;  // other roles wait for it: it stays where the program has it
}

void ftl_select_warp_sync(ftl_select *s) {
  ftl_draft_inst *inst = ftl_select_add(s, FTL_OP_NOP, 1, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE, FTL_NO_VALUE);
  inst->effects = FTL_EFFECT_FENCE;
}

static int32_t num_ops_of(const ftl_tile_program *tile, ftl_tile_op_kind kind, int32_t ring) {
  int32_t count = 0;
  for (int32_t i = 0; i < tile->num_ops; i++)
    if (tile->ops[i].kind == kind && tile->ops[i].ring == ring) count++;
  return count;
}

// The first ring of as many stages that goes on to its next one, by operations of `kind`, as often as this one.
static int32_t index_ring(const ftl_select *s, ftl_tile_op_kind kind, int32_t ring) {
  const ftl_ring *rings = s->tile->rings;
  if (s->copy == FTL_COPY_TMA && !ftl_select_copies_together(s)) return ring;
  for (int32_t r = 0; r < ring; r++)
    if (rings[r].num_stages == rings[ring].num_stages && rings[r].producer == rings[ring].producer &&
        rings[r].consumers_mask == rings[ring].consumers_mask &&
        num_ops_of(s->tile, kind, r) == num_ops_of(s->tile, kind, ring))
      return r;
  return ring;
}

int32_t ftl_select_read_index_ring(const ftl_select *s, int32_t ring) { return index_ring(s, FTL_TILE_WAIT, ring); }

int32_t ftl_select_write_index_ring(const ftl_select *s, int32_t ring) { return index_ring(s, FTL_TILE_ACQUIRE, ring); }

// The stages of every ring that the role's products read.
static bool has_two_stages(const ftl_select *s) {
  for (int32_t i = 0; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind != FTL_TILE_MMA) continue;
    if (s->tile->rings[op->ring].num_stages != 2) return false;
    if (op->ring_a >= 0 && s->tile->rings[op->ring_a].num_stages != 2) return false;
  }
  return true;
}

bool ftl_select_counts_stages(const ftl_select *s) {
  bool counts =
      s->mma == FTL_MMA_WGMMA || (ftl_select_multiplies_one_a(s) && has_two_stages(s)) || ftl_select_shares_stages(s);
  return s->plain_code && counts && s->tile->num_roles == 1 && !s->tile->persistent;
}

bool ftl_select_rings_share_offsets(const ftl_select *s, int32_t ring, int32_t other) {
  const ftl_select_ring *a = &s->rings[ring], *b = &s->rings[other];
  return a->num_row_groups > 0 && b->num_row_groups > 0 && ftl_select_rings_are_alike(s, ring, other) &&
         a->first_tensor_offset == b->first_tensor_offset;
}

int32_t ftl_select_address_ring(const ftl_select *s, int32_t ring, int32_t index_ring) {
  return ftl_select_counts_stages(s) && ftl_select_rings_are_alike(s, index_ring, ring) ? index_ring : ring;
}

bool ftl_select_is_loaded(const ftl_tile_program *tile, int32_t ring) {
  for (int32_t i = 0; i < tile->num_ops; i++)
    if (tile->ops[i].kind == FTL_TILE_LOAD && tile->ops[i].ring == ring) return true;
  return false;
}

bool ftl_select_is_put_across(const ftl_tile_program *tile, int32_t ring) {
  return tile->num_roles > 1 && ftl_tile_ring_is_put(tile, ring);
}

bool ftl_select_is_through_registers(const ftl_select *s, int32_t ring) {
  return s->copy != FTL_COPY_TMA && s->tile->rings[ring].through_registers;
}

bool ftl_select_is_mbarrier_role(const ftl_select *s) { return s->tile->num_roles > 1; }

bool ftl_select_counts_releases(const ftl_select *s, int32_t ring) {
  return ftl_select_is_mbarrier_role(s) || (s->copy == FTL_COPY_TMA && s->tile->rings[ring].counts_releases);
}

bool ftl_select_writes_over_addresses(const ftl_select *s) {
  return s->copy == FTL_COPY_CP_ASYNC && s->is_cuda && !s->buffered_code;
}

bool ftl_select_copies_together(const ftl_select *s) {
  return s->copy == FTL_COPY_TMA && !s->is_cuda && s->tile->num_roles == 1;
}
