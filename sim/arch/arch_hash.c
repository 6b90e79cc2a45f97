#include <string.h>
#include <xxhash.h>

#include "arch/arch.h"
#include "base/check.h"

enum { ENTRY_BYTES = 128 };

// One key as "name\0value", zero-filled: independent of struct layout, and of the order in which fields are declared.
static uint64_t entry_hash(const ftl_arch *arch, int key_idx) {
  const ftl_arch_key *key = ftl_arch_key_get(key_idx);
  char entry[ENTRY_BYTES] = {0};
  size_t name_size = strlen(key->name) + 1;
  FTL_CHECK(name_size + FTL_ARCH_NAME_BYTES <= ENTRY_BYTES, "arch: key name %s is too long", key->name);
  memcpy(entry, key->name, name_size);
  if (key->allowed != NULL) {
    memcpy(entry + name_size, ftl_arch_text(arch, key_idx), strlen(ftl_arch_text(arch, key_idx)));
  } else {
    uint64_t value = (uint64_t)ftl_arch_int(arch, key_idx);
    for (int i = 0; i < 8; i++) entry[name_size + (size_t)i] = (char)(unsigned char)(value >> (8 * i));
  }
  return XXH3_64bits(entry, sizeof entry);
}

uint64_t ftl_arch_hash(const ftl_arch *arch) {
  uint64_t hash = 0;
  for (int i = 0; i < ftl_arch_num_keys(); i++)
    hash += entry_hash(arch, i);  // a sum: the order of keys does not matter
  return hash;
}
