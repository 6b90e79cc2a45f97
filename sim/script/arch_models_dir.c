#include "script/arch_models_dir.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "script/arch_loader.h"

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static ftl_status copy_path(const char *path, char **out, ftl_error *error) {
  *out = strdup(path);
  return *out != NULL ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "out of memory");
}

// Looks in the executable's folder and in those above it; `out` gets the first that exists.
static bool find_above_executable(char *out, size_t size) {
  char folder[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length <= 0) return false;
  folder[length] = '\0';
  for (char *slash = strrchr(folder, '/'); slash != NULL; slash = strrchr(folder, '/')) {
    *slash = '\0';
    if (snprintf(out, size, "%s/share/foretile/arch_models", folder) < (int)size && is_folder(out)) return true;
    if (snprintf(out, size, "%s/arch_models", folder) < (int)size && is_folder(out)) return true;
  }
  return false;
}

ftl_status ftl_arch_models_dir(char **out, ftl_error *error) {
  *out = NULL;
  const char *from_environment = getenv("FORETILE_ARCH_MODELS");
  if (from_environment != NULL && from_environment[0] != '\0') {
    if (is_folder(from_environment)) return copy_path(from_environment, out, error);
    return ftl_error_set(error, FTL_IO_FAILED, "FORETILE_ARCH_MODELS: %s is not a folder", from_environment);
  }
  if (is_folder(FTL_ARCH_MODELS_DIR)) return copy_path(FTL_ARCH_MODELS_DIR, out, error);
  char found[PATH_MAX];
  if (find_above_executable(found, sizeof found)) return copy_path(found, out, error);
  return ftl_error_set(error, FTL_IO_FAILED,
                       "no arch models: %s is not there, set FORETILE_ARCH_MODELS to the folder that has h200.lua",
                       FTL_ARCH_MODELS_DIR);
}

static bool add_name(ftl_arch_names *names, const char *file_name) {
  size_t size = strlen(file_name);
  if (size < 5 || file_name[0] == '.' || strcmp(file_name + size - 4, ".lua") != 0) return true;
  char **grown = realloc(names->names, ((size_t)names->num_names + 1) * sizeof *grown);
  if (grown == NULL) return false;
  names->names = grown;
  grown[names->num_names] = strndup(file_name, size - 4);
  if (grown[names->num_names] == NULL) return false;
  names->num_names++;
  return true;
}

static int name_compare(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

ftl_status ftl_arch_names_init(ftl_arch_names *names, const char *models_dir, ftl_error *error) {
  *names = (ftl_arch_names){0};
  DIR *folder = opendir(models_dir);
  if (folder == NULL) return ftl_error_set(error, FTL_IO_FAILED, "%s: %s", models_dir, strerror(errno));
  bool added = true;
  for (struct dirent *file = readdir(folder); file != NULL && added; file = readdir(folder)) {
    added = add_name(names, file->d_name);
  }
  closedir(folder);
  if (!added) {
    ftl_arch_names_fini(names);
    return ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", models_dir);
  }
  if (names->num_names == 0) {
    return ftl_error_set(error, FTL_IO_FAILED,
                         "%s: no arch model (*.lua) in it; FORETILE_ARCH_MODELS names the folder that has h200.lua",
                         models_dir);
  }
  if (names->num_names > 1) qsort(names->names, (size_t)names->num_names, sizeof *names->names, name_compare);
  return FTL_OK;
}

void ftl_arch_names_fini(ftl_arch_names *names) {
  for (int i = 0; i < names->num_names; i++) free(names->names[i]);
  free(names->names);
  *names = (ftl_arch_names){0};
}

bool ftl_arch_names_has(const ftl_arch_names *names, const char *name) {
  for (int i = 0; i < names->num_names; i++) {
    if (strcmp(names->names[i], name) == 0) return true;
  }
  return false;
}
