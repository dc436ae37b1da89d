# Compiles the kernels that need a newer glslangValidator than many systems have, for builds with
# VKFORMER_SPIRV_DIR. Run by tools/build_spirv:
#
#   cmake -DGLSLANG=glslangValidator -DOUTPUT=folder -P cmake/build_spirv.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/matrix_spirv.cmake)
set(shaders ${CMAKE_CURRENT_LIST_DIR}/../shaders)
file(REAL_PATH ${shaders} shaders)
file(MAKE_DIRECTORY ${OUTPUT})
foreach(feature matrix matrix2)
  vkformer_probe_matrix(knows_${feature} ${feature} ${GLSLANG} ${OUTPUT})
endforeach()
if(NOT knows_matrix)
  message(FATAL_ERROR "[${GLSLANG}] does not know GL_KHR_cooperative_matrix, or does not run; give "
    "the path of glslangValidator 13 or newer.")
elseif(NOT knows_matrix2)
  message(STATUS "[${GLSLANG}] does not know GL_NV_cooperative_matrix2 (15 and newer do); its "
    "kernels are left out.")
endif()

function(vkf_kernel name source)
  cmake_parse_arguments(arg "UNROLLED" "" "FEATURES;DEFINES" ${ARGN})
  vkformer_matrix_feature(feature "${arg_FEATURES}")
  if(NOT feature OR NOT knows_${feature})
    return()
  endif()
  vkformer_matrix_command(command ${feature} ${GLSLANG} ${source} ${shaders} ${OUTPUT}/${name}.spv)
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
  vkformer_shader_hash(hash ${source} ${shaders})
  file(WRITE ${OUTPUT}/${name}.sha256 "${hash}\n")
  message(STATUS "${OUTPUT}/${name}.spv")
endfunction()
include(${shaders}/kernels.cmake)
