// Ctrl-C: the first asks everything to finish cleanly, the second kills.
#ifndef FTL_CLI_INTERRUPT_H
#define FTL_CLI_INTERRUPT_H

#include <signal.h>
#include <stdatomic.h>

void ftl_interrupt_install(void);  // SIGINT and SIGTERM
// Two forms of the same: for threads, and for the sandbox's hook.
const atomic_bool *ftl_interrupt_flag(void);
const volatile sig_atomic_t *ftl_interrupt_signal(void);

#endif
