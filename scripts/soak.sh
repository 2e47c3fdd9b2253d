#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A job that runs for SOAK_TIME (10m) with the plugin, while communicators and threads come and go: fails if memory, open
# files or threads of job or collector grow, if anything is lost, or if the archive is not whole. Called by `make soak`;
# arguments go to the program (--rate, --keep).
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
"${MAKE:-make}" --no-print-directory BUILD="$build" test-build >&2
exec "${GO:-go}" run ./tests/soak --build "$build" --time "${SOAK_TIME:-10m}" "$@"
