#include "report/markup.h"

#include <criterion/criterion.h>

static void escapes_to(const char *text, const char *expected) {
  ftl_text out = {0};
  ftl_markup_add(&out, text);
  cr_assert_str_eq(ftl_text_get(&out), expected);
  ftl_text_fini(&out);
}

Test(unit_report_markup, nothing_in_a_text_is_markup) {
  escapes_to("a <b> & \"c\" 'd'", "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  escapes_to("", "");
}

Test(unit_report_markup, what_is_no_text_is_marked_as_such) {
  escapes_to("tab\tbell\a",
             "tab\xef\xbf\xbd"
             "bell\xef\xbf\xbd");
  escapes_to("\xc3\xa9 \xff \xc3", "\xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd");
}
