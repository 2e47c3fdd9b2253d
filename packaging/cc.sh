#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A compiler for another machine and an old C library: zig cc for TARGET. In the environment: ZIG, TARGET, NVML.
#
# go-nvml leaves NVML's functions undefined in the program and looks for the library when it runs. zig's linker does not know the
# flag for that, so they are those of a library without code (NVML), which packages.sh then takes out of the list of what the program needs.
set -euo pipefail
args=()
for arg; do
  case $arg in
    -Wl,--unresolved-symbols=*) args+=("$NVML") ;;
    *) args+=("$arg") ;;
  esac
done
exec "$ZIG" cc -target "$TARGET" "${args[@]}"
