#include "report/plot.h"

#include <string.h>

#include <criterion/criterion.h>

// 440 x 400 with margins: x from 62 to 426, y from 354 up to 12. Two decades in x (182 each), one in y (342).
static ftl_plot make_plot(ftl_text *out) {
  ftl_plot plot = {.x = {.label = "x"}, .y = {.label = "y & z"}, .out = out};
  ftl_plot_axis_hold(&plot.x, 2);
  ftl_plot_axis_hold(&plot.x, 70);
  ftl_plot_axis_hold(&plot.x, 0);   // no place on a logarithmic axis
  ftl_plot_axis_hold(&plot.x, -5);  // likewise
  ftl_plot_axis_hold(&plot.y, 3000);
  ftl_plot_begin(&plot, "A <chart>", "of points");
  return plot;
}

Test(unit_report_plot, axes_are_whole_decades_and_say_what_they_are) {
  ftl_text out = {0};
  ftl_plot plot = make_plot(&out);
  cr_assert_float_eq(plot.x.least, 1, 1e-9);
  cr_assert_float_eq(plot.x.most, 100, 1e-9);
  cr_assert_float_eq(plot.y.least, 1000, 1e-9);
  cr_assert_float_eq(plot.y.most, 10000, 1e-9);
  const char *text = ftl_text_get(&out);
  cr_assert_not_null(strstr(text, "aria-label=\"A &lt;chart&gt;. of points\""));
  cr_assert_not_null(strstr(text, "y &amp; z"));
  cr_assert_not_null(strstr(text, ">100</text>"));
  cr_assert_not_null(strstr(text, ">10k</text>"));
  ftl_text_fini(&out);
}

Test(unit_report_plot, points_stand_where_their_logarithms_are) {
  ftl_text out = {0};
  ftl_plot plot = make_plot(&out);
  ftl_plot_points_begin(&plot, "c3");
  ftl_plot_point(&plot, 10, 1000);    // a decade along, at the foot: 62 + 182, 354
  ftl_plot_point(&plot, 100, 10000);  // the far corner
  ftl_plot_point(&plot, 0, 1000);     // no place
  ftl_plot_points_end(&plot);
  cr_assert_not_null(strstr(ftl_text_get(&out), "class=\"dots c3\" d=\"M244.0 354.0h0M426.0 12.0h0\"/>"));
  ftl_plot_mark(&plot, 10, 10000, "worst", "5 < 6");
  cr_assert_not_null(strstr(ftl_text_get(&out), "cx=\"244.0\" cy=\"12.0\" r=4><title>5 &lt; 6</title>"));
  ftl_text_fini(&out);
}

// y = 1000 x: enters at the lower left corner (1, 1000), and leaves at the top after a decade, (10, 10000).
Test(unit_report_plot, lines_are_cut_at_the_axes) {
  ftl_text out = {0};
  ftl_plot plot = make_plot(&out);
  ftl_plot_line(&plot, 0.1, 100, 1000, 1000000, "roof");
  cr_assert_not_null(strstr(ftl_text_get(&out), "class=\"roof\" d=\"M62.0 354.0L244.0 12.0\"/>"));
  size_t before = out.size;
  ftl_plot_line(&plot, 1, 10, 100, 100, "roof");  // all below
  cr_assert_eq(out.size, before);
  ftl_text_fini(&out);
}
