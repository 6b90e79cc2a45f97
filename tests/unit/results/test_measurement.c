#include <criterion/criterion.h>
#include <sqlite3.h>
#include <string.h>

#include "fixture.h"
#include "results/measured_case.h"
#include "tests/spec_words.h"
#include "results/measured_number.h"
#include "results/measurement_store.h"

static ftl_status parse(const char *text, ftl_measurement_file *out, ftl_error *error) {
  ftl_csv csv;
  cr_assert_eq(ftl_csv_init(&csv, "m.csv", text, strlen(text), error), FTL_OK);
  ftl_status status = ftl_measurement_file_parse(out, &csv, error);
  ftl_csv_fini(&csv);
  return status;
}

static ftl_measurement_file parsed(const char *text) {
  ftl_measurement_file file;
  ftl_error error = {0};
  cr_assert_eq(parse(text, &file, &error), FTL_OK, "%s", error.message);
  return file;
}

static void refused(const char *text, const char *message) {
  ftl_measurement_file file;
  ftl_error error = {0};
  cr_assert_eq(parse(text, &file, &error), FTL_BAD_INPUT);
  cr_assert_str_eq(error.message, message);
}

static double value(const ftl_measurement *row, const char *metric) {
  const ftl_measured_value *found = ftl_measurement_value(row, metric);
  cr_assert_not_null(found, "%s", metric);
  return found->value;
}

static void number_is(const char *text, ftl_number_kind kind, double expected) {
  double number = -1;
  cr_assert_eq(ftl_measured_number_parse(text, &number), kind, "%s", text);
  if (kind == FTL_NUMBER) cr_assert_float_eq(number, expected, 1e-9, "%s", text);
}

Test(unit_results_measurement, numbers_may_have_thousands_commas_in_their_places) {
  number_is("1,234,567.5", FTL_NUMBER, 1234567.5);
  number_is("-12", FTL_NUMBER, -12);
  number_is("2.5e3", FTL_NUMBER, 2500);
  number_is("1,23", FTL_NUMBER_NONE, 0);
  number_is(",123", FTL_NUMBER_NONE, 0);
  number_is("1234,567", FTL_NUMBER_NONE, 0);
  number_is("1.234,567", FTL_NUMBER_NONE, 0);
  number_is("1,234.5,678", FTL_NUMBER_NONE, 0);
  number_is("0x10", FTL_NUMBER_NONE, 0);
  number_is("1e999", FTL_NUMBER_NONE, 0);
  number_is("12 ", FTL_NUMBER_NONE, 0);
}

Test(unit_results_measurement, what_nsight_compute_could_not_measure_is_missing) {
  number_is("", FTL_NUMBER_MISSING, 0);
  number_is("n/a", FTL_NUMBER_MISSING, 0);
  number_is("nan", FTL_NUMBER_MISSING, 0);
  number_is("inf", FTL_NUMBER_MISSING, 0);
}

static void scale_is(const char *unit, double expected, const char *expected_base) {
  const char *base = NULL;
  cr_assert_float_eq(ftl_measured_unit_scale(unit, &base), expected, 1e-9, "%s", unit);
  cr_assert_str_eq(base, expected_base, "%s", unit);
}

Test(unit_results_measurement, units_come_to_their_base) {
  scale_is("usecond", 1e3, "ns");
  scale_is("us", 1e3, "ns");
  scale_is("msecond", 1e6, "ns");
  scale_is("Kbyte", 1e3, "byte");  // decimal, as Nsight Compute counts
  scale_is("Mbyte", 1e6, "byte");
  scale_is("Kbyte/block", 1e3, "byte");
  scale_is("Ghz", 1e9, "hz");
  scale_is("cycle/nsecond", 1e9, "hz");
  scale_is("Gbyte/second", 1e9, "byte/s");
  scale_is("inst/cycle", 1, "inst/cycle");
  scale_is("%", 1, "%");
}

Test(unit_results_measurement, a_share_above_100_percent_a_negative_count_or_no_time_is_impossible) {
  cr_assert(ftl_measured_is_impossible("time_median_us", 0));
  cr_assert(ftl_measured_is_impossible("gpu__time_duration.sum", 0));
  cr_assert(ftl_measured_is_impossible("sm__cycles_elapsed.max", 0));
  cr_assert_not(ftl_measured_is_impossible("dram__bytes_write.sum", 0));
  cr_assert(ftl_measured_is_impossible("lts__t_sector_hit_rate.pct", 150));
  cr_assert_not(ftl_measured_is_impossible("lts__t_sector_hit_rate.pct", 100));
  cr_assert(ftl_measured_is_impossible("sm__warps_active.avg.pct_of_peak_sustained_active", 101));
  cr_assert(ftl_measured_is_impossible("dram__bytes_read.sum", -1));
  cr_assert_not(ftl_measured_is_impossible("dram__bytes_read.sum", 1e12));
}

static const char raw_page[] =
    "hello from the program\n"
    "==PROF== Connected to process 7\n"
    "\"ID\",\"Kernel Name\",\"Device\",\"gpu__time_duration.sum\",\"dram__bytes_read.sum\","
    "\"lts__t_sector_hit_rate.pct\",\"launch__func_cache_config\",\"dram__bytes_write.sum\"\n"
    "\"\",\"\",\"\",\"usecond\",\"Mbyte\",\"%\",\"\",\"byte\"\n"
    "\"0\",\"k<1, 2>(int)\",\"NVIDIA H200\",\"1,234.5\",\"2.5\",\"150.25\",\"CachePreferNone\",\"n/a\"\n"
    "==PROF== Disconnected from process 7\n";

Test(unit_results_measurement, reads_the_raw_page_with_its_units) {
  ftl_measurement_file file = parsed(raw_page);
  cr_assert_eq(file.format, FTL_MEASUREMENT_NCU_RAW);
  cr_assert_eq(file.num_rows, 1);
  const ftl_measurement *row = &file.rows[0];
  cr_assert_eq(row->line, 5);
  cr_assert_float_eq(value(row, "gpu__time_duration.sum"), 1234500, 1e-6);
  cr_assert_float_eq(value(row, "dram__bytes_read.sum"), 2.5e6, 1e-6);
  cr_assert_null(ftl_measurement_value(row, "dram__bytes_write.sum"));
  cr_assert_str_eq(ftl_measurement_fact(row, "kernel"), "k<1, 2>(int)");
  cr_assert_str_eq(ftl_measurement_fact(row, "launch__func_cache_config"), "CachePreferNone");
  ftl_measurement_file_fini(&file);
}

Test(unit_results_measurement, keeps_and_flags_what_cannot_be) {
  ftl_measurement_file file = parsed(raw_page);
  const ftl_measured_value *hit = ftl_measurement_value(&file.rows[0], "lts__t_sector_hit_rate.pct");
  cr_assert_eq(hit->value, 150.25);
  cr_assert(hit->is_impossible);
  ftl_measurement_file_fini(&file);
}

Test(unit_results_measurement, reads_the_details_page_by_label_and_by_name) {
  ftl_measurement_file file = parsed(
      "\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\"\n"
      "\"0\",\"a\",\"Speed\",\"Duration\",\"msecond\",\"1.5\",\"\"\n"
      "\"0\",\"a\",\"Speed\",\"\",\"\",\"\",\"Bottleneck\"\n"
      "\"0\",\"a\",\"Other\",\"Duration\",\"msecond\",\"1.5\",\"\"\n"
      "\"0\",\"a\",\"Command line\",\"dram__bytes_read.sum\",\"Kbyte\",\"2,000\",\"\"\n"
      "\"1\",\"b\",\"Speed\",\"Duration\",\"second\",\"2\",\"\"\n");
  cr_assert_eq(file.format, FTL_MEASUREMENT_NCU_DETAILS);
  cr_assert_eq(file.num_rows, 2);
  cr_assert_eq(file.rows[0].num_values, 2);
  cr_assert_eq(value(&file.rows[0], "gpu__time_duration.sum"), 1.5e6);
  cr_assert_eq(value(&file.rows[0], "dram__bytes_read.sum"), 2e6);
  cr_assert_eq(value(&file.rows[1], "gpu__time_duration.sum"), 2e9);
  cr_assert_str_eq(ftl_measurement_fact(&file.rows[1], "kernel"), "b");
  ftl_measurement_file_fini(&file);
}

#define COLUMNS \
  "workload,batch,heads,seqlen_q,seqlen_kv,head_dim,causal,block_m,block_n,status,condition,time_median_us\n"
#define VALUES "flash2_fwd,2,8,1024,1024,128,1,64,32,ok,stream,"

Test(unit_results_measurement, reads_the_projects_files_with_their_provenance_lines) {
  ftl_measurement_file file = parsed("# gpu: NVIDIA H200\n" COLUMNS VALUES "12.5\n");
  const ftl_measurement *row = &file.rows[0];
  cr_assert_eq(value(row, "foretile__stream_time.sum"), 12500);
  ftl_measured_case c;
  ftl_error error = {0};
  cr_assert_eq(ftl_measured_case_make(&c, row, &error), FTL_OK, "%s", error.message);
  cr_assert_str_eq(c.arch, "h200");
  cr_assert_str_eq(c.source, "own");
  cr_assert_eq(c.spec.value[FTL_PARAM_block_m], 64);
  cr_assert_eq(c.spec.value[FTL_PARAM_causal], 1);
  cr_assert_eq(c.spec.value[FTL_PARAM_conditions], 1);
  cr_assert_eq(c.part, FTL_PART_CALIBRATION);
  ftl_measurement_file_fini(&file);
}

Test(unit_results_measurement, names_file_line_and_column_of_what_is_wrong) {
  refused(COLUMNS VALUES "12.5\n" VALUES "fast\n", "m.csv:3: column 12 (time_median_us): \"fast\" is not a number");
  refused(COLUMNS VALUES "12.5\nflash2_fwd,2,8\n", "m.csv:3: column 4: the row has 3 fields, the header 12");
  refused(COLUMNS VALUES "12.5,9\n", "m.csv:2: column 13: the row has 13 fields, the header 12");
  refused(COLUMNS, "m.csv:2: a header and no rows");
  refused("", "m.csv:1: no rows");
  refused("a,b\n1,2\n",
          "m.csv:1: no header of measurements: expected Nsight Compute's (ID, ..., Kernel Name, ...) or columns "
          "condition and status");
  refused("status,condition,x,x\nok,ncu,1,2\n", "m.csv:1: column 4: a second column x");
  refused("status,condition,num_warp\nok,ncu,8\n",
          "m.csv:1: column 3: num_warp is no parameter; the nearest is num_warps");
  refused("ID,Kernel Name,dram__bytes_raed.sum\n,,byte\n0,k,1\n",
          "m.csv:1: column 3: dram__bytes_raed.sum is no metric; the nearest is dram__bytes_read.sum");
  refused("status,condition,sm__cycles_elapsd.max\nok,ncu,8\n",
          "m.csv:1: column 3: sm__cycles_elapsd.max is no metric; the nearest is sm__cycles_elapsed.max");
  refused("ID,Kernel Name,dram__bytes_read.sum\n,,byte\n0,k,many\n",
          "m.csv:3: column 3 (dram__bytes_read.sum): \"many\" is not a number");
  refused("ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n0,k,Duration,us,long\n",
          "m.csv:2: column 5 (Duration): \"long\" is not a number");
}

static ftl_measured_case case_of(const char *text) {
  ftl_measurement_file file = parsed(text);
  ftl_measured_case c;
  ftl_error error = {0};
  cr_assert_eq(ftl_measured_case_make(&c, &file.rows[0], &error), FTL_OK, "%s", error.message);
  ftl_measurement_file_fini(&file);
  return c;
}

#define OWN "workload,heads,seqlen,head_dim,mma,copy,status,condition,gpu"
#define OF_H200 ",ok,ncu,NVIDIA H200\n"

// What kernels/attention is, which its rows need not say: forward, through registers, and backward.
Test(unit_results_measurement, rows_of_the_projects_kernels_are_of_its_code) {
  ftl_measured_case c = case_of(OWN "\nflash2_fwd,8,512,64,mma,cp_async" OF_H200);
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_PLAIN);
  cr_expect_eq(c.spec.value[FTL_PARAM_guard], FTL_GUARD_ALWAYS);
  cr_expect_eq(c.spec.value[FTL_PARAM_q_operand], FTL_Q_OPERAND_SHARED);
  cr_expect_eq(c.spec.value[FTL_PARAM_refill], FTL_REFILL_WHEN_FREE);
  c = case_of(OWN "\nflash2_fwd,8,512,64,mma,ldg" OF_H200);
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_PLAIN);
  cr_expect_eq(c.spec.value[FTL_PARAM_refill], FTL_REFILL_EARLY);
  c = case_of(OWN ",dq\nflash2_bwd,8,512,64,mma,cp_async,ok,ncu,NVIDIA H200,atomics\n");
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_LEAN);
  cr_expect_eq(c.spec.value[FTL_PARAM_refill], FTL_REFILL_EARLY);
  cr_expect_eq(c.spec.value[FTL_PARAM_scaling], FTL_SCALING_EXPONENT);
  cr_expect_eq(c.spec.value[FTL_PARAM_exp2], FTL_EXP2_FTZ);
  cr_expect_eq(c.spec.value[FTL_PARAM_head_order], FTL_HEADS_FIRST);
}

// A warp of its products has whole rows of a tile.
Test(unit_results_measurement, rows_of_the_projects_products_have_warps_below_each_other) {
  ftl_measured_case c = case_of(
      "workload,m,n,k,block_m,block_n,block_k,num_warps,mma,copy,status,condition,gpu\n"
      "matmul_tiled,512,512,512,128,128,64,8,mma,cp_async" OF_H200);
  cr_expect_eq(c.spec.value[FTL_PARAM_warps_n], 1);
  cr_expect(c.spec.given >> FTL_PARAM_warps_n & 1);
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_PLAIN);
}

// Of kernels/independent a row says tiles and schedule; the form of the code stays open. They are a part of their own.
Test(unit_results_measurement, rows_of_unknown_authors_leave_the_code_open) {
  ftl_measured_case c = case_of(
      "source,family,workload,heads,seqlen,head_dim,causal,block_m,mma,copy,status,condition,gpu\n"
      "independent,forward_a,flash2_fwd,8,512,64,1,64,mma,cp_async" OF_H200);
  cr_assert_str_eq(c.source, "independent");
  cr_expect_eq(c.part, FTL_PART_INDEPENDENT);
  cr_expect_str_eq(ftl_part_name(c.part), "independent");
  cr_expect_eq(c.spec.value[FTL_PARAM_block_m], 64);
  cr_expect_eq(c.spec.value[FTL_PARAM_causal], 1);
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_AUTO);
}

// Names of a product's sides that attention has too are those of Q K^T; a kernel that no workload is, is not covered.
Test(unit_results_measurement, rows_of_unknown_authors_may_name_sides_as_attention_does) {
  ftl_measured_case c = case_of(
      "source,family,workload,batch,seqlen_q,seqlen_kv,head_dim,heads,block_m,mma,copy,status,condition,gpu\n"
      "independent,a,matmul_tiled,2,512,1024,64,1,64,mma,cp_async" OF_H200);
  cr_expect_eq(c.spec.value[FTL_PARAM_m], 512);
  cr_expect_eq(c.spec.value[FTL_PARAM_n], 1024);
  cr_expect_eq(c.spec.value[FTL_PARAM_k], 64);
  cr_expect_str_eq(c.author, "a");
}

Test(unit_results_measurement, a_kernel_of_unknown_authors_that_no_workload_is_is_not_covered) {
  ftl_measurement_file file = parsed(
      "source,family,workload,rows,cols,dtype,status,condition,gpu\n"
      "independent,a,softmax_online,64,64,fp32,ok,ncu,NVIDIA H200\n"
      ",,softmax_online,64,64,fp32,ok,ncu,NVIDIA H200\n");
  ftl_measured_case c;
  ftl_error error = {0};
  cr_expect_eq(ftl_measured_case_make(&c, &file.rows[0], &error), FTL_INFEASIBLE);
  cr_expect_str_eq(error.message, "dtype=fp32: allowed are fp16|bf16");
  cr_expect_eq(ftl_measured_case_make(&c, &file.rows[1], &error), FTL_BAD_INPUT);
  ftl_measurement_file_fini(&file);
}

// A row that says how its code is written leaves the rest to that.
Test(unit_results_measurement, a_row_that_names_its_code_says_what_else_is_open) {
  ftl_measured_case c = case_of(OWN ",code\nflash2_fwd,8,512,64,mma,cp_async,ok,ncu,NVIDIA H200,lean\n");
  cr_expect_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_LEAN);
  cr_expect_eq(c.spec.value[FTL_PARAM_refill], FTL_REFILL_AUTO);
  cr_expect_eq(c.spec.value[FTL_PARAM_guard], FTL_GUARD_AUTO);
}

Test(unit_results_measurement, seqlen_sets_both_lengths) {
  ftl_measured_case c =
      case_of("workload,heads,seqlen,head_dim,status,condition,gpu\nflash2_fwd,8,512,64,ok,ncu,NVIDIA H200\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_seqlen_q], 512);
  cr_assert_eq(c.spec.value[FTL_PARAM_seqlen_kv], 512);
}

// A row without the column, or with nothing in it, is of values with the columns of keys.
Test(unit_results_measurement, a_row_may_say_how_wide_values_are) {
  const char *columns = "workload,heads,seqlen,head_dim,head_dim_v,status,condition,gpu\n";
  char text[256];
  snprintf(text, sizeof text, "%sflash2_fwd,8,512,192,128,ok,ncu,NVIDIA H200\n", columns);
  ftl_measured_case c = case_of(text);
  cr_expect_eq(c.spec.value[FTL_PARAM_head_dim], 192);
  cr_expect_eq(c.spec.value[FTL_PARAM_head_dim_v], 128);
  snprintf(text, sizeof text, "%sflash2_fwd,8,512,192,,ok,ncu,NVIDIA H200\n", columns);
  cr_expect_eq(case_of(text).spec.value[FTL_PARAM_head_dim_v], 192);
  c = case_of("workload,heads,seqlen,head_dim,status,condition,gpu\nflash2_fwd,8,512,64,ok,ncu,NVIDIA H200\n");
  cr_expect_eq(c.spec.value[FTL_PARAM_head_dim_v], 64);
}

// Rows are of kernels/attention, whose code is plain, unless they say what theirs is.
Test(unit_results_measurement, a_row_may_say_whose_code_it_is) {
  ftl_measured_case c = case_of(
      "workload,heads,seqlen,head_dim,status,condition,gpu,code\n"
      "flash2_fwd,8,512,64,ok,ncu,NVIDIA H200,lean\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_LEAN);
  cr_assert_eq(c.spec.value[FTL_PARAM_guard], FTL_GUARD_AUTO);  // what goes with lean
  c = case_of("workload,heads,seqlen,head_dim,status,condition,gpu\nflash2_fwd,8,512,64,ok,ncu,NVIDIA H200\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_code], FTL_CODE_PLAIN);
  cr_assert_eq(c.spec.value[FTL_PARAM_guard], FTL_GUARD_ALWAYS);
}

// kernels/attention/softmax_rows.h takes a difference and multiplies it; of rows of unknown authors that stays open.
Test(unit_results_measurement, own_rows_scale_apart) {
  ftl_measured_case c =
      case_of("workload,heads,seqlen_q,seqlen_kv,status,condition,gpu\nsoftmax_online,8,512,1024,ok,ncu,NVIDIA H200\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_scaling], FTL_SCALING_APART);
  c = case_of(
      "source,workload,heads,seqlen_q,seqlen_kv,status,condition,gpu\n"
      "independent,softmax_online,8,512,1024,ok,ncu,NVIDIA H200\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_scaling], FTL_SCALING_AUTO);
}

#define FOREIGN_COLUMNS                                                                                                \
  "source,pass,batch,heads,seqlen_q,seqlen_kv,head_dim,block_m,block_n,num_warps,num_stages,status,mma,gpu,condition," \
  "kernel\n"

Test(unit_results_measurement, triton_counts_a_stage_more_with_mma_sync) {
  ftl_measured_case c = case_of(FOREIGN_COLUMNS "triton,fwd,1,8,512,512,64,128,64,4,3,ok,wgmma,NVIDIA H200,ncu,k\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_num_stages], 3);
  cr_assert_eq(c.spec.value[FTL_PARAM_mma], FTL_SPEC_MMA_WGMMA);
  cr_assert_eq(c.spec.value[FTL_PARAM_copy], FTL_SPEC_COPY_CP_ASYNC);
  cr_assert_eq(c.part, FTL_PART_HELD_OUT);
  c = case_of(FOREIGN_COLUMNS "triton,fwd,1,8,512,512,64,128,64,4,3,ok,mma,NVIDIA H200,ncu,k\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_num_stages], 2);
}

Test(unit_results_measurement, the_tile_of_a_library_kernel_is_in_its_name) {
  ftl_measured_case c = case_of(FOREIGN_COLUMNS
                                "sdpa_flash,fwd,1,8,512,512,128,,,,,ok,,NVIDIA H200,ncu,"
                                "\"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false>>(P)\"\n");
  cr_assert_eq(c.spec.value[FTL_PARAM_block_m], 128);
  cr_assert_eq(c.spec.value[FTL_PARAM_block_n], 64);
  cr_assert_eq(c.spec.value[FTL_PARAM_num_warps], 4);
  cr_assert_eq(c.spec.value[FTL_PARAM_schedule], FTL_SCHEDULE_INTERLEAVED);
  resolve_code(&c.spec);
  cr_assert_eq(c.spec.value[FTL_PARAM_mask_steps], FTL_MASK_STEPS_UNROLLED);
  cr_assert_eq(c.spec.value[FTL_PARAM_head_order], FTL_SEQUENCES_FIRST);
}

// Triton's kernel here scales scores before the maximum, PyTorch's flex_attention by the scale and by log2(e);
// PyTorch compiles FlashAttention-2 with UNFUSE_FMA and without -use_fast_math.
Test(unit_results_measurement, each_kernel_of_others_has_the_softmax_that_its_source_says) {
  static const struct {
    const char *row;
    int64_t scaling, exp2;
  } cases[] = {{"triton,fwd,1,8,512,512,64,128,64,4,3,ok,wgmma,NVIDIA H200,ncu,k\n", FTL_SCALING_SCORES, FTL_EXP2_FTZ},
               {"flex,fwd,1,8,512,512,64,128,64,4,3,ok,wgmma,NVIDIA H200,ncu,k\n", FTL_SCALING_TWICE, FTL_EXP2_FTZ},
               {"sdpa_flash,fwd,1,8,512,512,128,,,,,ok,,NVIDIA H200,ncu,"
                "\"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false>>(P)\"\n",
                FTL_SCALING_SCORES, FTL_EXP2_IEEE},
               {"sdpa_flash,bwd,1,8,512,512,128,,,,,ok,,NVIDIA H200,ncu,"
                "\"flash_bwd_dot_do_o_kernel<1, Flash_bwd_kernel_traits<128, 64, 128, 8\"\n",
                FTL_SCALING_SCORES, FTL_EXP2_IEEE}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", FOREIGN_COLUMNS, cases[i].row);
    ftl_measured_case c = case_of(text);
    resolve_code(&c.spec);
    cr_expect_eq(c.spec.value[FTL_PARAM_scaling], cases[i].scaling, "%s", cases[i].row);
    cr_expect_eq(c.spec.value[FTL_PARAM_exp2], cases[i].exp2, "%s", cases[i].row);
  }
}

// The name of the kernel of the products is cut before its keys: 128 of them.
Test(unit_results_measurement, backward_kernels_of_the_library_are_flash2_bwd_with_atomics) {
  static const char *const kernels[] = {
      "\"void pytorch_flash::flash_bwd_dot_do_o_kernel<1, Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2, 0\"",
      "\"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 12\""};
  for (int i = 0; i < 2; i++) {
    char text[1024];
    snprintf(text, sizeof text, FOREIGN_COLUMNS "sdpa_flash,bwd,1,8,512,512,128,,,,,ok,,NVIDIA H200,ncu,%s\n",
             kernels[i]);
    ftl_measured_case c = case_of(text);
    cr_assert_str_eq(c.spec.workload->name, "flash2_bwd");
    cr_assert_eq(c.spec.value[FTL_PARAM_dq], FTL_DQ_ATOMICS);
    cr_assert_eq(c.spec.value[FTL_PARAM_block_m], 64);
    cr_assert_eq(c.spec.value[FTL_PARAM_block_n], 128);
    cr_assert_eq(c.spec.value[FTL_PARAM_num_warps], 8);
    cr_assert_eq(c.part, FTL_PART_HELD_OUT);
  }
}

// The name tells columns x rows of a row-major C, and (T) that wgmma's rows are those columns: C^T = B^T A^T.
Test(unit_results_measurement, a_cublas_kernel_names_its_tile) {
  ftl_measurement_file file =
      parsed(FOREIGN_COLUMNS
             "cublas,fwd,4,1,512,1024,64,,,,,ok,,NVIDIA H200,ncu,nvjet_sm90_hsh_256x128_64x3_1x2_h_bz_coopA_NNT\n");
  ftl_measured_case c;
  ftl_error error = {0};
  cr_assert_eq(ftl_measured_case_make(&c, &file.rows[0], &error), FTL_OK, "%s", error.message);
  cr_assert_str_eq(c.spec.workload->name, "matmul_tiled");
  const struct {
    ftl_param param;
    int64_t value;
  } expected[] = {{FTL_PARAM_batch, 4},    {FTL_PARAM_m, 1024},       {FTL_PARAM_n, 512},
                  {FTL_PARAM_k, 64},       {FTL_PARAM_block_m, 256},  {FTL_PARAM_block_n, 128},
                  {FTL_PARAM_block_k, 64}, {FTL_PARAM_num_stages, 3}, {FTL_PARAM_persistent, 1}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
    cr_expect_eq(c.spec.value[expected[i].param], expected[i].value, "%s", ftl_param_get(expected[i].param)->name);
  cr_expect_eq(c.part, FTL_PART_HELD_OUT);
  ftl_measurement_file_fini(&file);
}

#define CUDNN_KERNEL \
  "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0"

// 64 rows each of two consumer warpgroups, 128 keys; tiles from a counter that is asked late, head by
// head, a head's first rows first.
Test(unit_results_measurement, cudnns_kernel_is_a_persistent_flash3) {
  ftl_measured_case c =
      case_of(FOREIGN_COLUMNS "sdpa_cudnn,fwd,1,8,512,512,128,,,,,ok,,NVIDIA H200,ncu," CUDNN_KERNEL "\n");
  cr_assert_str_eq(c.spec.workload->name, "flash3_fwd");
  cr_assert_eq(c.spec.value[FTL_PARAM_block_m], 128);
  cr_assert_eq(c.spec.value[FTL_PARAM_block_n], 128);
  cr_assert_eq(c.spec.value[FTL_PARAM_num_warps], 8);
  cr_assert_eq(c.spec.value[FTL_PARAM_num_stages], 2);
  cr_assert_eq(c.spec.value[FTL_PARAM_q_stages], 2);
  cr_assert_eq(c.spec.value[FTL_PARAM_turns], FTL_TURNS_SOFTMAX);
  cr_assert_eq(c.spec.value[FTL_PARAM_scaling], FTL_SCALING_APART);
  cr_assert_eq(c.spec.value[FTL_PARAM_guard], FTL_GUARD_ALWAYS);
  cr_assert_eq(c.spec.value[FTL_PARAM_persistent], 1);
  cr_assert_eq(c.spec.value[FTL_PARAM_tile_scheduler], FTL_TILE_SCHEDULER_DYNAMIC_LATE);
  cr_assert_eq(c.spec.value[FTL_PARAM_tile_order], FTL_ORDER_M_FIRST);
  cr_assert_eq(c.spec.value[FTL_PARAM_tile_reverse], 0);
  cr_assert_eq(c.part, FTL_PART_HELD_OUT);
}

Test(unit_results_measurement, says_why_a_row_is_no_configuration) {
  ftl_measurement_file file =
      parsed(FOREIGN_COLUMNS
             "cublas,fwd,1,8,512,512,64,,,,,ok,,NVIDIA H200,ncu,k\n"
             "sdpa_flash,bwd,1,8,512,512,64,,,,,ok,,NVIDIA H200,ncu,k\n"
             "sdpa_flash,bwd,1,8,512,512,64,,,,,ok,,NVIDIA H200,ncu,\"Flash_bwd_kernel_traits<64, "
             "32, 128\"\n"
             "sdpa_cudnn,bwd,1,8,512,512,64,,,,,ok,,NVIDIA H200,ncu,k\n"
             "sdpa_cudnn,fwd,1,8,512,512,64,,,,,ok,,NVIDIA H200,ncu,k\n"
             "triton,fwd,1,8,512,512,64,64,64,4,2,ok,wgmma,Some GPU,ncu,k\n");
  static const char *const reasons[] = {
      "cublas with another kernel, or split K", "sdpa_flash backward: copies and sums of the framework",
      "sdpa_flash backward with another tile",  "sdpa_cudnn backward",
      "sdpa_cudnn with another kernel",         "GPU Some GPU"};
  for (int i = 0; i < 6; i++) {
    ftl_measured_case c;
    ftl_error error = {0};
    cr_assert_eq(ftl_measured_case_make(&c, &file.rows[i], &error), FTL_INFEASIBLE);
    cr_assert_str_eq(error.message, reasons[i]);
  }
  ftl_measurement_file_fini(&file);
}

Test(unit_results_measurement, a_row_may_name_its_part) {
  static const char *const parts[] = {"", "calibration", "held_out", "unseen"};
  for (int i = 0; i < 4; i++) {
    char text[512];
    snprintf(text, sizeof text, "part,gpu," COLUMNS "%s,NVIDIA H200," VALUES "12.5\n", parts[i]);
    cr_assert_eq(case_of(text).part, i >= 2 ? FTL_PART_RESERVED : FTL_PART_CALIBRATION, "%s", parts[i]);
  }
}

static void part_is(const char *shape, ftl_part expected) {
  char text[512];
  snprintf(
      text, sizeof text,
      "workload,heads,seqlen_q,seqlen_kv,head_dim,causal,status,condition,gpu\nflash2_fwd,8,%s,ok,ncu,NVIDIA H200\n",
      shape);
  cr_assert_eq(case_of(text).part, expected, "%s", shape);
}

Test(unit_results_measurement, holds_out_what_the_rule_says) {
  part_is("1024,1024,128,1", FTL_PART_CALIBRATION);
  part_is("1024,1024,256,0", FTL_PART_RESERVED);
  part_is("16384,16384,128,1", FTL_PART_RESERVED);
  part_is("16384,16384,128,0", FTL_PART_CALIBRATION);
  part_is("8192,8192,64,1", FTL_PART_CALIBRATION);
}

// --- the database ---

static ftl_import_summary import(ftl_database *database, const char *text, ftl_status expected) {
  ftl_measurement_file file = parsed(text);
  ftl_import_summary summary;
  ftl_error error = {0};
  cr_assert_eq(ftl_database_put_measurements(database, &file, &summary, &error), expected, "%s", error.message);
  ftl_measurement_file_fini(&file);
  return summary;
}

static int count(const char *path, const char *sql) {
  sqlite3 *sqlite = NULL;
  sqlite3_stmt *statement = NULL;
  cr_assert_eq(sqlite3_open(path, &sqlite), SQLITE_OK);
  cr_assert_eq(sqlite3_prepare_v2(sqlite, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(sqlite));
  cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
  int result = sqlite3_column_int(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(sqlite);
  return result;
}

static ftl_database *open_new(const char *path) {
  ftl_database *database = NULL;
  ftl_error error = {0};
  cr_assert_eq(ftl_database_open(&database, path, &error), FTL_OK, "%s", error.message);
  return database;
}

Test(unit_results_measurement, a_file_is_stored_once) {
  folder f = make_folder();
  ftl_database *database = open_new(f.file);
  ftl_import_summary s = import(database, raw_page, FTL_OK);
  cr_assert_eq(s.num_rows, 1);
  cr_assert_eq(s.num_values, 3);
  cr_assert_eq(s.num_impossible, 1);
  cr_assert_eq(s.num_comparable, 0);
  cr_assert_not(s.was_there);
  s = import(database, raw_page, FTL_OK);
  cr_assert(s.was_there);
  cr_assert_eq(s.num_rows, 0);
  ftl_database_close(database);
  remove_folder(&f);
}

Test(unit_results_measurement, a_file_with_a_bad_row_leaves_nothing_behind) {
  folder f = make_folder();
  ftl_database *database = open_new(f.file);
  const char *columns = "workload,heads,seqlen_q,seqlen_kv,head_dim,status,condition,gpu\n";
  char text[512];
  snprintf(text, sizeof text, "%sflash2_fwd,8,64,64,64,ok,ncu,NVIDIA H200\nflash2_fwd,0,64,64,64,ok,ncu,NVIDIA H200\n",
           columns);
  import(database, text, FTL_BAD_INPUT);
  snprintf(text, sizeof text, "%sflash2_fwd,8,64,64,64,ok,ncu,NVIDIA H200\n", columns);
  ftl_import_summary s = import(database, text, FTL_OK);
  cr_assert_eq(s.num_comparable, 1);
  ftl_database_close(database);
  cr_assert_eq(count(f.file, "SELECT count(*) FROM measurements"), 1);
  cr_assert_eq(count(f.file, "SELECT count(*) FROM measurement_files"), 1);
  remove_folder(&f);
}
