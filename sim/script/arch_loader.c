#include "script/arch_loader.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/arch_model.h"
#include "script/arch_models_dir.h"

enum { MAX_MODELS_ON_EACH_OTHER = 8, PATH_BYTES = PATH_MAX };

static bool is_file_name(const char *text) {
  size_t size = strlen(text);
  return strchr(text, '/') != NULL || (size >= 4 && strcmp(text + size - 4, ".lua") == 0);
}

static bool is_model_name(const char *text) {
  if (*text == '\0') return false;
  for (; *text != '\0'; text++) {
    if (!islower((unsigned char)*text) && !isdigit((unsigned char)*text) && *text != '_') return false;
  }
  return true;
}

static ftl_status unknown_name(const ftl_arch_names *names, const char *asked_by, const char *name, ftl_error *error) {
  char file[PATH_BYTES];
  snprintf(file, sizeof file, "%.40s.lua", name);
  if (asked_by[0] == '\0' && access(file, R_OK) == 0) {
    return ftl_error_set(error, FTL_BAD_INPUT, "unknown GPU \"%.40s\"; the file of that name is ./%s", name, file);
  }
  const char *nearest = names->names[0];
  for (int i = 1; i < names->num_names; i++) {
    bool nearer = ftl_edit_distance(names->names[i], name) < ftl_edit_distance(nearest, name);
    if (nearer) nearest = names->names[i];
  }
  return ftl_error_set(error, FTL_BAD_INPUT,
                       "%sunknown GPU \"%.40s\", nearest is \"%s\"; `foretile arch list` lists all", asked_by, name,
                       nearest);
}

// `name` as a path: a shipped model, or a file relative to that of the model which stands on it (NULL: to the working
// directory).
static ftl_status model_path(const char *models_dir, const char *name, const ftl_arch_model *asking, char *out,
                             ftl_error *error) {
  const char *folder_of = asking != NULL ? asking->path : NULL;
  char asked_by[PATH_BYTES + 16] = "";
  if (asking != NULL) snprintf(asked_by, sizeof asked_by, "%s:%d: ", asking->path, asking->base_line);
  if (is_file_name(name)) {
    const char *slash = folder_of != NULL && name[0] != '/' ? strrchr(folder_of, '/') : NULL;
    int folder_size = slash != NULL ? (int)(slash - folder_of) + 1 : 0;
    if (snprintf(out, PATH_BYTES, "%.*s%s", folder_size, folder_of != NULL ? folder_of : "", name) >= PATH_BYTES) {
      return ftl_error_set(error, FTL_BAD_INPUT, "the path %.60s... is too long", name);
    }
    return FTL_OK;
  }
  ftl_arch_names names;
  ftl_status status = ftl_arch_names_init(&names, models_dir, error);
  if (status != FTL_OK) return status;
  if (!is_model_name(name) || !ftl_arch_names_has(&names, name)) {
    status = unknown_name(&names, asked_by, name, error);
  } else if (snprintf(out, PATH_BYTES, "%s/%s.lua", models_dir, name) >= PATH_BYTES) {
    status = ftl_error_set(error, FTL_BAD_INPUT, "the path %.60s... is too long", models_dir);
  }
  ftl_arch_names_fini(&names);
  return status;
}

static ftl_status load_chain(const char *models_dir, const char *path, int depth, ftl_arch **out, int *line,
                             ftl_error *error);

// The arch that the model's table is applied to.
static ftl_status load_base(const char *models_dir, const ftl_arch_model *model, int depth, ftl_arch **out,
                            ftl_error *error) {
  if (model->base[0] == '\0') {
    *out = ftl_arch_create(model->name, model->name);
    return *out != NULL ? FTL_OK : ftl_error_set(error, FTL_NO_MEMORY, "%s: out of memory", model->path);
  }
  if (depth == MAX_MODELS_ON_EACH_OTHER) {
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s:%d: more than %d models stand on each other: does one stand on itself?", model->path,
                         model->base_line, MAX_MODELS_ON_EACH_OTHER);
  }
  char path[PATH_BYTES];
  ftl_status status = model_path(models_dir, model->base, model, path, error);
  if (status == FTL_OK && access(path, F_OK) != 0)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: %s: %s", model->path, model->base_line, path, strerror(errno));
  int line;
  return status == FTL_OK ? load_chain(models_dir, path, depth + 1, out, &line, error) : status;
}

// What a die takes from another: measured there, so a guess here.
static ftl_status become_die(ftl_arch *arch, const ftl_arch_model *model, ftl_error *error) {
  if (strcmp(arch->name, arch->die) != 0)
    return ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: a die stands on a die, and %s is a product", model->path,
                         model->base_line, arch->name);
  return ftl_arch_become_die(arch, model->name, error);
}

// A die, or a product on its bases; not yet checked. A die's name equals its die. *line: of `die` or `product`.
static ftl_status load_chain(const char *models_dir, const char *path, int depth, ftl_arch **out, int *line,
                             ftl_error *error) {
  ftl_arch_model model;
  ftl_arch *arch = NULL;
  ftl_status status = ftl_arch_model_init(&model, path, error);
  if (status != FTL_OK) return status;
  *line = model.line;
  status = load_base(models_dir, &model, depth, &arch, error);
  if (status == FTL_OK && model.is_die && model.base[0] != '\0') status = become_die(arch, &model, error);
  if (status == FTL_OK) status = ftl_arch_model_apply(&model, arch, error);
  if (status == FTL_OK && !model.is_die && strcmp(model.name, arch->die) == 0) {
    status = ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: the product has the name of its die, %s", path, model.line,
                           arch->die);
  }
  if (status == FTL_OK) {
    snprintf(arch->name, sizeof arch->name, "%s", model.name);
    *out = arch;
  } else {
    ftl_arch_destroy(arch);
  }
  ftl_arch_model_fini(&model);
  return status;
}

static bool is_die(const ftl_arch *arch) { return strcmp(arch->name, arch->die) == 0; }

// "; 14 more are missing: a, b, ..." of the keys after `first`: a product on a die has all that its dies leave open to
// set.
static void list_missing(const ftl_arch *arch, int first, char *out, size_t out_bytes) {
  int num_missing = 0;
  for (int i = first + 1; i < ftl_arch_num_keys(); i++) num_missing += !ftl_arch_is_set(arch, i);
  if (num_missing == 0) return;
  size_t used = (size_t)snprintf(out, out_bytes, "; %d more are missing:", num_missing);
  for (int i = first + 1; i < ftl_arch_num_keys(); i++) {
    if (ftl_arch_is_set(arch, i)) continue;
    const char *name = ftl_arch_key_get(i)->name;
    bool fits = used + strlen(name) + sizeof " ..." < out_bytes - 1;
    used += (size_t)snprintf(out + used, out_bytes - used, " %s", fits ? name : "...");
    if (!fits) return;
  }
}

static ftl_status check_complete(const ftl_arch *arch, const char *path, int line, ftl_error *error) {
  for (int i = 0; i < ftl_arch_num_keys(); i++) {
    if (ftl_arch_is_set(arch, i)) continue;
    const ftl_arch_key *key = ftl_arch_key_get(i);
    char more[256] = "";
    list_missing(arch, i, more, sizeof more);
    if (key->allowed != NULL) {
      return ftl_error_set(error, FTL_BAD_INPUT,
                           "%s:%d: %s is missing, here and in what it stands on; allowed are %s%s", path, line,
                           key->name, key->allowed, more);
    }
    return ftl_error_set(error, FTL_BAD_INPUT,
                         "%s:%d: %s is missing, here and in what it stands on; allowed is %lld to %lld (%s)%s", path,
                         line, key->name, (long long)key->min, (long long)key->max, key->unit, more);
  }
  return ftl_arch_check(arch, error);
}

// A product that is whole; a die is an error, or is passed over when skip_dies (then *out stays NULL).
static ftl_status load_path(const char *models_dir, const char *path, bool skip_dies, ftl_arch **out, int *line,
                            ftl_error *error) {
  ftl_arch *arch = NULL;
  ftl_status status = load_chain(models_dir, path, 1, &arch, line, error);
  if (status != FTL_OK) return status;
  if (!is_die(arch)) {
    status = check_complete(arch, path, *line, error);
  } else if (!skip_dies) {
    status =
        ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: %s is a die, name a product on it; `foretile arch list` lists all",
                      path, *line, arch->name);
  }
  if (status == FTL_OK && !is_die(arch)) {
    *out = arch;
  } else {
    ftl_arch_destroy(arch);
  }
  return status;
}

// Models in the folder are found by file name: the name inside must agree.
static ftl_status check_name(const char *path, int line, const char *asked, ftl_arch **arch, ftl_error *error) {
  if (*arch == NULL || is_file_name(asked) || strcmp((*arch)->name, asked) == 0) return FTL_OK;
  ftl_status status = ftl_error_set(error, FTL_BAD_INPUT, "%s:%d: is named \"%s\" inside, must be \"%s\"", path, line,
                                    (*arch)->name, asked);
  ftl_arch_destroy(*arch);
  *arch = NULL;
  return status;
}

ftl_status ftl_arch_load(const char *models_dir, const char *name_or_file, ftl_arch **out, ftl_error *error) {
  *out = NULL;
  char *found_dir = NULL;
  char path[PATH_BYTES];
  int line = 0;
  ftl_status status = FTL_OK;
  if (models_dir == NULL) status = ftl_arch_models_dir(&found_dir, error);
  if (models_dir == NULL) models_dir = found_dir;
  if (status == FTL_OK) status = model_path(models_dir, name_or_file, NULL, path, error);
  if (status == FTL_OK) status = load_path(models_dir, path, false, out, &line, error);
  if (status == FTL_OK) status = check_name(path, line, name_or_file, out, error);
  free(found_dir);
  return status;
}

static ftl_status load_names(const char *models_dir, const ftl_arch_names *names, ftl_arch_list *out,
                             ftl_error *error) {
  for (int i = 0; i < names->num_names; i++) {
    char path[PATH_BYTES];
    ftl_arch *arch = NULL;
    int line = 0;
    ftl_status status = model_path(models_dir, names->names[i], NULL, path, error);
    if (status == FTL_OK) status = load_path(models_dir, path, true, &arch, &line, error);
    if (status == FTL_OK) status = check_name(path, line, names->names[i], &arch, error);
    if (status != FTL_OK) return status;
    if (arch != NULL) out->archs[out->num_archs++] = arch;
  }
  return FTL_OK;
}

ftl_status ftl_arch_load_all(const char *models_dir, ftl_arch_list *out, ftl_error *error) {
  *out = (ftl_arch_list){0};
  char *found_dir = NULL;
  ftl_arch_names names = {0};
  ftl_status status = FTL_OK;
  if (models_dir == NULL) status = ftl_arch_models_dir(&found_dir, error);
  if (models_dir == NULL) models_dir = found_dir;
  if (status == FTL_OK) status = ftl_arch_names_init(&names, models_dir, error);
  if (status == FTL_OK) {
    out->archs = calloc((size_t)names.num_names + 1, sizeof *out->archs);
    status = out->archs == NULL ? ftl_error_set(error, FTL_NO_MEMORY, "out of memory")
                                : load_names(models_dir, &names, out, error);
  }
  if (status != FTL_OK) ftl_arch_list_fini(out);
  ftl_arch_names_fini(&names);
  free(found_dir);
  return status;
}

void ftl_arch_list_fini(ftl_arch_list *list) {
  for (int i = 0; i < list->num_archs; i++) ftl_arch_destroy(list->archs[i]);
  free(list->archs);
  *list = (ftl_arch_list){0};
}
