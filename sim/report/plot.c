#include "report/plot.h"

#include <math.h>
#include <stdbool.h>

#include "report/markup.h"

enum { WIDTH = 440, HEIGHT = 400, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46 };

static bool has_place(double value) { return isfinite(value) && value > 0; }

void ftl_plot_axis_hold(ftl_plot_axis *axis, double value) {
  if (!has_place(value)) return;
  if (axis->most <= 0) axis->least = axis->most = value;
  axis->least = fmin(axis->least, value);
  axis->most = fmax(axis->most, value);
}

static void widen(ftl_plot_axis *axis) {
  if (axis->most <= 0) axis->least = axis->most = 1;
  double first = floor(log10(axis->least)), last = ceil(log10(axis->most));
  axis->least = pow(10, first);
  axis->most = pow(10, last > first ? last : first + 1);
}

static double place(const ftl_plot_axis *axis, double value) {
  return (log10(value) - log10(axis->least)) / (log10(axis->most) - log10(axis->least));
}

static double x_of(const ftl_plot *plot, double value) {
  return LEFT + place(&plot->x, value) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const ftl_plot *plot, double value) {
  return HEIGHT - BOTTOM - place(&plot->y, value) * (HEIGHT - TOP - BOTTOM);
}

// 1000 as 1k: at most three digits.
static void add_tick_text(ftl_text *out, double value) {
  static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  while (value >= 1000 && prefix < 5) {
    value /= 1000;
    prefix++;
  }
  ftl_text_add(out, "%g%s", value, prefixes[prefix]);
}

static void add_grid(const ftl_plot *plot) {
  ftl_text *out = plot->out;
  for (double tick = plot->x.least; tick <= plot->x.most * 1.5; tick *= 10) {
    double x = x_of(plot, tick);
    ftl_text_add(out, "<path class=grid d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=middle>", x, TOP,
                 HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 16);
    add_tick_text(out, tick);
    ftl_text_add(out, "</text>");
  }
  for (double tick = plot->y.least; tick <= plot->y.most * 1.5; tick *= 10) {
    double y = y_of(plot, tick);
    ftl_text_add(out, "<path class=grid d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=end>", LEFT, y,
                 WIDTH - RIGHT, LEFT - 6, y + 4);
    add_tick_text(out, tick);
    ftl_text_add(out, "</text>");
  }
}

static void add_axis_labels(const ftl_plot *plot) {
  ftl_text *out = plot->out;
  ftl_text_add(out, "<text x=\"%d\" y=\"%d\" text-anchor=middle>", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
  ftl_markup_add(out, plot->x.label);
  ftl_text_add(out, "</text><text transform=\"translate(13 %d) rotate(-90)\" text-anchor=middle>",
               (TOP + HEIGHT - BOTTOM) / 2);
  ftl_markup_add(out, plot->y.label);
  ftl_text_add(out, "</text>\n");
}

void ftl_plot_begin(ftl_plot *plot, const char *title, const char *description) {
  widen(&plot->x);
  widen(&plot->y);
  ftl_text_add(plot->out, "<svg class=plot viewBox=\"0 0 %d %d\" role=img aria-label=\"", WIDTH, HEIGHT);
  ftl_markup_add(plot->out, title);
  ftl_text_add(plot->out, ". ");
  ftl_markup_add(plot->out, description);
  ftl_text_add(plot->out, "\">\n");
  add_grid(plot);
  add_axis_labels(plot);
}

// The part of [0, 1] in which from + t * step lies within [0, 1].
static void cut(double from, double step, double *first, double *last) {
  if (step == 0) {
    if (from < 0 || from > 1) *last = -1;
    return;
  }
  double a = -from / step, b = (1 - from) / step;
  *first = fmax(*first, fmin(a, b));
  *last = fmin(*last, fmax(a, b));
}

void ftl_plot_line(const ftl_plot *plot, double x0, double y0, double x1, double y1, const char *style) {
  double u0 = place(&plot->x, x0), v0 = place(&plot->y, y0);
  double du = place(&plot->x, x1) - u0, dv = place(&plot->y, y1) - v0;
  double first = 0, last = 1;
  cut(u0, du, &first, &last);
  cut(v0, dv, &first, &last);
  if (first > last) return;
  const double width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
  ftl_text_add(plot->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", style, LEFT + (u0 + first * du) * width,
               HEIGHT - BOTTOM - (v0 + first * dv) * height, LEFT + (u0 + last * du) * width,
               HEIGHT - BOTTOM - (v0 + last * dv) * height);
}

void ftl_plot_points_begin(const ftl_plot *plot, const char *style) {
  ftl_text_add(plot->out, "<path class=\"dots %s\" d=\"", style);
}

// A line of no length with round ends is a dot: twelve bytes a point.
void ftl_plot_point(const ftl_plot *plot, double x, double y) {
  if (has_place(x) && has_place(y)) ftl_text_add(plot->out, "M%.1f %.1fh0", x_of(plot, x), y_of(plot, y));
}

void ftl_plot_points_end(const ftl_plot *plot) { ftl_text_add(plot->out, "\"/>\n"); }

void ftl_plot_mark(const ftl_plot *plot, double x, double y, const char *style, const char *text) {
  if (!has_place(x) || !has_place(y)) return;
  ftl_text_add(plot->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=4><title>", style, x_of(plot, x),
               y_of(plot, y));
  ftl_markup_add(plot->out, text);
  ftl_text_add(plot->out, "</title></circle>\n");
}

void ftl_plot_end(const ftl_plot *plot) { ftl_text_add(plot->out, "</svg>\n"); }
