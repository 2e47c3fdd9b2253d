#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What `make lint` asks of Go code: gofmt, go vet, and linters that are pinned by their versions, whose rules are in scripts/golint. Each is a small
# program: all are built and run in half of the time that one takes which has a hundred inside. Called with GO and BUILD.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$BUILD/tools/golint
mkdir -p "$tools"
tools=$(realpath "$tools")
# They, and the compiler, would collect garbage for a fifth of the time.
export GOGC=300 GOMEMLIMIT=4GiB

for program in honnef.co/go/tools/cmd/staticcheck@v0.8.2 github.com/mgechev/revive@v1.17.0 github.com/kisielk/errcheck@v1.30.0 \
  github.com/gordonklaus/ineffassign@v0.2.0 github.com/golangci/misspell/cmd/misspell@v0.8.0 github.com/OpenPeeDeeP/depguard/v2/cmd/depguard@v2.2.1; do
  CGO_ENABLED=0 GOBIN=$tools "$GO" install "$program"
done

mapfile -t files < <(git ls-files '*.go')
mapfile -t written < <(git grep -LE '^// (Code generated|Made of .*; do not edit)' -- '*.go')
mapfile -t product < <(printf '%s\n' "${written[@]}" | grep -vE '_test\.go$|^tests/|test/[a-z]+\.go$')

failed=()
look() { # name, pattern of what is no finding, command…
  local name=$1 said status=0 findings
  said=$("${@:3}" 2>&1) || status=$?
  findings=$(grep -vE "$2" <<<"$said") || true
  if [ -n "$findings" ] || { [ -z "$said" ] && [ $status != 0 ]; }; then
    printf '== %s (%d)\n%s\n' "$name" $status "$findings"
    failed+=("$name")
  fi
}
width() {
  perl -CSD -ne 'chomp; s/\t/    /g; print "$ARGV:$.: ", length, " columns, 120 at most\n" if length > 120 && !/`|^\s*\/\/(    |  |go:)/; close ARGV if eof' "$@"
}
packages() { # folder…
  look "go vet" '^#' "$GO" vet "$@"
  # ST1003: generated tables and mirrors of C headers keep the names that OTF2, NCCL and CUPTI give things. QF: suggestions of another form for
  # correct code.
  look staticcheck '^$' "$tools/staticcheck" -checks 'all,-ST1003,-QF*' "$@"
  # What makes inputs for tests, or tests, stops at the errors that matter.
  look errcheck '^tests/|test/[a-z]+\.go:' "$tools/errcheck" -ignoretests -ignoregenerated -exclude scripts/golint/errcheck.txt "$@"
  # A group of types has one comment above, and one beside each.
  look revive '^(otf2/refs|cube/definitions)\.go:.* comment on exported type ' "$tools/revive" -config scripts/golint/revive.toml "$@"
  look ineffassign '^$' "$tools/ineffassign" "$@"
}
layers() { (cd scripts/golint && "$tools/depguard" ../../...); } # reads depguard.yml where it is

look gofmt '^$' gofmt -l "${files[@]}"
packages ./...
export CGO_ENABLED=1
packages ./internal/gpu/... # has files of its own for cgo
export CGO_ENABLED=0
look depguard '^$' layers
# ELF's relocations with addends; a member of recorded data.
look misspell '^$' "$tools/misspell" -locale US -i rela,colour "${written[@]}"
# Texts in raw strings and tags have lines of their own length, and rows of tables, pictures and lists in comments.
look width '^$' width "${product[@]}"

[ ${#failed[@]} = 0 ] || { echo "lint: findings of: ${failed[*]}" >&2; exit 1; }
