#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes the beds in which programs run on a real NCCL: one folder per library in OUT, each with the library, our stand-ins and
# the driver program. Called by realnccl.mk, which sets CC, CFLAGS, REALNCCL and RCCL and has made OUT/common.
#
#	bed.sh OUT
#
# OUT/beds names the folders, one a line. Where the published library is not to be had, OUT/NOT_CHECKED says why (of RCCL:
# OUT/RCCL_NOT_CHECKED), as does a line on standard error; that is no failure. A library given as REALNCCL=DIR that cannot be
# used is one.
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
furnish() { # bed, stand-ins
  local bed=$1 f
  shift
  mkdir -p "$bed"
  for f in "$@" libyield.so libshape.so; do ln -sfn "../common/$f" "$bed/$f"; done
}
# The driver program is compiled against the library's own header.
driver() { # bed, header, flags of the compiler and libraries
  local bed=$1 header=$2 sources=("$here"/run/*.c) newest
  shift 2
  newest=$(ls -t "${sources[@]}" "$here"/*/*.h "$header" "$here/bed.sh" | sed -n 1p)
  [ ! "$bed/ncclrun" -nt "$newest" ] || return 0
  # shellcheck disable=SC2086 # flags
  $CC $CFLAGS -I"$here/cuda" -o "$bed/ncclrun.new" "${sources[@]}" "$@" -Wl,--allow-shlib-undefined -pthread -lm
  mv "$bed/ncclrun.new" "$bed/ncclrun"
}
driver_for_nccl() { # bed, nccl.h
  local flags=(-isystem "$(dirname "$2")" "$1/libnccl.so.2" "$1/libcudart.so.12" -Wl,-rpath,'$ORIGIN')
  driver "$1" "$2" "${flags[@]}"
  # shellcheck disable=SC2086 # flags
  [ "$1/ncclplay" -nt "$here/play/ncclplay.c" ] ||
    $CC $CFLAGS -I"$here/cuda" -o "$1/ncclplay" "$here/play/ncclplay.c" "${flags[@]}" -Wl,--allow-shlib-undefined
}
fetch() { # what, name in the message, file for the reason: false if it is not to be had
  local why status=0
  { why=$("$here/fetch.sh" "$1" "$out/$1" 2>&1 >&3); } 3>&1 || status=$?
  rm -f "$3"
  case $status in
  0) return 0 ;;
  3) echo "$why" | tail -1 >"$3"
    echo "real-nccl: NOT CHECKED: nothing runs on the published $2: $(<"$3")" >&2
    return 1 ;;
  *) fail "$why" ;;
  esac
}
published() {
  local bed header=$out/nccl/nccl.h
  # The archive is not kept once it is linked.
  if [ -f "$header" ] && [ ! -f "$out/nccl/libnccl_static.a" ] && [ ! -f "$out/$(release "$header")/libnccl.so.2" ]; then rm -f "$out/nccl/fetched"; fi
  fetch nccl NCCL "$out/NOT_CHECKED" || return 0
  bed=$out/$(release "$header")
  furnish "$bed" libcudart.so.12 libnvidia-ml.so.1
  link_static "$out/nccl" "$bed"
  driver_for_nccl "$bed" "$header"
  beds=("$bed" "${beds[@]}")
}
# RCCL takes the HIP runtime as a shared library. On a machine whose C library is older than it wants, a newer one lies beside it,
# for the driver program alone.
rccl() {
  local bed header=$out/rccl/rccl/rccl.h
  fetch rccl RCCL "$out/RCCL_NOT_CHECKED" || return 0
  bed=$out/rccl-$(release "$header")
  furnish "$bed" libamdhip64.so.7 librocm_smi64.so.7
  ln -sfn ../rccl/librccl.so.1 "$bed/librccl.so.1"
  local flags=(-I"$here/hip/include" -isystem "$out/rccl" "$bed/librccl.so.1" "$bed/libamdhip64.so.7" -Wl,--disable-new-dtags)
  if ! [ -d "$out/libc" ]; then
    driver "$bed" "$header" "${flags[@]}" -Wl,-rpath,'$ORIGIN'
    if loads "$bed"; then beds+=("$bed"); return 0; fi
    rm -f "$bed/ncclrun"
  fi
  fetch libc RCCL "$out/RCCL_NOT_CHECKED" || return 0
  ln -sfn ../libc "$bed/libc"
  driver "$bed" "$header" "${flags[@]}" -Wl,-rpath,'$ORIGIN:$ORIGIN/libc' -Wl,--dynamic-linker="$bed/libc/ld-linux-x86-64.so.2"
  loads "$bed" || fail "$bed/ncclrun does not start"
  beds+=("$bed")
}
loads() { # bed: without a program the driver says how it is used
  local status=0
  "$1/ncclrun" >/dev/null 2>&1 || status=$?
  [ $status = 2 ]
}
fail() { # why
  echo "real-nccl: $*" >&2
  exit 1
}
given() { # DIR
  local dir header library bed
  dir=$(cd "$1" 2>/dev/null && pwd) || fail "REALNCCL: no folder $1"
  library=$(ls "$dir"/libnccl.so.2 "$dir"/lib/libnccl.so.2 2>/dev/null | sed -n 1p) || true
  header=$(ls "$dir"/nccl.h "$dir"/include/nccl.h 2>/dev/null | sed -n 1p) || true
  [ -n "$library" ] || fail "REALNCCL: no libnccl.so.2 in $dir"
  [ -n "$header" ] || fail "REALNCCL: no nccl.h in $dir or $dir/include"
  readelf -d "$library" | grep 'NEEDED.*\[libcudart\.so\.12\]' >/dev/null ||
    fail "REALNCCL: $library does not take libcudart.so.12 as a shared library; only such a library can run without a GPU"
  bed=$out/given-$(release "$header")
  while [[ " ${beds[*]} " == *" $bed "* ]]; do bed=$bed+; done
  furnish "$bed" libcudart.so.12 libnvidia-ml.so.1
  ln -sfn "$library" "$bed/libnccl.so.2"
  driver_for_nccl "$bed" "$header"
  beds+=("$bed")
}

IFS=: read -ra dirs <<<"${REALNCCL:-}"
for dir in "${dirs[@]}"; do given "$dir"; done
published
[ -z "${RCCL:-}" ] || rccl
[ ${#beds[@]} = 0 ] || printf '%s\n' "${beds[@]}" >"$out/beds.new"
[ ${#beds[@]} != 0 ] || : >"$out/beds.new"
mv "$out/beds.new" "$out/beds"
