#!/bin/bash
# What the commands print: valid JSON, in order, the same on any number of threads.
. "$(dirname "$0")/expect.sh"
Q="--arch h200 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64"

accepted "foretile 0." "$FAKE" --version
accepted "explore" "$FAKE" --help
accepted "--batch=FILE" "$FAKE" predict --help
accepted "write here instead of standard output" "$FAKE" trace --help
! grep -q measure out || bad "the help of trace speaks of another command"
accepted "the folder of the results; default measurements" "$FAKE" measure --help
accepted "the results to show; default foretile.db" "$FAKE" report --help
accepted "only rows of this workload" "$FAKE" validate --help
accepted "defaults used: batch=1" "$FAKE" predict $Q
accepted "fake_combine  1000.0 us" "$FAKE" predict --arch h200 --workload flash_decode heads=8 seqlen=64 head_dim=64 splits=2
grep -q '^  launch  *time_us' out || bad "no header above the launches"
D="--arch h200 --workload flash_decode heads=8 head_dim=64"
accepted "remark: 64 queries against as many keys, a prefill; decoding one token is seqlen_kv=64 alone" "$FAKE" predict $D seqlen=64
for given in "seqlen_kv=64" "seqlen_q=2 seqlen_kv=64" "seqlen=1"; do
  accepted "bottleneck" "$FAKE" predict $D $given
  ! grep -q remark out || bad "a remark on decoding: $given"
done
accepted "bottleneck" "$FAKE" predict --arch h200 --workload flash2_fwd heads=8 head_dim=64 seqlen=64
! grep -q remark out || bad "a remark on what is meant as a prefill"
accepted "seqlen=N sets seqlen_q and seqlen_kv: N queries, a prefill. One token against N keys is seqlen_kv=N alone." \
  "$FAKE" workload show flash_decode
accepted "seqlen=N sets seqlen_q and seqlen_kv." "$FAKE" workload show flash2_fwd
accepted "h200" "$FAKE" arch list
accepted "l2.size_bytes" "$FAKE" arch show h200
accepted "flash2_fwd" "$FAKE" workload list
accepted "query rows of a CTA" "$FAKE" workload show flash2_fwd
grep -q "^clock_mhz .*0, or a clock of the GPU" out || bad "the clock's limit is not said to be the GPU's"
accepted "h200*" "$FAKE" predict $Q --set l2.persisting_max_bytes=4096
accepted "infeasible:" "$FAKE" explore $Q block_m=64,256 block_n=64,128
accepted "wins (bottleneck" "$FAKE" explore $Q block_m=64,128
accepted "v100: " "$FAKE" explore --arch h200,v100 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64 block_m=64,128
accepted "block_m  time_us" "$FAKE" explore $Q --top 1 block_m=64,128
accepted '"feasible": true' "$FAKE" explore $Q --json --top 1 --by hbm block_m=64,128
[ "$(wc -l <out)" -eq 1 ] && grep -q '"block_m": 128' out || bad "--top 1 --by hbm"
accepted "1 configurations" "$FAKE" explore $Q --svg x.svg
grep -q '^<svg' x.svg || bad "no picture"

for jobs in 1 4; do
  "$FAKE" explore $Q --json block_m=16,32,64,128 block_n=16,32,64,128 --jobs $jobs >jobs$jobs 2>err || bad "explore"
done
cmp -s jobs1 jobs4 || bad "another number of threads gives other answers"

# The shipped scenarios, and arguments to one.
accepted "Why: " "$FAKE" run --no-db "$SCENARIOS/quickstart.lua"
accepted "Why: " "$FAKE" run --no-db "$SCENARIOS/block_sizes.lua" -- v100
accepted "by splits" "$FAKE" run --no-db "$SCENARIOS/flash_decode.lua"
accepted "of one token's" "$FAKE" run --no-db "$SCENARIOS/speculation.lua" -- t4 4096
[ "$(grep -c arXiv out)" -eq 6 ] || bad "a method has no line"
accepted "Llama-3 70B" "$FAKE" run --no-db "$SCENARIOS/models.lua"
grep -q "DeepSeek-V2 Lite .* - *- *- *-$" out || bad "a model whose cache no workload reads is not decoded"
accepted "of 3 sequences" "$FAKE" run --no-db "$SCENARIOS/models.lua" -- v100 3
accepted "DeepSeek-V2 Lite " "$REAL" run --no-db "$SCENARIOS/models.lua" -- t4 1 # whose tiles are smaller
accepted "flash3_fwd on h200" "$FAKE" run --no-db "$SCENARIOS/flash3.lua"

accepted "hbm  mean error" "$FAKE" run --no-db "$SCENARIOS/measured.lua"
accepted "no measured kernel of flash2_fwd has that head_dim" "$FAKE" run --no-db "$SCENARIOS/measured.lua" -- 33
refused 2 "measured.lua:11: head_dim=abc: allowed is a whole number" "$FAKE" run --no-db "$SCENARIOS/measured.lua" -- abc
refused 2 "seqlen=abc: allowed is a whole number" "$FAKE" run --no-db "$SCENARIOS/flash3.lua" -- h200 abc
refused 2 "seqlen_kv=abc: allowed is a whole number" "$FAKE" run --no-db "$SCENARIOS/speculation.lua" -- t4 abc
refused 2 "how many sequences: a whole number" "$FAKE" run --no-db "$SCENARIOS/models.lua" -- v100 2.5
accepted "| flash2_fwd (triton) | held-out | " "$FAKE" run --no-db "$SCENARIOS/accuracy_by_workload.lua" -- h200 60
accepted "no kernel was measured on v100" "$FAKE" run --no-db "$SCENARIOS/accuracy_by_workload.lua" -- v100
refused 2 "every must be a whole number from 1" "$FAKE" run --no-db "$SCENARIOS/accuracy_by_workload.lua" -- h200 abc
head -n 230 "$FTL_SOURCE_DIR/kernels/measurements/attention_flash2_ncu.csv" >mine.csv
refused 2 "measured.lua:11: files[1]: mine.csv is none of the measurements in" "$FAKE" run --no-db "$SCENARIOS/measured.lua" -- 128 mine.csv
accepted "most wrong: mine.csv:" "$FAKE" run --no-db --allow-io "$SCENARIOS/measured.lua" -- 128 mine.csv

accepted "All rows, worst first" "$FAKE" run --no-db "$SCENARIOS/reproduction.lua"
refused 2 "section tables: there are flash1" "$FAKE" run --no-db "$SCENARIOS/reproduction.lua" -- tables

# Memory of a paged cache follows from page numbers alone, and is that of the paper (arXiv:2309.06180).
accepted "mean | 60 to 80 % | 63.5 %" "$REAL" run --no-db "$SCENARIOS/reproduction.lua" -- pages
grep -q "the same | under 4 % | 0.7 %" out || bad "waste of pages"
grep -q "0.7 to 1 MB | 0.82 MB" out || bad "bytes of a token"

# Kernels that a scenario writes, which need the real engine.
accepted "alibi: o within" "$REAL" run --no-db "$SCENARIOS/alibi.lua" -- t4
accepted "block_sparse: o within" "$REAL" run --no-db "$SCENARIOS/block_sparse.lua" -- a100_80
grep -q "infeasible on a100_80: block_m=64 block_n=128" out || bad "no reason for tiles that span blocks"

# The real engine, on something small.
S="--arch a100_80 --workload flash2_fwd heads=2 seqlen=256 head_dim=64"
accepted '"gpu__time_duration.sum"' "$REAL" predict $S --json
sed 's/"wall_s": [^}]*//' out >first
accepted '"gpu__time_duration.sum"' "$REAL" predict $S --json --jobs 1
sed 's/"wall_s": [^}]*//' out >second
cmp -s first second || bad "the same question has two answers"
accepted "HMMA" "$REAL" trace $S
accepted "" "$REAL" trace $S --timeline t.json --until 2000
grep -q '^[[{]' t.json || bad "no timeline"
# What cannot be written leaves what was there.
echo kept >kept
refused 2 "CTA 999" "$REAL" trace $S --cta 999 -o kept
accepted "" "$REAL" trace --arch h200 --workload flash3_fwd heads=64 seqlen=512 head_dim=64 persistent=true --timeline t.json --until 100000
grep -q '"cta":132}' t.json || bad "the timeline of a persistent CTA ends with its first tile"
refused 2 "launch" "$REAL" trace $S --launch 9 --timeline kept
grep -q '^kept$' kept || bad "a trace that failed has taken the file that was there"
[ ! -e kept.new ] || bad "a trace that failed has left a file"
refused 2 "the timeline cannot be written: No space left" "$REAL" trace $S --timeline /dev/full --until 2000
# Decoding multiplies in its first launch only; the second one combines the splits.
D="--arch a100_80 --workload flash_decode heads=8 kv_heads=2 seqlen_q=1 seqlen_kv=1024 head_dim=64 splits=4"
accepted "" "$REAL" trace $D --timeline t.json
grep -q '"HMMA' t.json || bad "no products in the timeline of launch 0"
accepted "" "$REAL" trace $D --launch 1 --timeline t.json
grep -q '"EXIT"' t.json || bad "nothing in the timeline of launch 1"
if grep -q '"HMMA' t.json; then bad "the timeline of launch 1 shows launch 0"; fi
# Eager PyTorch's backward pass is eight launches and more.
B="--arch a100_80 --workload standard_attention pass=bwd heads=2 seqlen=256 head_dim=64 layout=bshd elementwise=eager_einsum"
accepted "" "$REAL" trace --program $B --launch 7
refused 2 "launch 23: standard_attention has launches 0 to" "$REAL" trace --program $B --launch 23
refused 1 "shared memory" "$REAL" trace --arch a100_80 --workload flash2_fwd heads=2 seqlen=256 head_dim=256 block_m=256 block_n=256 num_stages=4

finish
