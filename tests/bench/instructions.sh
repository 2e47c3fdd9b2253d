#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How many instructions the callbacks of a job's threads take, by callgrind: no load of the machine changes that. Called by
# scripts/bench.sh instructions PLUGIN…, for plugins of several versions. The program's own are those with the empty plugin, and
# subtracted; what is done once is left out by comparing two lengths.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { echo "instructions: name the plugins to compare" >&2; exit 2; }
command -v valgrind >/dev/null || { echo "NOT MEASURED: there is no valgrind"; exit 1; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
short=1000 long=3000
flags=(-std=gnu11 -O2 -g -D_GNU_SOURCE -I.)
"${CC:-cc}" "${flags[@]}" -fPIC -shared -fvisibility=hidden -o "$dir/empty.so" tests/bench/host/empty_plugin.c
"${CC:-cc}" "${flags[@]}" -o "$dir/host" $(ls tests/bench/host/*.c | grep -v empty_plugin.c) -pthread -ldl

# counted PLUGIN PRESET PIECE SEQUENCES: instructions of all sequences whose calls are not timed one by one, every other one.
counted() {
  rm -rf "$dir/experiment" "$dir/out"
  NCCL_OTF2_DIR=$dir/experiment NCCL_OTF2_COLLECTOR=spool NCCL_OTF2_EVENTS=$2 valgrind --tool=callgrind --callgrind-out-file="$dir/out" \
    --collect-atstart=no --toggle-collect=allreduce_whole --toggle-collect=transfer_whole --toggle-collect=channels_whole \
    "$dir/host" "$1" cost "$3" 1 100 "$4" 0 >"$dir/said" 2>"$dir/errors" || { cat "$dir/errors" >&2; exit 1; }
  grep -q '"refused":0,' "$dir/said" || { echo "instructions: events were refused: $(cut -c1-200 "$dir/said")" >&2; exit 1; }
  awk '/^summary:/ { print $2 }' "$dir/out"
}

# each PLUGIN PRESET PIECE: instructions of a sequence.
each() {
  local a b
  a=$(counted "$1" "$2" "$3" "$short")
  b=$(counted "$1" "$2" "$3" "$long")
  awk -v a="$a" -v b="$b" -v n=$(((long - short) / 2)) 'BEGIN { printf "%.1f", (b - a) / n }'
}

printf '| preset | calls |'
for plugin; do printf ' %s |' "$plugin"; done
printf '\n|---|---|'
for plugin; do printf -- '--:|'; done
printf '\n'
while read -r preset piece calls; do
  printf '| `%s` | %s |' "$preset" "$calls"
  own=$(each "$dir/empty.so" "$preset" "$piece")
  for plugin; do
    all=$(each "$plugin" "$preset" "$piece")
    awk -v a="$all" -v b="$own" 'BEGIN { printf " %.0f |", a - b }'
  done
  printf '\n'
done <<'CASES'
light application an AllReduce, 12
gpu application an AllReduce, 12
gpu kernel its kernel on 8 channels, 24
net application an AllReduce, 12
net kernel its kernel on 8 channels, 24
net proxy a transfer of 8 steps, 43
CASES
