// The sustained DRAM bandwidth of a chip, remembered: it takes a run of the channel model, and only the arch model
// decides it.
#ifndef FTL_ENGINE_SAMPLED_DRAM_RATE_H
#define FTL_ENGINE_SAMPLED_DRAM_RATE_H

#include "arch/arch.h"

// Bytes per second of a mix that is mostly reads, as attention kernels make it (machine/dram/dram.h). Any thread.
FTL_MUST_USE ftl_status ftl_dram_rate_get(const ftl_arch *arch, int64_t *bytes_per_second, ftl_error *error);

#endif
