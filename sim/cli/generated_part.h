// The part of a document that a command writes, between two marker lines.
#ifndef FTL_CLI_GENERATED_PART_H
#define FTL_CLI_GENERATED_PART_H

#include "base/status.h"
#include "base/text.h"

#define FTL_GENERATED_BEGIN "<!-- begin of the generated part -->\n"
#define FTL_GENERATED_END "<!-- end of the generated part -->\n"

// Whether the file is there and has the markers, to be asked before long work: FTL_BAD_INPUT: no markers;
// FTL_IO_FAILED.
FTL_MUST_USE ftl_status ftl_generated_part_check(const char *path, ftl_error *error);
// Puts `part` between the markers of the file at `path`; what is around them stays. FTL_BAD_INPUT: no markers, and the
// file is left alone; FTL_IO_FAILED.
FTL_MUST_USE ftl_status ftl_generated_part_replace(const char *path, const ftl_text *part, ftl_error *error);

#endif
