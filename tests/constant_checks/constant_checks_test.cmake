# Compiles small shaders and the assertions that the build makes of them (cmake/constant_checks.cmake).
cmake_minimum_required(VERSION 3.25)
include(${SOURCE}/cmake/constant_checks.cmake)

# check(NAME DECLARATIONS [SENTENCE]): a shader with these constants, whose list is
# VKF_ACTIVATION_CONSTANTS, is accepted, or refused with the sentence.
function(check name declarations)
  file(WRITE ${FOLDER}/${name}.comp "#version 450\n#extension GL_GOOGLE_include_directive : require\n"
    "#include \"rowwise.h\"\nlayout(local_size_x_id = 0) in;\n${declarations}\n"
    "layout(binding = 0) buffer Y { float y[]; };\n"
    "void main() { y[gl_GlobalInvocationID.x] = float(kLocalSize) + float(kKind) + float(kChunk); }\n")
  execute_process(
    COMMAND ${GLSLANG} --quiet --target-env vulkan1.1 -I${SOURCE}/shaders/params ${FOLDER}/${name}.comp
            -o ${FOLDER}/${name}.spv
    COMMAND_ERROR_IS_FATAL ANY)
  vkformer_constant_checks(checks ${name} ${FOLDER}/${name}.spv VKF_ACTIVATION_CONSTANTS ${SPIRV_DIS})
  file(WRITE ${FOLDER}/${name}.cpp
    "#include \"kernels/constant_checks.h\"\nnamespace vkformer {\n${checks}}\n")
  execute_process(
    COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I${SOURCE}/runtime -I${SOURCE}/shaders -I${GENERATED}
            ${FOLDER}/${name}.cpp
    RESULT_VARIABLE failed ERROR_VARIABLE text)
  if(NOT ARGN AND failed)
    message(FATAL_ERROR "[${name}] is refused, but fits its list:\n${text}")
  elseif(ARGN AND NOT failed)
    message(FATAL_ERROR "[${name}] is accepted, but must be refused.")
  endif()
  foreach(sentence IN LISTS ARGN)
    string(FIND "${text}" "${sentence}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "[${name}] is refused without '${sentence}':\n${text}")
    endif()
  endforeach()
endfunction()

set(size "layout(constant_id = 0) const uint kLocalSize = 64;")
set(kind "layout(constant_id = 1) const uint kKind = 0;")
set(chunk "layout(constant_id = 2) const uint kChunk = 512;")
check(listed "VKF_CONSTANTS(VKF_ACTIVATION_CONSTANTS)")
check(by_hand "${size}\n${kind}\n${chunk}")
check(other_id "${size}\n${kind}\nlayout(constant_id = 3) const uint kChunk = 512;"
  "[other_id] Its SPIR-V has the specialization constant 3, 'kChunk', uint, default 512, which VKF_ACTIVATION_CONSTANTS does not list")
check(other_name "${size}\n${chunk}\nlayout(constant_id = 1) const uint kOther = 0;\n#define kKind kOther"
  "[other_name] Its SPIR-V has the specialization constant 1, 'kOther', uint, default 0")
check(other_type "${size}\n${chunk}\nlayout(constant_id = 1) const float kKind = 0.0;"
  "[other_type] Its SPIR-V has the specialization constant 1, 'kKind', float, default 0")
check(other_switch "${size}\n${chunk}\nlayout(constant_id = 1) const bool kKind = false;"
  "[other_switch] Its SPIR-V has the specialization constant 1, 'kKind', bool")
check(other_default "${size}\n${kind}\nlayout(constant_id = 2) const uint kChunk = 256;"
  "[other_default] Its SPIR-V has the specialization constant 2, 'kChunk', uint, default 256")
