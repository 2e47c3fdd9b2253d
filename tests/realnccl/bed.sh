#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the beds in which programs run on a real NCCL: one folder per library in OUT, each with the library, our stand-ins and
# the driver program. Called by realnccl.mk, which sets CC, CFLAGS and REALNCCL and has made OUT/common.
#
#	bed.sh OUT
#
# OUT/beds names the folders, one a line. Where the published library is not to be had, OUT/NOT_CHECKED says why, as does a line
# on standard error; that is no failure. A library given as REALNCCL=DIR that cannot be used is one.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
exec 8>"$out/.lock"
flock 8
beds=()

release() { # nccl.h
  sed -nE 's/^#define NCCL_(MAJOR|MINOR|PATCH) +([0-9]+).*/\2/p' "$1" | paste -sd.
}
# What a static NCCL leaves to the linker is the CUDA runtime: ours takes its place. enhcompat.o has weak replacements of
# functions of the runtime, which would win when the archive is linked whole. Without --no-relax GNU ld 2.40 makes a library in
# which loading a plugin crashes.
link_static() { # package folder, bed
  local bed=$2 lib=$2/.lib.a
  [ ! -f "$bed/libnccl.so.2" ] || return 0
  cp "$1/libnccl_static.a" "$lib"
  ar d "$lib" enhcompat.o
  ${CXX:-g++} -shared -o "$bed/libnccl.so.2.new" -Wl,-soname,libnccl.so.2 -Wl,--no-relax \
    -Wl,--whole-archive "$lib" -Wl,--no-whole-archive "$out/common/isoc23.o" "$bed/libcudart.so.12" -lpthread -lrt -ldl
  mv "$bed/libnccl.so.2.new" "$bed/libnccl.so.2"
  rm "$lib" "$1/libnccl_static.a" # 240 MB each
}
furnish() { # bed
  local f
  mkdir -p "$1"
  for f in libcudart.so.12 libnvidia-ml.so.1 libyield.so libshape.so; do ln -sfn "../common/$f" "$1/$f"; done
}
# The driver program is compiled against the library's own nccl.h.
driver() { # bed, folder of nccl.h
  local bed=$1 sources=("$here"/run/*.c) newest
  newest=$(ls -t "${sources[@]}" "$here"/*/*.h "$2/nccl.h" "$here/bed.sh" | head -1)
  [ ! "$bed/ncclrun" -nt "$newest" ] || return 0
  # shellcheck disable=SC2086 # flags
  $CC $CFLAGS -I"$here/cuda" -isystem "$2" -o "$bed/ncclrun.new" "${sources[@]}" "$bed/libnccl.so.2" "$bed/libcudart.so.12" \
    -Wl,-rpath,'$ORIGIN' -Wl,--allow-shlib-undefined -pthread -lm
  mv "$bed/ncclrun.new" "$bed/ncclrun"
}
published() {
  local why status=0 bed header=$out/package/nccl.h
  if [ -f "$header" ] && [ ! -f "$out/package/libnccl_static.a" ] && [ ! -f "$out/$(release "$header")/libnccl.so.2" ]; then rm "$header"; fi
  { why=$("$here/fetch.sh" "$out/package" 2>&1 >&3); } 3>&1 || status=$?
  case $status in
  0) ;;
  3) echo "$why" | tail -1 >"$out/NOT_CHECKED"
    echo "real-nccl: NOT CHECKED: nothing runs on the published NCCL: $(<"$out/NOT_CHECKED")" >&2
    return 0 ;;
  *) echo "$why" >&2; return "$status" ;;
  esac
  rm -f "$out/NOT_CHECKED"
  bed=$out/$(release "$header")
  furnish "$bed"
  link_static "$out/package" "$bed"
  driver "$bed" "$out/package"
  beds=("$bed" "${beds[@]}")
}
fail() { # why
  echo "real-nccl: $*" >&2
  exit 1
}
given() { # DIR
  local dir header library bed
  dir=$(cd "$1" 2>/dev/null && pwd) || fail "REALNCCL: no folder $1"
  library=$(ls "$dir"/libnccl.so.2 "$dir"/lib/libnccl.so.2 2>/dev/null | head -1) || true
  header=$(ls "$dir"/nccl.h "$dir"/include/nccl.h 2>/dev/null | head -1) || true
  [ -n "$library" ] || fail "REALNCCL: no libnccl.so.2 in $dir"
  [ -n "$header" ] || fail "REALNCCL: no nccl.h in $dir or $dir/include"
  readelf -d "$library" | grep -q 'NEEDED.*\[libcudart\.so\.12\]' ||
    fail "REALNCCL: $library does not take libcudart.so.12 as a shared library; only such a library can run without a GPU"
  bed=$out/given-$(release "$header")
  while [[ " ${beds[*]} " == *" $bed "* ]]; do bed=$bed+; done
  furnish "$bed"
  ln -sfn "$library" "$bed/libnccl.so.2"
  driver "$bed" "$(dirname "$header")"
  beds+=("$bed")
}

IFS=: read -ra dirs <<<"${REALNCCL:-}"
for dir in "${dirs[@]}"; do given "$dir"; done
published
[ ${#beds[@]} = 0 ] || printf '%s\n' "${beds[@]}" >"$out/beds.new"
[ ${#beds[@]} != 0 ] || : >"$out/beds.new"
mv "$out/beds.new" "$out/beds"
