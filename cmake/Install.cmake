# `cmake --install build --prefix PREFIX`, and `cpack` in the build for a .deb: the program, its modules, completion, manual pages, units of
# systemd, documents, example configurations and the Python package. What is made from the program (completion, manual pages) is made when
# it is installed, by the program that was built.
include(GNUInstallDirs)
set(TROUPE_PYTHON_DIR lib/python3/dist-packages CACHE STRING "Where the Python package is installed, below the prefix")

install(TARGETS troupe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
get_property(loadables GLOBAL PROPERTY TROUPE_LOADABLES)
foreach(module IN LISTS loadables)
  install(TARGETS ${module} LIBRARY DESTINATION lib/troupe)  # where core/loading/module.cpp looks for it
endforeach()

set(made ${PROJECT_BINARY_DIR}/install-share)
install(CODE "set(TROUPE_PROGRAM \"$<TARGET_FILE:troupe>\")\nset(TROUPE_MADE \"${made}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/make_shared_files.cmake)
install(DIRECTORY ${made}/ DESTINATION ${CMAKE_INSTALL_DATADIR})

install(DIRECTORY configs examples DESTINATION ${CMAKE_INSTALL_DATADIR}/troupe PATTERN __pycache__ EXCLUDE)
install(DIRECTORY scripts/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/troupe USE_SOURCE_PERMISSIONS)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(DIRECTORY python/troupe DESTINATION ${TROUPE_PYTHON_DIR} PATTERN __pycache__ EXCLUDE)
install(FILES packaging/systemd/troupe-node.service packaging/systemd/troupe-serve.service DESTINATION lib/systemd/system)

# The .deb. Libraries of the program are its dependencies. Those of the modules are only suggested: without one, an option that needs it is
# refused and names it. Both lists are dpkg-shlibdeps', asked when cpack runs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME troupe)
set(CPACK_PACKAGE_CONTACT "The Troupe authors <troupe@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"trains neural networks on threads, processes and hosts that never wait longer
than their strategy asks: bsp, easgd, downpour, gossip and others, each also in
virtual time, and replayed bit by bit. Programs in PyTorch or numpy can be its
workers.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/deb/postinst ${PROJECT_SOURCE_DIR}/packaging/deb/postrm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/package_depends.cmake)
set(CPACK_TROUPE_PROGRAM ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/troupe)
set(CPACK_TROUPE_MODULES ${CMAKE_BINARY_DIR}/lib)
include(CPack)
