#!/bin/bash
# The first Lua script of a page runs as it stands, and what it asks for can be.
. "$(dirname "$0")/expect.sh"

# example PAGE TEXT: the text is in what the page's script prints.
example() {
  sed -n '/^```lua$/,/^```$/p' "$FTL_SOURCE_DIR/$1" | sed '1d; /^```$/,$d' >example.lua
  accepted "$2" "$REAL" run --no-db --quiet example.lua
  ! grep -q "infeasible:" out || bad "$1 asks for what cannot be"
}

example README.md "wins (bottleneck"
example docs/explain.md "tensor_rate"
example docs/kernels_in_lua.md "row_sum: y within"

finish
