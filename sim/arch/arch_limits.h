// The largest value that each key may have: FTL_ARCH_MAX_l2_ways. Arrays with a place for each of what a key counts are
// sized by it, so that a wider range in arch_keys.def is room for as many.
#ifndef FTL_ARCH_ARCH_LIMITS_H
#define FTL_ARCH_ARCH_LIMITS_H

#define FTL_ARCH_INT(section, key, unit, min, max, doc) enum { FTL_ARCH_MAX_##section##_##key = (max) };
#define FTL_ARCH_NAME(section, key, allowed, doc)
#include "arch/arch_keys.def"
#undef FTL_ARCH_INT
#undef FTL_ARCH_NAME

#endif
