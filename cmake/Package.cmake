# What is shipped. The same commit gives the same bytes, whatever the folders and whether ccache helps.

# Debug information, assertions and the build id must not depend on where things lie. gcc takes the last prefix that fits, and the
# build folder may be inside the source.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
if(CMAKE_SYSROOT)
  add_compile_options(-ffile-prefix-map=${CMAKE_SYSROOT}=)
endif()
add_link_options(LINKER:--build-id=sha1,--as-needed,-z,now)

# RPATH, not RUNPATH: it also holds for what the bundled libraries need themselves. Where no library is bundled the folder is
# missing, and the system's libraries are found as ever.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/tributary")
add_link_options(LINKER:--disable-new-dtags)
