#!/usr/bin/env bash
# The zip for Windows. Its libraries need nothing but Windows. Applications built with it run under wine. Their words
# are right where wine finds a Vulkan driver.
#
#   tests/packages/windows.sh PACKAGES    PACKAGES is what tools/cross packages windows made
set -euo pipefail
packages=$(realpath "$1")
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'windows: %s\n' "$*" >&2; exit 1; }
export WINEDEBUG=-all WINEPREFIX=$PWD/build/cross/windows/wine

mkdir "$work/zip"
python3 -m zipfile -e "$packages"/vkformer-*-Windows-x86_64.zip "$work/zip"
prefix=$(echo "$work"/zip/vkformer-*)
for file in bin/libvkformer.dll lib/libvkformer.dll.a lib/libvkformer_conformance.a include/vkformer/vkformer.h \
  share/doc/libvkformer0/copyright; do
  [ -f "$prefix/$file" ] || fail "the zip has no [$file]."
done
for library in "$prefix"/bin/*.dll; do
  x86_64-w64-mingw32-objdump -p "$library" | sed -n 's/.*DLL Name: //p' | sort -u |
    grep -viE '^(kernel32|msvcrt|advapi32|shell32|user32|ole32|libvkformer|api-ms-win-.*)\.dll$' >"$work/foreign" || true
  [ ! -s "$work/foreign" ] || fail "[${library##*/}] needs $(paste -sd ' ' "$work/foreign"), which Windows does not have."
done
for source in samples/embed_minimal samples/embed_c tests/packages/open_library; do
  build=$work/$(basename "$source")
  { cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/x86_64-w64-mingw32.cmake" \
      -DVKFORMER_CROSS_ROOT="$PWD/build/cross/windows/root" -Dvkformer_DIR="$prefix/lib/cmake/vkformer" &&
    cmake --build "$build"; } >"$work/log" 2>&1 || { cat "$work/log"; fail "[$source] does not build with the zip."; }
  cp "$prefix"/bin/*.dll "$build"
done

wine "$work/open_library/open_library.exe" "$work/open_library/libvkformer.dll" models/g2p-en all >"$work/ids" ||
  fail "an application that opens the library ended with $?."
grep -q '^all: [0-9]' "$work/ids" || fail "open_library printed [$(cat "$work/ids")]."

# Wine's Vulkan wants a display.
display=()
if [ -z "${DISPLAY:-}" ] && command -v xvfb-run >/dev/null; then display=(xvfb-run -a); fi
for sample in embed_minimal embed_c; do
  code=0
  "${display[@]}" wine "$work/$sample/$sample.exe" models/g2p-en attention >"$work/words" 2>"$work/errors" || code=$?
  if [ "$code" = 0 ]; then
    tr -d '\r' <"$work/words" | grep -qxF "$(printf 'attention\tAH0 T EH1 N SH AH0 N')" ||
      fail "$sample printed [$(cat "$work/words")]."
    printf 'windows: %s runs on a device of wine\n' "$sample"
  elif grep -qi 'vulkan' "$work/errors"; then
    printf 'windows: %s ran up to its device: %s\n' "$sample" "$(tr -d '\r' <"$work/errors" | tail -n 1)"
  else
    fail "$sample ended with $code: $(cat "$work/errors")"
  fi
done
printf 'windows: the zip is complete, and applications build with it and start\n'
