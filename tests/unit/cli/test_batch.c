#include <signal.h>

#include "cli/batch.h"
#include "cli/line_reader.h"
#include "unit/results/fixture.h"

// --- lines ---

typedef struct channel {
  int read_end, write_end;
} channel;

static channel make_channel(void) {
  int ends[2];
  cr_assert_eq(pipe(ends), 0);
  return (channel){ends[0], ends[1]};
}

static void put(const channel *c, const char *text) {
  cr_assert_eq(write(c->write_end, text, strlen(text)), (ssize_t)strlen(text));
}

Test(unit_cli_line_reader, gives_lines_as_they_come_and_the_last_without_newline) {
  channel c = make_channel();
  ftl_line_reader reader;
  char *line = NULL;
  size_t size = 0;
  cr_assert(ftl_line_reader_init(&reader, c.read_end));
  put(&c, "one\n\ntw");
  cr_assert_eq(ftl_line_reader_next(&reader, true, &line, &size), FTL_LINE);
  cr_assert_str_eq(line, "one");
  cr_assert_eq(ftl_line_reader_next(&reader, false, &line, &size), FTL_LINE);
  cr_assert_eq(size, 0);
  cr_assert_eq(ftl_line_reader_next(&reader, false, &line, &size), FTL_LINE_NOT_YET);
  put(&c, "o");
  close(c.write_end);
  cr_assert_eq(ftl_line_reader_next(&reader, true, &line, &size), FTL_LINE);
  cr_assert_str_eq(line, "two");
  cr_assert_eq(ftl_line_reader_next(&reader, true, &line, &size), FTL_LINE_END);
  ftl_line_reader_fini(&reader);
}

static void line_of_size(size_t size, ftl_line_kind expected) {
  FILE *file = tmpfile();
  for (size_t i = 0; i < size; i++) fputc('x', file);
  fputs("\nnext\n", file);
  fflush(file);
  lseek(fileno(file), 0, SEEK_SET);
  ftl_line_reader reader;
  char *line = NULL;
  size_t line_size = 0;
  cr_assert(ftl_line_reader_init(&reader, fileno(file)));
  cr_assert_eq(ftl_line_reader_next(&reader, true, &line, &line_size), expected);
  if (expected == FTL_LINE) cr_assert_eq(line_size, size);
  cr_assert_eq(ftl_line_reader_next(&reader, true, &line, &line_size), FTL_LINE);
  cr_assert_str_eq(line, "next");
  ftl_line_reader_fini(&reader);
  fclose(file);
}

Test(unit_cli_line_reader, skips_a_line_that_is_too_long_and_goes_on) {
  line_of_size(FTL_LINE_MAX_BYTES, FTL_LINE);
  line_of_size(FTL_LINE_MAX_BYTES + 1, FTL_LINE_TOO_LONG);
  line_of_size(3 * (size_t)FTL_LINE_MAX_BYTES, FTL_LINE_TOO_LONG);
}

// --- answers ---

typedef struct batch {
  ftl_session session;
  ftl_arguments arguments;
  int64_t num_failed;
  char *output;
  size_t output_size;
} batch;

static batch run_batch(const char *input, size_t size) {
  batch b = {0};
  ftl_error error = {0};
  FILE *file = tmpfile();
  FILE *out = open_memstream(&b.output, &b.output_size);
  fwrite(input, 1, size, file);
  fflush(file);
  lseek(fileno(file), 0, SEEK_SET);
  ftl_session_init(&b.session);
  b.session.evaluate.num_threads = 2;
  ftl_status status = ftl_batch_run(&b.session, &b.arguments, fileno(file), "test", out, &b.num_failed, &error);
  cr_assert_eq(status, FTL_OK, "%s", error.message);
  ftl_session_fini(&b.session);
  fclose(out);
  fclose(file);
  return b;
}

#define GOOD "{\"arch\":\"h200\",\"workload\":\"flash2_fwd\",\"heads\":8,\"seqlen\":1024,\"head_dim\":64,\"block_n\":"

Test(unit_cli_batch, answers_stand_in_the_order_of_the_lines) {
  char input[4096] = "";
  for (int i = 1; i <= 20; i++) {
    snprintf(input + strlen(input), sizeof input - strlen(input), GOOD "%d}\n", 8 * i);
  }
  batch b = run_batch(input, strlen(input));
  char *rest = b.output;
  for (int i = 1; i <= 20; i++) {
    char expected[32], *line = strsep(&rest, "\n");
    snprintf(expected, sizeof expected, i == 3 ? "{\"error\": \"this" : "\"block_n\": %d,", 8 * i);
    cr_assert_not_null(strstr(line, expected), "%s in %s", expected, line);
  }
  cr_assert_str_eq(rest, "");
  cr_assert_eq(b.num_failed, 1);
  free(b.output);
}

#define PACKED "{\"arch\":\"h200\",\"workload\":\"flash2_fwd\",\"heads\":8,\"head_dim\":64,\"lengths\":"

static void lengths_are(const char *value, const char *expected) {
  char input[2048];
  snprintf(input, sizeof input, PACKED "%s}\n", value);
  batch b = run_batch(input, strlen(input));
  cr_assert_eq(b.num_failed, 0, "%s", b.output);
  cr_assert_not_null(strstr(b.output, expected), "%s in %s", expected, b.output);
  free(b.output);
}

Test(unit_cli_batch, a_list_is_a_json_list_or_written_as_on_the_command_line) {
  lengths_are("[512, 77]", "\"lengths\": \"512:77\"");
  lengths_are("\"512:77\"", "\"lengths\": \"512:77\"");
  lengths_are("[77, 77, 77]", "\"lengths\": \"77x3\"");
  lengths_are("[], \"seqlen\": 64", "\"lengths\": \"none\"");
  // However long: the last of them, not what 64 characters would hold.
  lengths_are("\"1001:1002:1003:1004:1005:1006:1007:1008:1009:1010:1011:1012:1013:1014:1015:2016\"", ":1015:2016\"");
}

static void answer_has(const char *line, size_t size, const char *expected) {
  char input[512];
  memcpy(input, line, size);
  input[size] = '\n';
  batch b = run_batch(input, size + 1);
  cr_assert_eq(b.num_failed, 1);
  cr_assert_eq(strncmp(b.output, "{\"error\": \"", 11), 0, "%s", b.output);
  cr_assert_not_null(strstr(b.output, expected), "%s", b.output);
  cr_assert_eq(strchr(b.output, '\n'), b.output + b.output_size - 1, "one line");
  free(b.output);
}

Test(unit_cli_batch, what_is_wrong_with_a_line_is_its_answer) {
  const char *const cases[][2] = {
      {"", "not JSON"},
      {"nonsense", "not JSON"},
      {"[1, 2]", "not a JSON object"},
      {"{\"arch\": \"h200\"}", "\\\"workload\\\" is missing"},
      {"{\"workload\": \"flash2_fwd\", \"heads\": 8, \"seqlen\": 64, \"head_dim\": 64}", "\\\"arch\\\" is missing"},
      {"{\"arch\": 7, \"workload\": \"flash2_fwd\"}", "must be a string"},
      {GOOD "64, \"block_n\": 32}", "duplicate object key"},
      {GOOD "0}", "block_n=0: allowed is a whole number"},
      {GOOD "1e30}", "block_n=1e+30"},
      {GOOD "64, \"clock_mhz\": 2000}", "clock_mhz=2000: h200 holds 345 to 1980 MHz"},
      {GOOD "64.5}", "block_n=64.5"},
      {GOOD "99999999999999999999}", "not JSON"},
      {GOOD "null}", "allowed are a number"},
      {GOOD "[64, 128]}", "block_n: one value, not a list"},
      {GOOD "64, \"lengths\": [512, \"77x2\"]}", "lengths: allowed in a list are whole numbers"},
      {GOOD "64, \"lengths\": [512, 0]}", "lengths=512:0: allowed are whole numbers from 1"},
      {GOOD "64, \"lengths\": {}}", "true, false, a list of whole numbers"},
      {GOOD "{\"a\": [[[]]]}}", "allowed are a number"},
      {GOOD "64, \"blok\": 1}", "unknown parameter blok"},
      {GOOD "64, \"causal\": \"\\u0000\"}", "not JSON"},
      {"{\"arch\": \"h2\\u00fc\", \"workload\": \"flash2_fwd\", \"heads\": 8, \"seqlen\": 64, \"head_dim\": 64}",
       "unknown GPU"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) answer_has(cases[i][0], strlen(cases[i][0]), cases[i][1]);
  answer_has("{\"a\xff\": 1}", 9, "not JSON");
  answer_has("{\"a\0b\": 1}", 10, "not JSON");
}

Test(unit_cli_batch, deep_nesting_is_an_error_and_not_a_crash) {
  enum { DEPTH = 500000 };
  char *input = malloc(DEPTH + 2);
  memset(input, '[', DEPTH);
  input[DEPTH] = '\n';
  batch b = run_batch(input, DEPTH + 1);
  cr_assert_not_null(strstr(b.output, "maximum parsing depth reached"), "%s", b.output);
  free(b.output);
  free(input);
}

Test(unit_cli_batch, a_line_is_answered_before_more_input_comes, .timeout = 20) {
  channel in = make_channel(), out = make_channel();
  pid_t child = fork();
  if (child == 0) {
    close(in.write_end);
    ftl_session session;
    ftl_arguments arguments = {0};
    int64_t num_failed = 0;
    ftl_session_init(&session);
    session.evaluate.num_threads = 4;
    FILE *file = fdopen(out.write_end, "w");
    ftl_status status = ftl_batch_run(&session, &arguments, in.read_end, "test", file, &num_failed, NULL);
    _exit(status == FTL_OK ? 0 : 1);
  }
  char byte = 0;
  for (int i = 0; i < 3; i++) {
    put(&in, GOOD "64}\n");
    do {
      cr_assert_eq(read(out.read_end, &byte, 1), 1);
    } while (byte != '\n');
  }
  close(in.write_end);
  kill(child, SIGKILL);
}
