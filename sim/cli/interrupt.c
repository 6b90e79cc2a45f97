#include "cli/interrupt.h"

#include <stdbool.h>
#include <string.h>

static atomic_bool interrupted;
static volatile sig_atomic_t interrupted_signal;

static void on_signal(int signal_number) {
  (void)signal_number;
  interrupted_signal = 1;
  atomic_store(&interrupted, true);
}

void ftl_interrupt_install(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = (int)SA_RESETHAND;  // and no SA_RESTART: a read for the next line ends
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

const atomic_bool *ftl_interrupt_flag(void) { return &interrupted; }
const volatile sig_atomic_t *ftl_interrupt_signal(void) { return &interrupted_signal; }
