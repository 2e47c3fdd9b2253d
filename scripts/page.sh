#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the timeline's page: its types, its unit tests, and that internal/timeline/asset is what internal/timeline/page gives. Called by `make page-check`.
# Where that cannot be done one line says so; with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/../internal/timeline/page"

missing() {
  echo "NOT CHECKED: the timeline's page: $1" >&2
  [ "${CI:-}" != true ]
  exit
}

command -v node >/dev/null && command -v npm >/dev/null || missing "Node.js 18 or newer, with npm, is missing"
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci --ignore-scripts --no-audit --no-fund || missing "npm ci could not get what package-lock.json names"
  touch node_modules/.package-lock.json
fi
npm run --silent check
npm run --silent test
npm run --silent build -- --check
echo "internal/timeline/page: internal/timeline/asset is what it gives"
