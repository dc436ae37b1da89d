#!/usr/bin/env bash
# The packages for aarch64: what they need is in Debian, and what is in them runs under qemu, with an application built
# against the archive.
#
#   tests/packages/aarch64.sh PACKAGES    PACKAGES is what tools/cross packages aarch64 made
set -euo pipefail
packages=$(realpath "$1")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
root=$PWD/build/cross/aarch64/root
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'aarch64: %s\n' "$*" >&2; exit 1; }

# run PROGRAM ARGUMENTS...: under qemu, with the libraries and the driver of tools/cross.
run() {
  env VK_ICD_FILENAMES="$root/usr/share/vulkan/icd.d/lvp_icd.aarch64.json" LD_LIBRARY_PATH= qemu-aarch64-static -L "$root" "$@"
}
# In f32: docs/building.md says why.
pronounces() {
  local printed
  printed=$(run "$@" --weights f32) || fail "[$1] ended with $?: $printed"
  grep -qxF "$(printf 'attention\tAH0 T EH1 N SH AH0 N')" <<<"$printed" || fail "[$1] printed [$printed]."
}

own=$PWD/build/cross/apt-arm64
for name in libvkformer0 libvkformer-dev vkformer; do
  package=$(echo "$packages/${name}"_*_arm64.deb)
  [ -f "$package" ] || fail "there is no package [$name]."
  [ "$(dpkg-deb -f "$package" Architecture)" = arm64 ] || fail "[$package] is not for arm64."
  dpkg-deb -x "$package" "$work/debian"
done
# As on a system that has nothing: apt must find all that they need.
apt-get -qq -s -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::lists="$own/lists" \
  -o Dir::State::status="$own/status" -o Dir::Cache="$own" -o APT::Sandbox::User=root install --no-install-recommends \
  "$packages"/*_arm64.deb >"$work/installed" || fail "apt cannot install them: $(tail -n 5 "$work/installed")"
grep -q '^Inst libvkformer0 ' "$work/installed" || fail "apt installs [$(cat "$work/installed")]."
pronounces "$work/debian/usr/bin/vkformer" generate models/g2p-en attention

mkdir "$work/archive"
tar -C "$work/archive" --strip-components 1 -xf "$packages"/vkformer-*-Linux-aarch64.tar.gz
pronounces "$work/archive/bin/vkformer" generate models/g2p-en attention
for sample in embed_minimal embed_c; do
  { cmake -S "samples/$sample" -B "$work/$sample" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/aarch64-linux-gnu.cmake" \
      -DVKFORMER_CROSS_ROOT="$root" -Dvkformer_DIR="$work/archive/lib/cmake/vkformer" &&
    cmake --build "$work/$sample"; } >"$work/log" 2>&1 || { cat "$work/log"; fail "$sample does not build with the archive."; }
done
# These two are not run: they take models as they are, in f16, which this driver cannot compile.
cmake -S tests/packages/open_library -B "$work/open" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/aarch64-linux-gnu.cmake" \
  -DVKFORMER_CROSS_ROOT="$root" -Dvkformer_DIR="$work/archive/lib/cmake/vkformer" >"$work/log" 2>&1 &&
  cmake --build "$work/open" >>"$work/log" 2>&1 || { cat "$work/log"; fail "open_library does not build."; }
run "$work/open/open_library" "$work/archive/lib/libvkformer.so.0" models/g2p-en all >"$work/ids"
grep -q '^all: [0-9]' "$work/ids" || fail "open_library printed [$(cat "$work/ids")]."
printf 'aarch64: packages and archive run under qemu, and applications build with them\n'
