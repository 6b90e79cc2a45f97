// A chart with two logarithmic axes, as an SVG element of a page: its colours are classes of the page's style sheet.
#ifndef FTL_REPORT_PLOT_H
#define FTL_REPORT_PLOT_H

#include "base/text.h"

typedef struct ftl_plot_axis {
  const char *label;
  double least, most;  // powers of ten after ftl_plot_begin
} ftl_plot_axis;

typedef struct ftl_plot {
  ftl_plot_axis x, y;
  ftl_text *out;
} ftl_plot;

// Makes an axis hold a value; ones that are no positive numbers are left out, as they have no place. An axis starts as
// { label, 0, 0 }.
void ftl_plot_axis_hold(ftl_plot_axis *axis, double value);

// Widens the axes to whole decades and draws them. `title` names the chart, `description` says what is seen in it.
void ftl_plot_begin(ftl_plot *plot, const char *title, const char *description);
// From one point to another; what lies outside of the axes is cut off.
void ftl_plot_line(const ftl_plot *plot, double x0, double y0, double x1, double y1, const char *style);
// Dots of one series, all in one element: points_begin, any number of point, points_end.
void ftl_plot_points_begin(const ftl_plot *plot, const char *style);
void ftl_plot_point(const ftl_plot *plot, double x, double y);
void ftl_plot_points_end(const ftl_plot *plot);
// One dot with a text that appears under the pointer.
void ftl_plot_mark(const ftl_plot *plot, double x, double y, const char *style, const char *text);
void ftl_plot_end(const ftl_plot *plot);

#endif
