#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Whether the C code is laid out as .clang-format says. Called by `make lint`; does nothing where clang-format 14 is not there, as other
# versions lay out otherwise. Tables and structures of one line are made by hand: of each file up to BY_HAND (30) percent of the lines may differ.
# Generated files are left out.
#
#   scripts/cformat.sh          fails with the files of which more differs
#   scripts/cformat.sh --list   how many lines of each file differ
set -euo pipefail
cd "$(dirname "$0")/.."

tool=${CLANG_FORMAT:-$(command -v clang-format-14 || echo clang-format)}
if ! "$tool" --version 2>/dev/null | grep -q 'version 14\.'; then
  echo "clang-format 14 is not there: the layout of the C code is not checked" >&2
  exit 0
fi
most=${BY_HAND:-30}
failed=0
while read -r file; do
  lines=$(wc -l <"$file")
  differ=$("$tool" "$file" | diff "$file" - | grep -c '^<' || true)
  [ "${1:-}" != --list ] || [ "$differ" -eq 0 ] || echo "$differ of $lines $file"
  if [ $((100 * differ)) -gt $((most * lines)) ]; then
    echo "$file: $differ of $lines lines are not laid out as .clang-format says" >&2
    failed=1
  fi
done < <(git ls-files "*.c" "*.h" | xargs grep -LE 'by .?make generate' --)
exit $failed
