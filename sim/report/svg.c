#include "report/svg.h"

#include "report/markup.h"

enum { WIDTH = 920, LABEL_WIDTH = 350, BAR_WIDTH = 320, ROW_HEIGHT = 20, HEADER_HEIGHT = 34, MARGIN = 12 };

static bool is_first_of_arch(const ftl_row *rows, int64_t i) {
  for (int64_t j = 0; j < i; j++) {
    if (rows[j].arch == rows[i].arch) return false;
  }
  return true;
}

static bool is_drawn(const ftl_row *row, const ftl_arch *arch) {
  return row->arch == arch && row->prediction->feasible;
}

static int count_drawn(const ftl_row *rows, int64_t num_rows, const ftl_arch *arch, int max_bars) {
  int count = 0;
  for (int64_t i = 0; i < num_rows && count < max_bars; i++) count += is_drawn(&rows[i], arch);
  return count;
}

static double longest_time(const ftl_row *rows, int64_t num_rows, const ftl_arch *arch, int max_bars) {
  double longest = 0;
  int count = 0;
  for (int64_t i = 0; i < num_rows && count < max_bars; i++) {
    if (!is_drawn(&rows[i], arch)) continue;
    count++;
    double time = ftl_prediction_time_ns(rows[i].prediction);
    if (time > longest) longest = time;
  }
  return longest;
}

static void add_bar(const ftl_row *row, ftl_varying varying, double longest, int y, bool is_best, ftl_text *out) {
  ftl_text label = {0};
  const ftl_metrics *metrics = &row->prediction->metrics;
  double time = ftl_prediction_time_ns(row->prediction);
  double length = longest > 0 ? time / longest * BAR_WIDTH : 0;
  ftl_row_label(row, varying, &label);
  ftl_text_add(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABEL_WIDTH, y + 14);
  ftl_markup_add(out, ftl_text_get(&label));
  ftl_text_add(out, "</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>", LABEL_WIDTH + 8, y + 2,
               length, ROW_HEIGHT - 4, is_best ? "#2f7d4f" : "#8fb8a0");
  ftl_text_add(out, "<text x=\"%.1f\" y=\"%d\">%.0f us, %.0f TFLOP/s, HBM %.0f MB</text>\n", LABEL_WIDTH + 14 + length,
               y + 14, time / 1e3, metrics->value[FTL_METRIC_tflops],
               (metrics->value[FTL_METRIC_dram_read] + metrics->value[FTL_METRIC_dram_write]) / 1e6);
  ftl_text_fini(&label);
}

// What differs among the bars of one panel.
static ftl_varying varying_in(const ftl_row *rows, int64_t num_rows, const ftl_arch *arch) {
  ftl_varying varying = {0};
  ftl_row pair[2] = {0};
  for (int64_t i = 0; i < num_rows; i++) {
    if (!is_drawn(&rows[i], arch)) continue;
    if (pair[0].prediction == NULL) pair[0] = rows[i];
    pair[1] = rows[i];
    ftl_varying differing = ftl_rows_varying(pair, 2);
    varying.params |= differing.params;
    varying.own |= differing.own;
  }
  return varying;
}

// Returns the y below the panel.
static int add_panel(const ftl_row *rows, int64_t num_rows, const ftl_arch *arch, int max_bars, int y, ftl_text *out) {
  ftl_varying varying = varying_in(rows, num_rows, arch);
  double longest = longest_time(rows, num_rows, arch, max_bars);
  ftl_text_add(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\" font-size=\"14\">", MARGIN, y + 22);
  ftl_markup_add(out, arch->name);
  ftl_text_add(out, "</text>\n");
  y += HEADER_HEIGHT;
  int count = 0;
  for (int64_t i = 0; i < num_rows && count < max_bars; i++) {
    if (!is_drawn(&rows[i], arch)) continue;
    add_bar(&rows[i], varying, longest, y, count == 0, out);
    y += ROW_HEIGHT;
    count++;
  }
  return y;
}

ftl_status ftl_rows_svg(const ftl_row *rows, int64_t num_rows, int max_bars, ftl_text *out, ftl_error *error) {
  int height = 2 * MARGIN;
  for (int64_t i = 0; i < num_rows; i++) {
    if (is_first_of_arch(rows, i)) {
      height += HEADER_HEIGHT + ROW_HEIGHT * count_drawn(rows, num_rows, rows[i].arch, max_bars);
    }
  }
  ftl_text_add(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\""
               " font-size=\"11\">\n<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n",
               WIDTH, height, WIDTH, height);
  int y = MARGIN;
  for (int64_t i = 0; i < num_rows; i++) {
    if (is_first_of_arch(rows, i)) y = add_panel(rows, num_rows, rows[i].arch, max_bars, y, out);
  }
  ftl_text_add(out, "</svg>\n");
  return out->failed ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory for the picture") : FTL_OK;
}
