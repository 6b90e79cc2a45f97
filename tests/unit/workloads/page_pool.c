// Pages with reference counts: sharing and copy-on-write.
#include "workloads/page_pool.h"

#include <criterion/criterion.h>

static ftl_page_pool pool;
static ftl_error error;

static void setup(void) { ftl_page_pool_init(&pool, 4); }
static void teardown(void) { ftl_page_pool_fini(&pool); }

TestSuite(unit_workloads_page_pool, .init = setup, .fini = teardown);

static void append(ftl_page_list *list, int64_t num_tokens) {
  cr_assert_eq(ftl_page_list_append(&pool, list, num_tokens, &error), FTL_OK, "%s", error.message);
}

static ftl_page_list fork_of(const ftl_page_list *from) {
  ftl_page_list list = {0};
  cr_assert_eq(ftl_page_list_fork(&pool, from, &list, &error), FTL_OK, "%s", error.message);
  return list;
}

Test(unit_workloads_page_pool, a_page_is_taken_only_when_the_last_is_full) {
  ftl_page_list list = {0};
  append(&list, 4);
  cr_expect_eq(list.num_pages, 1);
  append(&list, 1);
  cr_expect_eq(list.num_pages, 2);
  append(&list, 3);
  cr_expect_eq(list.num_pages, 2);
  append(&list, 9);
  cr_expect_eq(list.num_pages, 5);
  cr_expect_eq(pool.num_pages, 5);
  ftl_page_list_fini(&list);
}

Test(unit_workloads_page_pool, a_write_to_a_shared_page_copies_it_and_leaves_the_others_theirs) {
  ftl_page_list prompt = {0};
  append(&prompt, 6);  // page 0 full, page 1 half
  ftl_page_list a = fork_of(&prompt), b = fork_of(&prompt);
  cr_expect_eq(pool.num_pages, 2);
  append(&a, 1);
  cr_expect_eq(a.pages[0], 0, "full pages stay shared");
  cr_expect_eq(a.pages[1], 2);
  cr_expect_eq(prompt.pages[1], 1);
  cr_expect_eq(b.pages[1], 1);
  append(&a, 1);
  cr_expect_eq(pool.num_copied, 1, "its own page is not copied again");
  append(&b, 1);
  append(&prompt, 1);
  cr_expect_eq(b.pages[1], 3);
  cr_expect_eq(prompt.pages[1], 1, "the last that has a page writes to it in place");
  cr_expect_eq(pool.num_copied, 2);
  cr_expect_eq(pool.num_pages, 4);
  ftl_page_list_fini(&prompt);
  ftl_page_list_fini(&a);
  ftl_page_list_fini(&b);
}

Test(unit_workloads_page_pool, a_fork_that_ends_with_a_page_copies_nothing) {
  ftl_page_list prompt = {0};
  append(&prompt, 8);
  ftl_page_list a = fork_of(&prompt);
  append(&a, 5);
  cr_expect_eq(pool.num_copied, 0);
  cr_expect_eq(a.num_pages, 4);
  cr_expect_eq(pool.references[a.pages[0]], 2);
  ftl_page_list_fini(&prompt);
  ftl_page_list_fini(&a);
}
