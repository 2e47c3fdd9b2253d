#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# install.sh install|uninstall: puts what `make build` made into a prefix, or takes it away again. In the environment:
# BUILD (where it was made), PREFIX, LIBDIR (of libraries; the default is the system's), DESTDIR (put in front of all,
# for packages). Nothing is built here, so that nothing of the sources belongs to root afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

PREFIX=${PREFIX:-/usr/local}
DESTDIR=${DESTDIR:-}
# lib64 where that is where the system's 64-bit libraries are: not on Debian, whose lib64 has the loader alone.
if [ -z "${LIBDIR:-}" ]; then
  LIBDIR=$PREFIX/lib
  if [ -d /usr/lib64 ] && [ ! -L /usr/lib64 ] && [ ! -e /etc/debian_version ]; then LIBDIR=$PREFIX/lib64; fi
fi
share=$PREFIX/share
version=${VERSION:-$("$BUILD/nccl-otf2" version 2>/dev/null | sed -n '1s/^nccl-otf2 \([^ ]*\).*/\1/p')} ||
  { echo "install: $BUILD has no tool that runs here: make build first" >&2; exit 1; }

# mode | what | where to (a folder, or a file if it ends otherwise than in /). What ends in / is a folder with all below it.
files="
755|$BUILD/nccl-otf2|$PREFIX/bin/
755|$BUILD/libnccl-profiler-otf2.so|$LIBDIR/
755|$BUILD/libscorep_substrate_nccl_otf2.so|$LIBDIR/
755|$BUILD/libexec/nccl-otf2/nccl-otf2-collector|$PREFIX/libexec/nccl-otf2/
755|$BUILD/libexec/nccl-otf2/replay-host|$PREFIX/libexec/nccl-otf2/
755|$BUILD/libexec/nccl-otf2/callers/|$PREFIX/libexec/nccl-otf2/callers/
644|$BUILD/share/|$share/
644|plugin/mark.h|$PREFIX/include/nccl_otf2.h
644|python/|$share/nccl-otf2/python/
644|sql/|$share/nccl-otf2/sql/
644|README.md|$share/doc/nccl-otf2/
644|CHANGELOG.md|$share/doc/nccl-otf2/
644|LICENSE|$share/doc/nccl-otf2/
644|SECURITY.md|$share/doc/nccl-otf2/
644|docs/|$share/doc/nccl-otf2/docs/
644|$BUILD/THIRD-PARTY-LICENSES|$share/doc/nccl-otf2/
644|packaging/recipes/modulefile|$share/nccl-otf2/modulefiles/nccl-otf2/$version
"
# What the tutorials play, without the files that only tests compare with.
for recording in nccl-callbacks/09-straggler-4p nccl-causes/c05-balanced-4p nccl-causes/c07-startup-4p nccl-causes/c10-missing-4p; do
  for file in testdata/"$recording"/run.json testdata/"$recording"/p*.rec.jsonl.gz; do
    files+="644|$file|$share/nccl-otf2/recordings/${recording##*/}/
"
  done
done
# What not every build has.
[ ! -x "$BUILD/nccl-otf2-query" ] || files+="755|$BUILD/nccl-otf2-query|$PREFIX/bin/
644|$BUILD/THIRD-PARTY-LICENSES-query|$share/doc/nccl-otf2/
"
link=$LIBDIR/librccl-profiler-otf2.so # RCCL's name for the same library
made="$LIBDIR/pkgconfig/nccl-otf2.pc
$LIBDIR/cmake/nccl-otf2/nccl-otf2-config.cmake
$LIBDIR/cmake/nccl-otf2/nccl-otf2-config-version.cmake"

# prints mode, source and destination of each single file
each() {
  local mode what to name
  while IFS='|' read -r mode what to; do
    case "$mode|$what|$to" in
      '||') ;;
      */'|'*) (cd "$what" && find . -type f -not -path '*/__pycache__/*' -not -name '*.go') | LC_ALL=C sort | while read -r name; do echo "$mode|$what${name#./}|$to${name#./}"; done ;;
      */) echo "$mode|$what|$to$(basename "$what")" ;;
      *) echo "$mode|$what|$to" ;;
    esac
  done <<<"$files"
}

# prints a file that names paths: seen from its own folder, so that the prefix can be moved
text() {
  local here up libs
  here=$(dirname "$1")
  up=$(realpath -ms --relative-to="$here" "$PREFIX")
  libs=$(realpath -ms --relative-to="$PREFIX" "$LIBDIR")
  case "$1" in
    *.pc) cat <<END
prefix=\${pcfiledir}/$up
libdir=\${prefix}/$libs
includedir=\${prefix}/include
plugin=\${libdir}/libnccl-profiler-otf2.so

Name: nccl-otf2
Description: Marks of phases in programs whose NCCL or RCCL is recorded (nccl_otf2.h); plugin is what NCCL loads
Version: $version
Cflags: -I\${includedir}
Libs: -ldl
END
      ;;
    *-version.cmake) cat <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
END
      ;;
    *.cmake) cat <<END
# nccl-otf2::marks has the header nccl_otf2.h; NCCL_OTF2_PLUGIN is the library that NCCL loads.
get_filename_component(NCCL_OTF2_PREFIX "\${CMAKE_CURRENT_LIST_DIR}/$up" ABSOLUTE)
set(NCCL_OTF2_PLUGIN "\${NCCL_OTF2_PREFIX}/$libs/libnccl-profiler-otf2.so")
if(NOT TARGET nccl-otf2::marks)
  add_library(nccl-otf2::marks INTERFACE IMPORTED)
  set_target_properties(nccl-otf2::marks PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "\${NCCL_OTF2_PREFIX}/include" INTERFACE_LINK_LIBRARIES "\${CMAKE_DL_LIBS}")
endif()
END
      ;;
  esac
}

case "${1:-}" in
  install)
    each | while IFS='|' read -r mode what to; do
      [ -e "$what" ] || { echo "install: $what is missing: make build first" >&2; exit 1; }
      install -D -m "$mode" "$what" "$DESTDIR$to"
    done
    ln -sfn "$(basename "$BUILD/libnccl-profiler-otf2.so")" "$DESTDIR$link"
    for file in $made; do
      mkdir -p "$DESTDIR$(dirname "$file")"
      text "$file" >"$DESTDIR$file"
      chmod 644 "$DESTDIR$file"
    done
    echo "installed nccl-otf2 $version in $DESTDIR$PREFIX; see: $PREFIX/bin/nccl-otf2 doctor"
    ;;
  uninstall)
    {
      each | cut -d'|' -f3
      printf '%s\n' "$link" "$made"
    } | while read -r file; do
      rm -f -- "$DESTDIR$file"
      # folders that nobody else has anything in
      folder=$(dirname "$file")
      while [ "$folder" != "$PREFIX" ] && [ "$folder" != / ] && rmdir -- "$DESTDIR$folder" 2>/dev/null; do folder=$(dirname "$folder"); done
    done
    echo "removed nccl-otf2 from $DESTDIR$PREFIX"
    ;;
  *)
    echo "usage: BUILD=build PREFIX=/usr/local packaging/install.sh install|uninstall" >&2
    exit 2
    ;;
esac
