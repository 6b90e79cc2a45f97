#include "results/measured_case.h"

#include <stdio.h>
#include <string.h>

#include "results/foreign_kernel.h"
#include "results/measured_columns.h"

// The shipped model of a GPU by the name that its driver gives it; NULL: none.
static const char *arch_of_gpu(const char *gpu) {
  static const struct {
    const char *start, *arch;  // the first that the name starts with
  } known[] = {
      {"NVIDIA H200", "h200"},
      {"NVIDIA H100 PCIe", "h100_pcie"},
      {"NVIDIA H100", "h100_sxm"},
      {"NVIDIA A100-SXM4-40GB", "a100_40"},
      {"NVIDIA A100-PCIE-40GB", "a100_40"},
      {"NVIDIA A100", "a100_80"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA GeForce RTX 4090", "rtx4090"},
      {"NVIDIA GeForce RTX 3090", "rtx3090"},
      {"NVIDIA GeForce RTX 2080 Ti", "rtx2080ti"},
      {"Tesla T4", "t4"},
      {"Tesla V100", "v100"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strncmp(gpu, known[i].start, strlen(known[i].start)) == 0) return known[i].arch;
  }
  return NULL;
}

typedef struct own_form {
  ftl_param param;
  const char *text;
} own_form;

// kernels/attention is plain code, reads Q from shared memory in every step and refills a buffer as soon as it is free
// (through registers a step ahead), looks in every step for rows without a key; a warp of its products has whole rows.
// Its backward passes refill a step ahead and step the addresses of a product from one that they find.
enum { MOST_FORMS = 5 };
static const own_form forward[MOST_FORMS] = {{FTL_PARAM_q_operand, "shared"},
                                             {FTL_PARAM_refill, "when_free"},
                                             {FTL_PARAM_guard, "always"},
                                             {FTL_PARAM_code, "plain"}};
static const own_form forward_through_registers[MOST_FORMS] = {{FTL_PARAM_q_operand, "shared"},
                                                               {FTL_PARAM_refill, "early"},
                                                               {FTL_PARAM_guard, "always"},
                                                               {FTL_PARAM_code, "plain"}};
static const own_form backward[MOST_FORMS] = {{FTL_PARAM_refill, "early"},
                                              {FTL_PARAM_scaling, "exponent"},
                                              {FTL_PARAM_exp2, "ftz"},
                                              {FTL_PARAM_head_order, "heads_first"},
                                              {FTL_PARAM_code, "lean"}};

static const own_form product[MOST_FORMS] = {
    {FTL_PARAM_warps_n, "1"}, {FTL_PARAM_store, "direct"}, {FTL_PARAM_code, "plain"}};

static const own_form rows[MOST_FORMS] = {{FTL_PARAM_scaling, "apart"}};

static const own_form *forms_of(const ftl_spec *spec, const ftl_measurement *row) {
  if (ftl_spec_takes(spec, FTL_PARAM_dq)) return backward;
  if (ftl_spec_takes(spec, FTL_PARAM_block_k)) return product;
  if (!ftl_spec_takes(spec, FTL_PARAM_code)) return rows;
  return strcmp(ftl_column_or(row, "copy", ""), "ldg") == 0 ? forward_through_registers : forward;
}

static ftl_status set_open_forms(ftl_spec *spec, const own_form *forms, ftl_param_set open, ftl_error *error) {
  ftl_status status = FTL_OK;
  for (int i = 0; i < MOST_FORMS && forms[i].text != NULL && status == FTL_OK; i++)
    if (open >> forms[i].param & 1) status = ftl_columns_set(spec, forms[i].param, forms[i].text, error);
  return status;
}

// What a row says itself, in a column of that name, stays; where it says `code`, that decides what else is open. The
// column `schedule` of unfused attention names its softmax.
static ftl_status set_own(ftl_spec *spec, const ftl_measurement *row, ftl_error *error) {
  const char *workload = ftl_measurement_fact(row, "workload");
  if (workload == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "a row that names no workload");
  ftl_status status = ftl_columns_begin(spec, workload, row, error);
  if (status != FTL_OK) return status;
  ftl_param_set open = spec->workload->accepts & ~spec->given;
  bool says_code = spec->given >> FTL_PARAM_code & 1;
  if (!says_code) status = set_open_forms(spec, forms_of(spec, row), open, error);
  bool has_softmax = open >> FTL_PARAM_softmax & 1;
  if (status != FTL_OK || !has_softmax) return status;
  return ftl_columns_set(spec, FTL_PARAM_softmax, ftl_column_or(row, "schedule", "safe"), error);
}

// kernels/measurements/HELDOUT.md.
static ftl_part part_of(const ftl_measured_case *c, const ftl_measurement *row) {
  const int64_t *value = c->spec.value;
  if (strcmp(c->source, FTL_INDEPENDENT) == 0) return FTL_PART_INDEPENDENT;
  if (strcmp(c->source, "own") != 0) return FTL_PART_HELD_OUT;
  if (strcmp(ftl_column_or(row, "part", "calibration"), "calibration") != 0) return FTL_PART_RESERVED;
  bool is_long_causal = value[FTL_PARAM_seqlen_kv] >= 16384 && value[FTL_PARAM_causal] != 0;
  return value[FTL_PARAM_head_dim] == 256 || is_long_causal ? FTL_PART_RESERVED : FTL_PART_CALIBRATION;
}

const char *ftl_part_name(ftl_part part) {
  static const char *const names[] = {"calibration", "reserved", "held-out", "independent", "yours"};
  return names[part];
}

const char *ftl_part_title(ftl_part part) {
  static const char *const titles[] = {"calibration part", "reserved part", "held-out part", "independent part",
                                       "your own measurements"};
  return titles[part];
}

// The parameter by the name of its column.
static ftl_status set_conditions(ftl_spec *spec, const char *condition, ftl_error *error) {
  if (ftl_spec_set_text(spec, "conditions", condition, NULL) == FTL_OK) return FTL_OK;
  char allowed[FTL_PARAM_TEXT_BYTES];
  return ftl_error_set(error, FTL_BAD_INPUT, "condition=%.40s: allowed are %s", condition,
                       ftl_workload_allowed(spec->workload, FTL_PARAM_conditions, allowed));
}

ftl_status ftl_measured_case_make(ftl_measured_case *out, const ftl_measurement *row, ftl_error *error) {
  *out = (ftl_measured_case){0};
  const char *gpu = ftl_column_or(row, "gpu", ""), *source = ftl_measurement_fact(row, "source");
  const char *arch = arch_of_gpu(gpu);
  if (arch == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "GPU %.64s", gpu[0] != '\0' ? gpu : "not named");
  snprintf(out->arch, sizeof out->arch, "%s", arch);
  snprintf(out->source, sizeof out->source, "%s", source != NULL ? source : "own");
  bool is_of_others = strcmp(out->source, FTL_INDEPENDENT) == 0;
  if (is_of_others) snprintf(out->author, sizeof out->author, "%s", ftl_column_or(row, "family", ""));
  ftl_status status =
      source != NULL ? ftl_foreign_kernel_set(&out->spec, row, source, error) : set_own(&out->spec, row, error);
  if (status == FTL_OK) {
    status = set_conditions(&out->spec, ftl_column_or(row, "condition", "ncu"), error);
  }
  if (status == FTL_OK) status = ftl_spec_complete(&out->spec, error);
  if (status == FTL_OK) out->part = part_of(out, row);
  // Kernels of others may be what no workload is (rows of fp32, a tile of one row): not covered, no fault of the row.
  return status == FTL_BAD_INPUT && is_of_others ? error->status = FTL_INFEASIBLE : status;
}

ftl_status ftl_measured_case_of(ftl_measured_case *out, const ftl_measurement_file *file, const ftl_measurement *row,
                                ftl_error *error) {
  ftl_status status = ftl_measured_case_make(out, row, error);
  bool says_part = ftl_measurement_fact(row, "part") != NULL;
  if (status == FTL_OK && !file->is_of_project && !says_part) out->part = FTL_PART_YOURS;
  return status;
}
