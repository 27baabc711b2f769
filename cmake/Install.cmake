# Installs the binary, and the library for find_package(tandem): see tests/cli/consumer.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# What users link to: tandem::tandem. (The target `tandem` is the binary.)
add_library(tandem_library INTERFACE)
set_target_properties(tandem_library PROPERTIES EXPORT_NAME tandem)

set(installed tandem_library tandem_options)
foreach(layer support graph zoo import lane lane_cpu lane_opencl lane_sim platform schedule predict profile report simulate runtime)
  if(TARGET tandem_${layer})
    list(APPEND installed tandem_${layer})
  endif()
endforeach()
if(TARGET tandem_runtime)
  target_link_libraries(tandem_library INTERFACE tandem_runtime)
endif()

install(TARGETS ${installed} EXPORT tandemTargets)
if(TARGET tandem)
  install(TARGETS tandem)
  # `tandem bench model` and `tandem bench schedule` start them.
  set(scripts ${CMAKE_INSTALL_DATADIR}/tandem)
  install(PROGRAMS tools/line_answers.py tools/engine_worker.py tools/onnxruntime_worker.py
    tools/litert_worker.py tools/tflite_export.py tools/offline.py tools/offline_model.py
    DESTINATION ${scripts})
  install(DIRECTORY tools/tflite DESTINATION ${scripts} FILES_MATCHING PATTERN "*.py")
endif()
install(DIRECTORY include/tandem ${CMAKE_BINARY_DIR}/generated/tandem
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tandem)
install(EXPORT tandemTargets NAMESPACE tandem:: DESTINATION ${package})
configure_package_config_file(cmake/tandemConfig.cmake.in ${CMAKE_BINARY_DIR}/tandemConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tandemConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tandemConfig.cmake ${CMAKE_BINARY_DIR}/tandemConfigVersion.cmake
  DESTINATION ${package})
