// Feeds every file of a folder to a fuzz target: what libFuzzer's own main does, for compilers without libFuzzer.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

static int feed(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    perror(path);
    return 1;
  }
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  // Exactly `size` bytes on the heap, so that AddressSanitizer sees a read beyond the input.
  unsigned char *data = size >= 0 ? malloc(size > 0 ? (size_t)size : 1) : NULL;
  int failed = data == NULL || fread(data, 1, (size_t)size, file) != (size_t)size;
  fclose(file);
  if (failed) {
    fprintf(stderr, "%s: cannot be read\n", path);
  } else {
    LLVMFuzzerTestOneInput(data, (size_t)size);
  }
  free(data);
  return failed;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  struct dirent **entries = NULL;
  int num_entries = scandir(argv[1], &entries, NULL, alphasort), num_fed = 0, failed = 0;
  for (int i = 0; i < num_entries; i++) {
    if (entries[i]->d_name[0] != '.') {
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
      failed |= feed(path);
      num_fed++;
    }
    free(entries[i]);
  }
  free(entries);
  printf("%d inputs\n", num_fed);
  return failed || num_fed == 0;
}
