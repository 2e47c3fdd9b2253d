#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the reference tools that the tests compare with, where this user may; names them
# otherwise. Exit code 1 if something is missing in the end and CI=true, or if the compilers are.
set -euo pipefail

# what | how to see that it is there, without | in it | Debian, Ubuntu | Fedora, RHEL (empty: they have none)
tools=(
  "otf2-print|command -v otf2-print|otf2-tools|otf2"
  "Python reader of OTF2|/usr/bin/python3 -I -c 'import otf2'|python3-otf2 python3-six|python3-otf2 python3-six" # the package does not name six, which it imports
  "OTF2 C library|command -v otf2-config|libotf2-trace-dev|otf2-devel"
  "cppcheck|command -v cppcheck|cppcheck|cppcheck"
  "clang-format 14|command -v clang-format-14|clang-format-14|"
  "valgrind|command -v valgrind|valgrind|valgrind"
  "strace|command -v strace|strace|strace"
  "debootstrap|command -v debootstrap|debootstrap|debootstrap" # a root to install packages in
  "rpm|command -v rpm|rpm|rpm"
  "buildah|command -v buildah|buildah|buildah" # builds an image without a daemon
  "Environment Modules|! { ! command -v modulecmd && ! test -d /usr/share/lmod; }|environment-modules|environment-modules"
  "arm64 programs|command -v qemu-aarch64-static && test -e /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1|qemu-user-static libc6-arm64-cross|qemu-user-static"
  "pkg-config and CMake|command -v pkg-config && command -v cmake|pkg-config cmake|pkgconf cmake"
  "Slurm|command -v slurmctld && command -v slurmd && command -v srun && command -v munged && compgen -G '/usr/lib/*/pmix2/lib/libpmix.so'|slurm-wlm munge libpmix-dev|slurm-slurmd slurm-slurmctld munge pmix-devel"
  "MPI launchers|command -v mpirun.openmpi && command -v mpirun.mpich|openmpi-bin mpich|openmpi mpich"
  "Java|command -v java|openjdk-17-jre-headless|java-17-openjdk-headless" # Spark runs on it
  "ViTE|command -v vite|vite|" # a viewer of traces; Fedora has none
  "Chromium|compgen -G '/usr/bin/*chrom*'|chromium fonts-dejavu-core|chromium"
)

for need in "${CC:-gcc}" "${GO:-go}" make; do
  command -v "$need" >/dev/null || { echo "setup: $need is missing: install it first (Debian: gcc make; Go from https://go.dev/dl)" >&2; exit 1; }
done

missing() { # prints the rows of what is not there
  local row what how
  for row in "${tools[@]}"; do
    IFS='|' read -r what how _ _ <<<"$row"
    eval "$how" >/dev/null 2>&1 || echo "$row"
  done
}
names() { # column of the rows on standard input, on one line
  cut -d'|' -f"$1" | sed '/^$/d' | paste -sd' ' -
}

"$(dirname "$0")/../tests/reference/tools.sh" "${BUILD:-build}/tools" # newer readers, beside those of this machine

rows=$(missing)
if [ -n "$rows" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  packages=$(names 3 <<<"$rows")
  echo "setup: installing $packages"
  log=$(mktemp)
  # shellcheck disable=SC2086 # a list of names
  if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $packages; } >"$log" 2>&1; then
    tail -5 "$log" >&2
  fi
  rm -f "$log"
  rows=$(missing)
fi
[ -n "$rows" ] || exit 0

echo "setup: MISSING: $(cut -d'|' -f1 <<<"$rows" | paste -sd, - | sed 's/,/, /g')"
echo "setup:   the tests that compare with them are skipped. To have them:"
if command -v dnf >/dev/null; then
  packages=$(names 4 <<<"$rows")
  echo "setup:   sudo dnf install ${packages:-(nothing: this system has none of these)}   (with EPEL)"
else
  echo "setup:   sudo apt-get install $(names 3 <<<"$rows")"
fi
if [ "${CI:-}" = true ]; then
  echo "setup: with CI=true a missing reference tool is a failure" >&2
  exit 1
fi
