#include "machine/sm/store_merge.h"

uint8_t ftl_sm_store_merge(sm_store_merge *merge, const ftl_arch *arch, uint64_t line, uint8_t sectors, int64_t now) {
  sm_open_line *oldest = &merge->lines[0], *end = merge->lines + arch->l1_store_merge_lines;
  int64_t closes = now + arch->l1_store_merge_cycles + 1;
  for (sm_open_line *open = merge->lines; open < end; open++) {
    if (open->line == line && now < open->closes) {
      uint8_t unsent = sectors & (uint8_t)~open->sectors;
      open->sectors |= sectors;
      open->closes = closes;
      return unsent;
    }
    if (open->closes < oldest->closes) oldest = open;
  }
  if (merge->lines < end) *oldest = (sm_open_line){.line = line, .closes = closes, .sectors = sectors};
  return sectors;
}
