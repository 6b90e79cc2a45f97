#include "arch/topology.h"

int32_t ftl_arch_gpc_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(sm / arch->chip_sms_per_tpc % arch->chip_num_gpcs);
}

int32_t ftl_arch_sms_of_gpc(const ftl_arch *arch, int32_t gpc) {
  int64_t num_tpcs = arch->chip_num_sms / arch->chip_sms_per_tpc;
  int64_t of_gpc = num_tpcs / arch->chip_num_gpcs + (gpc < num_tpcs % arch->chip_num_gpcs ? 1 : 0);
  return (int32_t)(of_gpc * arch->chip_sms_per_tpc);
}

int32_t ftl_arch_side_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(ftl_arch_gpc_of_sm(arch, sm) * arch->l2_num_sides / arch->chip_num_gpcs);
}
