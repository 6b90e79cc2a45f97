#include "base/path.h"

#include <string.h>

const char *ftl_path_file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}
