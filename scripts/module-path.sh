#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Gives the module another path, for those who publish it elsewhere: in go.mod, which is the one place that decides, and
# wherever tracked files name it.
#
#   scripts/module-path.sh example.org/group/nccl-otf2
set -euo pipefail
[ $# = 1 ] && [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._~-]*\.[A-Za-z]+(/[A-Za-z0-9][A-Za-z0-9._~-]*)+$ ]] || {
  echo "usage: scripts/module-path.sh PATH    (as example.org/group/name)" >&2
  exit 2
}
cd "$(git rev-parse --show-toplevel)"
old=$(sed -n 's/^module //p' go.mod)
git grep -lzF "$old" | xargs -0 sed -i "s#${old//./\\.}#$1#g"
gofmt -w $(git ls-files '*.go' | grep -v /testdata/)
echo "$old is now $1"
