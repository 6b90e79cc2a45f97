#include "engine/sampled/tile_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/lines.h"
#include "base/sectors.h"

enum {
  FIRST_ENTRIES = 1024,  // that the table has slots for
  MAX_LINES = 1 << 20,   // but for those of the last tile
};

ftl_status ftl_tile_lines_init(ftl_tile_lines *tiles, const ftl_l2_tags *tags, int32_t num_gpcs, ftl_error *error) {
  *tiles = (ftl_tile_lines){.tags = tags,
                            .num_gpcs = num_gpcs,
                            .capacity_entries = FIRST_ENTRIES,
                            .max_entries = FTL_TILES_MOST,
                            .capacity_lines = MAX_LINES};
  // As many as there may be: what is not touched takes none of the host's memory.
  tiles->entries = ftl_lines_grow(NULL, 0, FTL_TILES_MOST * sizeof *tiles->entries);
  tiles->slots = calloc(2 * FIRST_ENTRIES, sizeof *tiles->slots);
  tiles->lines = ftl_lines_grow(NULL, 0, MAX_LINES * sizeof *tiles->lines);
  if (num_gpcs > 0) tiles->groups = ftl_lines_grow(NULL, 0, (size_t)num_gpcs * FTL_TILES_MOST * sizeof *tiles->groups);
  bool has_strips = ftl_line_strips_try_init(&tiles->strips);
  if (tiles->entries && tiles->slots && tiles->lines && (tiles->groups || num_gpcs == 0) && has_strips) return FTL_OK;
  ftl_tile_lines_fini(tiles);
  return ftl_error_set(error, FTL_NO_MEMORY, "out of memory for sampled tiles");
}

void ftl_tile_lines_fini(ftl_tile_lines *tiles) {
  free(tiles->entries);
  free(tiles->slots);
  free(tiles->lines);
  free(tiles->groups);
  ftl_line_strips_fini(&tiles->strips);
}

static bool try_grow_lines(ftl_tile_lines *tiles) {
  size_t bytes = (size_t)tiles->capacity_lines * sizeof *tiles->lines;
  ftl_l2_known_line *lines = ftl_lines_grow(tiles->lines, bytes, 2 * bytes);
  if (!lines) return false;
  tiles->lines = lines;
  tiles->capacity_lines *= 2;
  return true;
}

static bool try_add_line(ftl_tile_lines *tiles, ftl_tile_entry *entry, ftl_l2_address at, uint64_t line,
                         uint8_t sectors) {
  if (tiles->num_lines == tiles->capacity_lines && !try_grow_lines(tiles)) return false;
  ftl_l2_tags_know(&tiles->lines[tiles->num_lines++], tiles->tags, at, line, sectors);
  tiles->sampled_sectors += ftl_num_sectors(sectors);
  entry->num_sampled++;
  return true;
}

// The sectors of a line that bytes [from, to) touch.
static uint8_t sectors_of(int64_t line, int64_t from, int64_t to) {
  int64_t begin = line * FTL_LINE_BYTES, end = begin + FTL_LINE_BYTES;
  int64_t first = from > begin ? (from - begin) / FTL_SECTOR_BYTES : 0;
  int64_t last = to < end ? (to - 1 - begin) / FTL_SECTOR_BYTES : FTL_LINE_SECTORS - 1;
  return (uint8_t)((FTL_ALL_SECTORS << first) & (FTL_ALL_SECTORS >> (3 - last)));
}

// Bytes [from, to) of device memory, not empty.
static bool try_add_bytes(ftl_tile_lines *tiles, ftl_tile_entry *entry, int64_t from, int64_t to) {
  entry->num_sectors += (uint32_t)((to - 1) / FTL_SECTOR_BYTES - from / FTL_SECTOR_BYTES + 1);
  uint64_t end = (uint64_t)((to - 1) / FTL_LINE_BYTES + 1);
  ftl_l2_address at;
  ftl_l2_sample_walk walk = ftl_l2_sample_walk_of(tiles->tags, (uint64_t)(from / FTL_LINE_BYTES), end);
  for (uint64_t line; ftl_l2_sample_walk_try_next(&walk, &line, &at);)
    if (!try_add_line(tiles, entry, at, line, sectors_of((int64_t)line, from, to))) return false;
  return true;
}

// Rows of the tile from `row` on that its page, or the tile, has.
static int32_t rows_of_page(const ftl_tile_place *place, int32_t row) {
  int32_t left = place->num_rows - row;
  if (!place->pages) return left;
  int32_t of_page = place->page_rows - (place->page_row + row) % place->page_rows;
  return left < of_page ? left : of_page;
}

// Rows that touch in memory are one run of bytes.
static bool try_add_rows(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place) {
  bool touch = place->row_stride_bytes == place->row_bytes;  // in a page
  int64_t from = place->address_bytes, to = from;
  for (int32_t row = 0, count; row < place->num_rows; row += count) {
    count = touch ? rows_of_page(place, row) : 1;
    int64_t address = ftl_tile_place_row(place, row);
    if (address != to) {
      if (to > from && !try_add_bytes(tiles, entry, from, to)) return false;
      from = address;
    }
    to = address + (int64_t)count * place->row_bytes;
  }
  return try_add_bytes(tiles, entry, from, to);
}

// Rows that lie evenly apart, each in the same lines of a strip.
typedef struct short_rows {
  int64_t address_bytes;
  int32_t num_rows;
  int32_t begin, end;  // lines of the strip
} short_rows;

// Rows that do not touch, of lines that a strip may hold; so many that it finds them sooner than each alone.
static bool are_short(const ftl_tile_place *place) {
  enum { LEAST_ROWS = 8 };
  if (place->num_rows < LEAST_ROWS || (place->pages && place->page_rows < LEAST_ROWS)) return false;
  return place->row_stride_bytes % FTL_LINE_BYTES == 0 && place->row_bytes < place->row_stride_bytes &&
         place->row_bytes <= FTL_STRIP_LINES * FTL_LINE_BYTES;
}

static bool try_add_row_by_row(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place,
                               const short_rows *rows) {
  int64_t from = rows->address_bytes;
  for (int32_t row = 0; row < rows->num_rows; row++, from += place->row_stride_bytes)
    if (!try_add_bytes(tiles, entry, from, from + place->row_bytes)) return false;
  return true;
}

static bool try_add_of_strip(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place,
                             const short_rows *rows, const ftl_line_strip *strip) {
  int64_t first = rows->address_bytes, last = first + place->row_bytes - 1;
  entry->num_sectors += (uint32_t)(rows->num_rows * (last / FTL_SECTOR_BYTES - first / FTL_SECTOR_BYTES + 1));
  uint64_t left = 0;  // rows with lines in the sample
  for (int32_t i = rows->begin; i < rows->end; i++) left |= strip->rows_of_line[i];
  for (; left != 0; left &= left - 1) {
    int32_t row = __builtin_ctzll(left);
    int64_t from = first + row * place->row_stride_bytes;
    uint64_t first_line = strip->first_line + (uint64_t)row * strip->stride_lines;
    for (int32_t i = rows->begin; i < rows->end; i++) {
      if (!(strip->rows_of_line[i] >> row & 1)) continue;
      uint64_t line = first_line + (uint64_t)i;
      uint8_t sectors = sectors_of((int64_t)line, from, from + place->row_bytes);
      ftl_l2_address at = ftl_l2_tags_address(tiles->tags, line);
      if (!try_add_line(tiles, entry, at, line, sectors)) return false;
    }
  }
  return true;
}

// Rows [row, row + num_rows) of the tile.
static bool try_add_short_rows(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place, int32_t row,
                               int32_t num_rows) {
  short_rows rows = {.address_bytes = ftl_tile_place_row(place, row), .num_rows = num_rows};
  int64_t first_line = rows.address_bytes / FTL_LINE_BYTES, last_byte = rows.address_bytes + place->row_bytes - 1;
  int64_t strip_line = first_line / FTL_STRIP_LINES * FTL_STRIP_LINES;
  rows.begin = (int32_t)(first_line - strip_line);
  rows.end = (int32_t)(last_byte / FTL_LINE_BYTES - strip_line) + 1;
  if (rows.end > FTL_STRIP_LINES) return try_add_row_by_row(tiles, entry, place, &rows);
  const ftl_line_strip wanted = {.first_line = (uint64_t)strip_line,
                                 .stride_lines = (uint64_t)(place->row_stride_bytes / FTL_LINE_BYTES),
                                 .num_rows = num_rows};
  const ftl_line_strip *strip = ftl_line_strips_find(&tiles->strips, tiles->tags, &wanted);
  return strip ? try_add_of_strip(tiles, entry, place, &rows, strip) : try_add_row_by_row(tiles, entry, place, &rows);
}

static bool try_add_all_short_rows(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place) {
  for (int32_t row = 0, count; row < place->num_rows; row += count) {
    count = rows_of_page(place, row);
    if (count > FTL_STRIP_ROWS) count = FTL_STRIP_ROWS;
    if (!try_add_short_rows(tiles, entry, place, row, count)) return false;
  }
  return true;
}

static bool try_add_tile(ftl_tile_lines *tiles, ftl_tile_entry *entry, const ftl_tile_place *place) {
  entry->first_line = (int32_t)tiles->num_lines;
  int64_t address = place->address_bytes, row_bytes = place->row_bytes;
  bool done = true;
  if (place->row_stride_bytes == row_bytes && !place->pages)
    done = try_add_bytes(tiles, entry, address, address + row_bytes * place->num_rows);
  else if (are_short(place))
    done = try_add_all_short_rows(tiles, entry, place);
  else
    done = try_add_rows(tiles, entry, place);
  tiles->total_sectors += entry->num_sectors;
  return done;
}

static uint64_t mixed(uint64_t hash, uint64_t x) {
  hash = (hash ^ x) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// What tells a tile from others with the same first byte, rows and bytes a row.
static uint64_t pages_of(const ftl_tile_place *place) {
  if (!place->pages) return 0;
  uint64_t hash = (uint64_t)place->page_row;
  int32_t num_pages = (place->page_row + place->num_rows - 1) / place->page_rows + 1;
  for (int32_t i = 0; i < num_pages; i++) hash = mixed(hash, (uint64_t)place->pages[i] + 1);
  return hash;
}

static uint64_t hash_of(const ftl_tile_entry *key) {
  uint64_t shape = (uint64_t)key->num_rows + ((uint64_t)key->row_bytes << 32) + key->pages;
  uint64_t hash = (uint64_t)key->address_bytes * 0x9e3779b97f4a7c15u + shape;
  return hash ^ hash >> 29;
}

static bool is_tile(const ftl_tile_entry *entry, const ftl_tile_entry *wanted) {
  return entry->address_bytes == wanted->address_bytes && entry->num_rows == wanted->num_rows &&
         entry->row_bytes == wanted->row_bytes && entry->pages == wanted->pages;
}

// Most entries that are not wanted are passed over by their tags: they lie all over memory.
static ftl_tile_slot *slot_of(const ftl_tile_lines *tiles, const ftl_tile_entry *wanted) {
  uint64_t hash = hash_of(wanted);
  uint32_t tag = (uint32_t)(hash >> 32);
  int64_t last = 2 * tiles->capacity_entries - 1, at = (int64_t)(hash & (uint64_t)last);
  for (;; at = (at + 1) & last) {
    ftl_tile_slot *slot = &tiles->slots[at];
    if (slot->entry == 0) {
      slot->tag = tag;
      return slot;
    }
    if (slot->tag != tag) continue;
    if (is_tile(&tiles->entries[slot->entry - 1], wanted)) return slot;
  }
}

static bool try_grow_table(ftl_tile_lines *tiles) {
  int64_t capacity = 2 * tiles->capacity_entries;
  ftl_tile_slot *slots = calloc(2 * (size_t)capacity, sizeof *slots);
  if (!slots) return false;
  free(tiles->slots);
  tiles->slots = slots;
  tiles->capacity_entries = capacity;
  for (int64_t i = 0; i < tiles->num_entries; i++) slot_of(tiles, &tiles->entries[i])->entry = (int32_t)(i + 1);
  return true;
}

bool ftl_tile_lines_are_full(const ftl_tile_lines *tiles) {
  return tiles->num_entries == tiles->max_entries || tiles->num_lines >= MAX_LINES;
}

// Tiles of a long kernel are of no more use when their head is done. One that comes again is made again: it then counts
// twice in the sample's scale, which is a ratio.
static void forget(ftl_tile_lines *tiles) {
  memset(tiles->slots, 0, 2 * (size_t)tiles->capacity_entries * sizeof *tiles->slots);
  tiles->num_entries = tiles->num_lines = 0;
}

// A tile of one row that lies in one sector, such as a row's log-sum-exp, is that sector: who asks for its neighbour
// waits for the same fill, and merges with the same requests.
static ftl_tile_entry key_of(const ftl_tile_place *place) {
  ftl_tile_entry key = {.address_bytes = place->address_bytes,
                        .num_rows = place->num_rows,
                        .row_bytes = place->row_bytes,
                        .pages = pages_of(place)};
  int64_t in_sector = place->address_bytes % FTL_SECTOR_BYTES;
  if (place->num_rows == 1 && !place->pages && in_sector + place->row_bytes <= FTL_SECTOR_BYTES) {
    key.address_bytes -= in_sector;
    key.row_bytes = FTL_SECTOR_BYTES;
  }
  return key;
}

// The entry of a tile that was seen before, or a slot for a new one.
static ftl_tile_entry *make_entry(ftl_tile_lines *tiles, const ftl_tile_entry *wanted, const ftl_tile_place *place) {
  ftl_tile_slot *slot = slot_of(tiles, wanted);
  if (slot->entry) return &tiles->entries[slot->entry - 1];
  if (ftl_tile_lines_are_full(tiles)) {
    forget(tiles);
    slot = slot_of(tiles, wanted);
  } else if (tiles->num_entries == tiles->capacity_entries) {
    if (!try_grow_table(tiles)) return NULL;
    slot = slot_of(tiles, wanted);
  }
  ftl_tile_entry *entry = &tiles->entries[tiles->num_entries++];
  slot->entry = (int32_t)tiles->num_entries;
  *entry = *wanted;
  return try_add_tile(tiles, entry, place) ? entry : NULL;
}

// Entries are numbered from 1 in trails and as each other's next; what was forgotten since leaves numbers that mean
// another tile, or none.
static ftl_tile_entry *entry_of_number(const ftl_tile_lines *tiles, int32_t number) {
  return number > 0 && number <= tiles->num_entries ? &tiles->entries[number - 1] : NULL;
}

ftl_tile_entry *ftl_tile_lines_find(ftl_tile_lines *tiles, const ftl_tile_place *place, ftl_tile_trail *trail) {
  const ftl_tile_entry wanted = key_of(place);
  const ftl_tile_entry *before = trail ? entry_of_number(tiles, trail->last) : NULL;
  ftl_tile_entry *entry = before ? entry_of_number(tiles, before->next) : NULL;
  if (!entry || !is_tile(entry, &wanted)) {
    entry = make_entry(tiles, &wanted, place);
    ftl_tile_entry *follows = trail ? entry_of_number(tiles, trail->last) : NULL;
    if (follows && entry) follows->next = (int32_t)(entry - tiles->entries) + 1;
  }
  if (trail && entry) trail->last = (int32_t)(entry - tiles->entries) + 1;
  return entry;
}
