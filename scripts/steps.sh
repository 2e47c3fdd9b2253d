# SPDX-License-Identifier: Apache-2.0
#
# Read by scripts that do something step by step, in the repository's root; self is the script. It goes on after a failed step: finish says
# what failed, and ends with 1 then.
# shellcheck shell=bash

# What is tested brings its files to the disk again and again, and a slow disk would decide how long that takes. Root keeps temporary files
# in memory, in a mount that no other process sees and that ends with this one.
if [ -z "${TESTS_IN_MEMORY+set}" ] && [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
  TESTS_IN_MEMORY=$(mktemp -d)
  export TESTS_IN_MEMORY
  # shellcheck disable=SC2016 # the inner shell's variables
  unshare --mount bash -c 'mount -t tmpfs -o size=50% tests "$TESTS_IN_MEMORY" && export TMPDIR=$TESTS_IN_MEMORY; exec "$0"' "$self"
  status=$?
  rmdir "$TESTS_IN_MEMORY"
  exit $status
fi

said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
passed=0
failed=()
step() { # name, command…
  local name=$1 begin=$SECONDS
  shift
  echo "== $name"
  if "$@" 2>&1 | tee -a "$said/steps"; then
    ended "$name" passed $((SECONDS - begin))
  else
    ended "$name" FAILED $((SECONDS - begin))
  fi
}
ended() { # name, passed or FAILED, seconds
  if [ "$2" = passed ]; then passed=$((passed + 1)); else failed+=("$1"); fi
  echo "== $1: $2 ($3 s)"
}

# Steps beside the others: what waits, for the network or for others, needs no processor. joined waits for them, and says then what they said.
beside=()
beside() { # name, command…
  local name=$1 log=$said/${#beside[@]}
  shift
  beside+=("$name")
  {
    begin=$SECONDS
    if "$@" >"$log" 2>&1; then how=passed; else how=FAILED; fi
    echo "$how $((SECONDS - begin))" >"$log.ended"
  } &
}
joined() { # fails if one of them has failed
  local k how took before=${#failed[@]}
  wait
  for k in "${!beside[@]}"; do
    echo "== ${beside[k]}"
    tee -a "$said/steps" <"$said/$k"
    read -r how took <"$said/$k.ended" || { how=FAILED took="?"; }
    ended "${beside[k]}" "$how" "$took"
  done
  beside=()
  [ ${#failed[@]} = "$before" ]
}
finish() {
  echo
  if [ -x "$said/skipped" ]; then "$said/skipped" -list "$said/tests" "$said/steps"; fi
  for name in "${failed[@]}"; do echo "FAILED: $name"; done
  echo "steps: $passed passed, ${#failed[@]} failed"
  [ ${#failed[@]} = 0 ]
}
