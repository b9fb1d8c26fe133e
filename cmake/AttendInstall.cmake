# What `cmake --install` puts where. The package is relocatable: no absolute path is written down.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attend)

install(TARGETS attend attend_c attend_text attend_text_static EXPORT attend_shared LIBRARY ARCHIVE)
install(TARGETS attend_static EXPORT attend_static ARCHIVE)
install(DIRECTORY include/attend TYPE INCLUDE)
install(FILES LICENSE README.md TYPE DOC)
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/attend/models
        FILES_MATCHING PATTERN "*.attend" PATTERN "README.md" PATTERN "train" EXCLUDE)

install(EXPORT attend_shared NAMESPACE attend:: FILE attendTargets.cmake
        DESTINATION ${package_dir})
install(EXPORT attend_static NAMESPACE attend:: FILE attendStaticTargets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(cmake/attendConfig.cmake.in attendConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(attendConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attendConfig.cmake ${PROJECT_BINARY_DIR}/attendConfigVersion.cmake
        DESTINATION ${package_dir})

# attend_pkg_config(NAME DESCRIPTION LIBRARIES): NAME.pc, for lib + NAME; LIBRARIES are what the
# static one needs besides. Paths are relative to the file itself.
function(attend_pkg_config pc_name pc_description pc_private)
  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_to_prefix /${pc_dir} /)
  string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
  configure_file(cmake/attend.pc.in ${pc_name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${pc_dir})
endfunction()
attend_pkg_config(attend "${PROJECT_DESCRIPTION}"
  "-ldnnl -lhwy -lgomp -lstdc++ -lm -lpthread")
attend_pkg_config(attend_text "The tokenizers of attend, without oneDNN" "-lstdc++ -lm")

# cpack: a tar that can be unpacked anywhere, and a package for Debian.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_VENDOR attend)
set(CPACK_PACKAGE_CONTACT "the attend project <attend@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME attend-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # most of it is weights, which nothing makes smaller
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libdnnl-dev, libhwy-dev")  # for the static library
include(CPack)
