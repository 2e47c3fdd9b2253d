#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fetches the static library of a published NCCL, pinned by version and hash, and its nccl.h:
#
#	fetch.sh DIRECTORY        leaves DIRECTORY/nccl.h and DIRECTORY/libnccl_static.a
#
# The package is Debian's; the mirror is the one that this machine's apt uses (or DEBIAN_MIRROR=URL). Nothing of the machine's
# apt is changed: lists and cache are DIRECTORY's own. A copy in ${XDG_CACHE_HOME:-~/.cache}/nccl-otf2 is taken if it is there,
# and one is left there if that folder is. Exit code 3, with one line that says why, where the package is not to be had.
set -euo pipefail

package=libnccl-dev version=2.29.7-1-1 architecture=amd64 suite=sid component=contrib
sha256=598ea23cc4b336d08554de28753ac2442443d1bec23ef9620c5f374cda5999dc
deb=${package}_${version}_${architecture}.deb
library=usr/lib/x86_64-linux-gnu/libnccl_static.a

out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ ! -f "$out/nccl.h" ] || exit 0 # the last thing to get there

nothing() { # why
  echo "$*" >&2
  exit 3
}
right() { # file
  [ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status
}
mirror() { # the address that apt has for this machine's own release
  local release
  [ -z "${DEBIAN_MIRROR:-}" ] || { echo "$DEBIAN_MIRROR"; return; }
  release=$(. /etc/os-release && [ "${ID:-}" = debian ] && echo "${VERSION_CODENAME:-}") || return 0
  apt-get indextargets --format '$(SITE)' 'Identifier: Packages' "Release: $release" 2>/dev/null | head -1
}
download() { # into $work
  local site keyring=/usr/share/keyrings/debian-archive-keyring.gpg log=$work/log
  command -v apt-get >/dev/null || nothing "no apt-get: $package $version is a package of Debian"
  site=$(mirror)
  [ -n "$site" ] || nothing "this machine's apt knows no mirror of Debian (set DEBIAN_MIRROR=URL)"
  mkdir -p "$work"/{lists,cache}/partial "$work/cache/archives/partial"
  echo "deb [arch=$architecture$([ ! -f $keyring ] || echo " signed-by=$keyring")] $site $suite $component" >"$work/sources.list"
  cat >"$work/apt.conf" <<EOF
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages { MetaKey "\$(COMPONENT)/binary-\$(ARCHITECTURE)/Packages"; flatMetaKey "Packages"; ShortDescription "Packages"; Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Packages"; Optional "0"; };
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
APT::Sandbox::User "root";
APT::Architecture "$architecture";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferencesparts "-";
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
EOF
  echo "real-nccl: fetching $package $version (100 MB)"
  if ! apt-get -c "$work/apt.conf" update >"$log" 2>&1 || grep -q '^[EW]: Failed' "$log"; then
    nothing "apt-get update: $(grep -m1 '^[EW]:' "$log" || tail -1 "$log")"
  fi
  (cd "$work" && apt-get -c "$work/apt.conf" download "$package=$version" >"$log" 2>&1) ||
    nothing "apt-get download $package=$version: $(grep -m1 '^E:' "$log" || tail -1 "$log")"
  right "$work/$deb" || nothing "$deb has another hash than the pinned one"
}

[ "$(uname -sm)" = "Linux x86_64" ] || nothing "the published library is for Linux on x86-64"
exec 9>"$out/.lock"
flock 9
[ ! -f "$out/nccl.h" ] || exit 0
work=$(mktemp -d "$out/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/nccl-otf2
if right "$cache/$deb"; then
  ln -s "$cache/$deb" "$work/$deb"
else
  download
  [ ! -d "$cache" ] || { cp "$work/$deb" "$cache/$deb.$$" && mv "$cache/$deb.$$" "$cache/$deb"; } || true
fi
dpkg-deb --fsys-tarfile "$work/$deb" | tar -x -C "$work" ./usr/include/nccl.h "./$library"
mv "$work/$library" "$out/libnccl_static.a"
mv "$work/usr/include/nccl.h" "$out/nccl.h"
