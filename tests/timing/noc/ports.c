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
