#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# engines.sh duckdb|spark|python: installs what runs the queries of sql/ in tests (python: what builds the wheel, and draws), as
# tests/queries/ENGINE.txt pins it by hash, into BUILD/engines/ENGINE. What is there already is kept. Where it cannot be had one line
# says so; with CI=true that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=$1
pins=tests/queries/$engine.txt
folder=${BUILD:-build}/engines/$engine
if cmp -s "$pins" "$folder/complete"; then exit 0; fi
rm -rf "$folder"
mkdir -p "$folder"
if [ "$engine" = spark ] && ! command -v java >/dev/null; then
  echo "engines: NOT INSTALLED: $engine needs a Java runtime (Debian: openjdk-17-jre-headless)"
  [ "${CI:-}" != true ]
  exit
fi
if ! said=$(python3 -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --target "$folder" -r "$pins" 2>&1); then
  rm -rf "$folder"
  echo "engines: NOT INSTALLED: $engine for Python, the queries of sql/ are not tested on it: $(tail -1 <<<"$said")"
  [ "${CI:-}" != true ]
  exit
fi
cp "$pins" "$folder/complete"
