# Installs the library, its public headers, the program, and what find_package(vkformer) and
# pkg-config need. Every path is relative to the prefix, so an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(VKFORMER_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/vkformer)

install(TARGETS vkformer EXPORT vkformerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/vkformer
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET vkformer_cli)
  install(TARGETS vkformer_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT vkformerTargets NAMESPACE vkformer:: DESTINATION ${VKFORMER_CONFIG_DIR})
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/vkformerConfig.cmake.in
  ${PROJECT_BINARY_DIR}/install/vkformerConfig.cmake
  INSTALL_DESTINATION ${VKFORMER_CONFIG_DIR})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/install/vkformerConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/install/vkformerConfig.cmake
  ${PROJECT_BINARY_DIR}/install/vkformerConfigVersion.cmake
  DESTINATION ${VKFORMER_CONFIG_DIR})

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
configure_file(${PROJECT_SOURCE_DIR}/cmake/vkformer.pc.in
  ${PROJECT_BINARY_DIR}/install/vkformer.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/install/vkformer.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
