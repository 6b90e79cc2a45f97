// Copies of a program do what it does, and its hash tells it from others.
#include <stdio.h>
#include <stdlib.h>

#include "sketch.h"

typedef struct variant {
  int32_t entry;   // of a table
  int64_t factor;  // in an expression
  int32_t num_warps, line;
  bool through_registers;  // a ring
} variant;

static const variant plain = {.entry = 1, .factor = 3, .num_warps = 1, .line = 10};

static ftl_tile_program *program_of(variant v) {
  sketch s = sketch_create();
  const int32_t entries[] = {0, v.entry};
  ftl_builder_source(s.b, "sketch.lua", v.line);
  ftl_builder_grid(s.b, 2, false, FTL_TILES_BY_STRIDE);
  int32_t table = ftl_builder_table(s.b, "heads", entries, 2);
  int32_t role = ftl_builder_role(s.b, "main", v.num_warps, 0);
  int32_t ring = ftl_builder_ring(s.b, "r", FTL_FP16, SKETCH_ROWS, SKETCH_COLUMNS, 1, role, 1 << role);
  if (v.through_registers) ftl_builder_through_registers(s.b, ring);
  int32_t tile = ftl_builder_tile(s.b, "t", FTL_FP32, SKETCH_ROWS, SKETCH_COLUMNS);
  ftl_fill(s.b, tile, 0.0f);
  ftl_expr row = ftl_mul(s.b, ftl_cta(s.b), ftl_const(s.b, v.factor));
  ftl_store(s.b, sketch_ref(&s, s.y, ftl_lookup(s.b, table, ftl_cta(s.b)), row), tile, -1);
  return sketch_finish(&s);
}

static uint64_t hash_of(variant v) {
  ftl_tile_program *program = program_of(v);
  uint64_t hash = ftl_tile_program_hash(program);
  ftl_tile_program_destroy(program);
  return hash;
}

static char *text_of(const ftl_tile_program *program) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  ftl_tile_program_write(out, program);
  fclose(out);
  return text;
}

Test(unit_tile_copy, what_a_program_does_is_in_its_hash_and_where_it_was_written_is_not) {
  variant v = plain;
  cr_assert_eq(hash_of(plain), hash_of(v));
  v.line = 11;
  cr_assert_eq(hash_of(plain), hash_of(v), "another line");
  v = plain, v.entry = 0;
  cr_assert_neq(hash_of(plain), hash_of(v), "another entry of a table");
  v = plain, v.factor = 4;
  cr_assert_neq(hash_of(plain), hash_of(v), "another expression");
  v = plain, v.num_warps = 2;
  cr_assert_neq(hash_of(plain), hash_of(v), "another role");
  v = plain, v.through_registers = true;
  cr_assert_neq(hash_of(plain), hash_of(v), "another way into a ring");
}

Test(unit_tile_copy, a_packed_copy_and_a_clone_outlive_their_original) {
  ftl_tile_program *original = program_of(plain), *clone = NULL;
  ftl_error error = {0};
  void *block = malloc(ftl_tile_program_packed_bytes(original));
  const ftl_tile_program *packed = ftl_tile_program_pack(original, block);
  cr_assert_eq(ftl_tile_program_clone(packed, &clone, &error), FTL_OK);
  uint64_t hash = ftl_tile_program_hash(original);
  char *expected = text_of(original);
  ftl_tile_program_destroy(original);

  char *packed_text = text_of(packed);
  free(block);
  char *clone_text = text_of(clone);
  cr_assert_str_eq(packed_text, expected);
  cr_assert_str_eq(clone_text, expected);
  cr_assert_eq(ftl_tile_program_hash(clone), hash);
  ftl_tile_program_destroy(clone);
  free(expected);
  free(packed_text);
  free(clone_text);
}
