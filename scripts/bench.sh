#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares package otf2 with libotf2's C API in one run, about two minutes, and prints ratios. Called by `make bench`.
# Arguments go to the program: --json, --markdown, --case REGEXP, --rounds N, or
#
#   scripts/bench.sh --update docs/performance.md      puts the table into that page
set -euo pipefail
cd "$(dirname "$0")/.."
exec "${GO:-go}" run ./tests/bench "$@"
