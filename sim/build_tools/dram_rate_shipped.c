// Writes the sustained DRAM bandwidths of the shipped models as C, when the program is built: dram_rate_shipped
// MODELS_DIR.
#include <inttypes.h>
#include <stdio.h>

#include "engine/sampled/dram_rate.h"
#include "script/arch_loader.h"

static ftl_status write_rate(const ftl_arch *arch, ftl_error *error) {
  ftl_dram_rate rate;
  ftl_status status = ftl_dram_rate_measure(arch, &rate, error);
  if (status == FTL_OK)
    printf("{UINT64_C(0x%016" PRIx64 "), {INT64_C(%" PRId64 "), INT64_C(%" PRId64 ")}},  // %s\n",
           ftl_dram_rate_hash(arch), rate.read_bytes_per_s, rate.copy_bytes_per_s, arch->name);
  return status;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "%s MODELS_DIR\n", argv[0]);
    return 2;
  }
  ftl_arch_list list;
  ftl_error error;
  ftl_status status = ftl_arch_load_all(argv[1], &list, &error);
  if (status != FTL_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  for (int i = 0; status == FTL_OK && i < list.num_archs; i++) status = write_rate(list.archs[i], &error);
  ftl_arch_list_fini(&list);
  if (status != FTL_OK) fprintf(stderr, "%s\n", error.message);
  return status == FTL_OK ? 0 : 1;
}
