#include "engine/sampled/dram_rate.h"

#include <pthread.h>
#include <stdbool.h>

#include "machine/dram/dram.h"

enum { READS = 100, COPY = 50, REMEMBERED = 64 };

typedef struct known_rate {
  uint64_t arch_hash;
  ftl_dram_rate rate;
} known_rate;

// The only state shared by predictions; what it holds is a pure function of the key.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known_rate known[REMEMBERED];
static int num_known;

static bool try_recall(uint64_t arch_hash, ftl_dram_rate *rate) {
  for (int i = 0; i < num_known && i < REMEMBERED; i++) {
    if (known[i].arch_hash != arch_hash) continue;
    *rate = known[i].rate;
    return true;
  }
  return false;
}

ftl_status ftl_dram_rate_get(const ftl_arch *arch, ftl_dram_rate *rate, ftl_error *error) {
  uint64_t arch_hash = ftl_arch_hash(arch);
  pthread_mutex_lock(&lock);
  ftl_status status = FTL_OK;
  if (!try_recall(arch_hash, rate)) {
    status = ftl_dram_sustained(arch, READS, &rate->read_bytes_per_s, error);
    if (status == FTL_OK) status = ftl_dram_sustained(arch, COPY, &rate->copy_bytes_per_s, error);
    if (status == FTL_OK) known[num_known++ % REMEMBERED] = (known_rate){.arch_hash = arch_hash, .rate = *rate};
  }
  pthread_mutex_unlock(&lock);
  return status;
}
