# Writes a SPIR-V binary as a C++ array: cmake -DINPUT=x.spv -DOUTPUT=x.cpp -DNAME=x -P embed_spirv.cmake
file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR words "${digits} / 8")
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," body "${hex}")
file(WRITE ${OUTPUT} "#include <cstdint>\nextern const uint32_t kSpirv_${NAME}[] = {${body}};\n"
  "extern const uint32_t kSpirvWords_${NAME} = ${words};\n")
