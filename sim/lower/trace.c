#include "lower/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lower/walk.h"

enum { MAX_LINES_AN_ACCESS = 4096 };  // a TMA box of 256 rows of up to 2 KB

typedef struct tracer {
  FILE *out;
  const ftl_warp_program *program;
  ftl_tile_place *places;  // by reference
  ftl_line *lines;
  int64_t lines_left;
} tracer;

static void write_tokens(FILE *out, const ftl_warp_inst *inst) {
  if (inst->destination == FTL_NO_TOKEN) {
    fputs(" -", out);
  } else {
    fprintf(out, " T%d", inst->destination);
  }
  if (inst->num_sources == 0) fputs(" -", out);
  for (int k = 0; k < inst->num_sources; k++) fprintf(out, "%sT%d", k == 0 ? " " : ",", inst->sources[k]);
}

static void write_sectors(const tracer *t, const ftl_access *access, int32_t warp) {
  const ftl_tile_place local = {.row_stride_bytes = FTL_LOCAL_SLOT_BYTES};
  const ftl_tile_place *place = access->is_local ? &local : &t->places[access->ref];
  int32_t count = ftl_access_lines(access, place, warp, t->lines, MAX_LINES_AN_ACCESS);
  if (count == 0) fputs(" -", t->out);
  for (int32_t i = 0; i < count && i < MAX_LINES_AN_ACCESS; i++)
    fprintf(t->out, " %" PRIx64 ":%x", t->lines[i].line, t->lines[i].sectors);
}

static void write_inst(tracer *t, const ftl_walk *walk, const ftl_warp_inst *inst) {
  int32_t warp = t->program->roles[walk->role].first_warp + walk->warp;
  fprintf(t->out, "%d %d %s %d", warp, walk->pc - 1, ftl_opcode_name(inst->opcode), inst->repeat);
  write_tokens(t->out, inst);
  fputs(" |", t->out);
  if (inst->access == FTL_NO_ACCESS) {
    fputs(" -", t->out);
  } else {
    write_sectors(t, &t->program->accesses[inst->access], walk->warp);
  }
  fputc('\n', t->out);
  t->lines_left--;
}

static bool is_pseudo(const ftl_warp_inst *inst) {
  switch (inst->opcode) {
    case FTL_OP_TILE:
    case FTL_OP_RING_READ:
    case FTL_OP_RING_FREE:
    case FTL_OP_LABEL:
    case FTL_OP_MBAR_ADVANCE:
    case FTL_OP_WGMMA_COMMIT:
      return true;
    default:
      return false;
  }
}

static void write_warp(tracer *t, int32_t role, int32_t warp, int64_t cta) {
  ftl_walk walk = ftl_walk_start(t->program, role, warp, cta);
  for (const ftl_warp_inst *inst; t->lines_left > 0 && (inst = ftl_walk_next(&walk));) {
    if (inst->opcode == FTL_OP_TILE)
      t->places[inst->access] = ftl_tile_place_of(t->program->tile, &t->program->refs[inst->access], &walk.point);
    if (!is_pseudo(inst)) write_inst(t, &walk, inst);
  }
}

ftl_status ftl_warp_trace_write(FILE *out, const ftl_warp_program *program, int64_t cta, int64_t max_lines,
                                ftl_error *error) {
  if (cta < 0 || cta >= program->tile->num_ctas)
    return ftl_error_set(error, FTL_BAD_INPUT, "CTA %" PRId64 ": %s has CTAs 0 to %" PRId64, cta, program->tile->name,
                         program->tile->num_ctas - 1);
  tracer t = {.out = out, .program = program, .lines_left = max_lines};
  t.places = calloc((size_t)program->num_refs + 1, sizeof *t.places);
  t.lines = calloc(MAX_LINES_AN_ACCESS, sizeof *t.lines);
  ftl_status status = FTL_OK;
  if (t.places && t.lines) {
    for (int32_t role = 0; role < program->num_roles; role++)
      for (int32_t warp = 0; warp < program->roles[role].num_warps; warp++) write_warp(&t, role, warp, cta);
    if (fflush(out) != 0 || ferror(out))
      status = ftl_error_set(error, FTL_IO_FAILED, "the trace cannot be written: %s", strerror(errno));
  } else {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  }
  free(t.places);
  free(t.lines);
  return status;
}
