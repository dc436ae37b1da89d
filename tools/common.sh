# Shared by tools/demo, tools/test and tools/drivers, which source it. Needs: bash, and the current
# folder at the top of the project.

say() { printf '%s: %s\n' "${0##*/}" "$*"; }
fail() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# build PRESET [TARGET...]: configures and builds build/PRESET, or the targets of it, with ccache where
# it is installed.
build() {
  local preset=$1
  shift
  if [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ] && command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
  fi
  say "building build/$preset"
  mkdir -p "build/$preset"
  cmake --preset "$preset" >"build/$preset/configure.log" 2>&1 || {
    cat "build/$preset/configure.log"
    fail "cmake could not configure build/$preset; its output is above."
  }
  cmake --build "build/$preset" ${1:+--target "$@"}
}

# Opening comment of the running script, as its help.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"; }
