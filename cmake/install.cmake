# Installs the library, its public headers, the program, and what find_package(vkformer) and
# pkg-config need. Every path is relative to the prefix, so an installed tree may be moved.
#
# Components: runtime (the shared library), development (headers, static library, packages) and tools
# (the program, its completion and manual pages). c_headers has the C headers and their description alone,
# for applications that open the library at run time. find_package has other components: shared, static,
# conformance, tools, c_headers.
include(CMakePackageConfigHelpers)
include(cmake/notices.cmake)

set(VKFORMER_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vkformer)

# vkformer_require(COMPONENT TARGET...): an install of the component fails before it writes anything
# where a target is not built. Must come before the rules that install.
function(vkformer_require component)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    install(CODE "
      if(NOT EXISTS \"$<TARGET_FILE:${target}>\")
        message(FATAL_ERROR \"[$<TARGET_FILE:${target}>] is not built, so nothing was installed. \"
          \"Build what is installed and try again: cmake --build \\\"${PROJECT_BINARY_DIR}\\\" --target vkformer_product\")
      endif()" COMPONENT ${component})
  endforeach()
endfunction()
if(VKFORMER_BUILD_SHARED)
  vkformer_require(runtime vkformer vkformer_conformance)
endif()
vkformer_require(development vkformer_static vkformer_mpi)
vkformer_require(tools vkformer_cli)

# vkformer_install(TARGET PART): a target and the file that find_package reads for its component.
function(vkformer_install target part)
  install(TARGETS ${target} EXPORT vkformer-${part}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
      NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  install(EXPORT vkformer-${part} NAMESPACE vkformer:: FILE vkformer-${part}.cmake
    DESTINATION ${VKFORMER_CONFIG_DIR} COMPONENT development)
endfunction()

if(VKFORMER_BUILD_SHARED)
  vkformer_install(vkformer shared)
endif()
if(VKFORMER_BUILD_STATIC)
  vkformer_install(vkformer_static static)
endif()
if(TARGET vkformer_conformance)
  vkformer_install(vkformer_conformance conformance)
endif()
if(TARGET vkformer_mpi)
  vkformer_install(vkformer_mpi mpi)
endif()
if(TARGET vkformer_cli)
  # Not in the file of another component: a program without the tools installed is no error.
  set_target_properties(vkformer_cli PROPERTIES EXPORT_NAME program)
  install(TARGETS vkformer_cli EXPORT vkformer-tools
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  install(EXPORT vkformer-tools NAMESPACE vkformer:: FILE vkformer-tools.cmake
    DESTINATION ${VKFORMER_CONFIG_DIR} COMPONENT tools)
endif()
# Completion and manual pages, written by the program that is installed; where it runs.
if(TARGET vkformer_cli AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  set(written ${PROJECT_BINARY_DIR}/install/program)
  install(CODE "
    set(program ${CMAKE_CROSSCOMPILING_EMULATOR} \"$<TARGET_FILE:vkformer_cli>\")
    file(REMOVE_RECURSE \"${written}\")
    execute_process(COMMAND \${program} man --quiet \"${written}/man1\" RESULT_VARIABLE code)
    foreach(shell bash zsh fish)
      if(code EQUAL 0)
        execute_process(COMMAND \${program} completion \${shell}
          OUTPUT_FILE \"${written}/\${shell}\" RESULT_VARIABLE code)
      endif()
    endforeach()
    if(NOT code EQUAL 0)
      message(FATAL_ERROR \"vkformer could not write its manual pages and completion: \${code}\")
    endif()" COMPONENT tools)
  install(DIRECTORY ${written}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tools)
  install(FILES ${written}/bash RENAME vkformer COMPONENT tools
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${written}/zsh RENAME _vkformer COMPONENT tools
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${written}/fish RENAME vkformer.fish COMPONENT tools
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vkformer COMPONENT development
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
set(public ${PROJECT_SOURCE_DIR}/include/vkformer)
install(FILES ${public}/vkformer.h ${public}/vkformer_conformance.h ${public}/export.h COMPONENT c_headers
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkformer)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vkformer/c COMPONENT c_headers
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/vkformer FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/bindings/c_api.json COMPONENT c_headers
  DESTINATION ${CMAKE_INSTALL_DATADIR}/vkformer)
add_library(vkformer_c_headers INTERFACE)
set_target_properties(vkformer_c_headers PROPERTIES EXPORT_NAME c_headers)
target_include_directories(vkformer_c_headers INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS vkformer_c_headers EXPORT vkformer-c_headers COMPONENT c_headers)
install(EXPORT vkformer-c_headers NAMESPACE vkformer:: FILE vkformer-c_headers.cmake
  DESTINATION ${VKFORMER_CONFIG_DIR} COMPONENT c_headers)

# Where Debian wants the copyright of each of its packages.
set(in_library "linked into the library" "headers compiled into the library")
vkformer_write_notices(${PROJECT_BINARY_DIR}/install/copyright/library ${in_library})
vkformer_write_notices(${PROJECT_BINARY_DIR}/install/copyright/program ${in_library}
  "headers compiled into the program" "linked into the program (`vkformer pull`)")
vkformer_write_notices(${PROJECT_BINARY_DIR}/install/copyright/headers)
foreach(pair runtime:library:libvkformer${VKFORMER_SOVERSION} development:library:libvkformer-dev tools:program:vkformer
    c_headers:headers:vkformer-c_headers)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 notices)
  list(GET pair 2 package)
  install(FILES ${PROJECT_BINARY_DIR}/install/copyright/${notices} RENAME copyright COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package})
endforeach()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/vkformerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/install/vkformerConfig.cmake
  INSTALL_DESTINATION ${VKFORMER_CONFIG_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/install/vkformerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/linked_packages.cmake
  DESTINATION ${VKFORMER_CONFIG_DIR} COMPONENT development)
foreach(component development c_headers)
  install(FILES
    ${PROJECT_BINARY_DIR}/install/vkformerConfig.cmake
    ${PROJECT_BINARY_DIR}/install/vkformerConfigVersion.cmake
    DESTINATION ${VKFORMER_CONFIG_DIR} COMPONENT ${component})
endforeach()

# vkformer.pc finds its prefix from its own place; absolute install folders are written as they are.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(VKFORMER_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
  set(VKFORMER_PC_LIBDIR ${CMAKE_INSTALL_LIBDIR})
else()
  file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
  set(VKFORMER_PC_PREFIX "\${pcfiledir}/${to_prefix}")
  set(VKFORMER_PC_LIBDIR "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(VKFORMER_PC_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(VKFORMER_PC_INCLUDEDIR "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# What libvkformer.so carries, a program links itself where there is only libvkformer.a.
set(VKFORMER_PC_LIBS_PRIVATE " -lutf8proc -lpcre2-8 -lzstd -lpthread -ldl")
set(VKFORMER_PC_LIBS "")
if(NOT VKFORMER_BUILD_SHARED)
  set(VKFORMER_PC_LIBS "${VKFORMER_PC_LIBS_PRIVATE}")
  set(VKFORMER_PC_LIBS_PRIVATE "")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/vkformer.pc.in
  ${PROJECT_BINARY_DIR}/install/vkformer.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/vkformer.pc COMPONENT development
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_file(${PROJECT_SOURCE_DIR}/cmake/vkformer_c_headers.pc.in
  ${PROJECT_BINARY_DIR}/install/vkformer_c_headers.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/vkformer_c_headers.pc COMPONENT c_headers
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
