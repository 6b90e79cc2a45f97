#include "report/output_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "unit/results/fixture.h"

static ftl_status write_text(const char *path, const char *text, ftl_error *error) {
  ftl_text content = {0};
  ftl_text_add(&content, "%s", text);
  ftl_status status = ftl_output_file_write(path, &content, error);
  ftl_text_fini(&content);
  return status;
}

static void has_text(const char *path, const char *expected) {
  char text[64] = "";
  FILE *file = fopen(path, "r");
  cr_assert_not_null(file, "%s", path);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  cr_assert_str_eq(text, expected);
}

static bool is_there(const char *where, const char *name) {
  char path[192];
  snprintf(path, sizeof path, "%s/%s", where, name);
  return access(path, F_OK) == 0;
}

Test(unit_report_output_file, replaces_what_was_there_and_leaves_nothing_beside_it) {
  folder f = make_folder();
  ftl_error error = {0};
  cr_assert_eq(write_text(f.file, "one, and longer", &error), FTL_OK, "%s", error.message);
  cr_assert_eq(write_text(f.file, "two", &error), FTL_OK, "%s", error.message);
  has_text(f.file, "two");
  cr_assert_not(is_there(f.path, "results.db.new"));
  remove_folder(&f);
}

Test(unit_report_output_file, keeps_the_mode_and_somebody_elses_file_of_that_name) {
  folder f = make_folder();
  ftl_error error = {0};
  char other[192];
  struct stat info;
  snprintf(other, sizeof other, "%s.new", f.file);
  cr_assert_eq(write_text(other, "mine", &error), FTL_OK, "%s", error.message);
  cr_assert_eq(write_text(f.file, "one", &error), FTL_OK, "%s", error.message);
  cr_assert_eq(chmod(f.file, 0640), 0);
  cr_assert_eq(write_text(f.file, "two", &error), FTL_OK, "%s", error.message);
  has_text(f.file, "two");
  has_text(other, "mine");
  cr_assert(stat(f.file, &info) == 0 && (info.st_mode & 0777) == 0640, "%o", info.st_mode);
  cr_assert_not(is_there(f.path, "results.db.new1"));
  unlink(other);
  remove_folder(&f);
}

Test(unit_report_output_file, a_link_stays_a_link) {
  folder f = make_folder();
  ftl_error error = {0};
  char link[192];
  snprintf(link, sizeof link, "%s/link", f.path);
  cr_assert_eq(write_text(f.file, "one", &error), FTL_OK);
  cr_assert_eq(symlink(f.file, link), 0);
  cr_assert_eq(write_text(link, "two", &error), FTL_OK);
  struct stat info;
  cr_assert(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
  has_text(f.file, "two");
  remove_folder(&f);
}

// A file-size limit refuses a write as a full disk does.
Test(unit_report_output_file, a_write_that_fails_leaves_what_was_there) {
  folder f = make_folder();
  ftl_error error = {0};
  cr_assert_eq(write_text(f.file, "one", &error), FTL_OK);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = 4;
  setrlimit(RLIMIT_FSIZE, &limit);
  ftl_status status = write_text(f.file, "longer than four bytes", &error);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
  cr_assert_eq(status, FTL_IO_FAILED);
  cr_assert_not_null(strstr(error.message, strerror(EFBIG)), "%s", error.message);
  has_text(f.file, "one");
  cr_assert_not(is_there(f.path, "results.db.new"));
  remove_folder(&f);
}

Test(unit_report_output_file, a_device_is_written_and_not_replaced) {
  ftl_error error = {0};
  cr_assert_eq(write_text("/dev/null", "text", &error), FTL_OK);
  struct stat info;
  cr_assert(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
  cr_assert_eq(write_text("/dev/full", "text", &error), FTL_IO_FAILED);
}

Test(unit_report_output_file, a_folder_is_refused_and_stays) {
  folder f = make_folder();
  ftl_error error = {0};
  cr_assert_eq(write_text(f.path, "text", &error), FTL_IO_FAILED);
  cr_assert(is_there(f.path, "."));
  remove_folder(&f);
}
