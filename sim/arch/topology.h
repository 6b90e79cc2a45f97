// Where an SM sits: its GPC, and the side of L2 that it reads from. The one rule for all parts of the machine.
// Source: kernels/measurements/micro_launch.csv and micro_fill_sides.csv (H200); what of them it leaves out:
// docs/model_noc.md.
#ifndef FTL_ARCH_TOPOLOGY_H
#define FTL_ARCH_TOPOLOGY_H

#include <stdint.h>

#include "arch/arch.h"

// SMs are numbered TPC by TPC, and TPCs are dealt to the GPCs in turn: GPCs differ by one TPC at most.
int32_t ftl_arch_gpc_of_sm(const ftl_arch *arch, int32_t sm);
// SMs of a GPC.
int32_t ftl_arch_sms_of_gpc(const ftl_arch *arch, int32_t gpc);
// Those of them, the first ones, on which clusters of so many CTAs are placed: all but the single TPCs, which are the
// last ones of the last GPC and take no cluster larger than themselves.
int32_t ftl_arch_sms_for_clusters(const ftl_arch *arch, int32_t gpc, int32_t cluster_ctas);
// By its GPC (noc.far_gpcs); 0 on one-sided parts.
int32_t ftl_arch_side_of_sm(const ftl_arch *arch, int32_t sm);

#endif
