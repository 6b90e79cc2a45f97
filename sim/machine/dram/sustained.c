// The bandwidth that the channel model sustains when it is never short of requests.
// Channels do not see each other, and lines are dealt to them fairly whatever their number: what a few sustain, all do.
// 32 of the H200's 188 give its reads within 0.01 % and its copies within 0.2 % of what all give, in a sixth of the
// time; on five chips copies differ by 0.6 % at most, as they do between runs of different length.
#include "machine/dram/dram.h"

enum {
  NUM_STREAMS = 128,   // tiles being read or written at once: about one an SM
  SEGMENT_LINES = 16,  // lines that one stream asks for in a row: some rows of a tile
  TILE_LINES = 128,    // 16 KiB: 64 rows of 128 half-precision numbers
  LINES_PER_CHANNEL = 2048,
  FILLINGS = 8,  // of the queues, if those take more lines: a quarter of them warms up
  STEP_CYCLES = 32,
  MOST_CHANNELS = 32,
};

typedef struct stream_source {
  int32_t read_percent;
  int64_t num_lines;  // given out so far
  int64_t read_debt;  // in 1/100 segments
  bool is_write;
  int64_t num_segments[2];  // of reads and of writes
} stream_source;

// Segments of the streams in turn; every stream walks its own tiles, reads and writes in different regions.
static ftl_dram_request next_request(stream_source *source, int64_t cycle) {
  int64_t line_in_segment = source->num_lines++ % SEGMENT_LINES;
  if (line_in_segment == 0) {
    source->read_debt += source->read_percent;
    source->is_write = source->read_debt < 100;
    if (!source->is_write) source->read_debt -= 100;
    source->num_segments[source->is_write]++;
  }
  int64_t segment = source->num_segments[source->is_write] - 1;
  int64_t stream = segment % NUM_STREAMS, step = segment / NUM_STREAMS;
  int64_t segments_per_tile = TILE_LINES / SEGMENT_LINES;
  int64_t tile = step / segments_per_tile * NUM_STREAMS + stream;
  int64_t line = tile * TILE_LINES + step % segments_per_tile * SEGMENT_LINES + line_in_segment;
  uint64_t region = source->is_write ? (uint64_t)1 << 26 : 0;
  return (ftl_dram_request){
      .arrival_cycle = cycle, .line = region + (uint64_t)line, .sectors = 15, .is_write = source->is_write};
}

ftl_status ftl_dram_sustained(const ftl_arch *arch, int32_t read_percent, int64_t *bytes_per_second, ftl_error *error) {
  ftl_dram *dram;
  *bytes_per_second = 0;
  ftl_arch part = *arch;
  if (part.dram_num_channels > MOST_CHANNELS) part.dram_num_channels = MOST_CHANNELS;
  ftl_status status = ftl_dram_create(&dram, &part, error);
  if (status != FTL_OK) return status;
  stream_source source = {.read_percent = read_percent};
  int64_t num_lines = part.dram_num_channels * LINES_PER_CHANNEL;
  int64_t max_pending = 2 * part.dram_num_channels * part.dram_queue_entries;
  if (num_lines < FILLINGS * max_pending) num_lines = FILLINGS * max_pending;
  int64_t warm_cycle = 0, warm_lines = 0, cycle = 0;
  while (source.num_lines < num_lines) {
    while (ftl_dram_num_pending(dram) < max_pending) {
      ftl_dram_request request = next_request(&source, cycle);
      ftl_dram_push(dram, &request);
    }
    cycle += STEP_CYCLES;
    int64_t num_done;
    (void)ftl_dram_advance(dram, cycle, &num_done);
    if (warm_cycle == 0 && source.num_lines >= num_lines / 4) {
      warm_cycle = cycle;
      warm_lines = source.num_lines - ftl_dram_num_pending(dram);
    }
  }
  int64_t lines = source.num_lines - ftl_dram_num_pending(dram) - warm_lines;
  int64_t part_bytes_per_second =
      (int64_t)((__extension__(__int128) lines) * 128 * 1000 * arch->clock_dram_khz / (cycle - warm_cycle));
  *bytes_per_second = part_bytes_per_second / part.dram_num_channels * arch->dram_num_channels;
  ftl_dram_destroy(dram);
  return FTL_OK;
}
