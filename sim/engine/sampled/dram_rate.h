// The sustained DRAM bandwidths of a chip, remembered: they take runs of the channel model, and only the arch model
// decides them.
#ifndef FTL_ENGINE_SAMPLED_DRAM_RATE_H
#define FTL_ENGINE_SAMPLED_DRAM_RATE_H

#include "arch/arch.h"

// Bytes per second of reads alone, and of a copy: half reads, half writes (machine/dram/dram.h).
typedef struct ftl_dram_rate {
  int64_t read_bytes_per_s, copy_bytes_per_s;
} ftl_dram_rate;

// Any thread.
FTL_MUST_USE ftl_status ftl_dram_rate_get(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error);

#endif
