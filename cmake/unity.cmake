# A source of ours is short, and the templates of the standard library that it uses cost more than its own
# lines. A unity build is one with CMAKE_UNITY_BUILD, ON where this project is built alone. It compiles
# sources of a folder together, CMAKE_UNITY_BUILD_BATCH_SIZE at a time, and they share these. Each stays complete: the
# presets `strict` and `debug` compile every source alone.
#
# vkformer_unity(TARGET): groups of 8 sources of a folder, or that many, in the order of their names; 0 is
# all of a folder. Groups end at folders, so that a new source moves its neighbors only. What has
# options, definitions or SKIP_UNITY_BUILD_INCLUSION is compiled alone.
function(vkformer_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set(size 8)
  if(DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(size ${CMAKE_UNITY_BUILD_BATCH_SIZE})
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(here ${target} SOURCE_DIR)
  list(SORT sources)
  foreach(source IN LISTS sources)
    if(NOT source MATCHES "[.]cpp$")
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${here})
    set(alone "")
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS SKIP_UNITY_BUILD_INCLUSION
                     SKIP_PRECOMPILE_HEADERS)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(alone ON)
      endif()
    endforeach()
    if(alone)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${here} OUTPUT_VARIABLE group)
    cmake_path(GET group PARENT_PATH group)
    string(MAKE_C_IDENTIFIER "of_${group}" group)
    if(size GREATER 0)
      math(EXPR number "${count_of_${group}} + 0")
      math(EXPR count_of_${group} "${number} + 1")
      math(EXPR number "${number} / ${size}")
      string(APPEND group "_${number}")
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
