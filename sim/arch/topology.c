#include "arch/topology.h"

#include <stdbool.h>

int32_t ftl_arch_gpc_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(sm / arch->chip_sms_per_tpc % arch->chip_num_gpcs);
}

int32_t ftl_arch_sms_of_gpc(const ftl_arch *arch, int32_t gpc) {
  int64_t num_tpcs = arch->chip_num_sms / arch->chip_sms_per_tpc;
  int64_t of_gpc = num_tpcs / arch->chip_num_gpcs + (gpc < num_tpcs % arch->chip_num_gpcs ? 1 : 0);
  return (int32_t)(of_gpc * arch->chip_sms_per_tpc);
}

int32_t ftl_arch_sms_for_clusters(const ftl_arch *arch, int32_t gpc, int32_t cluster_ctas) {
  bool has_single_tpcs = gpc == arch->chip_num_gpcs - 1;
  int32_t sms = ftl_arch_sms_of_gpc(arch, gpc);
  if (!has_single_tpcs || cluster_ctas <= arch->chip_sms_per_tpc) return sms;
  return sms - (int32_t)(arch->chip_num_single_tpcs * arch->chip_sms_per_tpc);
}

int32_t ftl_arch_side_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(arch->noc_far_gpcs >> ftl_arch_gpc_of_sm(arch, sm) & 1);
}
