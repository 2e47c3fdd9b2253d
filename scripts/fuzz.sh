#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target for FUZZTIME. Called by `make fuzz`.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz[A-Za-z0-9_]*\(' --include='*_test.go' . | while read -r file; do
  grep -oE '^func Fuzz[A-Za-z0-9_]*' "$file" | while read -r _ target; do
    echo "== $(dirname "$file") $target"
    "$GO" test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$FUZZTIME" -fuzzminimizetime 3x </dev/null
  done
done
