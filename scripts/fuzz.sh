#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target for FUZZTIME, and names those with a finding at the end. Called by `make fuzz`, which sets
# GO, FUZZTIME and, to run some only, FUZZTARGETS (a regular expression).
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

targets=$(grep -rhoE --include='*_test.go' -H '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func / /' | grep -E "${FUZZTARGETS:-.}")
found=()
while read -r file target; do
  folder=$(dirname "$file")
  echo "== $folder $target"
  "$GO" test "$folder" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 3x </dev/null 2>&1 | tee "$log" && continue
  # Go's fuzzer can end with its own deadline as an error when a worker is busy at that moment.
  if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log"; then continue; fi
  # And it interrupts a worker that is still busy when the time is over, which then counts as one that broke: its input says whether.
  input=$(sed -nE 's,^ *Failing input written to testdata/fuzz/,,p' "$log" | head -1)
  if [ -n "$input" ] && grep -q 'waiting for fuzzing process' "$log" && "$GO" test "$folder" -count=1 -run "^$input\$" -timeout 10m; then
    rm "$folder/testdata/fuzz/$input"
    continue
  fi
  found+=("$folder $target")
done <<<"$targets"

for name in "${found[@]}"; do echo "FINDING: $name"; done
echo "fuzz targets: $(wc -l <<<"$targets"), with findings: ${#found[@]}"
[ ${#found[@]} = 0 ]
