// Runs a list of requests through a memory system and collects the replies by transaction.
#ifndef FTL_TESTS_TIMING_MEMORY_DRIVE_H
#define FTL_TESTS_TIMING_MEMORY_DRIVE_H

#include <criterion/criterion.h>

#include "machine/l2/tags.h"
#include "machine/memory.h"

static inline ftl_memory *create_memory(const ftl_arch *arch, int64_t sm_khz) {
  ftl_memory *memory;
  ftl_error error;
  cr_assert_eq(ftl_memory_create(&memory, arch, sm_khz, &error), FTL_OK);
  return memory;
}

static inline ftl_mem_request read_of(int64_t time, int32_t sm, uint64_t line, uint8_t sectors, uint32_t transaction) {
  return (ftl_mem_request){.time = time,
                           .line = line,
                           .transaction = transaction,
                           .sm = (uint16_t)sm,
                           .sectors = sectors,
                           .kind = FTL_MEM_READ};
}

static inline ftl_mem_request write_of(int64_t time, int32_t sm, uint64_t line, uint8_t sectors, uint32_t transaction) {
  ftl_mem_request request = read_of(time, sm, line, sectors, transaction);
  request.kind = FTL_MEM_WRITE;
  request.full_sectors = sectors;
  return request;
}

// reply_times[transaction] is filled; windows of `window` cycles (0: the longest) until everything is done. Returns the
// cycle up to which it ran.
static inline int64_t drive_from(ftl_memory *memory, int64_t from, const ftl_mem_request *requests, int64_t count,
                                 int64_t window, int64_t *reply_times, int32_t num_sms) {
  if (window == 0) window = ftl_memory_max_window_cycles(memory);
  int64_t next = 0;
  while (next < count || !ftl_memory_is_idle(memory)) {
    int64_t end = next;
    while (end < count && requests[end].time < from + window) end++;
    ftl_memory_submit(memory, requests + next, end - next);
    next = end;
    ftl_memory_advance(memory, from + window);
    from += window;
    int64_t num_replies;
    const ftl_mem_reply *replies = ftl_memory_replies(memory, &num_replies);
    for (int64_t i = 0; i < num_replies; i++) {
      cr_assert(replies[i].sm < num_sms && replies[i].time >= from);
      reply_times[replies[i].transaction] = replies[i].time;
    }
    cr_assert_lt(from, 10000000, "the memory system never comes to rest");
  }
  return from;
}

static inline int64_t drive(ftl_memory *memory, const ftl_mem_request *requests, int64_t count, int64_t *reply_times) {
  return drive_from(memory, 0, requests, count, 0, reply_times, 8);
}

// The `skip`-th line from `first` on whose home is `side`.
static inline uint64_t line_of_side(const ftl_arch *arch, int32_t side, uint64_t first, int skip) {
  ftl_l2_tags *tags;
  ftl_error error;
  cr_assert_eq(ftl_l2_tags_create(&tags, arch, 0, &error), FTL_OK);
  uint64_t line = first;
  while (ftl_l2_tags_place(tags, line).home_side != side || skip-- > 0) line++;
  ftl_l2_tags_destroy(tags);
  return line;
}

#endif
