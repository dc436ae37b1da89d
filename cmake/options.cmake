# What can be chosen when vkformer is built; docs/building.md has a table of what each part costs.
# Inside another project (add_subdirectory, FetchContent) only the library is built by default.
option(VKFORMER_BUILD_SAMPLES "Build the command line program and the embedding samples"
       ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_BUILD_PROGRAM "Build the command line program" ${VKFORMER_BUILD_SAMPLES})
option(VKFORMER_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_BUILD_CONFORMANCE "Build the conformance library; the tests need it"
       ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_BUILD_BENCH "Build the micro-benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_BUILD_SHARED "Build the shared library" ON)
option(VKFORMER_BUILD_STATIC "Build the static library" ${PROJECT_IS_TOP_LEVEL})
set(VKFORMER_TEST_SOURCE_DIR ${PROJECT_SOURCE_DIR} CACHE STRING
    "Where the tests find tests/ and models/ on the system that they run on")
option(VKFORMER_INSTALL "Make install rules and packages" ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_FUZZ "Build the fuzz targets as libFuzzer programs (preset fuzz, clang)" OFF)
option(VKFORMER_WERROR "Make warnings errors" OFF)
option(CMAKE_UNITY_BUILD "Compile the files of a folder some at a time" ${PROJECT_IS_TOP_LEVEL})
option(VKFORMER_PRECOMPILE "Parse the standard library's headers once a target"
       ${PROJECT_IS_TOP_LEVEL})

set(VKFORMER_FAMILIES all CACHE STRING
    "Model families to build: all, or files of runtime/model without .cpp, such as bert;marian")
set(VKFORMER_TIER matrix CACHE STRING
    "Highest tier to build kernels for: baseline, subgroup, fp16 or matrix")
set_property(CACHE VKFORMER_TIER PROPERTY STRINGS baseline subgroup fp16 matrix)
set(VKFORMER_SPIRV_DIR "" CACHE PATH
    "Folder of tools/build_spirv in place of shaders/spirv: kernels with cooperative matrices")
option(VKFORMER_INT64 "Build the kernels that software devices profit from (64-bit loads)" ON)
option(VKFORMER_WITH_TASKS "Whole tasks in one call: vkformer/tasks.h" ON)
option(VKFORMER_WITH_GRAMMAR "Constrained decoding: vkformer/grammar.h" ON)
option(VKFORMER_WITH_CHAT "Chat templates: vkformer/chat.h" ON)
option(VKFORMER_WITH_IMAGE "Pictures in, pictures of attention out: vkformer/picture.h, attention_view.h" ON)
option(VKFORMER_WITH_AUDIO "Sound in: vkformer/audio.h" ON)
option(VKFORMER_WITH_OPERATORS "Operators by name, attention without a model: vkformer/operators.h" ON)
option(VKFORMER_WITH_PROFILE "Profiles, benchmarks, tuning, plans as text: vkformer/benchmark.h" ON)
option(VKFORMER_WITH_WRITING "Files of models out: vkformer/quantize.h, model_pack.h" ON)
option(VKFORMER_MPI "Build vkformer_mpi, groups of devices over processes, and a program that has it" OFF)
option(VKFORMER_WITH_HUB "vkformer pull, where libcurl 7.85 and OpenSSL are installed" ON)
option(VKFORMER_WITH_SOFTWARE_KERNELS
       "Build the strategies and kernels that only software drivers use (runtime/software)" ON)

if(NOT VKFORMER_BUILD_SHARED AND NOT VKFORMER_BUILD_STATIC)
  message(FATAL_ERROR "VKFORMER_BUILD_SHARED and VKFORMER_BUILD_STATIC are both off; turn one on.")
endif()

if(VKFORMER_BUILD_TESTS AND NOT VKFORMER_BUILD_CONFORMANCE)
  message(FATAL_ERROR "The tests need VKFORMER_BUILD_CONFORMANCE; turn it on.")
endif()
foreach(part TASKS GRAMMAR CHAT IMAGE AUDIO OPERATORS PROFILE WRITING)
  if(NOT VKFORMER_WITH_${part} AND VKFORMER_BUILD_TESTS)
    message(FATAL_ERROR "The tests need VKFORMER_WITH_${part}; turn VKFORMER_BUILD_TESTS off.")
  endif()
endforeach()
foreach(part IMAGE OPERATORS PROFILE)
  if(NOT VKFORMER_WITH_${part} AND VKFORMER_BUILD_CONFORMANCE)
    message(FATAL_ERROR
      "Conformance needs VKFORMER_WITH_${part}; turn VKFORMER_BUILD_CONFORMANCE off.")
  endif()
endforeach()
if(VKFORMER_BUILD_CONFORMANCE AND NOT VKFORMER_BUILD_STATIC AND (WIN32 OR APPLE))
  message(FATAL_ERROR
    "Here the conformance library links to the static library; turn VKFORMER_BUILD_STATIC on.")
endif()

# Features of kernels (shaders/kernels.cmake) that this build omits.
set(VKFORMER_ABSENT_FEATURES "")
if(VKFORMER_TIER STREQUAL "baseline")
  list(APPEND VKFORMER_ABSENT_FEATURES subgroup fp16 tables dot8)
elseif(VKFORMER_TIER STREQUAL "subgroup")
  list(APPEND VKFORMER_ABSENT_FEATURES fp16)
elseif(NOT VKFORMER_TIER MATCHES "^(fp16|matrix)$")
  message(FATAL_ERROR
    "VKFORMER_TIER is [${VKFORMER_TIER}]; it must be baseline, subgroup, fp16 or matrix.")
endif()
if(NOT VKFORMER_INT64)
  list(APPEND VKFORMER_ABSENT_FEATURES int64)
endif()
if(VKFORMER_BUILD_TESTS AND (VKFORMER_ABSENT_FEATURES OR NOT VKFORMER_FAMILIES STREQUAL "all"))
  message(FATAL_ERROR "The tests need all families and tiers; turn VKFORMER_BUILD_TESTS off.")
endif()
if(NOT VKFORMER_WITH_SOFTWARE_KERNELS)
  list(APPEND VKFORMER_ABSENT_FEATURES software tables)
endif()
