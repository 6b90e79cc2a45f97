// The SMs of a GPU, advanced window by window on some host threads. Within a window no SM can hear of another, so the
// result does not depend on which thread advances which SM.
#ifndef FTL_ENGINE_SM_POOL_H
#define FTL_ENGINE_SM_POOL_H

#include "base/status.h"
#include "machine/sm/sm.h"

typedef struct ftl_sm_pool ftl_sm_pool;

// What else is done while the SMs advance; it touches nothing that they touch.
typedef void (*ftl_sm_pool_work)(void *context);

// `config` is that of every SM but for sm_idx and code.
FTL_MUST_USE ftl_status ftl_sm_pool_create(ftl_sm_pool **out, const ftl_sm_config *config, int32_t num_sms,
                                           int num_threads, ftl_error *error);
void ftl_sm_pool_destroy(ftl_sm_pool *pool);
// Borrowed; sm from 0 to num_sms - 1.
ftl_sm *ftl_sm_pool_get(ftl_sm_pool *pool, int32_t sm);
// Advances all busy SMs to `until` and does `beside`, both before it returns.
void ftl_sm_pool_advance(ftl_sm_pool *pool, int64_t until, ftl_sm_pool_work beside, void *context);

#endif
