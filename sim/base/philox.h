// Philox 4x32, a counter-based random number generator: a counter and a key give four random words, the same wherever
// they are computed. Source: J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; 10 rounds are
// the usual number, 7 the least that passes BigCrush.
#ifndef FTL_BASE_PHILOX_H
#define FTL_BASE_PHILOX_H

#include <stdint.h>

typedef struct ftl_philox_words {
  uint32_t word[4];
} ftl_philox_words;

ftl_philox_words ftl_philox_4x32(ftl_philox_words counter, uint64_t key, int num_rounds);

#endif
