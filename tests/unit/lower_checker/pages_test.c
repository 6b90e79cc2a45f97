// Tiles in pages: each row of a page is copied once from where it lies, by every way of copying.
#include <criterion/criterion.h>
#include <string.h>

#include "lower/checker.h"
#include "lower/lower.h"
#include "lower/walk.h"
#include "script/arch_loader.h"
#include "tile/builder.h"

enum { ROWS = 64, NUM_TILES = 3, LENGTH = 150, MAX_PAGES = 512, HEADS = 2 };
enum { X, Y, TABLE };

// [page][row][head][column] if heads lie within rows, else [page][head][row][column].
typedef struct paged {
  int32_t page_rows, num_warps, head_dim;
  bool heads_in_rows;
} paged;

// CTA c reads the tiles of head c, the rows of which end within the last one, and stores that.
static ftl_tile_program *build(const paged *p) {
  ftl_builder *b;
  ftl_tile_program *program;
  ftl_error error = {0};
  cr_assert_eq(ftl_builder_create(&b, "paged", &error), FTL_OK);
  int32_t num_pages = (LENGTH + p->page_rows - 1) / p->page_rows, pages[MAX_PAGES];
  for (int32_t i = 0; i < num_pages; i++) pages[i] = (i * 7 + 3) % num_pages;
  ftl_tensor_shape shape = ftl_contiguous(num_pages, HEADS, p->page_rows, p->head_dim);
  if (p->heads_in_rows) {
    shape.row_stride = HEADS * p->head_dim;
    shape.head_stride = p->head_dim;
  }
  int32_t x = ftl_builder_tensor(b, "x", FTL_FP16, FTL_TENSOR_INPUT, shape);
  int32_t y = ftl_builder_tensor(b, "y", FTL_FP16, FTL_TENSOR_OUTPUT, ftl_contiguous(1, HEADS, ROWS, p->head_dim));
  int32_t table = ftl_builder_table(b, "table", pages, num_pages);
  int32_t role = ftl_builder_role(b, "main", p->num_warps, 0);
  int32_t ring = ftl_builder_ring(b, "x", FTL_FP16, ROWS, p->head_dim, 2, role, 1 << role);
  int32_t half = ftl_builder_tile(b, "half", FTL_FP16, ROWS, p->head_dim);
  ftl_expr i = ftl_loop_value(b, ftl_loop(b, ftl_const(b, 0), ftl_const(b, NUM_TILES)));
  ftl_tile_ref ref = {.tensor = x,
                      .head = ftl_cta(b),
                      .row = ftl_mul(b, i, ftl_const(b, ROWS)),
                      .present = FTL_ALWAYS,
                      .rows = ROWS,
                      .columns = p->head_dim,
                      .row_end = ftl_const(b, LENGTH),
                      .pages = {.page_rows = p->page_rows, .table = table, .page_stride = shape.batch_stride}};
  ftl_fill_stage(b, ring, ref);
  ftl_wait(b, ring);
  ftl_fetch(b, half, ring);
  ftl_release(b, ring);
  ftl_end_loop(b);
  ftl_tile_ref out = {.tensor = y, .head = ftl_cta(b), .present = FTL_ALWAYS, .rows = ROWS, .columns = p->head_dim};
  ftl_store(b, out, half, -1);
  ftl_builder_grid(b, HEADS, false, FTL_TILES_BY_STRIDE);
  cr_assert_eq(ftl_builder_finish(b, &program, &error), FTL_OK, "%s", error.message);
  ftl_builder_destroy(b);
  return program;
}

static ftl_arch *arch_of(const char *name) {
  ftl_arch *arch;
  ftl_error error = {0};
  cr_assert_eq(ftl_arch_load(FTL_SOURCE_DIR "/arch_models", name, &arch, &error), FTL_OK, "%s", error.message);
  return arch;
}

static void prove(const paged *p, const char *arch_name, ftl_lower_options options) {
  ftl_arch *arch = arch_of(arch_name);
  ftl_tile_program *tile = build(p);
  ftl_warp_program *warps;
  ftl_error error = {0};
  cr_assert_eq(ftl_lower(tile, arch, options, &warps, &error), FTL_OK, "%s", error.message);
  for (int64_t cta = 0; cta < HEADS; cta++) {
    ftl_work work;
    cr_assert_eq(ftl_checker_prove(warps, cta, &error), FTL_OK, "%s, pages of %d: %s", arch_name, p->page_rows,
                 error.message);
    cr_assert_eq(ftl_work_of_warps(warps, cta, &work, &error), FTL_OK);
    cr_expect_eq(work.load_bytes[X], (int64_t)LENGTH * p->head_dim * 2);
  }
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  ftl_arch_destroy(arch);
}

Test(unit_lower_pages, lanes_copy_each_row_once_whatever_the_page) {
  static const int32_t sizes[] = {1, 2, 3, 8, 16, 48, 64, 100, 128, 256};
  static const char *const names[] = {"v100", "a100_80", "h200"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int a = 0; a < 3; a++) {
      paged p = {.page_rows = sizes[i], .num_warps = 4, .head_dim = i % 2 ? 128 : 64, .heads_in_rows = i % 3 == 0};
      prove(&p, names[a], (ftl_lower_options){.copy = a == 0 ? FTL_COPY_LDG : FTL_COPY_CP_ASYNC});
    }
  paged odd = {.page_rows = 4, .num_warps = 4, .head_dim = 80, .heads_in_rows = true};  // three rows an instruction
  prove(&odd, "a100_80", (ftl_lower_options){.mma = FTL_MMA_MMA});
}

Test(unit_lower_pages, bulk_copies_bring_whole_pages_or_tiles_of_a_page) {
  static const int32_t sizes[] = {8, 16, 32, 64, 128, 256};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    paged p = {.page_rows = sizes[i], .num_warps = 4, .head_dim = 128, .heads_in_rows = i % 2};
    prove(&p, "h200", (ftl_lower_options){.copy = FTL_COPY_TMA});
  }
}

Test(unit_lower_pages, bulk_copies_of_other_pages_are_refused) {
  static const int32_t sizes[] = {1, 4, 24, 100};
  ftl_arch *arch = arch_of("h200");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    paged p = {.page_rows = sizes[i], .num_warps = 4, .head_dim = 128};
    ftl_tile_program *tile = build(&p);
    ftl_warp_program *warps;
    ftl_error error = {0};
    cr_assert_eq(ftl_lower(tile, arch, (ftl_lower_options){.copy = FTL_COPY_TMA}, &warps, &error), FTL_INFEASIBLE);
    cr_expect(strstr(error.message, "copy=tma brings"), "%s", error.message);
    ftl_tile_program_destroy(tile);
  }
  ftl_arch_destroy(arch);
}

// Entries: 64 rows in pages of 16 are four, which each of the warps loads; 150 rows end in the tenth page.
Test(unit_lower_pages, the_entries_of_a_tile_are_loaded_before_it) {
  ftl_arch *arch = arch_of("a100_80");
  paged p = {.page_rows = 16, .num_warps = 4, .head_dim = 128};
  ftl_tile_program *tile = build(&p);
  ftl_warp_program *warps;
  ftl_error error = {0};
  ftl_work work;
  cr_assert_eq(ftl_lower(tile, arch, (ftl_lower_options){0}, &warps, &error), FTL_OK, "%s", error.message);
  cr_assert_eq(ftl_work_of_warps(warps, 1, &work, &error), FTL_OK);
  cr_expect_eq(work.load_bytes[TABLE], 10 * 4);
  ftl_warp_program_destroy(warps);
  ftl_tile_program_destroy(tile);
  ftl_arch_destroy(arch);
}

// Rows of 256 bytes in pages of two, of which the tile begins with the second row of page 5.
Test(unit_lower_pages, the_lines_of_an_access_follow_its_rows) {
  const int32_t pages[] = {5, 0, 9};
  ftl_tile_place place = {.address_bytes = 5 * 1024 + 256,
                          .row_stride_bytes = 256,
                          .num_rows = 5,
                          .row_bytes = 256,
                          .pages = pages,
                          .page_stride_bytes = 1024,
                          .page_rows = 2,
                          .page_row = 1};
  ftl_access access = {.num_rows = 4, .warp_row_step = 4, .row_step = 1, .bytes = 256};
  ftl_line lines[16];
  cr_assert_eq(ftl_access_lines(&access, &place, 0, lines, 16), 8);
  const uint64_t first[] = {5 * 8 + 2, 0, 2, 9 * 8};
  for (int r = 0; r < 4; r++)
    for (uint64_t i = 0; i < 2; i++) cr_expect_eq(lines[2 * r + (int)i].line, first[r] + i, "row %d", r);
  cr_assert_eq(ftl_access_lines(&access, &place, 1, lines, 16), 2, "one row is left");
  cr_expect_eq(lines[0].line, 9 * 8 + 2);
}
