// Matrix products by mma.sync, and FETCH: operands from shared memory by ldmatrix, or LDS on quad pairs (Volta).
#include <string.h>

#include "base/integer.h"
#include "lower/select/select.h"

#define NONE FTL_NO_VALUE
enum { TILE_COLUMNS = 8, MAX_PRODUCTS = FTL_SELECT_MAX_PRODUCTS };

// The swizzled chunk of a lane at a column position: shared by all rows there, and by none whose address is kept. Of
// K [n][k] the lane's half is a bit of its own, and one LOP3 takes row, half and position.
static int32_t chunk_at(ftl_select *s, int32_t ring, ftl_operand_kind kind, int32_t rows) {
  if (s->rings[ring].keeps_all[kind]) return NONE;
  int32_t chunk = ftl_draft_value_add(&s->draft, 1, 1), from = rows == NONE ? s->thread : rows;
  int32_t base = s->plain_code ? s->rings[ring].read_offset : s->rings[ring].read_address;
  if (s->finds_positions) {
    if (s->recomputes_positions) ftl_select_add(s, FTL_OP_IADD, 2, chunk, s->thread, NONE, NONE);
    ftl_select_add(s, FTL_OP_LOP, 1, chunk, s->recomputes_positions ? chunk : from, NONE, NONE);
    ftl_select_add(s, FTL_OP_IADD, 1, chunk, chunk, base, NONE);
    return chunk;
  }
  if (s->plain_code && kind == FTL_OPERAND_B_NK) {
    ftl_select_add(s, FTL_OP_LOP, 1, chunk, from, base, NONE);
    return chunk;
  }
  ftl_select_add(s, FTL_OP_IADD, 1, chunk, from, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, 1, chunk, chunk, base, NONE);
  return chunk;
}

// Rows and columns of the lane, from the thread's number, where each step finds them anew; NONE: they are kept. Of Q
// and K together 14 instructions, of V 4: SHF and LOP3, IMADs by the row's length, LOP3 (SASS of flash2_mma.h, sm_90a).
static int32_t rows_of_lane(ftl_select *s, const ftl_tile_op *product) {
  if (!ftl_select_finds_rows_anew(s, product)) return NONE;
  bool of_scores = product->transpose_b;
  int32_t rows = ftl_draft_value_add(&s->draft, of_scores ? 3 : 1, 0);
  ftl_select_add(s, FTL_OP_LOP, of_scores ? 8 : 2, rows, s->thread, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, of_scores ? 4 : 1, rows, rows, NONE, NONE);
  ftl_select_add(s, FTL_OP_LOP, of_scores ? 2 : 1, rows, rows, NONE, NONE);
  return rows;
}

// The block of 16 rows and 32 bytes at (row, column) of the stage being read, the index-th of its operand.
typedef struct block {
  int32_t ring;
  ftl_operand_kind kind;
  int32_t row, column, index;
} block;

// Of a block: one ldmatrix, or two LDS on quad pairs.
static int32_t num_loads(const ftl_select *s) { return s->shape.quad_pairs ? 2 : 1; }

// Of rows that are no power of two wide: in swizzle blocks behind the first the sum of row and chunk is none of
// disjoint bits, and the rows of a column position lie immediates apart (SASS of flash2_mma.h at head_dim 96).
static bool rows_are_immediates(const ftl_select *s, const block *b) {
  const ftl_shared_layout *layout = &s->layouts[b->ring];
  return (layout->columns & (layout->columns - 1)) != 0 && b->column >= layout->block_columns;
}

// Row and chunk are combined (LOP3), scaled and added to the stage's base (IMAD or LEA), unless the address is kept, or
// another row's is in `of_position`; lean code adds the row as an immediate to the position's address, and a stage's
// base as a uniform register.
static int32_t block_address(ftl_select *s, const block *b, int32_t chunk, int32_t *of_position) {
  const ftl_select_ring *ring = &s->rings[b->ring];
  int32_t index = s->plain_code ? b->index : ftl_select_position(s, b->ring, b->column);
  int32_t kept = index < ring->num_kept[b->kind] ? ring->first_kept[b->kind] : NONE;
  bool in_stage = s->tile->rings[b->ring].num_stages > 1;
  if (kept != NONE && (!in_stage || !s->plain_code)) return kept + index;
  if (!s->plain_code) return chunk;
  if (rows_are_immediates(s, b) && *of_position != NONE) return *of_position;
  int32_t loads = num_loads(s), address = ftl_draft_value_add(&s->draft, loads, 1);
  *of_position = address;
  if (kept != NONE) {
    ftl_select_add(s, FTL_OP_IMAD, loads, address, kept + index, ring->read_address, NONE);
    return address;
  }
  ftl_select_add(s, FTL_OP_LOP, loads, address, chunk, NONE, NONE);
  ftl_select_add(s, FTL_OP_IMAD, loads, address, address, ring->read_address, NONE);
  return address;
}

// Loads a block, or the part of it inside the stage, into `destination`.
static ftl_draft_inst *load_block(ftl_select *s, const block *b, int32_t address, int32_t destination) {
  ftl_draft_inst *load =
      ftl_select_add(s, s->shape.quad_pairs ? FTL_OP_LDS : FTL_OP_LDSM, num_loads(s), destination, address, NONE, NONE);
  load->inst.ring_a = (uint8_t)b->ring;
  load->effects = FTL_EFFECT_MEMORY;
  ftl_select_set_wavefronts(load, ftl_operand_wavefronts(&s->shape, &s->layouts[b->ring], b->kind, b->row, b->column));
  return load;
}

// Blocks of 16 x 16 as products read them: ldmatrix.trans where B is stored [k][n].
static void fetch_b(ftl_select *s, const ftl_tile_op *op) {
  const ftl_select_value *dst = &s->values[op->dst];
  ftl_operand_kind kind = op->transpose_b ? FTL_OPERAND_B_NK : FTL_OPERAND_B_KN;
  for (int32_t slab = 0; slab < dst->map.num_slabs; slab++)
    for (int32_t i = 0; i < dst->map.per_slab; i++) {
      int32_t n = slab * FTL_OPERAND_COLUMNS, k = i * s->product->operand_columns, of_position = NONE;
      block b = {op->ring, kind, op->transpose_b ? n : k, op->transpose_b ? k : n, slab * dst->map.per_slab + i};
      int32_t address = block_address(s, &b, chunk_at(s, op->ring, kind, NONE), &of_position);
      load_block(s, &b, address, ftl_select_fragment(s, op->dst, slab, i));
    }
}

void ftl_select_fetch(ftl_select *s, const ftl_tile_op *op) {
  if (s->tile->values[op->dst].kind == FTL_VALUE_COLUMNS) {
    ftl_select_fetch_columns(s, op);
    return;
  }
  if (op->as_b) {
    fetch_b(s, op);
    return;
  }
  const ftl_select_value *dst = &s->values[op->dst];
  int32_t columns = ftl_operand_columns(s->tile->rings[op->ring].dtype);
  for (int32_t i = 0; i < dst->map.per_slab; i++) {
    int32_t chunk = chunk_at(s, op->ring, FTL_OPERAND_A, NONE), of_position = NONE;
    for (int32_t slab = 0; slab < dst->map.num_slabs; slab++) {
      block b = {op->ring, FTL_OPERAND_A, ftl_select_slab_row(s, op->dst, slab), i * columns,
                 i * dst->map.num_slabs + slab};
      load_block(s, &b, block_address(s, &b, chunk, &of_position), ftl_select_fragment(s, op->dst, slab, i));
    }
  }
}

typedef struct product {
  const ftl_tile_op *op;
  const struct product *same_places;            // its B lies like that one's, an immediate away; or NULL
  int32_t num_slabs, n, k;                      // n, k: columns of the accumulator, and the end of what is summed over
  int32_t first_step, end_step;                 // k steps of it
  bool keeps_fragments;                         // their values are the same each time, as they live on over loops
  int32_t a[2][FTL_SELECT_MAX_FRAGMENTS];       // A fragments of even and odd k steps, by slab
  int32_t b[2][FTL_SELECT_MAX_FRAGMENTS];       // B fragments of even and odd k steps, by 16 columns
  bool from_zero;                               // the first k step takes C = 0
  int32_t chunks[FTL_SELECT_MAX_FRAGMENTS];     // swizzled chunks of B: of the k step, or of each 16 columns
  int32_t addresses[FTL_SELECT_MAX_FRAGMENTS];  // of B's blocks in this k step
  int32_t a_chunks[FTL_SELECT_MAX_FRAGMENTS];   // of a transposed A: of each slab's 16 columns
  int32_t rows;                                 // of the lane, or NONE
  int32_t positions[FTL_SELECT_MAX_FRAGMENTS];  // B's last address at each column position
} product;

// fp8 that mma.sync does not take: each register of four becomes two of fp16 pairs (F2FP.F16.E4M3.UNPACK_B).
static int32_t widened(ftl_select *s, int32_t operand, int32_t into) {
  if (!s->product->widens) return operand;
  int32_t registers = 2 * s->draft.values[operand].num_registers;
  int32_t wide = into == NONE ? ftl_select_temp(s, registers) : into;
  ftl_select_add(s, FTL_OP_CVT, registers, wide, operand, NONE, NONE);
  return wide;
}

// Where a fragment is loaded that is multiplied as `fragment` was before, or NONE.
static int32_t value_to_load(ftl_select *s, int32_t fragment, int32_t num_registers) {
  return fragment == NONE || s->product->widens ? ftl_select_temp(s, num_registers) : fragment;
}

static void load_fragment(ftl_select *s, const block *b, int32_t address, int32_t destination) {
  ftl_draft_inst *load = load_block(s, b, address, destination);
  if (s->buffers_fragments) load->effects |= FTL_EFFECT_AHEAD;
}

static void load_a(ftl_select *s, product *p, int32_t step) {
  bool transposed = p->op->transpose_a;
  ftl_operand_kind kind = transposed ? FTL_OPERAND_B_KN : FTL_OPERAND_A;  // transposed as [k][n] of B: ldmatrix.trans
  int32_t chunk = p->op->ring_a < 0 || transposed ? NONE : chunk_at(s, p->op->ring_a, kind, p->rows);
  int32_t depth = step * s->product->operand_columns;
  int32_t *a = p->a[step % 2], of_position = NONE;
  for (int32_t slab = 0; slab < p->num_slabs; slab++) {
    if (p->op->ring_a < 0) {
      a[slab] = widened(s, ftl_select_fragment(s, p->op->a.value, slab, step), NONE);
      continue;
    }
    int32_t held = p->keeps_fragments ? a[slab] : NONE;
    int32_t loaded = value_to_load(s, held, s->shape.operand_registers);
    int32_t row = ftl_select_slab_row(s, p->op->dst, slab);
    block b = {p->op->ring_a, kind, row, depth, step * p->num_slabs + slab};
    if (transposed) b = (block){p->op->ring_a, kind, depth, row, b.index};
    load_fragment(s, &b, block_address(s, &b, transposed ? p->a_chunks[slab] : chunk, &of_position), loaded);
    a[slab] = widened(s, loaded, held);
  }
}

static int32_t num_tiles_at(const ftl_select *s, const product *p, int32_t column) {
  return s->shape.quad_pairs ? 1 : ftl_smaller32(2, ftl_divide_up32(p->n - column, TILE_COLUMNS));
}

// B of the 16 columns from `column` on, for one k step of 32 bytes: one ldmatrix.x4.
static void load_b(ftl_select *s, product *p, int32_t step, int32_t column) {
  int32_t across = column / FTL_OPERAND_COLUMNS;
  if (p->op->b.value >= 0) {
    p->b[step % 2][across] = ftl_select_fragment(s, p->op->b.value, across, step);
    return;
  }
  int32_t registers = s->shape.quad_pairs ? s->shape.operand_registers : 2 * num_tiles_at(s, p, column);
  int32_t depth = step * s->product->operand_columns - p->op->first_k + ftl_tile_first_term_of_b(s->tile, p->op);
  int32_t num_across = ftl_divide_up32(p->n, FTL_OPERAND_COLUMNS);
  block from = {p->op->ring, FTL_OPERAND_B_KN, depth, column, step * num_across + across};
  if (p->op->transpose_b) from = (block){p->op->ring, FTL_OPERAND_B_NK, column, depth, from.index};
  int32_t chunk = p->op->transpose_b ? 0 : across, position = p->op->transpose_b ? step : across;
  if (!p->same_places) p->addresses[across] = block_address(s, &from, p->chunks[chunk], &p->positions[position]);
  int32_t held = p->keeps_fragments ? p->b[step % 2][across] : NONE, loaded = value_to_load(s, held, registers);
  load_fragment(s, &from, (p->same_places ? p->same_places : p)->addresses[across], loaded);
  p->b[step % 2][across] = widened(s, loaded, held);
}

// Those columns' products: an n8 tile after the other, each of all slabs.
static void multiply_columns(ftl_select *s, const product *p, int32_t step, int32_t column) {
  int32_t tiles = num_tiles_at(s, p, column), b = p->b[step % 2][column / FTL_OPERAND_COLUMNS];
  int32_t mmas =
      ftl_smaller32(s->product->operand_columns, p->k - step * s->product->operand_columns) / s->product->mma_k;
  for (int32_t i = 0; i < mmas; i++)
    for (int32_t tile = 0; tile < tiles; tile++)
      for (int32_t slab = 0; slab < p->num_slabs; slab++) {
        int32_t c = ftl_select_fragment(s, p->op->dst, slab, column / s->shape.accumulator_columns + tile);
        ftl_draft_inst *mma =
            ftl_select_add(s, FTL_OP_MMA, s->product->mma_num_insts, c, p->a[step % 2][slab], b, NONE);
        if (!p->from_zero || step > 0 || i > 0) mma->effects = FTL_EFFECT_READS_DESTINATION;
      }
}

bool ftl_select_shares_a(const ftl_tile_op *op, const ftl_tile_op *next) {
  return op->kind == FTL_TILE_MMA && next->kind == FTL_TILE_MMA && op->ring_a >= 0 && next->ring_a == op->ring_a &&
         next->transpose_a == op->transpose_a && next->transpose_b == op->transpose_b && next->first_k == op->first_k &&
         next->num_k == op->num_k;
}

// The products from operation op_idx on that read the same A next to each other: its fragments are loaded once a k step
// for all of them (the two of a gated linear unit). 0: those before this one took it with them.
static int32_t num_sharing_a(const ftl_select *s, int32_t op_idx) {
  const ftl_tile_op *op = ftl_select_op_at(s, op_idx);
  if (op_idx > 0 && ftl_select_shares_a(op - 1, op)) return 0;
  int32_t count = 1;
  while (count < MAX_PRODUCTS && op_idx + count < s->role->num_ops && ftl_select_shares_a(op, op + count)) count++;
  return count;
}

static product product_of(ftl_select *s, const ftl_tile_op *op) {
  const ftl_ring *ring = &s->tile->rings[op->ring];
  product p = {.op = op,
               .num_slabs = s->values[op->dst].map.num_slabs,
               .n = ftl_select_warp_columns(s, op->dst),
               .k = op->transpose_b ? ring->columns : ring->rows / s->role->num_groups,
               .from_zero = s->values[op->dst].zero_pending};
  if (op->num_k > 0) p.k = op->first_k + op->num_k;
  p.first_step = op->first_k / s->product->operand_columns;
  p.end_step = ftl_divide_up32(p.k, s->product->operand_columns);
  if (op->first_k % s->product->operand_columns != 0)
    ftl_select_fail(s, "a sum from term %d of k on does not begin with one of mma.sync's operands of %d", op->first_k,
                    s->product->operand_columns);
  else if (p.k % s->product->mma_k != 0 || p.n % TILE_COLUMNS != 0)
    ftl_select_fail(s, "a product over %d with %d columns does not divide into mma.sync tiles of k %d and n %d", p.k,
                    p.n, s->product->mma_k, TILE_COLUMNS);
  s->values[op->dst].zero_pending = false;
  return p;
}

// The fragments of A, which all products share.
static void load_shared_a(ftl_select *s, product *products, int32_t count, int32_t step) {
  load_a(s, &products[0], step);
  for (int32_t i = 1; i < count; i++) memcpy(products[i].a[step % 2], products[0].a[step % 2], sizeof products[0].a[0]);
}

static void find_b(ftl_select *s, product *p) {
  bool is_loaded = p->op->b.value < 0;
  if (is_loaded && p->op->transpose_b && !p->same_places)
    p->chunks[0] = chunk_at(s, p->op->ring, FTL_OPERAND_B_NK, p->rows);
}

// What has just been loaded is multiplied.
static void multiply_as_loaded(ftl_select *s, product *products, int32_t count) {
  for (int32_t step = products[0].first_step; step < products[0].end_step; step++) {
    load_shared_a(s, products, count, step);
    for (int32_t i = 0; i < count; i++) {
      find_b(s, &products[i]);
      for (int32_t column = 0; column < products[i].n; column += FTL_OPERAND_COLUMNS) {
        load_b(s, &products[i], step, column);
        multiply_columns(s, &products[i], step, column);
      }
    }
  }
}

static void load_step(ftl_select *s, product *products, int32_t count, int32_t step) {
  load_shared_a(s, products, count, step);
  for (int32_t i = 0; i < count; i++) {
    find_b(s, &products[i]);
    for (int32_t column = 0; column < products[i].n; column += FTL_OPERAND_COLUMNS)
      load_b(s, &products[i], step, column);
  }
}

static void multiply_step(ftl_select *s, const product *products, int32_t count, int32_t step) {
  for (int32_t i = 0; i < count; i++)
    for (int32_t column = 0; column < products[i].n; column += FTL_OPERAND_COLUMNS)
      multiply_columns(s, &products[i], step, column);
}

// There are two sets of fragments: those of the next k step are loaded before this one's are multiplied.
static void multiply_a_step_ahead(ftl_select *s, product *products, int32_t count) {
  int32_t first = products[0].first_step, end = products[0].end_step;
  load_step(s, products, count, first);
  for (int32_t step = first; step < end; step++) {
    if (step + 1 < end) load_step(s, products, count, step + 1);
    multiply_step(s, products, count, step);
  }
}

// The products at operation op_idx that read the same A; 0: there are none, or something failed.
static int32_t products_at(ftl_select *s, int32_t op_idx, product *products) {
  const ftl_tile_op *op = ftl_select_op_at(s, op_idx);
  int32_t count = num_sharing_a(s, op_idx);
  for (int32_t i = 0; i < count; i++) {
    if (op->num_k > 0) ftl_select_settle_fill(s, op[i].dst);
    products[i] = product_of(s, op + i);
  }
  return s->status == FTL_OK ? count : 0;
}

// Those of columns that do not go on with k, which all parts of a step share: false where none has found them yet.
static bool try_take_chunks(const ftl_select *s, product *products, int32_t count) {
  if (products[0].op->num_k == 0 || !s->parts.has_chunks) return false;
  memcpy(products[0].a_chunks, s->parts.a_chunks, sizeof products[0].a_chunks);
  for (int32_t i = 0; i < count; i++) memcpy(products[i].chunks, s->parts.chunks[i], sizeof products[i].chunks);
  return true;
}

static void leave_chunks(ftl_select *s, const product *products, int32_t count) {
  memcpy(s->parts.a_chunks, products[0].a_chunks, sizeof products[0].a_chunks);
  for (int32_t i = 0; i < count; i++) memcpy(s->parts.chunks[i], products[i].chunks, sizeof products[i].chunks);
  s->parts.has_chunks = true;
}

// What the addresses of their loads are made of.
static void find_chunks(ftl_select *s, product *products, int32_t count) {
  product *first = &products[0];
  const ftl_tile_op *op = first->op;
  int32_t rows = rows_of_lane(s, op);
  for (int32_t i = 0; i < count; i++) {
    products[i].rows = rows;
    for (int32_t at = 0; at < FTL_SELECT_MAX_FRAGMENTS; at++) products[i].positions[at] = NONE;
  }
  for (int32_t i = 1; i < count; i++)
    if (ftl_select_rings_are_alike(s, op->ring, op[i].ring)) products[i].same_places = first;
  if (try_take_chunks(s, products, count)) return;
  for (int32_t slab = 0; op->transpose_a && slab < first->num_slabs; slab++)
    first->a_chunks[slab] = chunk_at(s, op->ring_a, FTL_OPERAND_B_KN, first->rows);
  for (int32_t i = 0; i < count && !op->transpose_b && op->b.value < 0; i++)
    for (int32_t at = 0; at * FTL_OPERAND_COLUMNS < products[i].n && !products[i].same_places; at++)
      products[i].chunks[at] = chunk_at(s, op[i].ring, FTL_OPERAND_B_KN, first->rows);
  leave_chunks(s, products, count);
}

// ---- parts of k, with two sets of fragments ----

static void take_fragments(const ftl_select *s, product *products, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    memcpy(products[i].a, s->parts.a, sizeof products[i].a);
    memcpy(products[i].b, s->parts.b[i], sizeof products[i].b);
    products[i].keeps_fragments = true;
  }
}

static void hold_step(ftl_select *s, product *products, int32_t count, int32_t step) {
  take_fragments(s, products, count);
  load_step(s, products, count, step);
  memcpy(s->parts.a, products[0].a, sizeof products[0].a);
  for (int32_t i = 0; i < count; i++) memcpy(s->parts.b[i], products[i].b, sizeof products[i].b);
  s->parts.held = step;
}

static void multiply_held(ftl_select *s, product *products, int32_t count, int32_t step) {
  take_fragments(s, products, count);
  multiply_step(s, products, count, step);
}

static bool passes_products(ftl_tile_op_kind kind) {
  return kind == FTL_TILE_ACQUIRE || kind == FTL_TILE_LOAD || kind == FTL_TILE_COMMIT || kind == FTL_TILE_RELEASE ||
         kind == FTL_TILE_WAIT;
}

static int32_t loop_of(const ftl_select *s, int32_t end) {
  int32_t i = end;
  while (ftl_select_op_at(s, i)->kind != FTL_TILE_LOOP ||
         ftl_select_op_at(s, i)->loop_var != ftl_select_op_at(s, end)->loop_var)
    i--;
  return i;
}

// The product of a part that comes next from operation op_idx on, around its loop if that ends before; -1: another
// operation does. *waits: for a stage first.
static int32_t next_part(const ftl_select *s, int32_t op_idx, bool *waits) {
  bool is_around = false;
  *waits = false;
  for (int32_t i = op_idx; i < s->role->num_ops; i++) {
    const ftl_tile_op *op = ftl_select_op_at(s, i);
    if (op->kind == FTL_TILE_MMA) return op->num_k > 0 ? i : -1;
    if (op->kind == FTL_TILE_WAIT) *waits = true;
    if (op->kind == FTL_TILE_END_LOOP) {
      if (is_around) return -1;
      is_around = true;
      i = loop_of(s, i);
    } else if (op->kind != FTL_TILE_LOOP && !passes_products(op->kind)) {
      return -1;
    }
  }
  return -1;
}

// Whether that part goes on with the same sum, and its first fragments belong in the other set than those of `step`.
static bool takes_turns_with(const ftl_select *s, int32_t op_idx, const ftl_tile_op *op, int32_t step) {
  const ftl_tile_op *next = ftl_select_op_at(s, op_idx);
  bool is_same = next->dst == op->dst && next->ring == op->ring && next->ring_a == op->ring_a;
  return is_same && next->first_k / s->product->operand_columns % 2 != step % 2;
}

static void hold_part(ftl_select *s, int32_t op_idx) {
  product products[MAX_PRODUCTS];
  int32_t count = products_at(s, op_idx, products);
  if (count == 0) return;
  find_chunks(s, products, count);
  hold_step(s, products, count, products[0].first_step);
}

static void multiply_pending(ftl_select *s) {
  product products[MAX_PRODUCTS];
  int32_t op_idx = s->parts.pending_op_idx;
  if (op_idx == NONE) return;
  s->parts.pending_op_idx = NONE;
  int32_t count = products_at(s, op_idx, products);
  if (count > 0) multiply_held(s, products, count, products[0].end_step - 1);
}

// The last k step of a part is multiplied when the next part's first fragments have been loaded; behind the wait for
// another stage, if that stands between them.
static void multiply_part(ftl_select *s, product *products, int32_t count) {
  int32_t first = products[0].first_step, last = products[0].end_step - 1;
  bool waits;
  if (s->parts.held != first || last > first) find_chunks(s, products, count);
  if (s->parts.held != first) hold_step(s, products, count, first);
  for (int32_t step = first; step < last; step++) {
    hold_step(s, products, count, step + 1);
    multiply_held(s, products, count, step);
  }
  int32_t next = next_part(s, s->op_idx + count, &waits);
  if (next >= 0 && !takes_turns_with(s, next, products[0].op, last)) next = -1;
  s->parts.pending_op_idx = s->op_idx;
  if (next >= 0 && waits) return;
  s->parts.held = NONE;
  if (next >= 0) hold_part(s, next);
  multiply_pending(s);
}

void ftl_select_hold_first_part(ftl_select *s) {
  bool waits;
  s->parts.held = NONE;
  s->parts.has_chunks = false;
  int32_t next = s->buffers_fragments && s->mma == FTL_MMA_MMA ? next_part(s, s->op_idx + 1, &waits) : -1;
  if (next >= 0 && !waits) hold_part(s, next);
  multiply_pending(s);
}

void ftl_select_end_part(ftl_select *s, const ftl_tile_op *op) {
  if (passes_products(op->kind)) return;
  multiply_pending(s);
  if (op->kind != FTL_TILE_MMA) s->parts.has_chunks = false;  // found in each step of a loop anew
}

void ftl_select_mma_sync(ftl_select *s, const ftl_tile_op *op) {
  product products[MAX_PRODUCTS];
  int32_t count = products_at(s, s->op_idx, products);
  if (count == 0) return;
  if (s->buffers_fragments && op->num_k > 0) {
    multiply_part(s, products, count);
    return;
  }
  find_chunks(s, products, count);
  (s->buffers_fragments ? multiply_a_step_ahead : multiply_as_loaded)(s, products, count);
}
