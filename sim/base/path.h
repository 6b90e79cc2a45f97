// Paths of files.
#ifndef FTL_BASE_PATH_H
#define FTL_BASE_PATH_H

// What follows the last slash: folders differ from machine to machine. Borrowed from the path.
const char *ftl_path_file_name(const char *path);

#endif
