#!/usr/bin/env bash
# The installed package works for an application: installs into a temporary folder, moves that
# folder, builds samples/embed_minimal and, in C, samples/embed_c through find_package and through
# pkg-config, and runs them, the installed program and samples/embed_renderer.
#
#   tests/embed/run.sh BUILD_DIR SOURCE_DIR [CXX]
set -euo pipefail
build=$(realpath "$1")
source=$(realpath "$2")
cxx=${3:-c++}
model=$source/models/g2p-en
expected='AH0 T EH1 N SH AH0 N'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { printf 'embed: %s\n' "$*" >&2; exit 1; }
say() { printf 'embed: %s\n' "$*"; }

# check_words NAME COMMAND...: the command pronounces two words as it should.
check_words() {
  local name=$1 output
  shift
  output=$("$@" "$model" attention all) || fail "$name exited with $?."
  grep -qxF "$(printf 'attention\t%s' "$expected")" <<<"$output" ||
    fail "$name printed [$output], not attention<TAB>$expected."
  grep -qxF "$(printf 'all\tAO1 L')" <<<"$output" || fail "$name printed [$output] for all."
  say "$name: $(head -n 1 <<<"$output")"
}

for sample in embed_minimal/main.cpp embed_c/main.c; do
  lines=$(wc -l <"$source/samples/$sample")
  [ "$lines" -lt 100 ] || fail "samples/$sample has $lines lines; 99 are allowed."
done

cmake --install "$build" --prefix "$work/staged" >"$work/install.log" 2>&1 ||
  { cat "$work/install.log"; fail "the project could not be installed."; }
# What is installed must not remember where it was put.
mv "$work/staged" "$work/prefix"
if grep -rlI -e "$source" -e "$work/staged" "$work/prefix" >"$work/traces"; then
  fail "installed files name the folder they were built or staged in: $(tr '\n' ' ' <"$work/traces")"
fi

cmake -S "$source/samples/embed_minimal" -B "$work/find" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release >"$work/find.log" 2>&1 &&
  cmake --build "$work/find" >>"$work/find.log" 2>&1 ||
  { cat "$work/find.log"; fail "embed_minimal does not build through find_package."; }
check_words "find_package" "$work/find/embed_minimal"

cmake -S "$source/samples/embed_c" -B "$work/find_c" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_BUILD_TYPE=Release >"$work/find.log" 2>&1 &&
  cmake --build "$work/find_c" >>"$work/find.log" 2>&1 ||
  { cat "$work/find.log"; fail "embed_c does not build through find_package."; }
check_words "find_package, C" "$work/find_c/embed_c"

package=$(find "$work/prefix" -name vkformer.pc)
[ -n "$package" ] || fail "vkformer.pc is not installed."
export PKG_CONFIG_PATH=${package%/*}
read -ra flags <<<"$(pkg-config --cflags --libs vkformer)"
"$cxx" -std=c++20 "$source/samples/embed_minimal/main.cpp" -o "$work/minimal" "${flags[@]}"
cc -std=c99 -pedantic -Wall -Wextra -Werror "$source/samples/embed_c/main.c" -o "$work/c" "${flags[@]}"
library_folder=$(pkg-config --variable=libdir vkformer)
check_words "pkg-config" env LD_LIBRARY_PATH="$library_folder" "$work/minimal"

check_words "pkg-config, C" env LD_LIBRARY_PATH="$library_folder" "$work/c"

check_words "installed program" "$work/prefix/bin/vkformer" generate
check_words "adopted device" "$build/bin/embed_renderer"

# A host may link its own Vulkan loader: the library must not bring symbols of that name.
library=$(realpath "$library_folder/libvkformer.so")
if nm -D --defined-only "$library" | grep -E ' vk[A-Z]'; then
  fail "$library exports Vulkan symbols; see above."
fi
strip -o "$work/stripped.so" "$library"
size=$(stat -c %s "$work/stripped.so")
[ "$size" -lt 4000000 ] || fail "libvkformer.so has $size bytes stripped; the limit is 4000000."
say "libvkformer.so: $size bytes stripped"
