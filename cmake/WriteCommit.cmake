# Writes HEADER, which defines TRIBUTARY_COMMIT as COMMIT, unless HEADER already has that content (cmake/Version.cmake).
cmake_policy(VERSION 3.25)
if(COMMIT STREQUAL "git")
  execute_process(COMMAND ${SOURCE}/deploy/version.sh OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE " " ";" version "${version}")
  list(GET version 1 COMMIT)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define TRIBUTARY_COMMIT \"@COMMIT@\"\n" @ONLY)
