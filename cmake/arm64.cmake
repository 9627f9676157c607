# Cross-compiles with the arm64 packages that build-env/arm64-sysroot.sh has unpacked (dev/deps --arm64). Programs that
# run during the build, such as protoc and npm, are the build machine's own programs.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

if(DEFINED ENV{TRIBUTARY_CACHE})
  set(CMAKE_SYSROOT $ENV{TRIBUTARY_CACHE}/arm64-sysroot)
else()
  set(CMAKE_SYSROOT $ENV{HOME}/.cache/tributary/arm64-sysroot)
endif()
if(NOT EXISTS ${CMAKE_SYSROOT}/.recipe)
  message(FATAL_ERROR "No arm64 packages in ${CMAKE_SYSROOT}: run dev/deps --arm64")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# pkg-config prepends the sysroot to each path that it prints.
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
