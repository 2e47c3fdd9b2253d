#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The benchmarks. Called by `make bench`, about ten minutes in all:
#
#   scripts/bench.sh otf2         package otf2 against libotf2's C API, in one run
#   scripts/bench.sh callbacks    what the plugin costs the job, against an empty plugin in the same run
#   scripts/bench.sh report       how long reports take, and how much memory
#   scripts/bench.sh timeline     how large a timeline's page is, and how fast it draws
#   scripts/bench.sh              all of these
#   scripts/bench.sh peers        the same storm through an empty plugin, ours, and others: --plugin NAME=FILE[,VARIABLE=VALUE…][,kept=REGEXP],
#                                 which may be repeated; real-nccl takes it, too
#   scripts/bench.sh instructions PLUGIN…    how many instructions the callbacks of several plugins take, by valgrind: whatever the load
#   scripts/bench.sh real-nccl    what the plugin costs a job on the real NCCL library with emulated GPUs (make real-nccl-bed), 15 minutes
#
# Further arguments go to the program: --case REGEXP, --rounds N, --scale FACTOR (report: --events MILLIONS; timeline: --regions MILLIONS;
# real-nccl: --bed DIR, --operations N, --communicators N; peers: --ranks N,N), or
#
#   scripts/bench.sh --update tests/bench/README.md      puts the tables into that page
set -euo pipefail
cd "$(dirname "$0")/.."

parts=(otf2 callbacks report timeline)
targets=(test-build)
case ${1:-} in
  instructions)
    shift
    exec tests/bench/instructions.sh "$@"
    ;;
  otf2 | callbacks | report | timeline | real-nccl | peers)
    [ "$1" != real-nccl ] || targets+=(real-nccl-bed)
    parts=("$1")
    shift
    ;;
esac
build=${BUILD:-build}
"${MAKE:-make}" --no-print-directory BUILD="$build" "${targets[@]}" >&2
for part in "${parts[@]}"; do
  "${GO:-go}" run ./tests/bench "$part" --build "$build" "$@"
done
