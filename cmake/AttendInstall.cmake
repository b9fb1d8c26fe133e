# What `cmake --install` puts where. The package is relocatable: no absolute path is written down.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attend)

install(TARGETS attend EXPORT attend_shared LIBRARY)
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
