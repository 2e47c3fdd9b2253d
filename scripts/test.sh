#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# All tests, step by step; goes on after a failed step and says at the end what passed and failed.
# Called by `make test`, which sets MAKE, GO, BUILD, RACE_PACKAGES and LAZY.
set -uo pipefail
cd "$(dirname "$0")/.."

passed=0
failed=()
step() { # name, command…
  local name=$1 begin=$SECONDS
  shift
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
    echo "== $name: passed ($((SECONDS - begin)) s)"
  else
    failed+=("$name")
    echo "== $name: FAILED ($((SECONDS - begin)) s)"
  fi
}
finish() {
  echo
  for name in "${failed[@]}"; do echo "FAILED: $name"; done
  # Go says nothing of tests that are left out, but with -v.
  [ "$(id -u)" = 0 ] || echo "NOT TESTED: what only root can do, in $(grep -rlE 'need\.Root\(' --include='*_test.go' . | sed 's,^\./,,' | sort | paste -sd' ')"
  echo "steps: $passed passed, ${#failed[@]} failed"
  [ ${#failed[@]} = 0 ]
}

step "reference tools" scripts/setup.sh
step "DuckDB for Python" env BUILD="$BUILD" scripts/engines.sh duckdb
step "matplotlib and setuptools" env BUILD="$BUILD" scripts/engines.sh python
step "Perfetto's format" env BUILD="$BUILD" scripts/engines.sh perfetto
step "build" "$MAKE" --no-print-directory test-build
if [ ${#failed[@]} != 0 ]; then
  finish
  exit 1
fi
query_program() { # its modules may not be to be had: then what needs it is left out, loudly
  "$MAKE" --no-print-directory query || { echo "NOT TESTED: nccl-otf2-query could not be built"; [ "${CI:-}" != true ]; }
}
step "query program" query_program
site() { # its parser of Markdown may not be to be had
  if env -C packaging/site "$GO" mod download >/dev/null 2>&1; then
    env -C packaging/site CGO_ENABLED=0 "$GO" test ./...
  else
    echo "NOT TESTED: the web site: goldmark cannot be had" && [ "${CI:-}" != true ]
  fi
}
step "web site" site
step "timeline page" "$MAKE" --no-print-directory page-check
step "C tests" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test
step "C tests, address sanitizer" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test-asan
step "C tests, thread sanitizer" "$MAKE" -j "$(nproc)" --no-print-directory plugin-test-tsan
step "go vet" "$GO" vet ./...
# Most of the time tests of whole jobs wait: for recordings that are played as slowly as they were made.
# The limits are for what hangs: a busy machine may take as long as it needs.
step "Go tests, query program" env -C query CGO_ENABLED=1 "$GO" test ./...
step "Go tests" "$GO" test -timeout 180m -parallel 6 ./...
# Fetches the published library the first time; where it is not to be had one line says NOT CHECKED, and why.
step "real NCCL" "$MAKE" --no-print-directory real-nccl-short
intervals() { # how far operations are from the kernels that really ran, per recording
  "$GO" test -count=1 -v -run TestIntervalsAgainstTruth ./tests | sed -nE 's/^ *recordings_test.go:[0-9]+: //p; /^(ok|FAIL)/p'
}
step "errors of operation intervals" intervals
# shellcheck disable=SC2086 # a list of packages
step "Go tests, race detector" env CGO_ENABLED=1 "$GO" test -timeout 180m -race -ldflags="$LAZY" $RACE_PACKAGES
# shellcheck disable=SC2143 # grep -q would leave before version has written all, which then counts as a failure of the pipe
nvml() { # the tool as it is built, and as it is without cgo
  [ -n "$("$BUILD/nccl-otf2" version | grep -x 'GPUs through NVML: yes')" ] || { echo "$BUILD/nccl-otf2 was built without NVML"; return 1; }
  CGO_ENABLED=0 "$GO" build -o "$BUILD/nccl-otf2-without" ./cmd/nccl-otf2 &&
    [ -n "$("$BUILD/nccl-otf2-without" version | grep -x 'GPUs through NVML: no: built without cgo')" ]
}
step "with and without NVML" nvml
finish
