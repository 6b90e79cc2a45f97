// Key names: exact and nearest match.
#include <string.h>

#include "arch/arch.h"

int ftl_arch_key_find(const char *name) {
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    if (strcmp(ftl_arch_key_get(i)->name, name) == 0) return i;
  }
  return -1;
}

enum { MAX_DISTANCE_CHARS = 64 };

static int least(int a, int b, int c) {
  int ab = a < b ? a : b;
  return ab < c ? ab : c;
}

// Levenshtein, two rows; texts longer than MAX_DISTANCE_CHARS are compared by their beginnings.
int ftl_edit_distance(const char *a, const char *b) {
  int size_b = (int)strnlen(b, MAX_DISTANCE_CHARS);
  int row[MAX_DISTANCE_CHARS + 1];
  for (int j = 0; j <= size_b; j++) row[j] = j;
  for (int i = 0; i < MAX_DISTANCE_CHARS && a[i] != '\0'; i++) {
    int diagonal = row[0];
    row[0] = i + 1;
    for (int j = 0; j < size_b; j++) {
      int substituted = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = least(substituted, row[j] + 1, diagonal + 1);
    }
  }
  return row[size_b];
}

// Twice the edits. Another section counts as an edit and a half, "size_bytes" without one being nearest to a
// size_bytes; so does an end that is left out, "l2.size" being nearest to l2.size_bytes.
static int key_distance(const char *key, const char *name) {
  enum { PART_MISSED = 3 };
  const char *key_tail = strchr(key, '.') + 1;
  const char *dot = strchr(name, '.');
  const char *name_tail = dot != NULL ? dot + 1 : name;
  if (*name_tail != '\0' && strncmp(key, name, strlen(name)) == 0) return PART_MISSED;
  int whole = 2 * ftl_edit_distance(key, name);
  int tail = 2 * ftl_edit_distance(key_tail, name_tail) + PART_MISSED;
  return whole < tail ? whole : tail;
}

const char *ftl_arch_key_nearest(const char *name) {
  int best_idx = 0;
  for (int i = 1; i < ftl_arch_num_keys(); i++) {
    if (key_distance(ftl_arch_key_get(i)->name, name) < key_distance(ftl_arch_key_get(best_idx)->name, name))
      best_idx = i;
  }
  return ftl_arch_key_get(best_idx)->name;
}
