#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# engines.sh duckdb|spark|python|perfetto: installs what runs the queries of sql/ in tests (python: what builds the wheel, and draws;
# perfetto: the definitions of Perfetto's format, and its trace_processor as that package pins it by hash), as tests/queries/ENGINE.txt
# pins it by hash, into BUILD/engines/ENGINE. What is there already is kept. Where it cannot be had one line says so; with CI=true that is
# a failure, but of trace_processor, which lies with no registry of packages.
set -euo pipefail
cd "$(dirname "$0")/.."

engine=$1
pins=tests/queries/$engine.txt
folder=${BUILD:-build}/engines/$engine
trace_processor() { # the program that the package for Python would fetch
  local said
  [ "$engine" = perfetto ] && [ ! -x "$folder/trace_processor" ] && [ -z "${TRACE_PROCESSOR:-}" ] || return 0
  if said=$(HOME=$(realpath "$folder") PYTHONPATH="$folder" timeout 120 python3 -B -c '
from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST as manifest
from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt
print(get_perfetto_prebuilt(manifest))' 2>&1); then
    ln -sf "$(tail -1 <<<"$said")" "$folder/trace_processor"
  else
    echo "engines: NOT CHECKED: Perfetto's trace_processor cannot be had, traces are read by the definitions of its format alone (TRACE_PROCESSOR=FILE names one): ${said##*returned }"
  fi
}
if cmp -s "$pins" "$folder/complete"; then
  trace_processor
  exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
if [ "$engine" = spark ] && ! command -v java >/dev/null; then
  echo "engines: NOT INSTALLED: $engine needs a Java runtime (Debian: openjdk-17-jre-headless)"
  [ "${CI:-}" != true ]
  exit
fi
if ! said=$(python3 -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --target "$folder" -r "$pins" 2>&1); then
  rm -rf "$folder"
  echo "engines: NOT INSTALLED: $engine for Python, nothing is tested with it: $(tail -1 <<<"$said")"
  [ "${CI:-}" != true ]
  exit
fi
cp "$pins" "$folder/complete"
trace_processor
