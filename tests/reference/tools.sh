#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Readers of OTF2 that this machine's release does not have, or has older, for tests that compare with them:
#
#	tools.sh OUT   OUT/otf2-3.2/otf2-print: that of OTF2 3.2
#	               OUT/prometheus/prometheus, promtool: what scrapes metrics, and checks them
#	               OUT/pipit/python: an interpreter that has pipit, where PIPIT=DIR names a checkout of it
#
# Everything is pinned by version and hash. What is not to be had is said in a line, and its tests are left out.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
fetch=$here/../realnccl/fetch.sh

not_checked() { echo "setup: NOT CHECKED: $1" >&2; }

otf2() {
  local dir=$out/otf2-3.2 why
  [ ! -x "$dir/otf2-print" ] || return 0
  if ! why=$("$fetch" otf2 "$dir" 2>&1 && "$fetch" libc "$out/libc" 2>&1); then
    not_checked "nothing is compared with OTF2 3.2: $(tail -1 <<<"$why")"
    return 0
  fi
  cat >"$dir/otf2-print.new" <<EOF
#!/bin/sh
exec "$out/libc/ld-linux-x86-64.so.2" --library-path "$dir:$out/libc" "$dir/otf2-print.bin" "\$@"
EOF
  chmod +x "$dir/otf2-print.new"
  mv "$dir/otf2-print.new" "$dir/otf2-print"
}

prometheus() {
  local why
  if ! why=$("$fetch" prometheus "$out/prometheus" 2>&1); then
    not_checked "no Prometheus scrapes metrics, and the dashboard is not evaluated: $(tail -1 <<<"$why")"
  fi
}

pipit() {
  local dir=$out/pipit log=$out/pipit.log
  if [ -z "${PIPIT:-}" ]; then
    [ -x "$dir/python" ] || not_checked "nothing is read with pipit: PIPIT=DIR names no checkout of it"
    return 0
  fi
  [ -f "$PIPIT/pipit/trace.py" ] || { echo "setup: PIPIT=$PIPIT: there is no pipit/trace.py" >&2; exit 1; }
  if [ ! -f "$dir/packages/.whole" ]; then
    rm -rf "$dir/packages"
    if ! /usr/bin/python3 -m venv "$dir/venv" >"$log" 2>&1 && ! python3 -m venv "$dir/venv" >"$log" 2>&1 ||
      ! "$dir/venv/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: --no-deps --require-hashes \
        --target "$dir/packages" -r "$here/pipit.txt" >"$log" 2>&1; then
      not_checked "nothing is read with pipit: $(tail -1 "$log")"
      return 0
    fi
    touch "$dir/packages/.whole"
  fi
  cat >"$dir/python.new" <<EOF
#!/bin/sh
PYTHONPATH="$(cd "$PIPIT" && pwd):$dir/packages" PYTHONDONTWRITEBYTECODE=1 exec "$dir/venv/bin/python" "\$@"
EOF
  chmod +x "$dir/python.new"
  mv "$dir/python.new" "$dir/python"
}

otf2
prometheus
pipit
