#!/bin/bash
# import and validate: files that cannot be used, and what comes out of those that can.
. "$(dirname "$0")/expect.sh"

M=$FTL_SOURCE_DIR/kernels/measurements
head -n 9 "$M/attention_flash2_ncu.csv" >good.csv
head -n 9 "$M/attention_flash2_stream.csv" >stream.csv

# import: nothing is written unless every file is good
refused 2 "import takes CSV files" "$FAKE" import
refused 2 "No such file" "$FAKE" import no_such.csv
refused 2 "Is a directory" "$FAKE" import /tmp
head -n 2 good.csv | head -c -200 >cut.csv
refused 2 "cut.csv:2: column" "$FAKE" import good.csv cut.csv
sed '4s/,ok,/,ok,extra,/' good.csv >ragged.csv
refused 2 "ragged.csv:4: column 101: the row has 101 fields, the header 100" "$FAKE" import good.csv ragged.csv
sed '3s/,ncu,all,none,0,"[^"]*",[0-9]*,/,ncu,all,none,0,k,lots,/' good.csv >garbage.csv
refused 2 'garbage.csv:3: column 32 (dram__bytes_read.sum): "lots" is not a number' "$FAKE" import garbage.csv
sed '3s/"void/void"/' good.csv >quote.csv
refused 2 "quote.csv:3: column 31: a quote inside a field" "$FAKE" import quote.csv
head -c 100 /dev/urandom >noise.csv
refused 2 "noise.csv:" "$FAKE" import noise.csv
: >empty.csv
refused 2 "empty.csv:1: no rows" "$FAKE" import empty.csv
refused 2 "no header of measurements" "$FAKE" import "$FTL_SOURCE_DIR/README.md"
[ ! -e foretile.db ] || bad "a database was made for files that cannot be used"
sed '9s/^flash2_fwd,16,32,/flash2_fwd,16,0,/' good.csv >parameter.csv
refused 2 "parameter.csv:9: heads=0" "$FAKE" import good.csv parameter.csv --db p.db
[ ! -e p.db ] || bad "a database was made though a file is bad"
sed 's/,ok,/,OK,/' good.csv >shouting.csv
refused 2 "shouting.csv:2: status=OK: allowed is ok" "$FAKE" import shouting.csv --db p.db
accepted "good.csv: project, 8 rows" "$FAKE" import good.csv --db p.db
accepted "imported before" "$FAKE" import good.csv --db p.db

# validate
refused 2 "No such file" "$FAKE" validate --measurements no_such.csv
refused 2 "unknown workload" "$FAKE" validate --workload flash
printf 'workload,heads,seqlen_q,seqlen_kv,head_dim,status,condition,time_median_us,gpu\nflash2_fwd,8,64,64,64,ok,stream,0,NVIDIA H200\n' >zero.csv
refused 2 "zero.csv:2: no column with a value that is compared" "$FAKE" validate zero.csv
refused 2 "none of the 8 measured rows" sh -c 'sed s/NVIDIA/Some/ good.csv >other.csv; "$1" validate other.csv' sh "$FAKE"
refused 2 "other.csv:2: status=failed: allowed is ok; none of the 8 measured rows has it" \
  sh -c 'sed s/,ok,/,failed,/ good.csv >other.csv; "$1" validate other.csv' sh "$FAKE"
refused 2 "other.csv:2: status=OK: allowed is ok" sh -c 'sed s/,ok,/,OK,/ good.csv >other.csv; "$1" validate other.csv' sh "$FAKE"
refused 2 "other.csv:2: condition=profiled: allowed are ncu|stream" \
  sh -c 'sed s/,ncu,all,/,profiled,all,/ good.csv >other.csv; "$1" validate other.csv' sh "$FAKE"
printf 'workload,heads,seqlen,head_dim,gpu,status,condition,dram__bytes_read\n' >near.csv
printf 'flash2_fwd,8,1024,64,NVIDIA H200,ok,ncu,5\n' >>near.csv
refused 2 "near.csv:2: no column with a value that is compared" "$FAKE" validate near.csv
grep -qF "the nearest to dram__bytes_read is dram__bytes_read.sum" err || bad "the column that was meant is not named"
refused 2 "no measured row is of what was asked for" "$FAKE" validate good.csv --workload glu
refused 2 "no_such.md: No such file" "$FAKE" validate good.csv --markdown -o no_such.md
refused 2 "no_such.md: No such file" "$FAKE" validate --measurements no_such.csv --markdown -o no_such.md # looked at first
refused 2 "--output is for --markdown" "$FAKE" validate good.csv -o x.md
refused 2 "no measurements in /tmp/none" env FORETILE_MEASUREMENTS=/tmp/none "$FAKE" validate
refused 2 "detail=fast" "$FAKE" validate good.csv --detail fast
printf 'no markers\n' >doc.md
refused 2 "doc.md: the lines" "$FAKE" validate good.csv --markdown -o doc.md
[ "$(cat doc.md)" = "no markers" ] || bad "a document without markers was changed"
accepted "your own measurements, 16 cases" "$FAKE" validate --measurements good.csv stream.csv
cp "$M/attention_other_stream.csv" . # a copy is still the project's
accepted "calibration part, " "$FAKE" validate attention_other_stream.csv
! grep -q "your own" out || bad "a copy of one of the project's files is not the project's"
accepted '"kind": "statistics", "part": "yours", "quantity": "hbm"' "$FAKE" validate good.csv --json
accepted "" "$FAKE" validate good.csv stream.csv --jobs 1 --all
cp out one
accepted "" "$FAKE" validate good.csv stream.csv --jobs 3 --all
cmp -s out one || bad "the answer depends on the number of threads"
accepted '"code": "plain"' "$FAKE" validate good.csv --json
accepted '"code": "auto"' "$FAKE" validate good.csv --json --open-code
printf 'before\n<!-- begin of the generated part -->\nold\n<!-- end of the generated part -->\nafter\n' >doc.md
accepted "" "$FAKE" validate good.csv --markdown -o doc.md
grep -q '^before$' doc.md && grep -q '^after$' doc.md && ! grep -q '^old$' doc.md && grep -q '^## Your own measurements' doc.md ||
  bad "the generated part was not replaced"
grep -q '^## Reserved part' doc.md && bad "a part without cases has a heading"

# a scenario's summary is validate's
printf 'local s = require("foretile").measurements{ files = "good.csv" }:summary "hbm"\n' >summary.lua
printf 'print(string.format("%%d %%.10g %%.10g", s.cases, s.mean, s.bias))\n' >>summary.lua
accepted "" "$FAKE" validate good.csv --json
statistics='"part": "yours", "quantity": "hbm", "unit": "%", "above_spread": false, '
expected=$(sed -n "s/.*$statistics\"cases\": \([0-9]*\), \"mean\": \([^,]*\),.*\"bias\": \([^}]*\)}/\1 \2 \3/p" out)
expected=$(printf '%d %.10g %.10g' $expected)
accepted "$expected" "$FAKE" run --no-db --allow-io summary.lua

# and so are its choices
head -n 1 good.csv >choice.csv
awk -F, 'NR > 1 && $1 == "flash2_fwd"' "$M/attention_flash2_ncu.csv" | head -n 24 >>choice.csv
printf 'for _, c in ipairs(require("foretile").measurements{ files = "choice.csv" }:choices()) do\n' >choices.lua
printf '  print(string.format("%%d %%.10g %%.10g %%.10g", c.cases, c.rho or -2, c.best_pct, c.best_of_3_pct))\nend\n' >>choices.lua
accepted '"kind": "choice"' "$FAKE" validate choice.csv --json
choice='s/.*"kind": "choice".*"cases": \([0-9]*\), "rho": \([^,]*\), "best_pct": \([^,]*\), "best_of_3_pct": \([^}]*\)}/\1 \2 \3 \4/p'
sed -n "$choice" out | sed 's/null/-2/' | while read -r cases rho best best3; do
  printf '%d %.10g %.10g %.10g\n' "$cases" "$rho" "$best" "$best3"
done >expected_choices
accepted "" "$FAKE" run --no-db --allow-io choices.lua
cmp -s out expected_choices || bad "a scenario's choices are not those of validate"

# a prediction beside a measurement in the database
accepted "" "$FAKE" validate good.csv --db p.db
finish
