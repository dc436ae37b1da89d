# vkformer_select_families(SOURCES): takes the model families that VKFORMER_FAMILIES does not name
# out of a list of sources. It puts one generated source in, in which their load functions say so.
# A family that includes another's header keeps that one too.
function(vkformer_select_families sources_variable)
  if(VKFORMER_FAMILIES STREQUAL "all")
    return()
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/runtime/model)
  # A family is a file that defines a load function of family_list.def.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/family_list.def)
  set(known "")
  set(sources ${${sources_variable}})
  foreach(file IN LISTS sources)
    if(NOT file MATCHES "^${folder}/[a-z0-9_]+\\.cpp$")
      continue()
    endif()
    file(STRINGS ${file} loads REGEX "load_[a-z0-9_]+\\(const ModelFiles& files\\) {")
    if(loads)
      get_filename_component(name ${file} NAME_WE)
      list(APPEND known ${name})
      string(REGEX MATCHALL "load_[a-z0-9_]+" ${name}_loads "${loads}")
    endif()
  endforeach()
  set(waiting ${VKFORMER_FAMILIES})
  set(kept "")
  while(waiting)
    list(POP_FRONT waiting name)
    if(name IN_LIST kept)
      continue()
    endif()
    if(NOT name IN_LIST known)
      string(JOIN ", " names ${known})
      message(FATAL_ERROR "VKFORMER_FAMILIES names [${name}], which is none of ${names}.")
    endif()
    list(APPEND kept ${name})
    file(STRINGS ${folder}/${name}.cpp used REGEX "^#include \"model/")
    list(TRANSFORM used REPLACE ".*model/(.*)\\.h\".*" "\\1")
    foreach(other IN LISTS used)
      if(other IN_LIST known)
        list(APPEND waiting ${other})
      endif()
    endforeach()
  endwhile()
  set(functions "")
  foreach(name IN LISTS known)
    if(name IN_LIST kept)
      continue()
    endif()
    list(REMOVE_ITEM sources ${folder}/${name}.cpp)
    foreach(load IN LISTS ${name}_loads)
      string(APPEND functions "Result<std::unique_ptr<ModelFamily>> ${load}(const ModelFiles& files) {\n"
        "  return absent(files.config, \"${name}\");\n}\n")
    endforeach()
  endforeach()
  # What writers of other formats read of decoders, beside the families' load functions.
  if(NOT llama IN_LIST kept)
    list(REMOVE_ITEM sources ${folder}/text_decoder.cpp)
    string(APPEND functions "Result<LlamaParts> read_text_decoder(const ModelFiles& files) {\n"
      "  return absent(files.config, \"llama\");\n}\n")
  else()
    foreach(name qwen3 phi3)
      if(NOT name IN_LIST kept)
        string(APPEND functions "Result<LlamaKind> ${name}_kind(const JsonConfig& config) {\n"
          "  return absent(config, \"${name}\");\n}\n")
      endif()
    endforeach()
  endif()
  set(absent ${PROJECT_BINARY_DIR}/generated/absent_families.cpp)
  file(CONFIGURE OUTPUT ${absent} @ONLY CONTENT
    "#include \"base/check.h\"
#include \"base/message.h\"
#include \"model/family_list.h\"
#include \"model/text_decoder.h\"
namespace vkformer {
static Error absent(const JsonConfig& config, const char* source) {
  const auto type = config.get_string_or(\"model_type\", source);
  return unsupported(message({\"[\", type ? *type : std::string(source), \"] This build omits the family; build \"
    \"vkformer with VKFORMER_FAMILIES=all, or with \", source, \" in that list.\"}));
}
${functions}}\n")
  set(${sources_variable} ${sources} ${absent} PARENT_SCOPE)
  string(JOIN ", " names ${kept})
  message(STATUS "Model families: ${names}")
endfunction()
