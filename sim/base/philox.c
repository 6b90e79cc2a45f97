#include "base/philox.h"

static uint32_t high(uint64_t x) { return (uint32_t)(x >> 32); }

ftl_philox_words ftl_philox_4x32(ftl_philox_words counter, uint64_t key, int num_rounds) {
  const uint64_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  const uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;
  uint32_t key_0 = (uint32_t)key, key_1 = high(key);
  for (int i = 0; i < num_rounds; i++) {
    uint64_t product_0 = multiplier_0 * counter.word[0], product_1 = multiplier_1 * counter.word[2];
    counter = (ftl_philox_words){{high(product_1) ^ counter.word[1] ^ key_0, (uint32_t)product_1,
                                  high(product_0) ^ counter.word[3] ^ key_1, (uint32_t)product_0}};
    key_0 += step_0;
    key_1 += step_1;
  }
  return counter;
}
