#include "machine/noc/noc.h"

int32_t ftl_noc_gpc_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(sm / arch->chip_sms_per_tpc % arch->chip_num_gpcs);
}

int32_t ftl_noc_side_of_sm(const ftl_arch *arch, int32_t sm) {
  return (int32_t)(ftl_noc_gpc_of_sm(arch, sm) * arch->l2_num_sides / arch->chip_num_gpcs);
}
