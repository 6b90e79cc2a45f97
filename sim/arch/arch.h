// A GPU, as data: one value a key of arch_keys.def, each with its origin.
// Immutable once loaded. Loaded from arch_models/*.lua by script/arch_loader.h.
#ifndef FTL_ARCH_ARCH_H
#define FTL_ARCH_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { FTL_ARCH_NAME_BYTES = 32 };

typedef struct ftl_arch {
  char name[FTL_ARCH_NAME_BYTES];  // "h200"
  char die[FTL_ARCH_NAME_BYTES];   // "gh100"
#define FTL_ARCH_INT(section, key, unit, min, max, doc) int64_t section##_##key;
#define FTL_ARCH_NAME(section, key, allowed, doc) char section##_##key[FTL_ARCH_NAME_BYTES];
#include "arch/arch_keys.def"
#undef FTL_ARCH_INT
#undef FTL_ARCH_NAME
  struct ftl_arch_origins *origins;  // parallel to the keys; owned
} ftl_arch;

typedef enum ftl_origin_kind {
  FTL_ORIGIN_DATASHEET,  // the vendor's document
  FTL_ORIGIN_MEASURED,   // a microbenchmark, ours or published
  FTL_ORIGIN_GUESS,      // stated as such, with a reason
  FTL_ORIGIN_OVERRIDE,   // a user's what-if
} ftl_origin_kind;
const char *ftl_origin_kind_name(ftl_origin_kind kind);  // "datasheet", ...

typedef struct ftl_origin {
  ftl_origin_kind kind;
  const char *text;  // source, or why
  const char *file;  // model file that set it ("what-if" for an override)
  int line;
} ftl_origin;

typedef struct ftl_arch_key {
  const char *name;  // "l2.ways"
  const char *unit;  // "" for names
  const char *doc;
  const char *allowed;  // "lru|nru|random" for names, NULL for integers
  int64_t min, max;
  uint32_t offset;  // of the field in ftl_arch
} ftl_arch_key;

int ftl_arch_num_keys(void);
const ftl_arch_key *ftl_arch_key_get(int key_idx);
// Index of "l2.ways", or -1.
int ftl_arch_key_find(const char *name);
// The nearest key name to a misspelt one, for error messages; never NULL.
const char *ftl_arch_key_nearest(const char *name);

// Levenshtein distance, for other misspelt names.
int ftl_edit_distance(const char *a, const char *b);

int64_t ftl_arch_int(const ftl_arch *arch, int key_idx);
const char *ftl_arch_text(const ftl_arch *arch, int key_idx);
ftl_origin ftl_arch_origin(const ftl_arch *arch, int key_idx);

// Whether the key was given a value; in an arch from the loader all were.
bool ftl_arch_is_set(const ftl_arch *arch, int key_idx);

// An arch with no key set; NULL when memory is out.
ftl_arch *ftl_arch_create(const char *name, const char *die);
// A copy that owns its origins; NULL when memory is out.
ftl_arch *ftl_arch_create_copy(const ftl_arch *arch);
// The die `arch` becomes another die: what was measured on the one is a guess for the other, and says so.
FTL_MUST_USE ftl_status ftl_arch_become_die(ftl_arch *arch, const char *name, ftl_error *error);
void ftl_arch_destroy(ftl_arch *arch);

// Sets one key with range check; the error names file:line, key, value and what is allowed. origin's texts are copied.
FTL_MUST_USE ftl_status ftl_arch_set_int(ftl_arch *arch, int key_idx, int64_t value, ftl_origin origin,
                                         ftl_error *error);
FTL_MUST_USE ftl_status ftl_arch_set_text(ftl_arch *arch, int key_idx, const char *value, ftl_origin origin,
                                          ftl_error *error);

// That every key is set, and the rules between keys (num_slices a multiple of num_sides, sm_min_khz <= sm_max_khz,
// ...). The error names the file:line of a key that breaks a rule.
FTL_MUST_USE ftl_status ftl_arch_check(const ftl_arch *arch, ftl_error *error);

// Bytes an L2 cycle that reads of all SMs get from L2's slices together.
int64_t ftl_arch_l2_bytes_per_cycle(const ftl_arch *arch);

// 64-bit hash of all values (not origins): part of a result's key.
uint64_t ftl_arch_hash(const ftl_arch *arch);

#endif
