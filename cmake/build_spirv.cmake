# Makes a folder of SPIR-V of the kernels with cooperative matrices (matrix_spirv.cmake), or checks that
# it is of these sources. Run by tools/build_spirv:
#
#   cmake -DOUTPUT=folder -DGLSLANG=glslangValidator -DSPIRV_DIS=spirv-dis -P cmake/build_spirv.cmake
#   cmake -DOUTPUT=folder -DCHECK=ON -P cmake/build_spirv.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/matrix_spirv.cmake)
file(REAL_PATH ${CMAKE_CURRENT_LIST_DIR}/../shaders shaders)
set(names "")
set(faults "")

if(NOT CHECK)
  execute_process(COMMAND ${GLSLANG} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "Version: ([0-9:.]+)" _ "${version}")
  set(compiler "glslang ${CMAKE_MATCH_1}")
endif()

function(make_spirv name source hash options)
  set(spirv ${OUTPUT}/${name}.spv)
  execute_process(
    COMMAND ${GLSLANG} --quiet ${options} -I${shaders}/include -I${shaders}/params
            ${shaders}/${source} -o ${spirv}
    RESULT_VARIABLE failed)
  if(NOT failed EQUAL 0)
    message(FATAL_ERROR "[${GLSLANG}] does not compile ${source}; glslang 15 of 2025 and newer ones "
      "do, such as that of `tools/drivers get lavapipe-newest`.")
  endif()
  execute_process(COMMAND ${SPIRV_DIS} --no-color --no-indent ${spirv} -o ${spirv}.text
    COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${spirv}.text constants
    REGEX "^OpDecorate %[A-Za-z0-9_]+ SpecId |= OpSpecConstant(True|False)? |^%gl_WorkGroupSize = ")
  file(REMOVE ${spirv}.text)
  list(JOIN constants "\n" constants)
  file(SHA256 ${spirv} bytes)
  file(WRITE ${OUTPUT}/${name}.txt
    "compiler ${compiler}\nsource ${hash}\nspirv ${bytes}\n${constants}\n")
  message(STATUS "${spirv}")
endfunction()

function(vkf_kernel name source)
  cmake_parse_arguments(arg "UNROLLED" "" "FEATURES;DEFINES" ${ARGN})
  vkformer_matrix_feature(feature "${arg_FEATURES}")
  if(NOT feature)
    return()
  endif()
  vkformer_spirv_options(options ${feature} "${arg_DEFINES}")
  vkformer_shader_files(files ${shaders}/${source} ${shaders})
  vkformer_shader_hash(hash "${files}" "${options}")
  if(CHECK)
    vkformer_spirv_fault(fault ${OUTPUT} ${name} ${hash})
    set(faults ${faults} ${fault} PARENT_SCOPE)
  else()
    make_spirv(${name} ${source} ${hash} "${options}")
  endif()
  set(names ${names} ${name} PARENT_SCOPE)
endfunction()
include(${shaders}/kernels.cmake)

# A file of a kernel that is no more.
file(GLOB found ${OUTPUT}/*.spv ${OUTPUT}/*.txt)
foreach(file IN LISTS found)
  get_filename_component(name ${file} NAME_WE)
  if(name IN_LIST names)
    continue()
  elseif(CHECK)
    list(APPEND faults "${file} is of no kernel")
  else()
    file(REMOVE ${file})
  endif()
endforeach()
if(faults)
  list(JOIN faults "; " faults)
  message(FATAL_ERROR "[${OUTPUT}] ${faults}. Run tools/build_spirv.")
endif()
