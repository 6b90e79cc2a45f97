#include <criterion/criterion.h>
#include <string.h>

#include "cli/arguments.h"

static ftl_status parse(ftl_arguments *out, char **argv, ftl_error *error) {
  int argc = 0;
  while (argv[argc] != NULL) argc++;
  return ftl_arguments_parse(out, argc, argv, "test", "FILE", "adsjtJq", error);
}

static void fails(char **argv, const char *expected) {
  ftl_arguments arguments;
  ftl_error error = {0};
  cr_assert_eq(parse(&arguments, argv, &error), FTL_BAD_INPUT);
  cr_assert_not_null(strstr(error.message, expected), "%s", error.message);
}

Test(unit_cli_arguments, options_and_names_may_be_mixed) {
  char *argv[] = {"foretile test", "one", "--arch",   "h200", "--json", "two=2", "--set=a=1", "--set",
                  "b=2",           "-q",  "--jobs=3", "--",   "--top",  "x",     NULL};
  ftl_arguments arguments;
  ftl_error error = {0};
  cr_assert_eq(parse(&arguments, argv, &error), FTL_OK, "%s", error.message);
  cr_assert_str_eq(arguments.arch, "h200");
  cr_assert(arguments.json && arguments.quiet);
  cr_assert_eq(arguments.num_jobs, 3);
  cr_assert_eq(arguments.num_positional, 2);
  cr_assert_str_eq(arguments.positional[1], "two=2");
  cr_assert_eq(arguments.num_sets, 2);
  cr_assert_str_eq(arguments.sets[0], "a=1");
  cr_assert_str_eq(arguments.sets[1], "b=2");
  cr_assert_eq(arguments.num_rest, 2);
  cr_assert_str_eq(arguments.rest[0], "--top");
  cr_assert_eq(arguments.top, 0);
  ftl_arguments_fini(&arguments);
}

Test(unit_cli_arguments, mistakes_are_one_line_that_says_what_is_allowed) {
  fails((char *[]){"t", "--aarch", "x", NULL}, "has no option --aarch; the nearest is --arch");
  fails((char *[]){"t", "--head_dim", "64", NULL},
        "has no option --head_dim: parameters are written without dashes, head_dim=VALUE");
  fails((char *[]){"t", "--seqlen=64", NULL}, "without dashes, seqlen=VALUE");
  fails((char *[]){"t", "--workload", "x", NULL}, "has no option --workload");  // of another command
  fails((char *[]){"t", "--aarch=a_long_name", NULL}, "has no option --aarch=a_long_name; the nearest is --arch");
  fails((char *[]){"t", "--gpu", "x", NULL}, "has no option --gpu; foretile test --help lists its own");
  fails((char *[]){"t", "-a", "x", NULL}, "has no option -a");
  fails((char *[]){"t", "-qj", NULL}, "has no option -qj");
  fails((char *[]){"t", "--arch", NULL}, "--arch needs a value");
  fails((char *[]){"t", "--json=1", NULL}, "--json takes no value");
  fails((char *[]){"t", "--jobs", "0", NULL}, "--jobs=0: allowed is a whole number from 1 to 1024");
  fails((char *[]){"t", "--jobs", "2x", NULL}, "--jobs=2x");
  fails((char *[]){"t", "--top", "99999999999999999999", NULL}, "--top=99999999999999999999");
  fails((char *[]){"t", "--jobs", "", NULL}, "--jobs=: allowed");
  fails((char *[]){"t", "--arch", "x", "--arch=x", NULL}, "--arch is given twice");  // one would be dropped unsaid
  fails((char *[]){"t", "--top", "1", "--jobs", "1", "--top", "2", NULL}, "--top is given twice");
}
