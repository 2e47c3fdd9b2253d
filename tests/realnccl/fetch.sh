#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches published packages of Debian and takes out of them what is needed:
#
#	fetch.sh nccl DIRECTORY   nccl.h, libnccl_static.a
#	fetch.sh rccl DIRECTORY   rccl/rccl.h, librccl.so.1
#	fetch.sh otf2 DIRECTORY   OTF2 3.2's otf2-print, and its library
#	fetch.sh prometheus DIRECTORY   prometheus, promtool
#	fetch.sh libc DIRECTORY   the C and C++ libraries that newer packages want, with their loader
#
# NCCL, RCCL, OTF2 and Prometheus are pinned by version and hash; the C library is the one that Debian has now. The mirror is the one that this
# machine's apt uses (or DEBIAN_MIRROR=URL). Nothing of the machine's apt is changed: lists and cache are DIRECTORY's own. A copy
# in ${XDG_CACHE_HOME:-~/.cache}/nccl-otf2 is taken if it is there, and one is left there if that folder is. Exit code 3, with one
# line that says why, where the packages are not to be had.
set -euo pipefail

what=$1 out=$2 libraries=usr/lib/x86_64-linux-gnu
case $what in # packages as NAME VERSION SHA256 (-: any), files as PATH-IN-PACKAGES:NAME
nccl)
  suite=sid component=contrib megabytes=100
  packages=("libnccl-dev 2.29.7-1-1 598ea23cc4b336d08554de28753ac2442443d1bec23ef9620c5f374cda5999dc")
  files=(usr/include/nccl.h:nccl.h "$libraries/libnccl_static.a:libnccl_static.a") ;;
rccl)
  suite=experimental component=main megabytes=370
  packages=("librccl1 7.2.4-1~exp3 505da86bed73fa221b97681410dcdb25a6a4b05be9bf40023a976ba9936f060f"
    "librccl-dev 7.2.4-1~exp3 c224353521f931fc9e9eb0800e401d5dde27d428a144f86d3766e52b9f40fdd5")
  files=(usr/include/rccl/rccl.h:rccl/rccl.h "$libraries/librccl.so.1.0:librccl.so.1") ;;
otf2)
  suite=sid component=main megabytes=20 # lists of packages included
  packages=("otf2-tools 3.2-1 8a8c07262561d370aff1ff0b39a4e5fd02683a6ae7bc935ec0da9d3f7b7ccefd"
    "libopen-trace-format2-10u 3.2-1 0d8f14f904e68c95d17121ec3e60bea170c0e8c0375e9bee8187698c3d6d09b1")
  files=(usr/bin/otf2-print:otf2-print.bin "$libraries/libopen_trace_format2.so.10:libopen_trace_format2.so.10") ;;
prometheus)
  suite=bookworm component=main megabytes=30 # lists of packages included
  packages=("prometheus 2.42.0+ds-5+deb12u1 81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55")
  files=(usr/bin/prometheus:prometheus usr/bin/promtool:promtool) ;;
libc)
  suite=sid component=main megabytes=15 # lists of packages included
  packages=("libc6 - -" "libgcc-s1 - -" "libstdc++6 - -")
  files=()
  for file in ld-linux-x86-64.so.2 libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libgcc_s.so.1 libstdc++.so.6; do
    files+=("$libraries/$file:$file")
  done ;;
*) echo "fetch.sh: nccl, rccl, otf2, prometheus or libc?" >&2; exit 2 ;;
esac

mkdir -p "$out"
out=$(cd "$out" && pwd)
[ ! -f "$out/fetched" ] || exit 0

nothing() { # why
  echo "$*" >&2
  exit 3
}
right() { # file, hash
  [ -f "$1" ] && { [ "$2" = - ] || echo "$2  $1" | sha256sum --check --status; }
}
mirror() { # the address that apt has for this machine's own release
  local release
  [ -z "${DEBIAN_MIRROR:-}" ] || { echo "$DEBIAN_MIRROR"; return; }
  release=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || return 0
  apt-get indextargets --format '$(SITE)' 'Identifier: Packages' "Release: $release" 2>/dev/null | sed -n 1p
}
configure() { # an apt of its own in $work
  local site keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  command -v apt-get >/dev/null || nothing "no apt-get: ${packages[0]% *} is a package of Debian"
  site=$(mirror)
  [ -n "$site" ] || nothing "this machine's apt knows no mirror of Debian (set DEBIAN_MIRROR=URL)"
  mkdir -p "$work"/lists/partial "$work"/cache/archives/partial
  echo "deb [arch=amd64$([ ! -f $keyring ] || echo " signed-by=$keyring")] $site $suite $component" >"$work/sources.list"
  cat >"$work/apt.conf" <<EOF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {
  MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages";
  flatMetaKey "Packages";
  ShortDescription "Packages";
  Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Packages";
  Optional "0";
};
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
APT::Sandbox::User "root";
APT::Architecture "amd64";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
EOF
  echo "fetching $what (${packages[*]%% *}: $megabytes MB)"
  if ! apt-get -c "$work/apt.conf" update >"$log" 2>&1 || grep -q '^[EW]: Failed' "$log"; then
    nothing "apt-get update: $(grep -m1 '^[EW]:' "$log" || tail -1 "$log")"
  fi
}
package() { # name, version, hash: its file is $work/deb/NAME
  local wanted=$1 cached=$cache/$1_$2.deb
  [ "$2" = - ] || wanted=$1=$2
  mkdir -p "$work/deb" "$work/download"
  if [ "$2" != - ] && right "$cached" "$3"; then
    ln -s "$cached" "$work/deb/$1"
    return
  fi
  [ -f "$work/apt.conf" ] || configure
  (cd "$work/download" && apt-get -c "$work/apt.conf" download "$wanted" >"$log" 2>&1) ||
    nothing "apt-get download $wanted: $(grep -m1 '^E:' "$log" || tail -1 "$log")"
  mv "$work"/download/*.deb "$work/deb/$1"
  right "$work/deb/$1" "$3" || nothing "$wanted has another hash than the pinned one"
  if [ "$2" != - ] && [ -d "$cache" ]; then cp "$work/deb/$1" "$cached.$$" && mv "$cached.$$" "$cached" || true; fi
}

[ "$(uname -sm)" = "Linux x86_64" ] || nothing "the published libraries are for Linux on x86-64"
exec 9>"$out/.lock"
flock 9
[ ! -f "$out/fetched" ] || exit 0
work=$(mktemp -d "$out/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/nccl-otf2
for p in "${packages[@]}"; do
  # shellcheck disable=SC2086 # three words
  package $p
done
mkdir "$work/tree"
for deb in "$work"/deb/*; do dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$work/tree" --exclude=./usr/share; done
for file in "${files[@]}"; do
  mkdir -p "$out/$(dirname "${file#*:}")"
  cp --dereference --no-preserve=mode "$work/tree/${file%%:*}" "$out/${file#*:}"
  chmod +rx "$out/${file#*:}"
done
touch "$out/fetched"
