// One line of `predict --batch`.
#include <stdlib.h>

#include "cli/batch.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static ftl_session session;  // keeps the models it loaded
  static ftl_arguments arguments;
  static bool ready;
  if (!ready) ftl_session_init(&session);
  ready = true;
  ftl_point point;
  ftl_error error;
  ftl_status status = ftl_batch_parse(&session, &arguments, (const char *)data, size, &point, &error);
  if (status == FTL_OK ? point.arch == NULL : error.message[0] == '\0') abort();
  return 0;
}
