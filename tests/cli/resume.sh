#!/bin/bash
# Ctrl-C in the middle, then the same command again: finished points are not predicted twice.
. "$(dirname "$0")/expect.sh"

cat >s.lua <<'LUA'
local ft = require "foretile"
local s = ft.explore{ arch = "h200", workload = "flash2_fwd", heads = 8, seqlen = 1024, head_dim = 64,
                      block_m = { 16, 32, 48, 64, 80, 96, 112, 128 }, block_n = { 16, 32, 48, 64 } }
print(s:rank():table{ "block_m", "block_n", "time_us" })
LUA
export FTL_FAKE_LOG=$WORK/log

FTL_FAKE_DELAY_MS=60 "$FAKE" run --jobs 2 s.lua >out 2>err &
pid=$!
for _ in $(seq 500); do
  [ -e log ] && [ "$(grep -c answer log)" -ge 6 ] && break
  sleep 0.02
done
kill -INT $pid
wait $pid
status=$?
[ $status -eq 1 ] || bad "status $status instead of 1 after an interrupt"
[ "$(wc -l <err)" -eq 1 ] && grep -q "interrupted; what was finished is in foretile.db" err || bad "no clear line"
[ ! -s out ] || bad "half a table"
first=$(grep -c answer log)
[ "$first" -lt 32 ] || bad "the interrupt came too late to test anything"

accepted "block_m" "$FAKE" run --jobs 2 s.lua
[ "$(grep -c answer log)" -eq 32 ] || bad "$(grep -c answer log) predictions for 32 points"
cp out second
accepted "block_m" "$FAKE" run --jobs 3 s.lua
[ "$(grep -c answer log)" -eq 32 ] || bad "points were predicted again"
cmp -s out second || bad "the stored answers differ"
rm -f log
accepted "block_m" "$FAKE" run --no-db --jobs 1 s.lua
cmp -s out second || bad "the answers differ without a database"

# Two at once on one database.
rm -f foretile.db* log
FTL_FAKE_DELAY_MS=5 "$FAKE" run s.lua >out1 2>err1 &
FTL_FAKE_DELAY_MS=5 "$FAKE" run s.lua >out2 2>err2 &
wait
cmp -s out1 second && cmp -s out2 second || bad "two runs at once gave other answers"
cat err1 err2 >err
[ ! -s err ] || bad "two runs at once"

# A trace that is interrupted leaves the file that was there, and none beside it.
mkdir traces && echo before >traces/trace
"$REAL" trace --arch h200 --workload flash2_fwd heads=1 seqlen=65536 head_dim=128 --max-lines 1000000000 -o traces/trace \
  >out 2>err &
pid=$!
for _ in $(seq 500); do
  [ "$(ls traces | wc -l)" -eq 2 ] && break
  sleep 0.02
done
kill -INT $pid
wait $pid
status=$?
[ $status -eq 1 ] && [ "$(cat err)" = "foretile: interrupted" ] || bad "status $status after an interrupted trace"
[ "$(ls traces)" = trace ] && [ "$(cat traces/trace)" = before ] || bad "an interrupted trace left half a file"

finish
