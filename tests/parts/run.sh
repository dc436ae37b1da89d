#!/usr/bin/env bash
# The smallest library, of the preset minimal: one family, kernels for GPUs of the tiers baseline and subgroup, no
# optional part. It is small enough, exports what every build
# exports, says what it omits, and pronounces a word. A model of another family is refused by its own name.
#
#   tests/parts/run.sh SOURCE_DIR FULL_LIBRARY [CXX]
#
# FULL_LIBRARY is libvkformer.so with all parts. Builds SOURCE_DIR/build/parts.
set -euo pipefail
source=$(realpath "$1")
full=$(realpath "$2")
cxx=${3:-c++}
build=$source/build/parts
limit=${VKFORMER_PARTS_LIMIT:-3300000}  # bytes

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'parts: %s\n' "$*" >&2; exit 1; }
say() { printf 'parts: %s\n' "$*"; }

cmake -S "$source" -B "$build" --preset minimal -DCMAKE_CXX_COMPILER="$cxx" >"$work/configure.log" 2>&1 ||
  { cat "$work/configure.log"; fail "the smallest build cannot be configured."; }
cmake --build "$build" >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log"; fail "it does not build."; }
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" 2>&1 ||
  { cat "$work/install.log"; fail "it cannot be installed."; }
library=$(realpath "$(find "$work/prefix" -name libvkformer.so)")

exported() { nm -D --defined-only "$1" | awk '{ print $3 }' | sort; }
exported "$full" >"$work/full"
exported "$library" >"$work/small"
# What our own programs call beside include/ may leave with its part.
comm -23 "$work/full" "$work/small" | c++filt | sed -E 's/^(vkf_\w+|vkformer::(\w+)).*/\1/; s/^vkformer:://' | sort -u |
  while read -r name; do
    if grep -rqw "$name" "$source/include"; then printf '%s\n' "$name"; fi
  done >"$work/missing"
[ ! -s "$work/missing" ] || fail "it lacks what include/ declares: $(head -n 5 "$work/missing" | paste -sd ' ')."
say "exported symbols: $(wc -l <"$work/small"), all that include/ declares"

if nm -D -C --undefined-only "$library" | grep vkformer >"$work/undefined"; then
  fail "it calls what it does not have: $(head -n 5 "$work/undefined")"
fi
strip -o "$work/stripped.so" "$library"
size=$(stat -c %s "$work/stripped.so")
[ "$size" -lt "$limit" ] || fail "it has $size bytes stripped; the limit is $limit."
say "$size bytes stripped"

export PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name vkformer.pc)")
read -ra flags <<<"$(pkg-config --cflags --libs vkformer)"
export LD_LIBRARY_PATH=${library%/*}
"$cxx" -std=c++20 "$source/tests/parts/absent.cpp" -o "$work/absent" "${flags[@]}"
"$work/absent" "$source/models/g2p-en"
"$cxx" -std=c++20 "$source/samples/embed_minimal/main.cpp" -o "$work/minimal" "${flags[@]}"
"$work/minimal" "$source/models/g2p-en" attention >"$work/words"
grep -qxF "$(printf 'attention\tAH0 T EH1 N SH AH0 N')" "$work/words" ||
  fail "embed_minimal printed [$(cat "$work/words")]."
mkdir "$work/mistral"
cp "$source/models/g2p-en/tokenizer.json" "$work/mistral/"
printf '{"model_type": "mistral"}\n' >"$work/mistral/config.json"
if "$work/minimal" "$work/mistral" a 2>"$work/refused"; then fail "it loads a mistral model."; fi
grep -qF '[mistral] This build omits the family' "$work/refused" ||
  fail "a mistral model is refused with [$(cat "$work/refused")]."
say "$(cat "$work/words"); $(cat "$work/refused")"
