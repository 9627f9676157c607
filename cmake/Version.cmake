# Writes the commit that binaries print with --version to base/commit.h in the build folder. TRIBUTARY_COMMIT is a hash,
# or "git" (deploy/version.sh finds the hash at each build), or "dev". "dev" exists because a developer's build must not
# link every program again after each commit.
set(TRIBUTARY_COMMIT "dev" CACHE STRING "The commit that --version names: a hash, git (looked up at each build), or dev")

set(SOURCE ${PROJECT_SOURCE_DIR})
set(HEADER ${PROJECT_BINARY_DIR}/base/commit.h)
if(TRIBUTARY_COMMIT STREQUAL "git")
  add_custom_target(tributary_commit
    COMMAND ${CMAKE_COMMAND} -DCOMMIT=git -DSOURCE=${SOURCE} -DHEADER=${HEADER} -P ${SOURCE}/cmake/WriteCommit.cmake
    BYPRODUCTS ${HEADER}
    VERBATIM)
else()
  set(COMMIT ${TRIBUTARY_COMMIT})
  include(WriteCommit)
  add_custom_target(tributary_commit)
endif()
