# vkformer_select_families(SOURCES): takes the model families that VKFORMER_FAMILIES does not name
# out of a list of sources, and puts one generated source in, in which their load functions say so.
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
        "  return absent(files, \"${name}\");\n}\n")
    endforeach()
  endforeach()
  set(absent ${PROJECT_BINARY_DIR}/generated/absent_families.cpp)
  file(CONFIGURE OUTPUT ${absent} @ONLY CONTENT
    "#include \"base/check.h\"
#include \"base/message.h\"
#include \"model/family_list.h\"
namespace vkformer {
static Error absent(const ModelFiles& files, const char* source) {
  const auto type = files.config.get_string_or(\"model_type\", source);
  return unsupported(message({\"[\", type ? *type : std::string(source), \"] This build leaves out the family; build \"
    \"vkformer with VKFORMER_FAMILIES=all, or with \", source, \" in that list.\"}));
}
${functions}}\n")
  set(${sources_variable} ${sources} ${absent} PARENT_SCOPE)
  string(JOIN ", " names ${kept})
  message(STATUS "Model families: ${names}")
endfunction()
