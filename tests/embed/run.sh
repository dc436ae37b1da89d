#!/usr/bin/env bash
# The installed package works for an application. The test installs into a temporary folder and moves that folder. It
# builds samples/embed_minimal and, in C, samples/embed_c through find_package and through pkg-config, shared and
# static. It runs them, the installed program and samples/embed_renderer. The Debian packages and the archive hold what
# they should; only vkformer's own symbols are exported. Taking the sources by add_subdirectory and FetchContent is
# configured; with VKFORMER_TEST_SOURCES=build it is also built, which takes minutes.
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

# An install of a build that lacks something writes nothing.
static_library=$build/lib/libvkformer.a
if [ -f "$static_library" ]; then
  mv "$static_library" "$static_library.away"
  code=0
  cmake --install "$build" --prefix "$work/half" >"$work/half.log" 2>&1 || code=$?
  mv "$static_library.away" "$static_library"
  [ "$code" != 0 ] && [ ! -e "$work/half" ] || fail "an install without libvkformer.a wrote something."
  grep -q 'target vkformer_product' "$work/half.log" ||
    fail "an install without libvkformer.a does not say how to build it: $(cat "$work/half.log")"
fi
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
library_folder=$(pkg-config --variable=libdir vkformer)
flags+=("-Wl,-rpath,$library_folder")
"$cxx" -std=c++20 "$source/samples/embed_minimal/main.cpp" -o "$work/minimal" "${flags[@]}"
cc -std=c99 -pedantic -Wall -Wextra -Werror "$source/samples/embed_c/main.c" -o "$work/c" "${flags[@]}"
check_words "pkg-config" "$work/minimal"
check_words "pkg-config, C" "$work/c"

check_words "installed program" "$work/prefix/bin/vkformer" generate
check_words "adopted device" "$build/bin/embed_renderer"

# consumer NAME CMAKE_ARGUMENTS...: configures tests/embed/consumer.
consumer() {
  local name=$1
  shift
  cmake -S "$source/tests/embed/consumer" -B "$work/$name" -DCMAKE_CXX_COMPILER="$cxx" \
    -DMAIN="$source/samples/embed_minimal/main.cpp" -DCMAKE_BUILD_TYPE=Release "$@" \
    >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; fail "$name cannot be configured."; }
}
build_consumer() {
  cmake --build "$work/$1" --target consumer >>"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log"; fail "$1 does not build."; }
}

if [ -f "$library_folder/libvkformer.a" ]; then
  consumer static -DHOW=find -DCOMPONENTS=static -DCMAKE_PREFIX_PATH="$work/prefix"
  build_consumer static
  if ldd "$work/static/consumer" | grep vkformer; then fail "the static consumer needs a library."; fi
  check_words "find_package, static" "$work/static/consumer"
  read -ra flags <<<"$(pkg-config --static --cflags --libs vkformer)"
  "$cxx" -std=c++20 "$source/samples/embed_minimal/main.cpp" -o "$work/static_minimal" \
    "${flags[@]/-lvkformer/-l:libvkformer.a}"
  check_words "pkg-config, static" "$work/static_minimal"
fi
consumer rpath -DHOW=find -DCOMPONENTS=shared -DCMAKE_PREFIX_PATH="$work/prefix"
build_consumer rpath
cmake --install "$work/rpath" --prefix "$work/installed" >>"$work/rpath.log"
check_words "installed, with vkformer::rpath" "$work/installed/bin/consumer"
consumer tools -DHOW=find '-DCOMPONENTS=shared;tools' -DCMAKE_PREFIX_PATH="$work/prefix"
for how in subdirectory fetch; do
  consumer "$how" -DHOW="$how" -DSOURCE="$source" -DVKFORMER_FAMILIES=marian
  if [ "${VKFORMER_TEST_SOURCES:-}" = build ]; then
    build_consumer "$how"
    program=$(find "$work/$how" -name consumer -type f -perm -u+x)
    check_words "$how" "$program"
  fi
  say "$how: configured"
done

# The packages: what they hold, and that the library in them works.
(cd "$work" && cpack --config "$build/CPackConfig.cmake" -G "DEB;TGZ" -B "$work/packages") \
  >"$work/cpack.log" 2>&1 || { cat "$work/cpack.log"; fail "cpack failed."; }
for name in libvkformer0 libvkformer-dev vkformer; do
  package=$(find "$work/packages" -maxdepth 1 -name "${name}_*.deb")
  [ -n "$package" ] || fail "there is no package $name."
  dpkg-deb -x "$package" "$work/debian"
  dpkg-deb -f "$package" Package Version Depends >"$work/$name.control"
done
grep -q 'Depends:.*libvkformer0 (= ' "$work/libvkformer-dev.control" ||
  fail "libvkformer-dev does not depend on its library: $(cat "$work/libvkformer-dev.control")"
for file in vkformer.h c/session.h vulkan_interop.h; do
  [ -f "$work/debian/usr/include/vkformer/$file" ] || fail "libvkformer-dev has no $file."
done
soname=$(find "$work/debian/usr/lib" -name 'libvkformer.so.0')
[ -n "$soname" ] || fail "libvkformer0 has no libvkformer.so.0."
readelf -d "$soname" | grep -q 'SONAME.*\[libvkformer.so.0\]' || fail "the soname has no version."
check_words "Debian packages" env LD_LIBRARY_PATH="${soname%/*}" "$work/debian/usr/bin/vkformer" generate
mkdir "$work/archive"
tar -xf "$work"/packages/vkformer-*.tar.gz -C "$work/archive"
check_words "archive" "$(find "$work/archive" -path '*/bin/vkformer')" generate

# Nothing is exported but what is ours. There is no symbol of Vulkan (a host may link its own loader), of the standard
# library or of the packages inside.
library=$(realpath "$library_folder/libvkformer.so")
nm -D -C --defined-only "$library" |
  grep -vE '^[0-9a-f]+ . (vkf_[a-z0-9_]+|((typeinfo|typeinfo name|vtable) for )?vkformer::.*|.* vkformer::choice_names?<.*)(@@VKFORMER_0)?$|VKFORMER_0$' \
    >"$work/exported" || true
if [ -s "$work/exported" ]; then
  head "$work/exported" >&2
  fail "$library exports what is not its own; see above."
fi
say "exported symbols: $(nm -D --defined-only "$library" | wc -l)"
strip -o "$work/stripped.so" "$library"
size=$(stat -c %s "$work/stripped.so")
[ "$size" -lt 6850000 ] || fail "libvkformer.so has $size bytes stripped; the limit is 6850000."
say "libvkformer.so: $size bytes stripped"

# What pages say of it, for x86-64 and the compiler of Debian 12.
if [ "$(uname -m)" = x86_64 ] && "$cxx" --version | grep -q 'Debian 12'; then
  stated=$(sed -n 's/^| `libvkformer.so`, stripped | \([0-9.]*\) MB.*/\1/p' "$source/README.md")
  awk -v size="$size" -v stated="$stated" 'BEGIN { d = size / 1e6 - stated; exit !(d * d <= 0.1 * 0.1) }' ||
    fail "README.md says that the stripped library has [$stated] MB; it has $size bytes."
  stated=$(sed -n 's/^Stripped, for x86-64: \([0-9,]*\) bytes.*/\1/p' "$source/docs/building.md" | tr -d ,)
  awk -v size="$size" -v stated="$stated" 'BEGIN { d = size / stated - 1; exit !(d * d <= 0.02 * 0.02) }' ||
    fail "docs/building.md says that the stripped library has [$stated] bytes; it has $size."
fi
