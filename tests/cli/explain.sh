#!/bin/bash
# foretile explain: the whole text of an answer by the formula, JSON, and the same on any number of threads.
. "$(dirname "$0")/expect.sh"
Q="--arch h200 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64"

accepted "KEY=VALUE" "$FAKE" explain --help
accepted "explain" "$FAKE" --help

# What stands below the answer of `predict`. By the formula nothing hangs on the GPU, and 8 warps are twice as fast.
accepted "in short" "$FAKE" explain $Q block_n=48
sed -n '/^in short/,$p' out >text
diff "$FTL_SOURCE_DIR/tests/cli/explain.txt" text || bad "another text than explain.txt"
"$FAKE" predict $Q block_n=48 >answer
head -n "$(wc -l <answer)" out | cmp -s - answer || bad "another answer than that of predict"

# A launch each, and their sum; one neighbour fails in this engine, and says so.
accepted "where the time goes: fake_combine" "$FAKE" explain --arch h200 --workload flash_decode heads=8 seqlen=64 head_dim=64 splits=2 block_n=48
grep -q "^where the time goes: all launches" out || bad "no sum"
grep -q "block_n=24 is infeasible: this engine cannot do block_n=24" out || bad "a failed neighbour is not named"

# What cannot run has neighbours that can.
accepted "infeasible:" "$FAKE" explain $Q block_m=128 block_n=256
grep -q "^  block_n=128 " out || bad "no neighbour of an infeasible kernel"
! grep -q "^what if" out || bad "a what-if of nothing"

# A latency that is waited for longest and that nothing hangs on.
accepted "  bottleneck: latency of arithmetic" "$REAL" explain --arch h200 --workload flash2_fwd heads=66 seqlen=512 head_dim=128 code=plain
grep -q "^warps wait longest for: latency of arithmetic; yet math_latency 1.33 times better changes the time by [-+][01]\.[0-9] % only$" out ||
  bad "a bottleneck that the what-ifs contradict is not named"

accepted '"explain": {"launches": [' "$FAKE" explain $Q --json
[ "$(wc -l <out)" -eq 1 ] || bad "more than one line of JSON"

for jobs in 1 3; do "$REAL" explain --arch t4 --workload flash2_fwd heads=2 seqlen=256 head_dim=64 block_m=64 --json --jobs $jobs | sed 's/"wall_s": [^,]*//' >jobs$jobs; done
[ -s jobs1 ] && cmp -s jobs1 jobs3 || bad "another number of threads gives other answers"

finish
