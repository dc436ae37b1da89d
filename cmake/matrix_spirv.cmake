# Kernels with cooperative matrices: what compiles them, and from what they were compiled. Compilers
# before 2023 (glslang 12 of Debian 12) do not know GL_KHR_cooperative_matrix, those before 2025
# (glslang 15) GL_NV_cooperative_matrix2; then they come as SPIR-V out of VKFORMER_SPIRV_DIR, a
# folder that tools/build_spirv makes with a newer one, or are left out. Also included by
# build_spirv.cmake.

# vkformer_shader_hash(OUT SOURCE SHADERS): of a shader and of all that it could include.
function(vkformer_shader_hash out source shaders)
  file(GLOB files ${shaders}/include/*.glsl ${shaders}/params/*.h)
  list(SORT files)
  set(text "")
  foreach(file IN LISTS files ITEMS ${shaders}/${source})
    file(SHA256 ${file} hash)
    string(APPEND text ${hash})
  endforeach()
  string(SHA256 hash "${text}")
  set(${out} ${hash} PARENT_SCOPE)
endfunction()

# The SPIR-V that a feature's kernels are written in: 1.6 is the least of SPV_NV_cooperative_matrix2.
set(VKFORMER_TARGET_matrix vulkan1.1)
set(VKFORMER_TARGET_matrix2 vulkan1.3)

# vkformer_matrix_command(OUT FEATURE GLSLANG SOURCE SHADERS SPIRV): drivers optimise it; what is
# folded here without knowing the sizes of the units only makes it larger.
function(vkformer_matrix_command out feature glslang source shaders spirv)
  set(${out} ${glslang} --quiet --target-env ${VKFORMER_TARGET_${feature}} -g0 -I${shaders}/include
      -I${shaders}/params ${shaders}/${source} -o ${spirv} PARENT_SCOPE)
endfunction()

# vkformer_probe_matrix(OUT FEATURE GLSLANG FOLDER): whether that compiler knows them.
function(vkformer_probe_matrix out feature glslang folder)
  set(extension KHR_cooperative_matrix)
  set(statement "")
  if(feature STREQUAL "matrix2")
    set(extension NV_cooperative_matrix2)
    set(statement "coopMatPerElementNV(m, m, twice)")
  endif()
  file(WRITE ${folder}/matrix_probe.comp "#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int32 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_${extension} : require
layout(local_size_x = 32) in;
shared float words[256];
float twice(const in uint32_t row, const in uint32_t column, const in float x) { return x + x; }
void main() {
  coopmat<float, gl_ScopeSubgroup, 8, 8, gl_MatrixUseAccumulator> m =
      coopmat<float, gl_ScopeSubgroup, 8, 8, gl_MatrixUseAccumulator>(0.0);
  ${statement};
  coopMatStore(m, words, 0, 8, gl_CooperativeMatrixLayoutRowMajor);
}
")
  execute_process(
    COMMAND ${glslang} --quiet --target-env ${VKFORMER_TARGET_${feature}}
            ${folder}/matrix_probe.comp -o ${folder}/matrix_probe.spv
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  file(REMOVE ${folder}/matrix_probe.comp ${folder}/matrix_probe.spv)
  set(known OFF)
  if(failed EQUAL 0)
    set(known ON)
  endif()
  set(${out} ${known} PARENT_SCOPE)
endfunction()

# vkformer_matrix_feature(OUT FEATURES): the one of a kernel that decides which compilers know it;
# empty where it has none.
function(vkformer_matrix_feature out features)
  set(${out} "" PARENT_SCOPE)
  foreach(feature matrix matrix2)
    if(feature IN_LIST features)
      set(${out} ${feature} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
