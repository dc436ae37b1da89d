# The libraries that vkformer links to; applications that link it statically link to them too, so
# this file is also installed beside vkformerConfig.cmake.
find_path(VKFORMER_UTF8PROC_INCLUDE utf8proc.h REQUIRED)
find_library(VKFORMER_UTF8PROC_LIBRARY utf8proc REQUIRED)
find_path(VKFORMER_PCRE2_INCLUDE pcre2.h REQUIRED)
find_library(VKFORMER_PCRE2_LIBRARY NAMES pcre2-8 pcre2-8-static REQUIRED)
find_path(VKFORMER_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(VKFORMER_ZSTD_LIBRARY NAMES zstd zstd_static REQUIRED)
mark_as_advanced(VKFORMER_UTF8PROC_INCLUDE VKFORMER_UTF8PROC_LIBRARY VKFORMER_PCRE2_INCLUDE
  VKFORMER_PCRE2_LIBRARY VKFORMER_ZSTD_INCLUDE VKFORMER_ZSTD_LIBRARY)
foreach(package utf8proc pcre2 zstd)
  if(TARGET vkformer::${package})
    continue()
  endif()
  string(TOUPPER ${package} upper)
  add_library(vkformer::${package} UNKNOWN IMPORTED)
  set_target_properties(vkformer::${package} PROPERTIES
    IMPORTED_LOCATION ${VKFORMER_${upper}_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${VKFORMER_${upper}_INCLUDE})
endforeach()
