#include <signal.h>

#include "cli/command.h"

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then a write error, which is reported
  return ftl_command_main(argc, argv);
}
