#include "workloads/user_kernel.h"

#include <string.h>
#include <xxhash.h>

static bool is_identifier(const char *name, size_t max_bytes) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  static const char digits[] = "0123456789";
  size_t size = strlen(name);
  if (size == 0 || size >= max_bytes || strchr(digits, name[0]) != NULL) return false;
  for (size_t i = 0; i < size; i++)
    if (strchr(letters, name[i]) == NULL && strchr(digits, name[i]) == NULL) return false;
  return true;
}

ftl_status ftl_user_kernel_check_name(const char *name, ftl_error *error) {
  if (!is_identifier(name, FTL_TILE_NAME_BYTES))
    return ftl_error_set(error, FTL_BAD_INPUT, "a kernel's name is 1 to %d letters, digits and _, not \"%.40s\"",
                         FTL_TILE_NAME_BYTES - 1, name);
  if (ftl_workload_find(name) == NULL) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "%s is a workload of the list; a kernel needs a name of its own", name);
}

ftl_param_set ftl_user_kernel_accepts(void) {
  return FTL_TAKES(copy) | FTL_TAKES(mma) | FTL_TAKES(code) | FTL_TAKES_LAUNCH_BOUNDS | FTL_TAKES(conditions) |
         FTL_TAKES(cache) | FTL_TAKES(clock_mhz) | FTL_TAKES(detail);
}

ftl_status ftl_user_kernel_check_param(const char *name, ftl_error *error) {
  if (!is_identifier(name, FTL_OWN_PARAM_BYTES))
    return ftl_error_set(error, FTL_BAD_INPUT, "a parameter's name is 1 to %d letters, digits and _, not \"%.40s\"",
                         FTL_OWN_PARAM_BYTES - 1, name);
  int param = ftl_param_find(name);
  if (param < 0 || (ftl_user_kernel_accepts() >> param & 1) == 0) return FTL_OK;
  return ftl_error_set(error, FTL_BAD_INPUT, "every kernel takes %s; a parameter of its own needs another name", name);
}

static ftl_status build(const ftl_spec *spec, ftl_tile_program **launches, int *num_launches, ftl_error *error) {
  const ftl_user_kernel *kernel = spec->workload->user_kernel;
  *num_launches = 0;
  if (kernel->program == NULL) return ftl_error_set(error, FTL_INFEASIBLE, "%s", kernel->reason);
  ftl_status status = ftl_tile_program_clone(kernel->program, &launches[0], error);
  if (status == FTL_OK) *num_launches = 1;
  return status;
}

void ftl_user_kernel_finish(ftl_user_kernel *kernel) {
  kernel->workload = (ftl_workload){.name = kernel->name,
                                    .doc = "a kernel of the user's",
                                    .accepts = ftl_user_kernel_accepts(),
                                    .build = build,
                                    .user_kernel = kernel};
  kernel->identity = kernel->program != NULL ? ftl_tile_program_hash(kernel->program)
                                             : XXH3_64bits(kernel->reason, strlen(kernel->reason));
}

ftl_spec ftl_user_kernel_spec(const ftl_user_kernel *kernel) { return (ftl_spec){.workload = &kernel->workload}; }

int ftl_user_kernel_find_param(const ftl_user_kernel *kernel, const char *name) {
  for (int i = 0; kernel != NULL && i < kernel->num_params; i++)
    if (strcmp(kernel->params[i].name, name) == 0) return i;
  return -1;
}

void ftl_user_kernel_write_params(const ftl_user_kernel *kernel, ftl_text *out) {
  for (int i = 0; i < kernel->num_params; i++)
    ftl_text_add(out, "%s%s=%s", i > 0 ? " " : "", kernel->params[i].name, kernel->params[i].text);
}
