# `find_package(stint CONFIG)` for other projects and the program, a tarball of both through CPack,
# and the list of benchmarks for `make bench`.
include_guard()

get_property(benches GLOBAL PROPERTY STINT_BENCHES)
list(TRANSFORM benches REPLACE "(.+)" "$<TARGET_FILE:\\1>\n")
list(JOIN benches "" benches)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/benches.txt CONTENT "${benches}")

if(NOT STINT_INSTALL)
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/stint)

install(TARGETS stint EXPORT stint-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/stint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET stint_redis_library)
  install(TARGETS stint_redis_library EXPORT stint-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET stint_program)
  install(TARGETS stint_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(EXPORT stint-targets NAMESPACE stint:: DESTINATION ${config_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(cmake/stint-config.cmake.in
  ${PROJECT_BINARY_DIR}/stint-config.cmake INSTALL_DESTINATION ${config_dir})
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/stint-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/stint-config.cmake
              ${PROJECT_BINARY_DIR}/stint-config-version.cmake
        DESTINATION ${config_dir})

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_VENDOR stint)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME
    stint-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build/package)
include(CPack)
