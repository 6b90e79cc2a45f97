#include "cli/arguments.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "results/evaluate.h"
#include "script/sandbox.h"
#include "workloads/spec.h"

typedef enum value_kind { FLAG, TEXT, INTEGER, LIST } value_kind;

typedef struct option_info {
  char letter;  // what commands name it by; users type it for -o, -h and -q only
  value_kind kind;
  const char *name, *value, *doc;
  size_t offset;  // in ftl_arguments
  int64_t min, max;
} option_info;

#define AT(field) offsetof(ftl_arguments, field)
static const option_info all_options[] = {
    {'a', TEXT, "arch", "GPU", "a shipped model (foretile arch list) or a model file", AT(arch), 0, 0},
    {'w', TEXT, "workload", "NAME", "what to predict (foretile workload list)", AT(workload), 0, 0},
    {'s', LIST, "set", "KEY=VALUE", "change the GPU model, as in --set l2.size_bytes=123207680; repeatable", 0, 0, 0},
    {'D', TEXT, "detail", "LEVEL", "sampled or full, where the parameters do not say", AT(detail), 0, 0},
    {'j', INTEGER, "jobs", "N", "threads; default: one a CPU", AT(num_jobs), 1, 1024},
    {'d', TEXT, "db", "FILE", "keep results here, and take finished ones from here", AT(database), 0, 0},
    {'n', FLAG, "no-db", NULL, "keep nothing", AT(no_database), 0, 0},
    {'J', FLAG, "json", NULL, "one JSON object a line", AT(json), 0, 0},
    {'b', TEXT, "batch", "FILE", "one JSON object a line in (- for standard input), one out", AT(batch), 0, 0},
    {'t', INTEGER, "top", "K", "print the K best", AT(top), 1, INT_MAX},
    {'y', TEXT, "by", "METRIC", "rank by time (default), hbm, or a metric", AT(by), 0, 0},
    {'v', TEXT, "svg", "FILE", "also draw the ranking", AT(svg), 0, 0},
    {'q', FLAG, "quiet", NULL, "no progress on the terminal", AT(quiet), 0, 0},
    {'i', FLAG, "allow-io", NULL, "let the scenario open files and run programs", AT(allow_io), 0, 0},
    {'m', INTEGER, "max-memory-mb", "N", "memory of the scenario; default 256", AT(max_memory_mb), 1, 1048576},
    {'I', INTEGER, "max-instructions", "N", "Lua instructions of the scenario; default 500000000", AT(max_instructions),
     1000, INT64_MAX},
    {'c', INTEGER, "cta", "N", "which CTA; default 0", AT(cta), 0, INT64_MAX},
    {'l', INTEGER, "launch", "N", "which launch of the workload; default 0", AT(launch), 0, FTL_MAX_LAUNCHES - 1},
    {'x', INTEGER, "max-lines", "N", "stop after N lines; default 100000", AT(max_lines), 1, INT64_MAX},
    {'T', TEXT, "timeline", "FILE", "write a Chrome trace (chrome://tracing, Perfetto) instead", AT(timeline), 0, 0},
    {'f', INTEGER, "from", "CYCLE", "first SM cycle of the timeline; default 0", AT(from_cycle), 0, INT64_MAX},
    {'u', INTEGER, "until", "CYCLE", "end of the timeline; default 20000", AT(until_cycle), 1, INT64_MAX},
    {'o', TEXT, "output", "FILE", "write here instead of standard output", AT(output), 0, 0},
    {'M', TEXT, "measurements", "FILE", "measured rows; more files may follow; default: those of the sources",
     AT(measurements), 0, 0},
    {'P', FLAG, "program", NULL, "the tile program of the launch instead, as pseudo-code", AT(program), 0, 0},
    {'k', FLAG, "markdown", NULL, "as Markdown, every case", AT(markdown), 0, 0},
    {'A', FLAG, "all", NULL, "every case, not only the worst", AT(all), 0, 0},
    {'e', INTEGER, "every", "N", "only one case of N", AT(every), 1, INT_MAX},
    {'O', FLAG, "open-code", NULL, "leave open how each kernel's source is written (code, scaling, ...: auto)",
     AT(open_code), 0, 0},
    {'N', FLAG, "no-ncu", NULL, "no profiles: times only", AT(no_ncu), 0, 0},
    {'S', FLAG, "no-stream", NULL, "no times: profiles only", AT(no_stream), 0, 0},
    {'R', INTEGER, "repeat", "N", "profile every case N times; default 1", AT(repeat), 1, 1000},
    {'B', TEXT, "build", "DIR", "where the kernels are built; default: kernels/build of the sources", AT(build), 0, 0},
    {'h', FLAG, "help", NULL, "this text", AT(help), 0, 0},
};
enum { NUM_OPTIONS = sizeof all_options / sizeof *all_options };

// What an option says in one command where that is not what it says in all.
static const struct {
  const char *command;
  char letter;
  const char *value, *doc;
} own_docs[] = {
    {"run", 'D', "LEVEL", "sampled or full, where the scenario does not say"},
    {"run", 'd', "FILE", "keep results here, and take finished ones from here; default foretile.db"},
    {"explore", 'a', "GPU,GPU", "shipped models (foretile arch list) or model files, one or several"},
    {"explore", 't', "K", "print the K best of each GPU"},
    {"validate", 'D', "LEVEL", "sampled (default) or full"},
    {"validate", 't', "K", "print the K worst cases of each part; default: 15 on a terminal, else all"},
    {"validate", 'w', "NAME", "only rows of this workload (foretile workload list)"},
    {"validate", 'o', "FILE", "with --markdown: the document whose generated part is replaced"},
    {"report", 'd', "FILE", "the results to show; default foretile.db"},
    {"report", 'o', "FILE", "write the page here instead of standard output"},
    {"import", 'd', "FILE", "put the rows here; default foretile.db"},
    {"measure", 'o', "DIR", "the folder of the results; default measurements"},
    {"trace", 'w', "NAME", "what to trace (foretile workload list)"},
    {"explain", 'w', "NAME", "what to explain (foretile workload list)"},
    {"arch", 'J', NULL, "as JSON"},
    {"workload", 'J', NULL, "as JSON"},
};

static void own_doc(const option_info *o, const char *command, const char **value, const char **doc) {
  *value = o->value;
  *doc = o->doc;
  for (size_t i = 0; i < sizeof own_docs / sizeof *own_docs; i++) {
    if (own_docs[i].letter != o->letter || strcmp(own_docs[i].command, command) != 0) continue;
    *value = own_docs[i].value;
    *doc = own_docs[i].doc;
  }
}

static ftl_status needs_value(const option_info *o, const char *command, ftl_error *error) {
  const char *value, *doc;
  own_doc(o, command, &value, &doc);
  return ftl_error_set(error, FTL_BAD_INPUT, "--%s needs a value: %s", o->name, doc);
}
_Static_assert(NUM_OPTIONS <= 64, "ftl_arguments.given has a bit for each");
enum { NO_SHORT_FORM = 256 };  // added to an argp key: argp takes printable keys for short options

// --- finding options ---

static bool is_taken(const option_info *o, const char *options) {
  return o->letter == 'h' || strchr(options, o->letter);
}

static const option_info *find_letter(int letter) {
  for (int i = 0; i < NUM_OPTIONS; i++) {
    if (all_options[i].letter == letter) return &all_options[i];
  }
  return NULL;
}

static const option_info *find_name(const char *name, size_t size, const char *options) {
  for (int i = 0; i < NUM_OPTIONS; i++) {
    const option_info *o = &all_options[i];
    if (is_taken(o, options) && strlen(o->name) == size && memcmp(o->name, name, size) == 0) return o;
  }
  return NULL;
}

// NULL where none is so near that it could be meant: half of the letters are others.
static const char *nearest_option(const char *arg, const char *options) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
  const char *nearest = NULL;
  int distance = INT_MAX;
  for (int i = 0; i < NUM_OPTIONS; i++) {
    int d = ftl_edit_distance(name, all_options[i].name);
    if (is_taken(&all_options[i], options) && d < distance) {
      distance = d;
      nearest = all_options[i].name;
    }
  }
  return 2 * distance <= (int)strlen(name) ? nearest : NULL;
}

static bool has_short_form(const option_info *o) { return strchr("ohq", o->letter) != NULL; }

static const option_info *find_option(const char *arg, const char *options) {
  if (arg[1] == '-') return find_name(arg + 2, strcspn(arg + 2, "="), options);
  const option_info *o = find_letter(arg[1]);
  return o != NULL && has_short_form(o) && is_taken(o, options) && arg[2] == '\0' ? o : NULL;
}

static bool is_parameter(const char *text) {
  char name[32];
  size_t size = strcspn(text, "=");
  if (size >= sizeof name) return false;
  memcpy(name, text, size);
  name[size] = '\0';
  return strcmp(name, "seqlen") == 0 || ftl_param_find(name) >= 0;
}

// argp prints two lines for a bad option and stops the program; so the options are checked before argp sees them.
static ftl_status check_options(int argc, char **argv, const char *command, const char *options, ftl_error *error) {
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    if (arg[0] != '-' || arg[1] == '\0') continue;
    const option_info *o = find_option(arg, options);
    if (o == NULL) {
      const char *name = arg + 1 + (arg[1] == '-');
      if (is_parameter(name)) {
        return ftl_error_set(error, FTL_BAD_INPUT,
                             "%s has no option %.64s: parameters are written without dashes, "
                             "%.*s=VALUE",
                             command, arg, (int)strcspn(name, "="), name);
      }
      const char *nearest = nearest_option(name, options);
      if (nearest != NULL)
        return ftl_error_set(error, FTL_BAD_INPUT, "%s has no option %.64s; the nearest is --%s", command, arg,
                             nearest);
      return ftl_error_set(error, FTL_BAD_INPUT, "%s has no option %.64s; foretile %s --help lists its own", command,
                           arg, command);
    }
    bool has_value = arg[1] == '-' && strchr(arg, '=') != NULL;
    if (o->kind == FLAG && has_value) {
      return ftl_error_set(error, FTL_BAD_INPUT, "--%s takes no value", o->name);
    }
    if (o->kind == FLAG || has_value) continue;
    if (++i == argc) return needs_value(o, command, error);
  }
  return FTL_OK;
}

// --- parsing ---

typedef struct parse_state {
  ftl_arguments *arguments;
  const char *command;
  ftl_error *error;
  ftl_status status;
} parse_state;

static ftl_status parse_integer(const option_info *o, const char *text, int64_t *out, ftl_error *error) {
  char *end = NULL;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < o->min || value > o->max) {
    return ftl_error_set(error, FTL_BAD_INPUT, "--%s=%.32s: allowed is a whole number from %lld to %lld", o->name, text,
                         (long long)o->min, (long long)o->max);
  }
  *out = value;
  return FTL_OK;
}

static ftl_status set_option(const option_info *o, const char *text, const char *command, ftl_arguments *out,
                             ftl_error *error) {
  char *field = (char *)out + o->offset;
  switch (o->kind) {
    case FLAG:
      *(bool *)(void *)field = true;
      return FTL_OK;
    case TEXT:
      if (*text == '\0') return needs_value(o, command, error);
      *(const char **)(void *)field = text;
      return FTL_OK;
    case INTEGER:
      return parse_integer(o, text, (int64_t *)(void *)field, error);
    case LIST:
      out->sets[out->num_sets++] = text;
      return FTL_OK;
  }
  return FTL_OK;
}

static error_t parse_one(int key, char *arg, struct argp_state *argp_state) {
  parse_state *state = argp_state->input;
  ftl_arguments *out = state->arguments;
  if (key == ARGP_KEY_ARG) {
    out->positional[out->num_positional++] = arg;
    return 0;
  }
  const option_info *o = find_letter(key & (NO_SHORT_FORM - 1));
  if (o == NULL) return ARGP_ERR_UNKNOWN;
  uint64_t bit = UINT64_C(1) << (o - all_options);
  bool again = (out->given & bit) != 0;
  out->given |= bit;
  if (state->status != FTL_OK) return 0;
  // Of two values one would be dropped unsaid; a flag says the same twice.
  state->status = again && (o->kind == TEXT || o->kind == INTEGER)
                      ? ftl_error_set(state->error, FTL_BAD_INPUT, "--%s is given twice", o->name)
                      : set_option(o, arg, state->command, out, state->error);
  return 0;
}

static void make_argp_options(const char *options, const char *command, struct argp_option *out) {
  int count = 0;
  for (int i = 0; i < NUM_OPTIONS; i++) {
    const option_info *o = &all_options[i];
    int key = has_short_form(o) ? o->letter : o->letter + NO_SHORT_FORM;
    if (!is_taken(o, options)) continue;
    const char *value, *doc;
    own_doc(o, command, &value, &doc);
    out[count++] = (struct argp_option){o->name, key, value, 0, doc, 0};
  }
}

static void set_defaults(ftl_arguments *out) {
  ftl_sandbox_limits limits = ftl_sandbox_limits_default();
  out->num_jobs = ftl_num_cpus();
  out->max_memory_mb = (int64_t)(limits.max_memory_bytes >> 20);
  out->max_instructions = limits.max_instructions;
  out->max_lines = 100000;
  out->until_cycle = 20000;
  out->repeat = 1;
}

// Cuts argv at "--".
static int split_rest(ftl_arguments *out, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--") != 0) continue;
    out->rest = argv + i + 1;
    out->num_rest = argc - i - 1;
    return i;
  }
  return argc;
}

ftl_status ftl_arguments_parse(ftl_arguments *out, int argc, char **argv, const char *command, const char *usage,
                               const char *options, ftl_error *error) {
  *out = (ftl_arguments){0};
  set_defaults(out);
  argc = split_rest(out, argc, argv);
  ftl_status status = check_options(argc, argv, command, options, error);
  if (status != FTL_OK) return status;
  out->sets = calloc((size_t)argc + 1, sizeof *out->sets);
  out->positional = calloc((size_t)argc + 1, sizeof *out->positional);
  if (out->sets == NULL || out->positional == NULL) {
    ftl_arguments_fini(out);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
  }
  struct argp_option argp_options[NUM_OPTIONS + 1] = {0};
  make_argp_options(options, command, argp_options);
  struct argp argp = {.options = argp_options, .parser = parse_one, .args_doc = usage};
  parse_state state = {.arguments = out, .command = command, .error = error, .status = FTL_OK};
  error_t failed = argp_parse(&argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &state);
  status = state.status;
  if (status == FTL_OK && failed != 0)
    status = ftl_error_set(error, FTL_BAD_INPUT, "%s: %s", command, strerror(failed));
  if (status == FTL_OK && out->help) {
    char name[64];
    snprintf(name, sizeof name, "foretile %s", command);
    argp_help(&argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG, name);
  }
  if (status != FTL_OK) ftl_arguments_fini(out);
  return status;
}

const char *ftl_arguments_given(const ftl_arguments *arguments, const char *options) {
  for (; *options != '\0'; options++) {
    const option_info *o = find_letter(*options);
    if (arguments->given >> (o - all_options) & 1) return o->name;
  }
  return NULL;
}

void ftl_arguments_fini(ftl_arguments *arguments) {
  free(arguments->sets);
  free(arguments->positional);
  arguments->sets = arguments->positional = NULL;
}
