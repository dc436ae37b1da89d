# Writes the SPIR-V of a group of kernels as one C++ array, compressed together. What variants of a shader, and shaders
# of a family, have in common is then stored once. Run as
#
#   cmake -DFOLDER=<of the .spv files> -DKERNELS=a,b,c -DABSENT=c -DLISTS=l,l,m -DGROUP=g
#         -DOUTPUT=g.cpp -DZSTD=zstd -DSPIRV_DIS=spirv-dis -P embed_kernels.cmake
#
# Kernels that are absent, because this build has no tier for them, have no words. LISTS are the
# kernels' lists of specialization constants. The file does not compile where the SPIR-V of a kernel
# has a constant that its list lacks.
cmake_minimum_required(VERSION 3.25)
string(REPLACE "," ";" kernels "${KERNELS}")
string(REPLACE "," ";" absent "${ABSENT}")
string(REPLACE "," ";" lists "${LISTS}")
include(${CMAKE_CURRENT_LIST_DIR}/constant_checks.cmake)
set(files "")
set(sizes "")
set(at 0)
set(checks "")
foreach(kernel list IN ZIP_LISTS kernels lists)
  set(words 0)
  if(NOT kernel IN_LIST absent)
    list(APPEND files ${FOLDER}/${kernel}.spv)
    file(SIZE ${FOLDER}/${kernel}.spv bytes)
    math(EXPR words "${bytes} / 4")
    # Names are in what the compiler made, before it is optimized; what came as SPIR-V came with text.
    set(named ${FOLDER}/${kernel}.raw.spv)
    if(NOT EXISTS ${named})
      set(named ${FOLDER}/${kernel}.txt)
    endif()
    vkformer_constant_checks(kernel_checks ${kernel} ${named} ${list} ${SPIRV_DIS})
    string(APPEND checks "${kernel_checks}")
  endif()
  string(APPEND sizes ", ${at}, ${words}")
  math(EXPR at "${at} + ${words}")
endforeach()
set(packed ${FOLDER}/${GROUP}.zst)
if(files)
  # The size lets zstd choose a window that fits.
  math(EXPR bytes "${at} * 4")
  execute_process(COMMAND ${CMAKE_COMMAND} -E cat ${files}
    COMMAND ${ZSTD} --quiet --force --ultra -22 --stream-size=${bytes} -o ${packed}
    COMMAND_ERROR_IS_FATAL ANY)
  file(READ ${packed} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
else()
  set(bytes "0")
endif()
# catalogue.cpp reads the index: bytes of the block, then each kernel's place.
file(WRITE ${OUTPUT} "#include <cstdint>\n#include \"kernels/constant_checks.h\"\n"
  "namespace vkformer {\n${checks}}\nextern const uint8_t kSpirvGroup_${GROUP}[] = {${bytes}};\n"
  "extern const uint32_t kSpirvIndex_${GROUP}[] = {sizeof(kSpirvGroup_${GROUP})${sizes}};\n")
