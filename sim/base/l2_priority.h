// What an access says about how long L2 should keep its line (PTX ISA, createpolicy and L2::cache_hint; CUDA C++
// Programming Guide, L2 persisting accesses).
#ifndef FTL_BASE_L2_PRIORITY_H
#define FTL_BASE_L2_PRIORITY_H

typedef enum ftl_l2_priority {
  FTL_L2_EVICT_NORMAL,
  FTL_L2_EVICT_FIRST,  // leaves before any other
  FTL_L2_EVICT_LAST,   // leaves after all others, within L2's set-aside: a persisting access, or the hint evict_last
} ftl_l2_priority;

#endif
