// A warp: so many threads on every GPU.
#ifndef FTL_BASE_WARP_H
#define FTL_BASE_WARP_H

enum { FTL_WARP_LANES = 32 };

#endif
