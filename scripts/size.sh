#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# How large the project is. Called by `make size`: filled lines of each Go package (code, tests, and which share of them are comments) and how
# many functions and types it exports, the ten longest functions, packages of more than LARGE (4000) lines. Generated files (zz_*) and made-up
# packages (testdata) are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(git ls-files '*.go' | grep -vE '(^|/)(testdata/|zz_)')
# Source is formatted, so that a function ends with the next line that is a brace alone.
counted=$(awk '
  FNR == 1 { package = FILENAME; sub(/\/[^\/]*$/, "", package); test = FILENAME ~ /_test\.go$/; names[package] }
  NF { all[package, test]++ }
  $1 ~ /^\/\// { comments[package, test]++ }
  !test && /^(func (\([^)]*\) )?|type )[A-Z]/ { exported[package]++ }
  !test && /^func / { begin = FNR; name = $0; sub(/ \{.*$/, "", name) }
  !test && /^}/ && begin { printf "function\t%d\t%s:%d %s\n", FNR - begin + 1, FILENAME, begin, name; begin = 0 }
  function share(package, test) { return all[package, test] ? int(100 * comments[package, test] / all[package, test] + 0.5) " %" : "–" }
  END {
    for (package in names)
      printf "package\t%d\t%s\t%d\t%s\t%d\t%s\n", all[package, 0], share(package, 0), all[package, 1], share(package, 1), exported[package], package
  }' "${files[@]}")
{
  printf 'code\tcomments\ttests\tcomments\texported\tpackage\n'
  sed -n 's/^package\t//p' <<<"$counted" | sort -t$'\t' -k6
  awk -F'\t' '$1 == "package" { code += $2; tests += $4; exported += $6 } END { printf "%d\t\t%d\t\t%d\tall\n", code, tests, exported }' <<<"$counted"
} | column -t -s $'\t' -R 1,2,3,4,5
printf '\nlines  the 10 longest functions, without tests\n'
sed -n 's/^function\t//p' <<<"$counted" | sort -t$'\t' -k1,1nr -k2 | sed -n 1,10p
printf '\npackages of more than %d lines, without tests:' "${LARGE:-4000}"
awk -F'\t' -v large="${LARGE:-4000}" '$1 == "package" && $2 > large { printf " %s (%d)", $7, $2 }' <<<"$counted"
echo
