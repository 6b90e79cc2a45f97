#include <criterion/criterion.h>

#include "machine/noc/noc.h"

Test(timing_noc_ports, messages_share_a_cycle_where_they_fit) {
  ftl_noc_port port = {.bytes_per_cycle = 96};
  // Bytes 0-63, 64-127, 128-191: cycles 0, 0 to 1, 1.
  ftl_noc_slot a = ftl_noc_port_take(&port, 0, 64), b = ftl_noc_port_take(&port, 0, 64),
               c = ftl_noc_port_take(&port, 0, 64);
  cr_expect(a.first == 0 && a.last == 0);
  cr_expect(b.first == 0 && b.last == 1);
  cr_expect(c.first == 1 && c.last == 1);
}

Test(timing_noc_ports, an_idle_port_does_not_save_bandwidth_up) {
  ftl_noc_port port = {.bytes_per_cycle = 64};
  (void)ftl_noc_port_take(&port, 0, 32);
  ftl_noc_slot late = ftl_noc_port_take(&port, 100, 128);
  cr_expect(late.first == 100 && late.last == 101);
}

Test(timing_noc_ports, a_message_without_data_waits_its_turn_and_takes_no_time) {
  ftl_noc_port port = {.bytes_per_cycle = 64};
  (void)ftl_noc_port_take(&port, 5, 128);
  ftl_noc_slot ack = ftl_noc_port_take(&port, 5, 0), next = ftl_noc_port_take(&port, 5, 64);
  cr_expect(ack.first == 7 && ack.last == 7);
  cr_expect_eq(next.first, 7);
}

Test(timing_noc_ports, bandwidth_is_exact_for_any_width) {
  ftl_noc_port port = {.bytes_per_cycle = 48};
  ftl_noc_slot slot = {0, 0};
  for (int i = 0; i < 3000; i++) slot = ftl_noc_port_take(&port, 0, 128);
  cr_expect_eq(slot.last, 3000 * 128 / 48 - 1);
}

Test(timing_noc_ports, tpcs_are_dealt_to_gpcs_and_gpcs_split_over_the_sides) {
  ftl_arch arch = {.chip_num_sms = 132, .chip_num_gpcs = 8, .chip_sms_per_tpc = 2, .l2_num_sides = 2};
  int sms_of_gpc[8] = {0}, sms_of_side[2] = {0};
  for (int sm = 0; sm < 132; sm++) {
    sms_of_gpc[ftl_noc_gpc_of_sm(&arch, sm)]++;
    sms_of_side[ftl_noc_side_of_sm(&arch, sm)]++;
    cr_expect_eq(ftl_noc_gpc_of_sm(&arch, sm), ftl_noc_gpc_of_sm(&arch, sm ^ 1), "the SMs of a TPC stay together");
  }
  // 66 TPCs over 8 GPCs: two GPCs of 9, six of 8; those of 9 are GPCs 0 and 1, on side 0.
  for (int gpc = 0; gpc < 8; gpc++) cr_expect_eq(sms_of_gpc[gpc], gpc < 2 ? 18 : 16);
  cr_expect_eq(sms_of_side[0], 68);
  cr_expect_eq(sms_of_side[1], 64);
  arch.l2_num_sides = 1;
  for (int sm = 0; sm < 132; sm++) cr_expect_eq(ftl_noc_side_of_sm(&arch, sm), 0);
}
