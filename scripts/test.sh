#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All tests, step by step; goes on after a failed step and says at the end what was skipped, what passed and what failed.
# Called by `make test`, which sets MAKE, GO, BUILD, RACE_PACKAGES and LAZY. LINTED=true: `make lint` runs, too, which checks the timeline's page
# and has golangci-lint vet all code but what is generated.
set -uo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."
. scripts/steps.sh

# Go says nothing of tests that are left out, but with -v: what it says then goes through a filter, which keeps the rest as it is without.
go_test() { "$GO" test -json "$@" | "$said/skipped" -add "$said/tests" -except "${except:-}"; }
"$GO" build -o "$said/skipped" ./tests/skipped

beside "reference tools" scripts/setup.sh
beside "DuckDB for Python" env BUILD="$BUILD" scripts/engines.sh duckdb
beside "matplotlib and setuptools" env BUILD="$BUILD" scripts/engines.sh python
beside "Perfetto's format" env BUILD="$BUILD" scripts/engines.sh perfetto
step "build" "$MAKE" --no-print-directory test-build
if [ ${#failed[@]} != 0 ]; then
  joined
  finish
  exit 1
fi
query_program() { # its modules may not be to be had: then what needs it is left out, loudly
  "$MAKE" --no-print-directory query || { echo "NOT TESTED: nccl-otf2-query could not be built"; [ "${CI:-}" != true ]; }
}
[ "${LINTED:-}" = true ] || step "timeline page" "$MAKE" --no-print-directory page-check
if ! joined; then
  finish
  exit 1
fi
# What tests need of this machine (internal/need): where it changes, results that go test has kept are those of another one.
TEST_MACHINE=$({ tr : '\n' <<<"$PATH" && echo /usr/lib/python3/dist-packages; } |
  while read -r folder; do ls -lLA --time-style=full-iso "$folder" 2>/dev/null; done | sha256sum)
export TEST_MACHINE
# They wait more than they work: the three, which build in folders of their own, are beside each other. Go tests build in these folders, too.
beside "C tests, address sanitizer" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test-asan
beside "C tests, thread sanitizer" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test-tsan
beside "query program" query_program # links for long, with one processor
# Fetches the published library the first time; where it is not to be had one line says NOT CHECKED, and why, here and in the step that plays on it.
beside "real NCCL's library" "$MAKE" --no-print-directory real-nccl-bed
step "C tests" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test
vet() { # and the files that there are with cgo only
  if [ "${LINTED:-}" = true ]; then
    # shellcheck disable=SC2046 # a list of packages
    "$GO" vet $(git grep -l '^// Code generated' -- '*.go' | sed 's,^,./,; s,/[^/]*$,,' | sort -u)
  else
    "$GO" vet ./... && CGO_ENABLED=1 "$GO" vet ./internal/gpu
  fi
}
step "go vet" vet
# Tests of whole jobs wait much of their time: for recordings that are played as slowly as they were made, for collectors, for disks. So one
# package more than there are CPUs is at work, those first that take longest, and the race detector beside them. The limits are for what
# hangs: a busy machine may take as long as it needs. go vet has seen everything by now: go test need not do a part of it again. One test
# has a step of its own, below.
at_once=$(($(nproc) + 1))
longest="./tests ./tests/faults ./internal/collector ./cmd/nccl-otf2 ./otf2 ./internal/replay"
# shellcheck disable=SC2086 # lists of packages
raced() { # packages that the race detector's step tests as well as this one would: they are the same there, no test is left out, or counts allocations
  "$GO" list -f '{{.ImportPath}} {{.Dir}}' $RACE_PACKAGES | while read -r package folder; do
    grep -qsE 'UnderRace|go:build.*(race|cgo)|AllocsPerRun|testing\.Short|replaytest\.' "$folder"/*.go || echo "$package"
  done
}
# shellcheck disable=SC2086 # lists of packages
plainly() { # all other packages
  "$GO" list $longest ./... | if [ -n "$RACE_PACKAGES" ]; then grep -vxF -f <(raced); else cat; fi
}
query_tests() { (cd cmd/nccl-otf2-query && CGO_ENABLED=1 go_test ./...); }
step "Go tests, query program" query_tests
joined
# -short: it does not see the C programs that other checkers look at in the step after it. Behind the others where there is too little
# processor for all: it ends before they do.
# shellcheck disable=SC2086 # a list of packages
race_tests() {
  local except="-short leaves out" # the step after it does not
  renice -n 5 "$BASHPID" >/dev/null
  CGO_ENABLED=1 go_test -vet=off -timeout 180m -short -buildmode=exe -race -ldflags="$LAZY" $RACE_PACKAGES
}
beside "Go tests, race detector" race_tests
# shellcheck disable=SC2046 # a list of packages
step "Go tests" go_test -vet=off -timeout 180m -p "$at_once" -parallel 6 -skip '^TestIntervalsAgainstTruth$' $(plainly)
step "real NCCL" "$MAKE" --no-print-directory real-nccl-short
intervals() { # how far operations are from the kernels that really ran, per recording
  "$GO" test -vet=off -count=1 -v -run TestIntervalsAgainstTruth ./tests | sed -nE 's/^ *[a-z]+_test\.go:[0-9]+: (.* operations? with GPU time)/\1/p; /^(ok|FAIL|---)/p'
}
step "errors of operation intervals" intervals
joined
# shellcheck disable=SC2143 # grep -q would leave before version has written all, which then counts as a failure of the pipe
nvml() { # the tool as it is built, and as it is without cgo
  [ -n "$("$BUILD/nccl-otf2" version | grep -x 'GPUs through NVML: yes')" ] || { echo "$BUILD/nccl-otf2 was built without NVML"; return 1; }
  CGO_ENABLED=0 "$GO" build -o "$BUILD/nccl-otf2-without" ./cmd/nccl-otf2 &&
    [ -n "$("$BUILD/nccl-otf2-without" version | grep -x 'GPUs through NVML: no: built without cgo')" ]
}
step "with and without NVML" nvml
finish
