#!/usr/bin/env bash
# Makes the wheel, installs it into an environment that has nothing else, and runs the small tests there;
# then `pip install .`, without a network.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../.."
source=$PWD
folder=$PWD/build/bindings/python
rm -rf "$folder"
mkdir -p "$folder"
/usr/bin/python3 -m pip wheel --quiet --no-index --wheel-dir "$folder" bindings/python
/usr/bin/python3 -m venv "$folder/empty"
"$folder/empty/bin/pip" install --quiet --no-index "$folder"/vkformer-*.whl
cd /
env -u PYTHONPATH -u VKFORMER_LIBRARY_DIR VKFORMER_TEST_INSTALLED=1 "$folder/empty/bin/python" -B \
  "$source/bindings/python/tests/small_test.py"
installed=$("$folder/empty/bin/python" -c 'import vkformer; print(vkformer.__file__)')
case "$installed" in
  "$folder"/empty/*) ;;
  *) printf 'wheel: [%s] was imported, not the installed package\n' "$installed"; exit 1 ;;
esac
[ "$("$folder/empty/bin/vkformer" --version)" = "$("$folder/empty/bin/python" -m vkformer --version)" ]
"$folder/empty/bin/python" -c 'import vkformer; assert vkformer.conformance(filters=["softmax"], repeats=1)[1] == 0'
/usr/bin/python3 -m venv "$folder/direct"
cd "$source/bindings/python"
"$folder/direct/bin/pip" install --quiet --no-index .
cd /
said=$("$folder/direct/bin/python" -c 'import sys, vkformer; print(vkformer.load(sys.argv[1]).generate("attention"))' "$source/models/g2p-en")
[ "$said" = 'AH0 T EH1 N SH AH0 N' ]
printf 'wheel: %s runs alone\n' "$(basename "$folder"/vkformer-*.whl)"
