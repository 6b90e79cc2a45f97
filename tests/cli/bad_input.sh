#!/bin/bash
# Arguments and scenarios that cannot be used: one clear line, the right status, nothing half-written.
. "$(dirname "$0")/expect.sh"

W="--workload flash2_fwd"
Q="$W heads=8 seqlen=1024 head_dim=64"

# commands and options
refused 2 "no command" "$FAKE"
refused 2 "unknown command expln; commands are run, predict, explore, explain, arch, workload, trace, validate, measure, import" "$FAKE" expln
refused 2 "has no option --jbos; the nearest is --jobs" "$FAKE" predict --jbos 3
refused 2 "--arch needs a value" "$FAKE" predict --arch
refused 2 "--jobs=0" "$FAKE" predict --jobs 0 --arch h200 $Q
refused 2 "needs --arch" "$FAKE" predict $Q
refused 2 "needs --workload" "$FAKE" predict --arch h200
refused 2 "--output needs a value" "$FAKE" report -o ""
refused 2 "--arch needs a value" "$FAKE" predict --arch= $Q
refused 2 'unknown workload fl\xff?;' "$FAKE" predict --arch h200 --workload $'fl\xff\n' heads=8
refused 2 "unknown workload größe;" "$FAKE" predict --arch h200 --workload größe heads=8
refused 2 "arch takes" "$FAKE" arch
refused 2 "arch takes" "$FAKE" arch show
refused 2 "workload takes" "$FAKE" workload sow flash2_fwd
refused 2 "No space left" sh -c '"$1" arch list >/dev/full' sh "$FAKE"

# GPUs, workloads, parameters
refused 2 'unknown GPU "h20"' "$FAKE" predict --arch h20 $Q
refused 2 "nearest" "$FAKE" arch show h20
refused 2 "No such file" "$FAKE" predict --arch ./no_such_model.lua $Q
refused 2 "unknown workload flash; known are flash1_fwd" "$FAKE" predict --arch h200 --workload flash heads=8
refused 2 "unknown workload" "$FAKE" workload show flash
refused 2 "schedule=pingpong: flash2_fwd allows stages|interleaved" "$FAKE" predict --arch h200 $Q schedule=pingpong
refused 2 "matmul_tiled does not take the parameter seqlen; foretile workload show matmul_tiled" \
  "$FAKE" predict --arch h200 --workload matmul_tiled seqlen=64
refused 2 "flash2_fwd does not take the parameter pass but as fwd" "$FAKE" predict --arch h200 $Q pass=bwd
for workload in sparq_decode tree_decode; do
  refused 2 "$workload does not take the parameter seqlen, which sets queries and keys alike; give seqlen_kv" \
    "$FAKE" predict --arch h200 --workload $workload heads=8 head_dim=64 seqlen=64
done
refused 2 "tile_order=head_first: matmul_tiled allows m_first|n_first" \
  "$FAKE" predict --arch h200 --workload matmul_tiled m=64 n=64 k=64 tile_order=head_first
refused 2 "unknown parameter blok_m; the nearest is block_m" "$FAKE" predict --arch h200 $Q blok_m=64
refused 2 "block_m=0: allowed is a whole number from 1 to 1024" "$FAKE" predict --arch h200 $Q block_m=0
refused 2 "block_m=-64" "$FAKE" predict --arch h200 $Q block_m=-64
refused 2 "block_m=99999999999999999999999" "$FAKE" predict --arch h200 $Q block_m=99999999999999999999999
refused 2 "block_m=many" "$FAKE" predict --arch h200 $Q block_m=many
refused 2 "block_m=64.0" "$FAKE" predict --arch h200 $Q block_m=64.0
refused 2 "block_m=: allowed" "$FAKE" predict --arch h200 $Q block_m=
refused 2 "block_m=65" "$FAKE" predict --arch h200 $Q block_m=65
refused 2 "seqlen=-1" "$FAKE" predict --arch h200 $W heads=8 seqlen=-1 head_dim=64
refused 2 "heads" "$FAKE" predict --arch h200 $W seqlen=64 head_dim=64
refused 2 "kv_heads" "$FAKE" predict --arch h200 $Q kv_heads=3
refused 2 "dtype=fp8: allowed are fp16|bf16" "$FAKE" predict --arch h200 $Q dtype=fp8
refused 2 "--arch is given twice" "$FAKE" predict --arch h200 $Q --arch a100_80
refused 2 "--jobs is given twice" "$FAKE" predict --arch h200 $Q --jobs 1 --jobs=1
refused 2 "--measurements is given twice" "$FAKE" validate --measurements a.csv --measurements b.csv
accepted '"feasible": true' "$FAKE" predict --arch h200 $Q --json --json --set l2.ways=16 --set l2.hit_cycles=200
refused 2 "--arch lists h200 twice" "$FAKE" explore --arch h200,a100_80,h200 $Q
refused 2 "--arch: an empty name between commas" "$FAKE" explore --arch h200, $Q
refused 2 "--json: not with --markdown" "$FAKE" validate --markdown --json m.csv
mkdir no_models && refused 2 "no_models: no arch model (*.lua) in it; FORETILE_ARCH_MODELS names" env FORETILE_ARCH_MODELS=no_models "$FAKE" arch list
echo 'local n = 1' >predicts_nothing.lua
refused 2 "--detail=fine: allowed are sampled|full" "$FAKE" run --no-db --detail fine predicts_nothing.lua
echo 'local ft = require "foretile"; ft.arch("h200")(5)' >no_table.lua
refused 2 "takes a table of what differs, not a number" "$FAKE" run --no-db no_table.lua
refused 2 "--arch lists h200* twice" "$FAKE" explore --arch h200,h200 $Q --set l2.ways=16
refused 2 "block_m is given twice" "$FAKE" predict --arch h200 $Q block_m=64 block_m=128
refused 2 "expected KEY=VALUE" "$FAKE" predict --arch h200 $Q block_m
refused 2 "expected KEY=VALUE" "$FAKE" predict --arch h200 $Q =64
refused 2 "block_m=64,128: one value; foretile explore takes several" "$FAKE" predict --arch h200 $Q block_m=64,128
refused 2 "l2.size" "$FAKE" predict --arch h200 $Q --set l2.size=1
refused 2 "l2.ways" "$FAKE" predict --arch h200 $Q --set l2.ways=0
refused 2 "dram.queue_entries = 1025 is out of range, allowed is 1 to 1024 (request)" \
  "$FAKE" predict --arch h200 $Q --set dram.queue_entries=1025
refused 2 "what-if l2.ways=3: l2.size_bytes, 61603840 in " "$FAKE" predict --arch h200 $Q --set l2.ways=3
grep -qF "a multiple of l2.num_slices * l2.ways * l1.line_bytes = 36096; change it too" err || bad "no allowed value"
refused 2 "what-if chip.num_gpcs=1: noc.far_gpcs, 142 in " "$FAKE" predict --arch h200 $Q --set chip.num_gpcs=1
grep -qF "must be 0 where l2.num_sides is 1" err || bad "what is allowed is not said"
refused 2 "shared.bytes_per_sm (999999) must be at most l1.unified_bytes = 262144" \
  "$FAKE" predict --arch h200 $Q --set shared.bytes_per_sm=999999
refused 2 "clock_mhz=1981: h200 holds 345 to 1980 MHz" "$FAKE" predict --arch h200 $Q clock_mhz=1981
refused 2 "clock_mhz=344: h200 holds 345 to 1980 MHz" "$FAKE" trace --arch h200 $Q clock_mhz=344
refused 2 "clock_mhz=2000: h200 holds" "$FAKE" explain --arch h200 $Q clock_mhz=2000
accepted '"clock_mhz": 345' "$FAKE" predict --arch h200 $Q clock_mhz=345 --json
accepted '"clock_mhz": 2100' "$FAKE" predict --arch h200 $Q clock_mhz=2100 --json --set clock.sm_max_khz=2100000
accepted "infeasible:" "$FAKE" explore --arch h200,t4 $Q clock_mhz=1500,1900
grep -qF "clock_mhz=1900: t4 holds 300 to 1590 MHz" out || bad "a clock that one of the GPUs lacks"
refused 2 "detail=fast" "$FAKE" predict --arch h200 $Q --detail fast
refused 2 "--arch=h200,v100: one value; foretile explore takes several" "$FAKE" predict --arch h200,v100 $Q
refused 2 "the nearest is time_us" "$FAKE" explore --arch h200 $Q --by tme_us
refused 2 "more than 65536 combinations" "$FAKE" explore --arch h200 $W heads=$(seq -s, 1 300) seqlen=$(seq -s, 1 300) head_dim=64
refused 2 "No such file" "$FAKE" explore --arch h200 $Q --svg no_folder/x.svg
refused 2 "mask_bits: only with mask=bits" "$FAKE" predict --arch h200 $Q mask_bits=1x64
refused 2 "mask_bits: only with mask=bits" "$FAKE" explore --arch h200 $Q mask=none,strided mask_bits=1x64
refused 2 "--cta: not with --program" "$FAKE" trace --arch h200 $Q --program --cta 3
refused 2 "--timeline: not with --program" "$FAKE" trace --arch h200 $Q --program --timeline t.json
refused 2 "--output: not with --timeline" "$FAKE" trace --arch h200 $Q --timeline t.json -o t.txt
refused 2 "--from: only with --timeline" "$FAKE" trace --arch h200 $Q --from 5
refused 2 "CTA 64: flash2_fwd has CTAs 0 to 63" "$REAL" trace --arch h200 $Q block_m=128 --cta 64
refused 2 "launch 1: flash2_fwd has launches 0 to 0" "$REAL" trace --arch h200 $Q --launch 1
for output in "-o t.txt" "--timeline t.json" ""; do # what cannot run is an answer of predict, and nothing to trace
  refused 1 "infeasible, nothing to trace: block_m=512 block_n=512" \
    "$REAL" trace --arch h200 $Q block_m=512 block_n=512 $output
done
[ ! -e t.txt ] && [ ! -e t.json ] || bad "a trace of what cannot run"
accepted "infeasible: block_m=512 block_n=512" "$REAL" predict --arch h200 $Q block_m=512 block_n=512
refused 2 "--no-db: not with --db" "$FAKE" run --no-db --db x.db "$SCENARIOS/quickstart.lua"
[ ! -e x.db ] || bad "a database was made for options that exclude each other"
refused 2 "--output needs a value: the folder of the results" "$FAKE" measure -o

# a combination that contradicts itself is infeasible where another one does not; a database keeps the other one only
accepted "2 configurations, 1 feasible" "$FAKE" explore --arch h200 $Q mask=none,bits mask_bits=1x64 --db some.db
grep -qxF "  mask=none: mask_bits: only with mask=bits" out || bad "explore does not name what contradicts itself"
accepted "predictions  1" sh -c 'printf "predictions  "; sqlite3 some.db "SELECT count(*) FROM predictions"'

# so are contradictions that show when the kernel is built; where all contradict themselves one line says so
PRODUCT="--workload matmul_tiled m=128 n=128 k=128"
accepted "3 configurations, 2 feasible" "$REAL" explore --arch h200 $PRODUCT lda=100,128,136
grep -qxF "  lda=100 stride_a=12800: lda=100: a row has k=128 elements" out || bad "explore does not name what shows in the build"
refused 2 "lda=100: a row has k=128 elements" "$REAL" explore --arch h200 $PRODUCT lda=100,101
refused 2 "lda=100: a row has k=128 elements" "$REAL" predict --arch h200 $PRODUCT lda=100
grep -q "elements$" err || bad "the line has more than what is wrong"

# a length given by its own name holds, wherever seqlen stands
accepted '"seqlen_q": 64, "seqlen_kv": 512' "$FAKE" predict --json --arch h200 $W heads=8 head_dim=64 seqlen_q=64 seqlen=512
accepted '"seqlen_q": 64, "seqlen_kv": 512' "$FAKE" predict --json --arch h200 $W heads=8 head_dim=64 seqlen=512 seqlen_q=64
echo '{"arch": "h200", "workload": "flash2_fwd", "heads": 8, "head_dim": 64, "seqlen_q": 64, "seqlen": 512}' >lengths.jsonl
accepted '"seqlen_q": 64, "seqlen_kv": 512' "$FAKE" predict --batch lengths.jsonl

# block sizes that do not divide the problem, or exceed it, are questions like any other
accepted '"feasible": true' "$FAKE" predict --json --arch h200 $W heads=8 seqlen=1000 head_dim=64 block_m=96 block_n=56
accepted '"feasible": true' "$FAKE" predict --json --arch h200 $W heads=8 seqlen=40 head_dim=64 block_m=128 block_n=64
accepted '"feasible": false, "reason"' "$FAKE" predict --json --arch h200 $Q block_m=1024 block_n=1024

refused 2 "needs --arch" "$FAKE" explain $Q
refused 2 "explain needs --workload" "$FAKE" explain --arch h200
refused 2 "explain has no option --db" "$FAKE" explain --arch h200 $Q --db x.db
refused 2 "explain has no option --block_m=64: parameters are written without dashes" "$FAKE" explain --arch h200 $Q --block_m=64
refused 2 "block_m=64,128: one value; foretile explore takes several" "$FAKE" explain --arch h200 $Q block_m=64,128
refused 2 'unknown GPU "h20"' "$FAKE" explain --arch h20 $Q
refused 2 "block_m=65" "$FAKE" explain --arch h200 $Q block_m=65
refused 2 "l2.ways" "$FAKE" explain --arch h200 $Q --set l2.ways=0

# what fails while it runs
refused 1 "this engine cannot do block_n=24" "$FAKE" predict --arch h200 $Q block_n=24
refused 1 "this engine cannot do block_n=24" "$FAKE" explain --arch h200 $Q block_n=24

# batches
refused 2 "No such file" "$FAKE" predict --batch no_such_file
refused 2 "with --batch the parameters are in the lines" "$FAKE" predict --batch - block_m=64

# scenarios
scenario() { printf '%s\n' "$1" >s.lua; }
refused 2 "run takes one scenario file" "$FAKE" run
refused 2 "no_such.lua" "$FAKE" run no_such.lua
[ ! -e foretile.db ] || bad "a database was made for a scenario that is not there"
scenario 'for = 3'
refused 2 "s.lua:1:" "$FAKE" run s.lua
scenario 'while true do end'
refused 2 "s.lua:1: the script ran longer than 100000 instructions" "$FAKE" run --max-instructions 100000 s.lua
scenario 'pcall(function() while true do end end)'
refused 2 "s.lua:1: the script ran longer than" "$FAKE" run --max-instructions 100000 s.lua
scenario 'local t = {} for i = 1, 1e9 do t[i] = tostring(i) end'
refused 2 "s.lua:1: the script needs more than" "$FAKE" run --max-memory-mb 8 s.lua
scenario 'local s = ("x"):rep(1e12)'
refused 2 "s.lua:1:" "$FAKE" run s.lua
scenario 'io.open("stolen", "w")'
refused 2 "s.lua:1:" "$FAKE" run s.lua
[ ! -e stolen ] || bad "a scenario wrote a file"
scenario 'os.execute("touch stolen")'
refused 2 "s.lua:1:" "$FAKE" run s.lua
scenario 'error({})'
refused 2 "s.lua" "$FAKE" run s.lua
printf '\033Lua' >s.lua
refused 2 "s.lua" "$FAKE" run s.lua
scenario 'local ft = require "foretile"
ft.predict{ arch = "h200", workload = "flash2_fwd", heads = 8, seqlen = 64, head_dim = 64, blok = 1 }'
refused 2 's.lua:2: unknown parameter "blok"' "$FAKE" run s.lua
refused 2 "/tmp: Is a directory" "$FAKE" run /tmp
scenario 'io.open("allowed", "w"):close()'
accepted "" "$FAKE" run --allow-io s.lua
[ -e allowed ] || bad "--allow-io did not allow a file"

scenario 'while true do pcall(function() while true do end end) end'
refused 2 "s.lua:1: the script ran longer" "$FAKE" run --max-instructions 100000 s.lua
grep -q "s.lua:1: s.lua" err && bad "the place stands twice"

# What cannot be written is an error, and a device is not removed as an unfinished file would be.
if [ "$(id -u)" -eq 0 ] && mknod full c 1 7 2>/dev/null; then
  refused 2 "No space left" "$REAL" trace --arch h200 --workload flash2_fwd heads=1 seqlen=256 head_dim=64 -o full
  [ -c full ] || bad "a device was removed"
fi

finish
