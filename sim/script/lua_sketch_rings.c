// Rings and barriers of a sketch: their operations, as methods.
#include <string.h>

#include <lauxlib.h>

#include "script/lua_module.h"
#include "script/lua_sketch.h"

enum { MAX_ROW = 65536 };

const ftl_lua_ring *ftl_sketch_check_ring(lua_State *lua, const ftl_sketch *sketch, int index, const char *what) {
  return ftl_sketch_check(lua, sketch, index, ftl_lua_ring_type, what);
}

static const ftl_ring *ring_info(const ftl_sketch *sketch, int32_t ring) {
  return &ftl_sketch_program(sketch)->rings[ring];
}

// The role begun last fills this ring; another must not have.
static void fills(lua_State *lua, ftl_sketch *sketch, int32_t ring) {
  int32_t role = ftl_sketch_role(lua, sketch), producer = ring_info(sketch, ring)->producer;
  if (producer >= 0 && producer != role) {
    luaL_error(lua, "ring %s is filled by role %s; one role fills a ring", ring_info(sketch, ring)->name,
               ftl_sketch_program(sketch)->roles[producer].name);
  }
  ftl_builder_ring_filled_by(sketch->builder, ring, role);
}

void ftl_sketch_reads(lua_State *lua, ftl_sketch *sketch, int32_t ring) {
  ftl_builder_ring_read_by(sketch->builder, ring, ftl_sketch_role(lua, sketch));
}

const ftl_lua_ring *ftl_sketch_check_staging(lua_State *lua, ftl_sketch *sketch, int index, const char *what) {
  const ftl_lua_ring *view = ftl_sketch_check_ring(lua, sketch, index, what);
  const ftl_ring *ring = ring_info(sketch, view->idx);
  if (ring->producer < 0 && ring->consumers_mask == 0) {
    fills(lua, sketch, view->idx);
    ftl_sketch_reads(lua, sketch, view->idx);
  }
  return view;
}

static ftl_sketch *begin_ring(lua_State *lua, int32_t *ring) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  *ring = ftl_sketch_check_ring(lua, sketch, 1, "a ring before the :")->idx;
  return sketch;
}

static ftl_sketch *begin_filling(lua_State *lua, int32_t *ring) {
  ftl_sketch *sketch = begin_ring(lua, ring);
  fills(lua, sketch, *ring);
  return sketch;
}

static ftl_sketch *begin_reading(lua_State *lua, int32_t *ring) {
  ftl_sketch *sketch = begin_ring(lua, ring);
  ftl_sketch_reads(lua, sketch, *ring);
  return sketch;
}

static ftl_tile_ref stage_ref(lua_State *lua, ftl_sketch *sketch, int32_t ring) {
  return ftl_sketch_to_ref(lua, sketch, 2, ring_info(sketch, ring)->rows, ring_info(sketch, ring)->columns);
}

static int ring_acquire(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_filling(lua, &ring);
  ftl_acquire(sketch->builder, ring);
  return ftl_sketch_give_back(lua, sketch);
}

static int ring_load(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_filling(lua, &ring);
  ftl_load(sketch->builder, ring, stage_ref(lua, sketch, ring));
  return ftl_sketch_give_back(lua, sketch);
}

static int ring_commit(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_filling(lua, &ring);
  ftl_commit(sketch->builder, ring);
  return ftl_sketch_give_back(lua, sketch);
}

// acquire, load, commit
static int ring_fill(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_filling(lua, &ring);
  ftl_tile_ref ref = stage_ref(lua, sketch, ring);
  ftl_acquire(sketch->builder, ring);
  ftl_load(sketch->builder, ring, ref);
  ftl_sketch_end(lua, sketch);
  ftl_commit(sketch->builder, ring);
  return ftl_sketch_give_back(lua, sketch);
}

// ring:put(tile): registers into the acquired stage
static int ring_put(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_filling(lua, &ring);
  ftl_put(sketch->builder, ring, ftl_sketch_check_value(lua, sketch, 2, "a register tile"));
  return ftl_sketch_give_back(lua, sketch);
}

static int ring_wait(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_reading(lua, &ring);
  ftl_wait(sketch->builder, ring);
  return ftl_sketch_give_back(lua, sketch);
}

static int ring_release(lua_State *lua) {
  int32_t ring;
  ftl_sketch *sketch = begin_reading(lua, &ring);
  ftl_release(sketch->builder, ring);
  return ftl_sketch_give_back(lua, sketch);
}

// ring:from_row(n): as operand A, or as staging, only the rows from n on
static int ring_from_row(lua_State *lua) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  ftl_lua_ring view = *ftl_sketch_check_ring(lua, sketch, 1, "a ring before the :");
  view.first_row = (int32_t)ftl_sketch_integer(lua, 2, "the first row", 0, MAX_ROW);
  ftl_lua_ring *pushed = ftl_sketch_push(lua, sketch, ftl_lua_ring_type, sizeof *pushed);
  *pushed = view;
  return 1;
}

static int ring_index(lua_State *lua) {
  if (lua_type(lua, 2) != LUA_TSTRING || strcmp(lua_tostring(lua, 2), "T") != 0) return ftl_lua_method(lua, "a ring");
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  ftl_lua_ring view = *ftl_sketch_check_ring(lua, sketch, 1, "a ring before .T");
  view.transposed = !view.transposed;
  ftl_lua_ring *pushed = ftl_sketch_push(lua, sketch, ftl_lua_ring_type, sizeof *pushed);
  *pushed = view;
  return 1;
}

// --- barriers ---

static int barrier_op(lua_State *lua, void (*op)(ftl_builder *builder, int32_t barrier)) {
  ftl_sketch *sketch = ftl_sketch_begin(lua);
  const ftl_lua_object *barrier = ftl_sketch_check(lua, sketch, 1, ftl_lua_barrier_type, "a barrier before the :");
  ftl_sketch_role(lua, sketch);
  op(sketch->builder, barrier->idx);
  return ftl_sketch_give_back(lua, sketch);
}

static int barrier_arrive(lua_State *lua) { return barrier_op(lua, ftl_arrive); }
static int barrier_sync(lua_State *lua) { return barrier_op(lua, ftl_sync); }
static int barrier_index(lua_State *lua) { return ftl_lua_method(lua, "a barrier"); }

// --- opening ---

void ftl_lua_open_sketch_rings(lua_State *lua) {
  const luaL_Reg rings[] = {{"acquire", ring_acquire}, {"load", ring_load},         {"commit", ring_commit},
                            {"put", ring_put},         {"fill", ring_fill},         {"wait", ring_wait},
                            {"release", ring_release}, {"from_row", ring_from_row}, {NULL, NULL}};
  const luaL_Reg barriers[] = {{"arrive", barrier_arrive}, {"sync", barrier_sync}, {NULL, NULL}};
  ftl_sketch_open_type(lua, ftl_lua_ring_type, ring_index, rings);
  ftl_sketch_open_type(lua, ftl_lua_barrier_type, barrier_index, barriers);
}
