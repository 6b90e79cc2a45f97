#!/bin/bash
# The first Lua script of a page runs as it stands, and what it asks for can be; what a page quotes is printed.
. "$(dirname "$0")/expect.sh"

# example PAGE TEXT: the text is in what the page's script prints.
example() {
  sed -n '/^```lua$/,/^```$/p' "$FTL_SOURCE_DIR/$1" | sed '1d; /^```$/,$d' >example.lua
  accepted "$2" "$REAL" run --no-db --quiet example.lua
  ! grep -q "infeasible:" out || bad "$1 asks for what cannot be"
}

# quoted PAGE FIRST: each line of the page's block that begins with FIRST is a line of `out`, but "..." for some left out.
quoted() {
  awk -v first="$2" '/^```/ { inside = !inside; begins = inside; next }
    begins { found = index($0, first) == 1; begins = 0 }
    inside && found && !/^ *\.\.\.$/' "$FTL_SOURCE_DIR/$1" >lines
  [ -s lines ] || bad "$1 has no block that begins with: $2"
  while IFS= read -r line; do
    grep -Fxq -- "$line" out || bad "$1 quotes what is not printed: $line"
  done <lines
}

example README.md "wins (bottleneck"
accepted "9 feasible" "$REAL" explore --arch h200 --workload flash2_fwd heads=32 kv_heads=8 seqlen=8192 head_dim=128 causal=true \
  block_m=64,128 block_n=32,64,128 num_warps=4,8 --top 6
quoted README.md "h200: "
example docs/explain.md "tensor_rate"
accepted "in short" "$REAL" explain --arch h200 --workload flash2_fwd heads=16 seqlen=4096 head_dim=128
quoted docs/explain.md "in short: "
quoted docs/explain.md "where the time goes"
quoted docs/explain.md "what if one resource"
example docs/kernels_in_lua.md "row_sum: y within"
accepted "infeasible" "$REAL" run --no-db --quiet "$FTL_SOURCE_DIR/scenarios/alibi.lua"
quoted docs/kernels_in_lua.md "alibi: o within"
accepted "infeasible" "$REAL" run --no-db --quiet "$FTL_SOURCE_DIR/scenarios/block_sparse.lua"
quoted docs/kernels_in_lua.md "block_sparse: o within"

finish
