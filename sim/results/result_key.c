#include "results/result_key.h"

#include <inttypes.h>
#include <stdio.h>

#include <xxhash.h>

#include "results/version.h"
#include "workloads/open_tiles.h"

const char *ftl_arch_hash_text(const ftl_arch *arch, char *buffer) {
  snprintf(buffer, 17, "%016" PRIx64, ftl_arch_hash(arch));
  return buffer;
}

// Left open, these become what the others say (block_product.c, staged_store.c); given, they stay, at the default's
// value too.
static bool is_open_by_default(const ftl_spec *spec, ftl_param param) {
  bool is_such = param == FTL_PARAM_warps_n || param == FTL_PARAM_tile_strip || param == FTL_PARAM_store;
  return is_such && ftl_spec_takes(spec, param) && (spec->given >> param & 1) == 0;
}

ftl_status ftl_result_key_make(const ftl_spec *spec, const ftl_arch *arch, ftl_result_key *out, ftl_error *error) {
  char arch_hash[17];
  ftl_text text = {0};
  ftl_spec_canonical(spec, &text);
  for (int i = 0; i < FTL_PARAM_COUNT; i++)
    if (ftl_spec_leaves_open(spec, (ftl_param)i) || is_open_by_default(spec, (ftl_param)i))
      ftl_text_add(&text, " open=%s", ftl_param_get((ftl_param)i)->name);
  ftl_text_add(&text, "\n%s %s\n%s", arch->name, ftl_arch_hash_text(arch, arch_hash), ftl_program_version());
  if (text.failed) {
    ftl_text_fini(&text);
    return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for a result's key");
  }
  XXH128_hash_t hash = XXH3_128bits(text.data, text.size);
  ftl_text_fini(&text);
  snprintf(out->hex, sizeof out->hex, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
  return FTL_OK;
}
