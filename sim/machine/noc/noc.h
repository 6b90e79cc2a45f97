// The network between SMs and L2: ports of limited bandwidth.
// Models: a port carries so many bytes a cycle, first come first served.
// Does not model: crossbar arbitration beyond the ports, finite buffers in the network.
// Numbers: noc.* keys. Which GPC and side an SM is on: arch/topology.h.
#ifndef FTL_MACHINE_NOC_NOC_H
#define FTL_MACHINE_NOC_NOC_H

#include <stdint.h>

typedef struct ftl_noc_port {
  int64_t bytes_per_cycle;
  int64_t free_from;  // in byte times: cycle * bytes_per_cycle
} ftl_noc_port;

typedef struct ftl_noc_slot {
  int64_t first, last;  // cycles in which the first and the last byte pass
} ftl_noc_slot;

// Takes the port for `bytes` from `cycle` on, behind what took it before. 0 bytes wait their turn and take no time.
// Callers come in order of `cycle`, or one that comes later in the call order waits behind a later message.
static inline ftl_noc_slot ftl_noc_port_take(ftl_noc_port *port, int64_t cycle, int64_t bytes) {
  int64_t start = cycle * port->bytes_per_cycle;
  if (start < port->free_from) start = port->free_from;
  port->free_from = start + bytes;
  int64_t first = start / port->bytes_per_cycle;
  int64_t last = bytes > 0 ? (port->free_from - 1) / port->bytes_per_cycle : first;
  return (ftl_noc_slot){first, last};
}

#endif
