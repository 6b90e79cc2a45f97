#include "results/measured_number.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_NUMBER_CHARS = 63 };

// Copies without thousands commas. False: a comma where none may be.
static bool remove_commas(const char *text, char *out) {
  const char *digits = text + strspn(text, "+-");
  size_t first = strspn(digits, "0123456789");
  bool grouped = digits[first] == ',';
  if (grouped && (first == 0 || first > 3)) return false;
  size_t size = 0;
  bool is_behind_point = false;
  for (const char *c = text; *c != '\0'; c++) {
    is_behind_point |= *c == '.';
    if (*c != ',') {
      out[size++] = *c;
    } else if (!grouped || is_behind_point || strspn(c + 1, "0123456789") != 3) {
      return false;
    }
  }
  out[size] = '\0';
  return !grouped || strpbrk(out, "eE") == NULL;
}

// Digits, at most one point, an exponent: strtod alone takes hexadecimal and names too.
static bool is_decimal(const char *text) {
  const char *c = text + (*text == '+' || *text == '-');
  size_t whole = strspn(c, "0123456789"), part = 0;
  c += whole;
  if (*c == '.') {
    part = strspn(++c, "0123456789");
    c += part;
  }
  if (whole + part == 0) return false;
  if (*c == 'e' || *c == 'E') {
    c++;
    c += *c == '+' || *c == '-';
    if (!isdigit((unsigned char)*c)) return false;
    c += strspn(c, "0123456789");
  }
  return *c == '\0';
}

ftl_number_kind ftl_measured_number_parse(const char *text, double *out) {
  static const char *const missing[] = {"", "n/a", "nan", "-nan", "inf", "-inf"};
  for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
    if (strcasecmp(text, missing[i]) == 0) return FTL_NUMBER_MISSING;
  }
  char plain[MAX_NUMBER_CHARS + 1];
  if (strlen(text) > MAX_NUMBER_CHARS || !remove_commas(text, plain) || !is_decimal(plain)) return FTL_NUMBER_NONE;
  *out = strtod(plain, NULL);
  return isfinite(*out) ? FTL_NUMBER : FTL_NUMBER_NONE;
}

// Nsight Compute's prefixes are decimal: a "Kbyte" is 1000 bytes.
static const struct {
  const char *unit, *base;
  double scale;
} units[] = {
    {"ns", "ns", 1},         {"nsecond", "ns", 1},   {"us", "ns", 1e3},      {"usecond", "ns", 1e3},
    {"ms", "ns", 1e6},       {"msecond", "ns", 1e6}, {"s", "ns", 1e9},       {"second", "ns", 1e9},
    {"byte", "byte", 1},     {"Kbyte", "byte", 1e3}, {"Mbyte", "byte", 1e6}, {"Gbyte", "byte", 1e9},
    {"Tbyte", "byte", 1e12}, {"hz", "hz", 1},        {"Khz", "hz", 1e3},     {"Mhz", "hz", 1e6},
    {"Ghz", "hz", 1e9},
};

// What counts are over: "cycle/nsecond" is a rate per second, "byte/block" a size.
static double denominator(const char *text, const char *numerator, size_t size, const char **base) {
  static const struct {
    const char *per;
    double scale;
  } times[] = {{"second", 1},    {"s", 1},    {"msecond", 1e3}, {"ms", 1e3},
               {"usecond", 1e6}, {"us", 1e6}, {"nsecond", 1e9}, {"ns", 1e9}};
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    if (strcmp(text, times[i].per) != 0) continue;
    if (size == 5 && strncmp(numerator, "cycle", size) == 0) *base = "hz";
    if (size >= 4 && strncmp(numerator + size - 4, "byte", 4) == 0) *base = "byte/s";
    return times[i].scale;
  }
  return 1;
}

double ftl_measured_unit_scale(const char *unit, const char **base) {
  const char *slash = strchr(unit, '/');
  size_t size = slash != NULL ? (size_t)(slash - unit) : strlen(unit);
  *base = unit;
  double scale = 1;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strlen(units[i].unit) != size || strncasecmp(units[i].unit, unit, size) != 0) continue;
    *base = units[i].base;
    scale = units[i].scale;
    break;
  }
  if (slash == NULL) return scale;
  const char *rate_base = unit;
  double per = denominator(slash + 1, unit, size, &rate_base);
  if (rate_base != unit) {
    *base = rate_base;
    return scale * per;
  }
  bool is_size = strcmp(slash + 1, "block") == 0 || strcmp(slash + 1, "thread") == 0;
  if (!is_size) {
    *base = unit;  // a rate that is not known: left as it is
    return 1;
  }
  return scale;
}

static bool ends_with(const char *text, const char *end) {
  size_t size = strlen(text), end_size = strlen(end);
  return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

bool ftl_measured_is_impossible(const char *metric, double value) {
  bool is_share = ends_with(metric, ".pct") || strstr(metric, "pct_of_peak_sustained") != NULL;
  bool is_time = strstr(metric, "time") != NULL || strstr(metric, "cycles_elapsed") != NULL;
  return value < 0 || (is_time && value == 0) || (is_share && value > 100);
}
