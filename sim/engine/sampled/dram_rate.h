// The sustained DRAM bandwidths of a chip: they take runs of the channel model, as long as the rest of a short answer,
// and only the keys that the channel model reads decide them. Those of the shipped models are worked out when the
// program is built, and serve models that are changed elsewhere too; of others they are remembered.
#ifndef FTL_ENGINE_SAMPLED_DRAM_RATE_H
#define FTL_ENGINE_SAMPLED_DRAM_RATE_H

#include <stdbool.h>

#include "arch/arch.h"

// Bytes per second of reads alone, and of a copy: half reads, half writes (machine/dram/dram.h).
typedef struct ftl_dram_rate {
  int64_t read_bytes_per_s, copy_bytes_per_s;
} ftl_dram_rate;

// Of the keys that decide the rates: models with the same hash have the same.
uint64_t ftl_dram_rate_hash(const ftl_arch *arch);
// Runs the channel model.
FTL_MUST_USE ftl_status ftl_dram_rate_measure(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error);
// False where no shipped model has the same of these keys.
bool ftl_dram_rate_try_shipped(const ftl_arch *arch, ftl_dram_rate *rate);
// Any thread.
FTL_MUST_USE ftl_status ftl_dram_rate_get(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error);

#endif
