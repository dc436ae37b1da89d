# Kernels with cooperative matrices come as SPIR-V: out of shaders/spirv, which is part of the source,
# or out of VKFORMER_SPIRV_DIR. Compilers before 2025 (glslang 12 of Debian 12) cannot make them, and
# one way for every machine gives every machine the same bytes. tools/build_spirv makes such a folder.
# Beside NAME.spv lies NAME.txt, which says of what it was made, and by what:
#
#   compiler glslang 11:16.6.0
#   source SHA-256 of the shader, all that it includes and the compiler's options
#   spirv SHA-256 of NAME.spv
#   and the lines of its disassembly that constant_checks.cmake reads, for a disassembler of Debian 12
#   does not know these instructions either.

# vkformer_matrix_feature(OUT FEATURES): the one of a kernel that says which compilers know it; empty
# where it has none.
function(vkformer_matrix_feature out features)
  set(${out} "" PARENT_SCOPE)
  foreach(feature matrix matrix2)
    if(feature IN_LIST features)
      set(${out} ${feature} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# vkformer_spirv_options(OUT FEATURE DEFINES): drivers optimize it; what is folded here without knowing
# the sizes of the units only makes it larger. SPIR-V 1.6 is the least of SPV_NV_cooperative_matrix2.
function(vkformer_spirv_options out feature defines)
  set(target vulkan1.1)
  if(feature STREQUAL "matrix2")
    set(target vulkan1.3)
  endif()
  list(TRANSFORM defines PREPEND -D)
  set(${out} --target-env ${target} -g0 ${defines} PARENT_SCOPE)
endfunction()

# vkformer_shader_files(OUT PATH SHADERS): appends a shader and all that it includes, each once.
function(vkformer_shader_files out path shaders)
  set(found ${${out}} ${path})
  file(STRINGS ${path} lines REGEX "^#include \"[^\"]+\"")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" name "${line}")
    foreach(folder include params)
      set(included ${shaders}/${folder}/${name})
      if(EXISTS ${included} AND NOT included IN_LIST found)
        vkformer_shader_files(found ${included} ${shaders})
      endif()
    endforeach()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# vkformer_shader_hash(OUT FILES OPTIONS): of those files without comments, and of the options.
function(vkformer_shader_hash out files options)
  set(hashes "${options}")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "\r" "" text "${text}")  # where git changes the ends of lines
    string(REGEX REPLACE "[ \t]*//[^\n]*" "" text "${text}")
    string(REGEX REPLACE "\n+" "\n" text "${text}")
    string(SHA256 hash "${text}")
    string(APPEND hashes " ${hash}")
  endforeach()
  string(SHA256 hash "${hashes}")
  set(${out} ${hash} PARENT_SCOPE)
endfunction()

# vkformer_spirv_fault(OUT FOLDER NAME HASH): why the SPIR-V of a kernel cannot be used with sources of
# that hash; empty where it can.
function(vkformer_spirv_fault out folder name hash)
  set(source "")
  set(spirv "")
  if(EXISTS ${folder}/${name}.spv AND EXISTS ${folder}/${name}.txt)
    file(STRINGS ${folder}/${name}.txt source REGEX "^source ")
    file(STRINGS ${folder}/${name}.txt spirv REGEX "^spirv ")
    file(SHA256 ${folder}/${name}.spv bytes)
  endif()
  set(fault "")
  if(NOT source)
    set(fault "${name}.spv or ${name}.txt is not there")
  elseif(NOT source STREQUAL "source ${hash}")
    set(fault "${name}.spv was made of another source")
  elseif(NOT spirv STREQUAL "spirv ${bytes}")
    set(fault "${name}.spv is not the one that ${name}.txt describes")
  endif()
  set(${out} "${fault}" PARENT_SCOPE)
endfunction()
