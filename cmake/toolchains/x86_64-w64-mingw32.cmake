# Windows on x86-64, cross-compiled with Debian's g++-mingw-w64-x86-64-posix. VKFORMER_CROSS_ROOT is
# a folder with the headers that vkformer uses and static libraries of utf8proc, pcre2 and zstd for
# Windows. The program tools/cross makes one and runs the GPU-free tests under wine.
#
#   cmake -S . -B build/windows -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/x86_64-w64-mingw32.cmake
#         -DVKFORMER_CROSS_ROOT=build/cross/windows/root -DVKFORMER_BUILD_SAMPLES=OFF ...
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES VKFORMER_CROSS_ROOT)
if(NOT VKFORMER_CROSS_ROOT)
  message(FATAL_ERROR "VKFORMER_CROSS_ROOT is not set; give the folder with the packages.")
endif()
get_filename_component(cross_root ${VKFORMER_CROSS_ROOT} ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${cross_root} ${cross_root}/usr)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Both libraries are static there, and the runtimes of the compiler travel inside.
add_compile_definitions(UTF8PROC_STATIC PCRE2_STATIC)
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
find_program(VKFORMER_WINE NAMES wine64 wine)
if(VKFORMER_WINE)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${VKFORMER_WINE})
endif()
