// The instruction cache (code_cache.c).
#ifndef FTL_MACHINE_SM_CODE_CACHE_H
#define FTL_MACHINE_SM_CODE_CACHE_H

#include "machine/sm/op.h"
#include "machine/sm/sm.h"

typedef struct sm_code_line {
  int64_t there_at;   // when it has come
  uint64_t last_use;  // 0: not in the cache
  bool is_near;       // in the level behind the cache
} sm_code_line;

typedef struct sm_code_cache {
  sm_code_line *lines;  // and one behind the last that counts as held
  int32_t capacity, num_held;
  uint64_t uses;
  int64_t port_free;   // of what brings lines
  int64_t share_free;  // when the SM has had no more than its share of what a GPC's SMs fetch by
  bool fits;           // the whole code: no line leaves
} sm_code_cache;

bool ftl_sm_code_cache_create(ftl_sm *sm);  // false: out of memory
// When the code that the warp's next instruction begins has come; asks for what is not there.
int64_t ftl_sm_code_fetch(ftl_sm *sm, const sm_op *op, int64_t now);

#endif
