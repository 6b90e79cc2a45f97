// What the file holds: counts, GPU models, runs.
#include <stdio.h>
#include <string.h>

#include "report/page_internal.h"

enum { MAX_RUNS = 200, NUM_ORIGINS = FTL_ORIGIN_OVERRIDE + 1 };

static int64_t count_feasible(const ftl_contents *contents) {
  int64_t count = 0;
  for (int64_t i = 0; i < contents->num_predictions; i++) count += contents->predictions[i].feasible;
  return count;
}

static void add_plural(const ftl_page *page, int64_t count, const char *noun) {
  ftl_text_add(page->out, "<b>%lld</b> %s%s", (long long)count, noun, count == 1 ? "" : "s");
}

static void add_summary(const ftl_page *page) {
  const ftl_contents *c = page->contents;
  ftl_text_add(page->out, "<p>");
  add_plural(page, c->num_predictions, "prediction");
  ftl_text_add(page->out, " (%lld feasible) for ", (long long)count_feasible(c));
  add_plural(page, c->num_archs, "GPU model");
  ftl_text_add(page->out, ", ");
  add_plural(page, page->num_workloads, "workload");
  ftl_text_add(page->out, ", ");
  add_plural(page, page->num_groups, "problem");
  ftl_text_add(page->out, ", by ");
  add_plural(page, page->num_versions, "version");
  ftl_text_add(page->out, " of the program; ");
  add_plural(page, c->num_measurements, "measured row");
  ftl_text_add(page->out, " in ");
  add_plural(page, c->num_files, "file");
  ftl_text_add(page->out,
               ".\n<p>Predictions are simulated, not measured, unless a column says so. Times are those of the "
               "condition asked for: one launch under Nsight Compute (<code>conditions=ncu</code>, the default), or "
               "launches back to back (<code>conditions=stream</code>). Parameters at their default are left out.\n");
}

static void count_origins(const ftl_arch *arch, int64_t counts[NUM_ORIGINS]) {
  memset(counts, 0, NUM_ORIGINS * sizeof *counts);
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    if (ftl_arch_is_set(arch, i)) counts[ftl_arch_origin(arch, i).kind]++;
  }
}

// "l2.size_bytes=123207680": what a what-if changed.
static void add_overrides(const ftl_page *page, const ftl_arch *arch) {
  const char *separator = "<td>";
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    if (!ftl_arch_is_set(arch, i) || ftl_arch_origin(arch, i).kind != FTL_ORIGIN_OVERRIDE) continue;
    const ftl_arch_key *key = ftl_arch_key_get(i);
    ftl_text_add(page->out, "%s%s=", separator, key->name);
    if (key->allowed != NULL) {
      ftl_markup_add(page->out, ftl_arch_text(arch, i));
    } else {
      ftl_text_add(page->out, "%lld", (long long)ftl_arch_int(arch, i));
    }
    separator = " ";
  }
  if (separator[0] == '<') ftl_text_add(page->out, "<td>-");
}

static void add_archs(const ftl_page *page) {
  static const char *const columns[] = {
      "GPU model", "die", "hash of its values", "changed by a what-if", "predictions", "from datasheets", "measured",
      "guessed",   NULL};
  if (page->contents->num_archs == 0) return;
  ftl_page_table_begin(page, "GPU models, and where their values come from", columns, 5);
  for (int i = 0; i < page->contents->num_archs; i++) {
    const ftl_stored_arch *arch = &page->contents->archs[i];
    int64_t counts[NUM_ORIGINS];
    count_origins(arch->model, counts);
    ftl_page_row_begin(page);
    ftl_page_cell(page, page->gpus[i]);
    ftl_page_cell(page, arch->model->die);
    ftl_page_cell(page, arch->hash);
    add_overrides(page, arch->model);
    ftl_page_count(page, arch->num_predictions);
    ftl_page_count(page, counts[FTL_ORIGIN_DATASHEET]);
    ftl_page_count(page, counts[FTL_ORIGIN_MEASURED]);
    ftl_page_count(page, counts[FTL_ORIGIN_GUESS]);
  }
  ftl_page_table_end(page);
}

// The latest ones: a file that is used for months has many.
static void add_runs(const ftl_page *page) {
  static const char *const columns[] = {"run",   "command", "scenario",         "version", "started (UTC)",
                                        "ended", "state",   "predictions used", NULL};
  const ftl_contents *c = page->contents;
  int64_t first = c->num_runs > MAX_RUNS ? c->num_runs - MAX_RUNS : 0;
  if (c->num_runs == 0) return;
  char caption[32];
  snprintf(caption, sizeof caption, "The latest %d runs", MAX_RUNS);
  ftl_page_table_begin(page, first > 0 ? caption : "Runs", columns, 8);
  for (int64_t i = c->num_runs - 1; i >= first; i--) {
    const ftl_stored_run *run = &c->runs[i];
    ftl_page_row_begin(page);
    ftl_page_count(page, run->id);
    ftl_page_cell(page, run->command);
    ftl_page_cell(page, run->scenario);
    ftl_page_cell(page, run->version);
    ftl_page_cell(page, run->started_utc);
    ftl_page_cell(page, run->finished_utc);
    ftl_page_cell(page, run->state);
    ftl_page_count(page, run->num_predictions);
  }
  ftl_page_table_end(page);
}

void ftl_page_add_contents(ftl_page *page) {
  ftl_page_section(page, "contents", "What it holds");
  add_summary(page);
  add_archs(page);
  add_runs(page);
  ftl_text_add(page->out, "</section>\n");
}
