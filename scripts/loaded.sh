#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command beside LOOPS busy loops (8) at equal niceness, and names at the end the tests and steps that failed.
#   LOOPS=8 scripts/loaded.sh make test
set -euo pipefail

loops=()
log=$(mktemp)
end() { # the loops, each by its id
  for pid in "${loops[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -f "$log"
}
trap end EXIT
trap 'exit 130' INT TERM
for ((i = 0; i < ${LOOPS:-8}; i++)); do
  while :; do :; done &
  loops+=($!)
done

begin=$SECONDS
code=0
"$@" 2>&1 | tee "$log" || code=$?
echo
echo "== beside ${#loops[@]} busy loops on $(nproc) CPUs, $((SECONDS - begin)) s; failed:"
grep -aE '^ *--- FAIL|^FAIL\s|^FAILED|^panic:|: failed:|WARNING: (DATA RACE|ThreadSanitizer)|ERROR: AddressSanitizer|runtime error:' "$log" || echo "nothing"
exit "$code"
