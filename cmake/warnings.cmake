# One set of warnings for all our own code.
add_library(vkformer_warnings INTERFACE)
target_compile_options(vkformer_warnings INTERFACE
  $<$<CXX_COMPILER_ID:GNU,Clang>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>)
if(VKFORMER_WERROR)
  target_compile_options(vkformer_warnings INTERFACE -Werror)
endif()
