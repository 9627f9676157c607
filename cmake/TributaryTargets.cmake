# Helper functions: one each for a library, a binary, a test, a fuzz target, an embedded file, a Cap'n Proto schema and
# a BPF object.

set(TRIBUTARY_WARNINGS -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
if(TRIBUTARY_WERROR)
  list(APPEND TRIBUTARY_WARNINGS -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # std::stable_sort of libstdc++ 12 calls a function that libstdc++ deprecates, and clang reports the caller.
  list(APPEND TRIBUTARY_WARNINGS -Wno-deprecated-declarations)
endif()
set(TRIBUTARY_INSTRUMENT "")
set(TRIBUTARY_TEST_SECONDS 300)  # timeout of a unit test
if(TRIBUTARY_SANITIZE)
  set(TRIBUTARY_TEST_SECONDS 1800)
  set(TRIBUTARY_INSTRUMENT -fsanitize=${TRIBUTARY_SANITIZE} -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers, gcc's maybe-uninitialized gives false warnings. clang has no such warning.
    list(APPEND TRIBUTARY_WARNINGS -Wno-maybe-uninitialized)
  endif()
endif()

function(tributary_compile_options target)
  target_compile_options(${target} PRIVATE ${TRIBUTARY_WARNINGS} ${TRIBUTARY_INSTRUMENT})
  target_link_options(${target} PRIVATE ${TRIBUTARY_INSTRUMENT})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
endfunction()

# tributary_library(NAME SOURCES a.cc… DEPS lib…)
function(tributary_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    tributary_compile_options(${name})
    target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
    target_link_libraries(${name} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# tributary_binary(NAME SOURCES a.cc… DEPS lib…): the binary is written to build/<preset>/bin/
function(tributary_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  tributary_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
endfunction()

# The prefix of commands that need root. It is empty if the tests already run as root.
execute_process(COMMAND id -u OUTPUT_VARIABLE uid OUTPUT_STRIP_TRAILING_WHITESPACE)
set(TRIBUTARY_AS_ROOT "")
if(NOT uid STREQUAL "0")
  set(TRIBUTARY_AS_ROOT sudo -n -E)
endif()

# tributary_test(NAME SOURCES a_test.cc… DEPS lib… [LABELS label…] [AS_ROOT]): one executable, one ctest entry.
function(tributary_test name)
  cmake_parse_arguments(ARG "AS_ROOT" "" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT TRIBUTARY_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  tributary_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE TRIBUTARY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # One ctest entry per binary: hundreds of process starts would cost more than the test cases.
  set(prefix "")
  if(ARG_AS_ROOT)
    set(prefix ${TRIBUTARY_AS_ROOT})
  endif()
  add_test(NAME ${name} COMMAND ${prefix} $<TARGET_FILE:${name}> --gtest_brief=1)
  # A skipped test case tests nothing, so it counts as a failure.
  set_tests_properties(${name} PROPERTIES LABELS "unit;${ARG_LABELS}" TIMEOUT ${TRIBUTARY_TEST_SECONDS}
                       FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

# tributary_fuzz(NAME SOURCES a_fuzz.cc DEPS lib… CORPUS dir): uses libFuzzer under the fuzz preset. Under other presets
# a runner feeds the committed corpus once, as an ordinary test.
function(tributary_fuzz name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  if(NOT TRIBUTARY_TESTS)
    return()
  endif()
  if(TRIBUTARY_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/test/fuzz/corpus_main.cc)
  endif()
  tributary_compile_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  if(NOT TRIBUTARY_FUZZ)
    add_test(NAME ${name} COMMAND ${name} ${ARG_CORPUS})
    set_tests_properties(${name} PROPERTIES LABELS "unit;fuzz" TIMEOUT ${TRIBUTARY_TEST_SECONDS})
  endif()
endfunction()

# tributary_capnp(NAME file.capnp…): generates code in the build folder. Include it as "schemas/intake/file.capnp.h".
# The tools are found by name, because Debian's package configuration looks for them in /usr/lib/bin.
find_program(CAPNP_TOOL capnp REQUIRED)
find_program(CAPNP_CPP capnpc-c++ REQUIRED)
function(tributary_capnp name)
  set(generated "")
  foreach(schema ${ARGN})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${schema}.c++)
    get_filename_component(out_dir ${out} DIRECTORY)
    file(MAKE_DIRECTORY ${out_dir})
    add_custom_command(
      OUTPUT ${out} ${CMAKE_CURRENT_BINARY_DIR}/${schema}.h
      COMMAND ${CAPNP_TOOL} compile -o${CAPNP_CPP}:${CMAKE_CURRENT_BINARY_DIR}
              --src-prefix=${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${schema}
      VERBATIM)
    list(APPEND generated ${out})
  endforeach()
  add_library(${name} STATIC ${generated})
  target_include_directories(${name} PUBLIC ${PROJECT_BINARY_DIR})
  target_compile_options(${name} PRIVATE ${TRIBUTARY_INSTRUMENT})
  target_link_libraries(${name} PUBLIC CapnProto::capnp)
endfunction()

# tributary_embed(NAME SYMBOL file): `tributary::embedded::SYMBOL()` returns the file's bytes as a std::string_view.
function(tributary_embed name symbol file)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(WRITE ${out}.S.in
".section .rodata
.global tributary_embedded_${symbol}_begin
.global tributary_embedded_${symbol}_end
.balign 64
tributary_embedded_${symbol}_begin:
.incbin \"${file}\"
tributary_embedded_${symbol}_end:
.byte 0
.section .note.GNU-stack,\"\",%progbits
")
  file(COPY_FILE ${out}.S.in ${out}.S ONLY_IF_DIFFERENT)
  file(WRITE ${out}.h.in
"#pragma once
#include <string_view>
extern \"C\" const char tributary_embedded_${symbol}_begin[];
extern \"C\" const char tributary_embedded_${symbol}_end[];
namespace tributary::embedded {
inline std::string_view ${symbol}() {
  return {tributary_embedded_${symbol}_begin,
          static_cast<size_t>(tributary_embedded_${symbol}_end - tributary_embedded_${symbol}_begin)};
}
}  // namespace tributary::embedded
")
  file(COPY_FILE ${out}.h.in ${out}.h ONLY_IF_DIFFERENT)
  # Use the C compiler (the last -x wins), so that the project need not enable an assembler language.
  set_source_files_properties(${out}.S PROPERTIES LANGUAGE C COMPILE_OPTIONS "-x;assembler" OBJECT_DEPENDS ${file})
  add_library(${name} STATIC ${out}.S)
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
endfunction()

# tributary_bpf(NAME source.bpf.c): builds one object for the target architecture, without DWARF. Sets ${NAME}_OBJECT in
# the parent scope.
find_program(BPF_CLANG clang-14 REQUIRED)
find_program(BPF_STRIP llvm-strip-14 REQUIRED)
function(tributary_bpf name source)
  cmake_parse_arguments(ARG "" "" "DEPENDS;DEFINES" ${ARGN})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(arch arm64)
    set(triple aarch64-linux-gnu)
  else()
    set(arch x86)
    set(triple x86_64-linux-gnu)
  endif()
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}.bpf.o)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${BPF_CLANG} -target bpf -mcpu=v2 -O2 -g -Wall -Werror -D__TARGET_ARCH_${arch} ${ARG_DEFINES}
            -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-compilation-dir=.  # BTF contains file names
            -I${PROJECT_SOURCE_DIR} -idirafter ${CMAKE_SYSROOT}/usr/include/${triple} -idirafter ${CMAKE_SYSROOT}/usr/include
            -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${out}
    COMMAND ${BPF_STRIP} -g ${out}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${ARG_DEPENDS}
    VERBATIM)
  add_custom_target(${name}_bpf DEPENDS ${out})
  set(${name}_OBJECT ${out} PARENT_SCOPE)
endfunction()
