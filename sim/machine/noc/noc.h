// The network between SMs and L2: ports of limited bandwidth.
// Models: a port carries so many bytes a cycle, first come first served.
// Does not model: crossbar arbitration beyond the ports, finite buffers in the network.
// Numbers: noc.* keys. Which GPC and side an SM is on: arch/topology.h.
#ifndef FTL_MACHINE_NOC_NOC_H
#define FTL_MACHINE_NOC_NOC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ftl_noc_port {
  uint32_t bytes_per_cycle;
  uint32_t taken_bytes;  // of free_from; less than a cycle carries
  int64_t free_from;     // cycle
} ftl_noc_port;

typedef struct ftl_noc_slot {
  int64_t first, last;  // cycles in which the first and the last byte pass
} ftl_noc_slot;

// Takes the port for `bytes` from `cycle` on, behind what took it before. 0 bytes wait their turn and take no time.
// Callers come in order of `cycle`, or one that comes later in the call order waits behind a later message.
static inline ftl_noc_slot ftl_noc_port_take(ftl_noc_port *port, int64_t cycle, int64_t bytes) {
  if (port->free_from < cycle) {
    port->free_from = cycle;
    port->taken_bytes = 0;
  }
  uint32_t end = port->taken_bytes + (uint32_t)bytes;
  int64_t first = port->free_from, whole_cycles = end / port->bytes_per_cycle;
  port->free_from = first + whole_cycles;
  port->taken_bytes = end % port->bytes_per_cycle;
  bool ends_cycle = bytes > 0 && port->taken_bytes == 0;
  return (ftl_noc_slot){first, bytes > 0 ? port->free_from - ends_cycle : first};
}

#endif
