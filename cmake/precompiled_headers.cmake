# Parsing the standard library takes longer than compiling most of our files, so its common headers
# are parsed once for each target. Every file still includes what it uses: the presets `strict`
# build without these.
function(vkformer_precompile target)
  if(NOT VKFORMER_PRECOMPILE)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory>
    <optional> <span> <sstream> <string> <utility> <vector> ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # without it ccache gives up
  endif()
endfunction()
