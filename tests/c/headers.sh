#!/usr/bin/env bash
# Public headers compile by themselves, as C++20 and C++23, with every compiler that is there,
# without exceptions and RTTI. vkformer.h and each header of c/ compile alone as C99, C11 and C++. They have no hidden
# padding, so that fields can be added at the end. What they declare is what the library exports.
#
#   tests/c/headers.sh SOURCE_DIR LIBRARY [VULKAN_INCLUDE]
set -euo pipefail
source=$(realpath "$1")
library=$(realpath "$2")
vulkan=${3:-/usr/include}
include=$source/include
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checked=0

fail() { printf 'headers: %s\n' "$*" >&2; exit 1; }

# compile TEXT COMPILER FLAGS...: the program must compile without a warning.
compile() {
  local text=$1 compiler=$2
  shift 2
  printf '%s\n' "$text" >"$work/main.txt"
  "$compiler" "$@" -Wall -Wextra -Wpedantic -Wshadow -Werror -I"$include" -idirafter "$vulkan" \
    -fsyntax-only "$work/main.txt" || fail "[$compiler $*] does not take [$text]"
  checked=$((checked + 1))
}

# check_compiler CXX CC
check_compiler() {
  local standard header
  for standard in c++20 c++2b; do
    for header in "$include"/vkformer/*.h "$include"/vkformer/c/*.h; do
      compile "#include <${header#"$include"/}>" "$1" -x c++ -std="$standard" -fno-exceptions -fno-rtti
    done
  done
  for standard in c99 c11; do
    for header in "$include"/vkformer/vkformer*.h "$include"/vkformer/c/*.h; do
      compile "#include <${header#"$include"/}>" "$2" -x c -std="$standard" -pedantic -Wpadded
    done
  done
  compile $'#include <vkformer/vkformer.h>\n#include <vkformer/vulkan_interop.h>' "$1" -x c++ -std=c++20
}

check_compiler g++ gcc
if command -v clang++ >/dev/null; then
  check_compiler clang++ clang
elif command -v clang++-14 >/dev/null; then
  check_compiler clang++-14 clang-14
else
  printf 'headers: Skipped clang: it is not installed.\n'
fi

cat "$include"/vkformer/c/*.h | sed 's,//.*,,' | tr '\n' ' ' |
  grep -oE 'VKFORMER_API [^;]*\bvkf_[a-z0-9_]+\(' | grep -oE 'vkf_[a-z0-9_]+\($' | tr -d '(' |
  sort -u >"$work/declared"
nm -D --defined-only --without-symbol-versions "$library" | awk '$3 ~ /^vkf_/ { print $3 }' | sort -u >"$work/exported"
diff "$work/declared" "$work/exported" >&2 || fail "declared (<) and exported (>) functions differ."
printf 'headers: %d compilations, %d C functions exported\n' "$checked" "$(wc -l <"$work/declared")"
