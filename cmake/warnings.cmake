# One set of warnings for all our own code.
add_library(vkformer_warnings INTERFACE)
target_compile_options(vkformer_warnings INTERFACE
  $<$<CXX_COMPILER_ID:GNU,Clang>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>)
if(MSVC)
  # Public classes hold classes of the standard library; both sides use the same one.
  add_compile_options(/permissive- /utf-8 /bigobj /EHsc)
  target_compile_options(vkformer_warnings INTERFACE /W4 /wd4251)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in std::string concatenation that are not there (its bug 105651).
  target_compile_options(vkformer_warnings INTERFACE -Wno-restrict)
endif()
if(VKFORMER_WERROR)
  target_compile_options(vkformer_warnings INTERFACE $<IF:$<CXX_COMPILER_ID:MSVC>,/WX,-Werror>)
endif()
