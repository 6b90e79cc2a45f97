#include "report/arch_report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "arch/tensor_rates.h"
#include "base/path.h"
#include "base/text.h"

// Dense fp16 with fp32 accumulation at the highest clock.
static double peak_tflops(const ftl_arch *arch) {
  return ftl_arch_tensor_tflops(arch, arch->tensor_peak_fma_per_cycle, arch->clock_sm_max_khz);
}

double ftl_arch_dram_gb_per_s(const ftl_arch *arch) {
  double bytes_per_cycle =
      (double)arch->dram_num_channels * (double)arch->dram_burst_bytes / (double)arch->dram_burst_cycles;
  return bytes_per_cycle * (double)arch->clock_dram_khz * 1e3 / 1e9;
}

// Writes the text and frees it.
static ftl_status text_write(FILE *out, ftl_text *text, ftl_error *error) {
  ftl_status status = FTL_OK;
  if (text->failed) {
    status = ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  } else if (fputs(ftl_text_get(text), out) == EOF || fflush(out) != 0) {
    status = ftl_error_set(error, FTL_IO_FAILED, "cannot write: %s", strerror(errno));
  }
  ftl_text_fini(text);
  return status;
}

// Writes the value and frees it; NULL is memory that was out.
static ftl_status json_write(FILE *out, json_t *json, ftl_error *error) {
  char *dump = json != NULL ? json_dumps(json, JSON_PRESERVE_ORDER) : NULL;
  json_decref(json);
  if (dump == NULL) return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  ftl_text text = {0};
  ftl_text_add(&text, "%s\n", dump);
  free(dump);
  return text_write(out, &text, error);
}

static void value_text(const ftl_arch *arch, int key_idx, char *out, size_t size) {
  if (ftl_arch_key_get(key_idx)->allowed != NULL) {
    snprintf(out, size, "%s", ftl_arch_text(arch, key_idx));
  } else {
    snprintf(out, size, "%lld", (long long)ftl_arch_int(arch, key_idx));
  }
}

// --- list ---

static ftl_status list_text(FILE *out, const ftl_arch *const *archs, int num_archs, ftl_error *error) {
  ftl_text text = {0};
  ftl_text_add(&text, "%-12s %-6s %4s %4s %9s %8s %15s %9s %13s\n", "GPU", "die", "CC", "SMs", "SM clock", "L2",
               "memory", "bandwidth", "fp16 tensor");
  for (int i = 0; i < num_archs; i++) {
    const ftl_arch *a = archs[i];
    ftl_text_add(&text, "%-12s %-6s %2lld.%lld %4lld %5lld MHz %4.1f MiB %5.0f GiB %-6s %4.0f GB/s %6.1f TFLOP/s\n",
                 a->name, a->die, (long long)a->chip_compute_capability / 10,
                 (long long)a->chip_compute_capability % 10, (long long)a->chip_num_sms,
                 (long long)a->clock_sm_max_khz / 1000, (double)a->l2_size_bytes / 1048576,
                 (double)a->dram_size_bytes / 1073741824, a->dram_kind, ftl_arch_dram_gb_per_s(a), peak_tflops(a));
  }
  return text_write(out, &text, error);
}

static ftl_status list_json(FILE *out, const ftl_arch *const *archs, int num_archs, ftl_error *error) {
  json_t *list = json_array();
  for (int i = 0; i < num_archs; i++) {
    const ftl_arch *a = archs[i];
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f}", "name", a->name, "die", a->die,
                        "compute_capability", (json_int_t)a->chip_compute_capability, "num_sms",
                        (json_int_t)a->chip_num_sms, "sm_max_khz", (json_int_t)a->clock_sm_max_khz, "l2_bytes",
                        (json_int_t)a->l2_size_bytes, "memory_bytes", (json_int_t)a->dram_size_bytes, "memory_kind",
                        a->dram_kind, "dram_gb_per_s", ftl_arch_dram_gb_per_s(a), "peak_tflops", peak_tflops(a)));
  }
  return json_write(out, list, error);
}

ftl_status ftl_arch_report_list(FILE *out, const ftl_arch *const *archs, int num_archs, bool json, ftl_error *error) {
  return json ? list_json(out, archs, num_archs, error) : list_text(out, archs, num_archs, error);
}

// --- show ---

static void origin_where(ftl_origin origin, char *out, size_t size) {
  if (origin.line > 0) {
    snprintf(out, size, "%s:%d", ftl_path_file_name(origin.file), origin.line);
  } else {
    snprintf(out, size, "%s", ftl_path_file_name(origin.file));
  }
}

// What the tensor cores multiply, at the highest clock.
static void add_tensor_rates(ftl_text *text, const ftl_arch *arch) {
  ftl_text_add(
      text, "\ntensor cores at %lld MHz, TFLOP/s or TOPS (as published rates of an SM and cycle)\n%-9s %-12s %9s %9s\n",
      (long long)arch->clock_sm_max_khz / 1000, "operands", "accumulator", "dense", "sparse");
  for (int i = 0; i < ftl_arch_num_tensor_rates(); i++) {
    ftl_tensor_rate rate = ftl_arch_tensor_rate(arch, i);
    if (rate.dense_fma_per_cycle == 0) {
      ftl_text_add(text, "%-9s %-12s %9s %9s\n", rate.operands, rate.accumulator, "none", "none");
      continue;
    }
    ftl_text_add(text, "%-9s %-12s %9.1f ", rate.operands, rate.accumulator,
                 ftl_arch_tensor_tflops(arch, rate.dense_fma_per_cycle, arch->clock_sm_max_khz));
    if (rate.sparse_fma_per_cycle == 0)
      ftl_text_add(text, "%9s\n", "none");
    else
      ftl_text_add(text, "%9.1f\n", ftl_arch_tensor_tflops(arch, rate.sparse_fma_per_cycle, arch->clock_sm_max_khz));
  }
}

static ftl_status show_text(FILE *out, const ftl_arch *arch, ftl_error *error) {
  ftl_text text = {0};
  ftl_text_add(&text, "%s on %s\n\n%-34s %15s  %-16s %-9s %-16s %s\n", arch->name, arch->die, "key", "value", "unit",
               "origin", "set in", "source or reason");
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    ftl_origin origin = ftl_arch_origin(arch, i);
    char value[FTL_ARCH_NAME_BYTES], where[128];
    value_text(arch, i, value, sizeof value);
    origin_where(origin, where, sizeof where);
    ftl_text_add(&text, "%-34s %15s  %-16s %-9s %-16s %s\n", ftl_arch_key_get(i)->name, value,
                 ftl_arch_key_get(i)->unit, ftl_origin_kind_name(origin.kind), where, origin.text);
  }
  add_tensor_rates(&text, arch);
  return text_write(out, &text, error);
}

static json_t *key_json(const ftl_arch *arch, int key_idx) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  ftl_origin origin = ftl_arch_origin(arch, key_idx);
  json_t *value = key->allowed != NULL ? json_string(ftl_arch_text(arch, key_idx))
                                       : json_integer((json_int_t)ftl_arch_int(arch, key_idx));
  return json_pack("{s:o, s:s, s:s, s:s, s:s, s:i}", "value", value, "unit", key->unit, "origin",
                   ftl_origin_kind_name(origin.kind), "source", origin.text, "file", ftl_path_file_name(origin.file),
                   "line", origin.line);
}

static json_t *tensor_json(const ftl_arch *arch) {
  json_t *rates = json_array();
  for (int i = 0; i < ftl_arch_num_tensor_rates(); i++) {
    ftl_tensor_rate rate = ftl_arch_tensor_rate(arch, i);
    json_array_append_new(
        rates,
        json_pack("{s:s, s:s, s:f, s:f}", "operands", rate.operands, "accumulator", rate.accumulator, "dense_tflops",
                  ftl_arch_tensor_tflops(arch, rate.dense_fma_per_cycle, arch->clock_sm_max_khz), "sparse_tflops",
                  ftl_arch_tensor_tflops(arch, rate.sparse_fma_per_cycle, arch->clock_sm_max_khz)));
  }
  return rates;
}

static ftl_status show_json(FILE *out, const ftl_arch *arch, ftl_error *error) {
  char hash[32];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)ftl_arch_hash(arch));
  json_t *keys = json_object();
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    json_object_set_new(keys, ftl_arch_key_get(i)->name, key_json(arch, i));
  }
  json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", arch->name, "die", arch->die, "hash", hash, "keys", keys,
                          "tensor", tensor_json(arch));
  return json_write(out, all, error);
}

ftl_status ftl_arch_report_show(FILE *out, const ftl_arch *arch, bool json, ftl_error *error) {
  return json ? show_json(out, arch, error) : show_text(out, arch, error);
}

// --- check ---

ftl_status ftl_arch_report_check(FILE *out, const ftl_arch *arch, ftl_error *error) {
  int counts[FTL_ORIGIN_OVERRIDE + 1] = {0};
  ftl_text text = {0};
  for (int i = 0; i < ftl_arch_num_keys(); i++) counts[ftl_arch_origin(arch, i).kind]++;
  ftl_text_add(&text, "%s on %s: %d keys, all set and in range: %d datasheet, %d measured, %d guess, %d override\n",
               arch->name, arch->die, ftl_arch_num_keys(), counts[FTL_ORIGIN_DATASHEET], counts[FTL_ORIGIN_MEASURED],
               counts[FTL_ORIGIN_GUESS], counts[FTL_ORIGIN_OVERRIDE]);
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    ftl_origin origin = ftl_arch_origin(arch, i);
    if (origin.kind != FTL_ORIGIN_GUESS) continue;
    ftl_text_add(&text, "guess: %-34s %s\n", ftl_arch_key_get(i)->name, origin.text);
  }
  return text_write(out, &text, error);
}

// --- docs ---

// A '|' would end a cell.
static void add_cell(ftl_text *text, const char *cell, const char *end) {
  for (; *cell != '\0'; cell++) {
    if (*cell == '|') ftl_text_add_bytes(text, "\\", 1);
    ftl_text_add_bytes(text, cell, 1);
  }
  ftl_text_add(text, "%s", end);
}

ftl_status ftl_arch_report_docs(FILE *out, ftl_error *error) {
  ftl_text text = {0};
  ftl_text_add(&text, "| key | unit | allowed | meaning |\n|---|---|---|---|\n");
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    const ftl_arch_key *key = ftl_arch_key_get(i);
    char allowed[64];
    snprintf(allowed, sizeof allowed, "%lld to %lld", (long long)key->min, (long long)key->max);
    ftl_text_add(&text, "| `%s` | ", key->name);
    add_cell(&text, key->allowed != NULL ? "name" : key->unit, " | ");
    add_cell(&text, key->allowed != NULL ? key->allowed : allowed, " | ");
    add_cell(&text, key->doc, " |\n");
  }
  return text_write(out, &text, error);
}
