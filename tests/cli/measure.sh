#!/bin/bash
# measure: what is missing is named in one line, bad cases by file and line; with stand-ins for the tools, what it writes can be validated.
. "$(dirname "$0")/expect.sh"

CASES=$FTL_SOURCE_DIR/kernels/cases/compiled.csv
TOOL=$FTL_SOURCE_DIR/tests/fake/gpu_tools/tool
export FORETILE_KERNELS=$FTL_SOURCE_DIR/kernels PYTHONDONTWRITEBYTECODE=1
mkdir empty python cuda cuda/bin path
ln -s "$(command -v python3)" python/python3
ln -s "$TOOL" python/nvidia-smi
for name in nvcc ncu; do ln -s "$TOOL" cuda/bin/$name; done
for name in nvidia-smi cmake ninja; do ln -s "$TOOL" path/$name; done

# nothing there, or not all
refused 2 "measure needs python3" env PATH="$WORK/empty" "$REAL" measure
refused 2 "nvcc (CUDA 12.8 or later" env PATH="$WORK/python:/usr/bin:/bin" FAKE_GPU_FAIL=nvidia-smi CUDA_HOME="$WORK/empty" "$REAL" measure "$CASES"
grep -q 'a GPU (nvidia-smi shows none); ncu (--no-ncu' err || bad "not everything that is missing is named"
export PATH=$WORK/path:$PATH CUDA_HOME=$WORK/cuda
refused 2 "of compute capability 9.0 (Tesla T4 has 7.5)" env FAKE_GPU="Tesla T4, 580.0, 7.5" "$REAL" measure "$CASES"
refused 2 "no measure.py in $WORK/empty" env FORETILE_KERNELS="$WORK/empty" "$REAL" measure

# cases that cannot be used
refused 2 "no_such.csv: No such file" "$REAL" measure no_such.csv
sed '3s/,cp_async,/,/' "$CASES" >short.csv
columns=$(head -n 1 "$CASES" | awk -F, '{print NF}')
refused 2 "short.csv:3: $((columns - 1)) cells, the header has $columns" "$REAL" measure short.csv
sed '2s/^flash2_fwd,1,4,/flash2_fwd,1,four,/' "$CASES" >word.csv
refused 2 "word.csv:2: heads=four: allowed is a whole number" "$REAL" measure word.csv
sed '2s/^flash2_fwd/flash9_fwd/' "$CASES" >unknown.csv
refused 2 "unknown.csv:2: no kernel for workload=flash9_fwd" "$REAL" measure unknown.csv
cut -d, -f2- "$CASES" >column.csv
refused 2 "column.csv:1: no column workload" "$REAL" measure column.csv
refused 2 "--repeat=0" "$REAL" measure --repeat=0

# measured under both conditions
head -n 2 "$CASES" >cases.csv
sed -n '2s/,4,2,512,512,/,8,8,512,512,/p' "$CASES" >>cases.csv
"$REAL" measure cases.csv -o here --build built >out 2>err || bad "measuring ended with $?"
grep -q "cases.csv: 2 cases, 0 failed" out || bad "no summary"
grep -q '^flash2_fwd,1,4,2,512,512,64,1,.*,ok,ncu,all,none,0,"void forward<1, 2>(int)",1048576,10000,NVIDIA H200,580.0,13.0,2025.0.0.0,' here/attention_cases_ncu.csv ||
  bad "the profile lacks case, provenance or counters: $(tail -n 1 here/attention_cases_ncu.csv)"
[ "$(wc -l <here/attention_cases_stream.csv)" -eq 3 ] || bad "not a row a case"
accepted "2 cases" "$FAKE" validate here/attention_cases_ncu.csv
accepted "" "$FAKE" import here/attention_cases_stream.csv --db m.db
"$REAL" measure cases.csv -o times --build built --no-ncu >out 2>err || bad "measuring times ended with $?"
[ -e times/attention_cases_stream.csv ] && [ ! -e times/attention_cases_ncu.csv ] || bad "--no-ncu was not heeded"

# what fails is counted, and the rest is kept
sed 's/,8,8,512,/,7,7,512,/' cases.csv >seven.csv
"$REAL" measure seven.csv -o here --build built >out 2>err
[ $? -eq 1 ] || bad "a wrong result does not end with 1"
grep -q "seven.csv: 2 cases, 1 failed" out || bad "the failed case is not counted"
[ "$(wc -l <here/attention_seven_ncu.csv)" -eq 2 ] || bad "a wrong case was profiled"
FAKE_GPU_FAIL=cmake "$REAL" measure cases.csv -o here >out 2>err
[ $? -eq 1 ] && grep -q "building the kernels failed with status 3" err || bad "a failed build is not told"
finish
