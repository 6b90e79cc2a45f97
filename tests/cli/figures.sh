#!/bin/bash
# Figures of tables in the pages are what the command that stands above them prints, within 4 %.
. "$(dirname "$0")/expect.sh"

# figure PAGE ROW CELL METRIC UNIT PARAMS...: what `foretile predict PARAMS` says of the metric is in the cell (the first
# is 1) of the page's one line that begins with ROW and has a number there; UNIT of the metric's units are 1 there.
figure() {
  local page=docs/$1 row=$2 cell=$3 metric=$4 unit=$5 written got
  shift 5
  accepted "" "$REAL" predict --json "$@"
  got=$(sed "s/.*\"metrics\": {/{/; s/.*\"$metric\": \([0-9.e+]*\).*/\1/" out)
  : >out
  written=$(awk -F'|' -v row="$row" -v cell="$cell" \
    'index($0, row) == 1 && $(cell + 1) ~ /^ *[0-9]/ { print $(cell + 1) + 0 }' "$FTL_SOURCE_DIR/$page")
  awk -v written="$written" -v got="$got" -v unit="$unit" \
    'BEGIN { off = got / unit / written - 1; exit !(off < 0.04 && off > -0.04) }' ||
    bad "$page: \"$row\" has $written, but $metric is $got (1 there is $unit): $*"
}

TIME=gpu__time_duration.sum
US=1e3
MS=1e6

figure workloads.md "| \`scaling=exponent exp2=ftz\`" 3 sm__cycles_elapsed.max 1e3 --arch h200 --workload flash2_fwd batch=4 heads=16 \
  seqlen=2048 head_dim=128 block_m=128 block_n=64 num_warps=4 schedule=interleaved mma=mma scaling=exponent exp2=ftz
figure workloads.md "| \`scaling=scores exp2=ieee\`" 3 sm__cycles_elapsed.max 1e3 --arch h200 --workload flash2_fwd batch=4 heads=16 \
  seqlen=2048 head_dim=128 block_m=128 block_n=64 num_warps=4 schedule=interleaved mma=mma scaling=scores exp2=ieee
figure workloads.md "| \`specinfer\` |" 4 $TIME $US --arch a100_80 --workload tree_decode batch=8 heads=32 kv_heads=8 \
  seqlen_kv=8192 head_dim=128 tree=specinfer
figure workloads.md "| \`medusa\` |" 4 $TIME $US --arch a100_80 --workload tree_decode batch=8 heads=32 kv_heads=8 \
  seqlen_kv=8192 head_dim=128 tree=medusa
figure workloads.md "| fused | 3731" 4 $TIME $MS --arch a100_80 --workload glu m=4096 n=14336 k=4096 transpose_b=1 num_warps=8 num_stages=3 \
  block_k=32
figure workload_flash1.md "| \`flash1_fwd\` |" 4 $TIME $MS --arch a100_40 --workload flash1_fwd batch=8 heads=16 \
  seqlen=1024 head_dim=64
figure workload_flash1.md "| \`dropout_p=0.1\` |" 3 $TIME $MS --arch a100_40 --workload flash1_fwd batch=8 heads=16 \
  seqlen=4096 head_dim=64 dropout_p=0.1
figure workload_flash1.md "| \`dropout_p=0.1\` |" 5 $TIME $MS --arch a100_40 --workload flash1_bwd batch=8 heads=16 \
  seqlen=4096 head_dim=64 dropout_p=0.1
figure workload_flash2_bwd.md "| \`dq=kernel\` |" 2 $TIME $US --arch h200 --workload flash2_bwd heads=16 \
  seqlen=4096 head_dim=64 dq=kernel
figure workload_flash2_bwd.md "| \`dropout_p=0.1\` |" 2 $TIME $US --arch h200 --workload flash2_bwd heads=16 \
  seqlen=4096 head_dim=64 dropout_p=0.1
figure workload_flash3_fwd.md "| \`overlap=false\` |" 2 $TIME $US --arch h200 --workload flash3_fwd batch=4 \
  heads=16 seqlen=4096 head_dim=128 block_n=128 overlap=false
figure workload_flash3_fwd.md "| \`schedule=stages\` |" 2 $TIME $US --arch h200 --workload flash3_fwd batch=4 \
  heads=16 seqlen=4096 head_dim=128 block_n=128 schedule=stages
figure workload_flash_decode.md "| \`strided mask_width=8\` |" 5 $TIME $US --arch h200 --workload flash_decode batch=4 heads=32 kv_heads=8 seqlen_kv=32768 head_dim=128 \
  mask=strided mask_width=8
figure workload_flash_decode.md "| fp8 | 128 | 272.6" 5 $TIME $US --arch h200 --workload flash_decode batch=16 \
  heads=32 kv_heads=8 seqlen_kv=8192 head_dim=128 kv_dtype=fp8
figure workload_flash_decode.md "| int4 | 32 | 151" 5 $TIME $US --arch h200 --workload flash_decode batch=16 heads=32 kv_heads=8 seqlen_kv=8192 head_dim=128 kv_dtype=int4 \
  kv_group_size=32
figure workload_paged_decode.md "| fp8 | 273.3" 4 $TIME $US --arch h200 --workload paged_decode batch=16 heads=32 \
  kv_heads=8 seqlen_kv=8192 head_dim=128 kv_dtype=fp8
figure workload_sparq_decode.md "| 8 | 4096 | 88.7" 5 $TIME $US --arch a100_40 --workload sparq_decode heads=32 \
  head_dim=128 batch=8 seqlen_kv=4096
figure workload_sparq_decode.md "| 8 | 4096 | 88.7" 6 $TIME $US --arch a100_40 --workload flash_decode heads=32 \
  head_dim=128 batch=8 seqlen_kv=4096
figure masks.md "| \`butterfly\` | 18.8" 3 $TIME $US --arch h200 --workload flash3_fwd heads=16 seqlen=4096 \
  head_dim=128 mask_width=2 block_n=64 detail=full mask=butterfly
figure masks.md "| \`schedule=interleaved dropout_p=0.1\` |" 3 $TIME $US --arch a100_80 --workload flash2_fwd \
  heads=16 seqlen=2048 head_dim=64 num_warps=4 detail=full schedule=interleaved dropout_p=0.1
figure model_l2.md "| \`l2_evict_first=kv\`" 2 dram__bytes_read.sum 1e6 --arch rtx3090 --workload flash2_fwd heads=16 kv_heads=4 seqlen=8192 head_dim=128 \
  block_m=128 block_n=64 num_warps=8 l2_evict_first=kv

finish
