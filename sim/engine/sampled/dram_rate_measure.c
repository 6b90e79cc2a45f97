#include "engine/sampled/dram_rate.h"
#include "machine/dram/dram.h"

enum { READS = 100, COPY = 50 };

ftl_status ftl_dram_rate_measure(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error) {
  ftl_status status = ftl_dram_sustained(arch, READS, &rate->read_bytes_per_s, error);
  if (status == FTL_OK) status = ftl_dram_sustained(arch, COPY, &rate->copy_bytes_per_s, error);
  return status;
}
