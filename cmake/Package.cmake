# Options for the shipped programs. The same commit gives the same bytes in every folder, with or without ccache.

# Debug information, assertions and the build id must not depend on the folders of the build. gcc uses the last prefix
# that matches, and the build folder may be inside the source folder.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
if(CMAKE_SYSROOT)
  add_compile_options(-ffile-prefix-map=${CMAKE_SYSROOT}=)
endif()
add_link_options(LINKER:--build-id=sha1,--as-needed,-z,now)

# Use RPATH, not RUNPATH: RPATH also applies to the libraries that the bundled libraries need. If no library is bundled,
# the folder is missing, and the loader finds the system's libraries as usual.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/tributary")
add_link_options(LINKER:--disable-new-dtags)
