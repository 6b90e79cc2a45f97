// Which operation is the last that reads a value, in programs of a letter an operation: `w` writes the value, `r` reads
// it, `+` adds to it, `@` is the operation asked about, which reads it; brackets are loops.
#include <criterion/criterion.h>
#include <string.h>

#include "lower/select/select.h"

enum { VALUE = 0, OTHER = 1, MAX_OPS = 16 };

static ftl_tile_op op_of(char letter, int32_t loop_var) {
  ftl_tile_op op = {.dst = -1, .ring_a = -1, .loop_var = loop_var, .a.value = -1, .b.value = -1, .c.value = -1};
  switch (letter) {
    case '[':
      op.kind = FTL_TILE_LOOP;
      break;
    case ']':
      op.kind = FTL_TILE_END_LOOP;
      break;
    case 'w':
      op.kind = FTL_TILE_FILL, op.dst = VALUE;
      break;
    case '+':
      op.kind = FTL_TILE_MMA, op.dst = VALUE;
      break;
    default:
      op.kind = FTL_TILE_ELEM, op.fn = FTL_ELEM_COPY, op.dst = OTHER, op.a.value = VALUE;
  }
  return op;
}

static bool is_last_read(const char *letters) {
  ftl_tile_op ops[MAX_OPS];
  int32_t open[MAX_OPS], depth = 0, num_loops = 0, num_ops = (int32_t)strlen(letters);
  for (int32_t i = 0; i < num_ops; i++) {
    if (letters[i] == '[') open[depth++] = num_loops++;
    ops[i] = op_of(letters[i], letters[i] == '[' ? open[depth - 1] : letters[i] == ']' ? open[--depth] : -1);
  }
  ftl_tile_program program = {.ops = ops, .num_ops = num_ops};
  ftl_role role = {.num_ops = num_ops};
  ftl_select s = {.tile = &program, .role = &role};
  return ftl_select_is_last_read(&s, (int32_t)(strchr(letters, '@') - letters), VALUE);
}

Test(unit_lower_last_read, a_value_ends_where_nothing_reads_it_before_it_is_written) {
  const char *const last[] = {"w@", "w@wr", "w@[wr]", "[w@]", "[w@][wr]", "[w[w@]]", "w@[w]w+", "[[w@w]r]w"};
  for (size_t i = 0; i < sizeof last / sizeof *last; i++) cr_expect(is_last_read(last[i]), "%s", last[i]);
}

Test(unit_lower_last_read, what_a_step_or_a_later_loop_reads_has_not_ended) {
  const char *const not_last[] = {
      "w@r",      // read behind it
      "w@+",      // added to
      "w[@]",     // the next step reads it again
      "[w@]r",    // behind the loop
      "[w@[r]]",  // in a loop behind it
      "[w@[]r]",  // behind a loop behind it
      "w@[w]r",   // a loop that may run no step
      "[w[@]]",   // written for all steps of the inner loop
      "[r@[w]]",  // the outer loop's next step
  };
  for (size_t i = 0; i < sizeof not_last / sizeof *not_last; i++)
    cr_expect_not(is_last_read(not_last[i]), "%s", not_last[i]);
}
