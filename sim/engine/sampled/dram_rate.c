#include "engine/sampled/dram_rate.h"

#include <pthread.h>
#include <stdbool.h>

#include "machine/dram/dram.h"

enum { READ_PERCENT = 95, REMEMBERED = 64 };

typedef struct known_rate {
  uint64_t arch_hash;
  int64_t bytes_per_second;
} known_rate;

// The only state shared by predictions; what it holds is a pure function of the key.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static known_rate known[REMEMBERED];
static int num_known;

static bool try_recall(uint64_t arch_hash, int64_t *bytes_per_second) {
  for (int i = 0; i < num_known && i < REMEMBERED; i++) {
    if (known[i].arch_hash != arch_hash) continue;
    *bytes_per_second = known[i].bytes_per_second;
    return true;
  }
  return false;
}

ftl_status ftl_dram_rate_get(const ftl_arch *arch, int64_t *bytes_per_second, ftl_error *error) {
  uint64_t arch_hash = ftl_arch_hash(arch);
  pthread_mutex_lock(&lock);
  ftl_status status = FTL_OK;
  if (!try_recall(arch_hash, bytes_per_second)) {
    status = ftl_dram_sustained(arch, READ_PERCENT, bytes_per_second, error);
    if (status == FTL_OK)
      known[num_known++ % REMEMBERED] = (known_rate){.arch_hash = arch_hash, .bytes_per_second = *bytes_per_second};
  }
  pthread_mutex_unlock(&lock);
  return status;
}
