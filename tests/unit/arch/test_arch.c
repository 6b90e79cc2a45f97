#include <criterion/criterion.h>
#include <string.h>

#include "arch/arch.h"

static const ftl_origin here = {.kind = FTL_ORIGIN_GUESS, .text = "a test", .file = "x.lua", .line = 7};
static ftl_error last_error;

static int key(const char *name) {
  int key_idx = ftl_arch_key_find(name);
  cr_assert_geq(key_idx, 0, "%s", name);
  return key_idx;
}

static void set(ftl_arch *arch, const char *name, int64_t value) {
  cr_assert_eq(ftl_arch_set_int(arch, key(name), value, here, &last_error), FTL_OK, "%s", last_error.message);
}

// Small, but every rule between keys holds.
static ftl_arch *create_whole(void) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  cr_assert_neq(arch, NULL);
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *k = ftl_arch_key_get(i);
    char first[FTL_ARCH_NAME_BYTES] = "";
    if (k->allowed != NULL) {
      memcpy(first, k->allowed, strcspn(k->allowed, "|"));
      cr_assert_eq(ftl_arch_set_text(arch, i, first, here, NULL), FTL_OK);
    } else {
      cr_assert_eq(ftl_arch_set_int(arch, i, k->min, here, NULL), FTL_OK);
    }
  }
  set(arch, "power.limit_mw", 100000);
  set(arch, "clock.sm_step_khz", 1000);
  set(arch, "sm.max_threads_per_cta", 32);
  set(arch, "shared.bytes_per_sm", 2048);
  set(arch, "l1.unified_bytes", 4096);
  set(arch, "dram.burst_bytes", 32);
  set(arch, "dram.trfc_cycles", 0);
  return arch;
}

static void expect_error(ftl_status status, const char *message) {
  cr_assert_eq(status, FTL_BAD_INPUT);
  cr_assert_str_eq(last_error.message, message);
}

Test(arch, every_key_is_found_by_its_name) {
  for (int i = 0; i < ftl_arch_num_keys(); i++) cr_assert_eq(ftl_arch_key_find(ftl_arch_key_get(i)->name), i);
  cr_assert_eq(ftl_arch_key_find("l2.way"), -1);
  cr_assert_eq(ftl_arch_key_find(""), -1);
}

Test(arch, every_key_says_what_it_is_and_has_a_range) {
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *k = ftl_arch_key_get(i);
    cr_assert_gt(strlen(k->doc), 0, "%s", k->name);
    if (k->allowed == NULL) {
      cr_assert_leq(k->min, k->max, "%s", k->name);
      cr_assert_gt(strlen(k->unit), 0, "%s", k->name);
    }
  }
}

Test(arch, the_nearest_key_to_a_misspelt_one) {
  cr_assert_str_eq(ftl_arch_key_nearest("l2.size_byte"), "l2.size_bytes");
  cr_assert_str_eq(ftl_arch_key_nearest("tensor.wgma_tail_cycles"), "tensor.wgmma_tail_cycles");
  cr_assert_str_eq(ftl_arch_key_nearest("num_slices"), "l2.num_slices");
  cr_assert_str_eq(ftl_arch_key_nearest("core.num_slices"), "l2.num_slices");
  cr_assert_str_eq(ftl_arch_key_nearest("l2.size"), "l2.size_bytes");
  cr_assert_str_eq(ftl_arch_key_nearest("l1.store_merge_c"), "l1.store_merge_cycles");
  cr_assert_neq(ftl_arch_key_nearest(""), NULL);
}

Test(arch, edit_distance_counts_insertions_deletions_and_substitutions) {
  cr_assert_eq(ftl_edit_distance("", ""), 0);
  cr_assert_eq(ftl_edit_distance("abc", ""), 3);
  cr_assert_eq(ftl_edit_distance("kitten", "sitting"), 3);
  cr_assert_eq(ftl_edit_distance("h200", "h100"), 1);
}

Test(arch, a_value_comes_back_with_its_origin) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  set(arch, "l2.ways", 16);
  cr_assert_eq(arch->l2_ways, 16);
  cr_assert_eq(ftl_arch_int(arch, key("l2.ways")), 16);
  ftl_origin origin = ftl_arch_origin(arch, key("l2.ways"));
  cr_assert_eq(origin.kind, FTL_ORIGIN_GUESS);
  cr_assert_str_eq(origin.text, "a test");
  cr_assert_str_eq(origin.file, "x.lua");
  cr_assert_eq(origin.line, 7);
  cr_assert(!ftl_arch_is_set(arch, key("l2.size_bytes")));
  ftl_arch_destroy(arch);
}

Test(arch, the_limits_themselves_are_allowed_and_one_beyond_is_not) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  set(arch, "l2.ways", 1);
  set(arch, "l2.ways", 128);
  expect_error(ftl_arch_set_int(arch, key("l2.ways"), 129, here, &last_error),
               "x.lua:7: l2.ways = 129 is out of range, allowed is 1 to 128 (way)");
  expect_error(ftl_arch_set_int(arch, key("l2.ways"), 0, here, &last_error),
               "x.lua:7: l2.ways = 0 is out of range, allowed is 1 to 128 (way)");
  cr_assert_eq(arch->l2_ways, 128);
  ftl_arch_destroy(arch);
}

Test(arch, names_are_taken_from_the_list_only) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  cr_assert_eq(ftl_arch_set_text(arch, key("l2.replacement"), "nru", here, NULL), FTL_OK);
  cr_assert_str_eq(arch->l2_replacement, "nru");
  const char *const wrong[] = {"plru", "lr", "", "lru|nru", "lrunru"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    cr_assert_eq(ftl_arch_set_text(arch, key("l2.replacement"), wrong[i], here, &last_error), FTL_BAD_INPUT, "%s",
                 wrong[i]);
  }
  expect_error(ftl_arch_set_text(arch, key("l2.replacement"), "plru", here, &last_error),
               "x.lua:7: l2.replacement = \"plru\", allowed are lru|nru|random");
  ftl_arch_destroy(arch);
}

Test(arch, a_value_of_the_wrong_type_says_what_is_allowed) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  expect_error(ftl_arch_set_text(arch, key("l2.ways"), "many", here, &last_error),
               "x.lua:7: l2.ways is the text \"many\", allowed is an integer of 1 to 128 (way)");
  expect_error(ftl_arch_set_int(arch, key("l2.replacement"), 3, here, &last_error),
               "x.lua:7: l2.replacement is a number (3), allowed are the names lru|nru|random");
  ftl_arch_destroy(arch);
}

Test(arch, a_copy_owns_its_values_and_origins) {
  ftl_arch *arch = create_whole();
  ftl_arch *copy = ftl_arch_create_copy(arch);
  uint64_t hash = ftl_arch_hash(arch);
  ftl_arch_destroy(arch);
  cr_assert_eq(ftl_arch_hash(copy), hash);
  cr_assert_str_eq(ftl_arch_origin(copy, key("l2.ways")).text, "a test");
  ftl_arch_destroy(copy);
}

Test(arch, destroying_nothing_is_allowed) { ftl_arch_destroy(NULL); }

Test(arch, the_hash_follows_every_value_and_no_origin_or_name) {
  ftl_arch *arch = create_whole();
  uint64_t hash = ftl_arch_hash(arch);
  ftl_origin other = {.kind = FTL_ORIGIN_DATASHEET, .text = "elsewhere", .file = "y.lua", .line = 9};
  cr_assert_eq(ftl_arch_set_int(arch, key("l2.ways"), 1, other, NULL), FTL_OK);
  strcpy(arch->name, "y");
  cr_assert_eq(ftl_arch_hash(arch), hash);
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *k = ftl_arch_key_get(i);
    if (k->allowed != NULL || k->min == k->max) continue;
    int64_t old = ftl_arch_int(arch, i);
    cr_assert_eq(ftl_arch_set_int(arch, i, old == k->max ? old - 1 : old + 1, here, NULL), FTL_OK);
    cr_assert_neq(ftl_arch_hash(arch), hash, "%s", k->name);
    cr_assert_eq(ftl_arch_set_int(arch, i, old, here, NULL), FTL_OK);
  }
  cr_assert_eq(ftl_arch_set_text(arch, key("l2.replacement"), "random", here, NULL), FTL_OK);
  cr_assert_neq(ftl_arch_hash(arch), hash);
  ftl_arch_destroy(arch);
}

Test(arch, swapping_the_values_of_two_keys_changes_the_hash) {
  ftl_arch *arch = create_whole();
  set(arch, "fp32.latency_cycles", 4);
  set(arch, "alu.latency_cycles", 5);
  uint64_t hash = ftl_arch_hash(arch);
  set(arch, "fp32.latency_cycles", 5);
  set(arch, "alu.latency_cycles", 4);
  cr_assert_neq(ftl_arch_hash(arch), hash);
  ftl_arch_destroy(arch);
}

Test(arch, a_missing_key_is_named_with_its_range) {
  ftl_arch *arch = ftl_arch_create("x", "xdie");
  expect_error(ftl_arch_check(arch, &last_error),
               "x: chip.compute_capability is missing, allowed is 70 to 90 (10*major+minor)");
  ftl_arch_destroy(arch);
}

Test(arch, rules_between_keys_name_the_key_that_breaks_one) {
  static const struct {
    char key[48];
    int64_t value;
    char text[48];
  } broken[] = {
      {"clock.sm_min_khz", 200000, "at most clock.sm_max_khz"},
      {"clock.onset_begin_us", 1000, "at most clock.onset_end_us"},
      {"power.static_mw", 100000, "below power.limit_mw"},
      {"chip.num_gpcs", 2, "each GPC a TPC"},
      {"chip.sms_per_tpc", 2, "must leave each GPC a TPC"},
      {"chip.num_single_tpcs", 1, "leave the last GPC a TPC"},
      {"sm.has_ldmatrix", 1, "quad pairs"},
      {"sm.num_registers", 1025, ""},
      {"sm.max_threads_per_cta", 64, "32 * sm.max_warps"},
      {"shared.max_bytes_per_cta", 4096, "at most shared.bytes_per_sm"},
      {"shared.bytes_per_sm", 8192, "at most l1.unified_bytes"},
      {"shared.bytes_per_cycle", 33, "multiple of 32"},
      {"l2.num_sides", 2, "multiple of l2.num_sides"},
      {"noc.far_gpcs", 1, "must be 0 where l2.num_sides is 1"},
      {"l2.size_bytes", 65537, "whole number of sets"},
      {"l2.side_hash_granule_bytes", 129, "multiple of l1.line_bytes"},
      {"l2.fill_sectors", 3, "1, 2 or 4"},
      {"l2.persisting_max_bytes", 65537, "at most l2.size_bytes"},
      {"sm.has_tma", 1, "tma.lines_per_cycle_milli"},
      {"sm.has_wgmma", 1, "wgmma"},
      {"tensor.wgmma_fma_per_cycle", 1, "where sm.has_wgmma is 0"},
      {"dram.burst_bytes", 48, "32, 64 or 128"},
      {"dram.burst_cycles", 2, "at least dram.burst_cycles"},
      {"dram.chunk_bytes", 192, "multiple of l1.line_bytes"},
      {"dram.row_bytes", 272, "multiple of dram.chunk_bytes"},
      {"dram.trcd_cycles", 2, "at least dram.trcd_cycles"},
      {"dram.trfc_cycles", 1, "below dram.trefi_cycles"},
  };
  ftl_arch *arch = create_whole();
  cr_assert_eq(ftl_arch_check(arch, &last_error), FTL_OK, "%s", last_error.message);
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    int64_t old = ftl_arch_int(arch, key(broken[i].key));
    set(arch, broken[i].key, broken[i].value);
    if (broken[i].text[0] != '\0') {
      cr_assert_eq(ftl_arch_check(arch, &last_error), FTL_BAD_INPUT, "%s", broken[i].key);
      cr_assert_neq(strstr(last_error.message, broken[i].text), NULL, "%s: %s", broken[i].key, last_error.message);
      cr_assert_eq(strncmp(last_error.message, "x.lua:7: ", 9), 0, "%s", last_error.message);
    }
    set(arch, broken[i].key, old);
  }
  ftl_arch_destroy(arch);
}
