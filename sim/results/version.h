// The version of the program that made a result.
#ifndef FTL_RESULTS_VERSION_H
#define FTL_RESULTS_VERSION_H

// "0.1.0+1a2b3c4d5e6f": the project's version, and a hash of the sources that decide predictions (version.cmake).
const char *ftl_program_version(void);

#endif
