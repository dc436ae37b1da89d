# aarch64 Linux, cross-compiled with Debian's g++-aarch64-linux-gnu. VKFORMER_CROSS_ROOT is a folder
# with the arm64 packages of what vkformer uses; tools/cross makes one and runs the result.
#
#   cmake -S . -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake
#         -DVKFORMER_CROSS_ROOT=build/cross/aarch64/root -DVKFORMER_BUILD_TESTS=OFF ...
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VKFORMER_CROSS_ROOT)
if(NOT VKFORMER_CROSS_ROOT)
  message(FATAL_ERROR "VKFORMER_CROSS_ROOT is not set; give the folder with the arm64 packages.")
endif()
get_filename_component(CMAKE_SYSROOT ${VKFORMER_CROSS_ROOT} ABSOLUTE)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Programs of the build run under emulation.
find_program(VKFORMER_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(VKFORMER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${VKFORMER_QEMU} -L ${CMAKE_SYSROOT})
endif()
