# Cross-compiles with Debian's arm64 packages (dpkg --add-architecture arm64; dev/deps --arm64 installs them).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)

# Packages that cannot stand beside their amd64 twins are unpacked here.
if(DEFINED ENV{TRIBUTARY_CACHE})
  set(unpacked $ENV{TRIBUTARY_CACHE}/arm64)
else()
  set(unpacked $ENV{HOME}/.cache/tributary/arm64)
endif()
list(PREPEND CMAKE_PREFIX_PATH ${unpacked}/usr)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig:${unpacked}/usr/lib/aarch64-linux-gnu/pkgconfig)
