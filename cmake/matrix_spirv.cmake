# Kernels with cooperative matrices: what compiles them, and from what they were compiled. Compilers
# before 2023 (glslang 12 of Debian 12) do not know GL_KHR_cooperative_matrix; then they come as
# SPIR-V out of VKFORMER_SPIRV_DIR, a folder that tools/build_spirv makes with a newer one, or are
# left out. Also included by build_spirv.cmake.

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

# vkformer_matrix_command(OUT GLSLANG SOURCE SHADERS SPIRV): drivers optimise it; what is folded
# here without knowing the sizes of the units only makes it larger.
function(vkformer_matrix_command out glslang source shaders spirv)
  set(${out} ${glslang} --quiet --target-env vulkan1.1 -g0 -I${shaders}/include -I${shaders}/params
      ${shaders}/${source} -o ${spirv} PARENT_SCOPE)
endfunction()

# vkformer_probe_matrix(OUT GLSLANG FOLDER): whether that compiler knows them.
function(vkformer_probe_matrix out glslang folder)
  file(WRITE ${folder}/matrix_probe.comp "#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
layout(local_size_x = 32) in;
shared float words[256];
void main() {
  coopMatStore(coopmat<float, gl_ScopeSubgroup, 8, 8, gl_MatrixUseAccumulator>(0.0), words, 0, 8,
               gl_CooperativeMatrixLayoutRowMajor);
}
")
  execute_process(COMMAND ${glslang} --quiet --target-env vulkan1.1 ${folder}/matrix_probe.comp
    -o ${folder}/matrix_probe.spv RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  set(known OFF)
  if(failed EQUAL 0)
    set(known ON)
  endif()
  set(${out} ${known} PARENT_SCOPE)
endfunction()
