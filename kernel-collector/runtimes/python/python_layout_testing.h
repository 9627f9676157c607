#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel-collector/runtimes/python/python_layout.h"

namespace tributary::testing {

// Returns a structure _Py_DebugOffsets as 3.13 and later contain it. Source of the offsets: the headers, compiled.
inline std::string DebugOffsets(int minor, bool free_threaded) {
  std::string bytes(kPythonDebugOffsetsBytes, '\0');
  const auto set = [&](size_t at, uint64_t value) { std::memcpy(bytes.data() + at, &value, sizeof(value)); };
  std::memcpy(bytes.data(), kPythonDebugCookie.data(), kPythonDebugCookie.size());
  set(8, 0x030000f0u | static_cast<uint64_t>(minor) << 16);
  set(16, free_threaded ? 1 : 0);
  const uint64_t object = free_threaded ? 16 : 0, is_14 = minor >= 14 ? 1 : 0;
  // Where the numbers are, for 3.13, 3.14 and 3.15; then their values.
  const size_t column = static_cast<size_t>(minor - 13);
  const std::vector<std::pair<std::vector<size_t>, uint64_t>> numbers = {
      {{184, 208, 208}, 72},                                                            // thread_state.current_frame
      {{192, 216, 240}, minor >= 15 ? 176u : 152u},                                     // thread_state.thread_id
      {{224, 248, 312}, is_14 != 0 ? 88u : 80u},                                        // interpreter_frame.size
      {{232, 256, 320}, 8},                                                             // .previous
      {{240, 264, 328}, 0},                                                             // .executable
      {{248, 272, 336}, 56},                                                            // .instr_ptr
      {{264, 288, 352}, is_14 != 0 ? (free_threaded ? 78u : 74u) : 70u},                // .owner
      {{280, 320, 384}, 112 + object},                                                  // code_object.filename
      {{288, 328, 392}, 120 + object},                                                  // .name
      {{296, 336, 400}, 128 + object},                                                  // .qualname
      {{304, 344, 408}, 136 + object},                                                  // .linetable
      {{312, 352, 416}, 68 + object},                                                   // .firstlineno
      {{344, 384, 448}, (is_14 != 0 ? (free_threaded ? 232u : 208u) : 200u + object)},  // .co_code_adaptive
      {{360, 408, 472}, 8 + object},                                                    // pyobject.ob_type
      {{520, 600, 696}, 16 + object},                                                   // bytes_object.ob_size
      {{528, 608, 704}, 32 + object},                                                   // .ob_sval
      {{544, 624, 720}, 32 + object},                                                   // unicode_object.state
      {{552, 632, 728}, 16 + object},                                                   // .length
      {{560, 640, 736}, 40 + object},                                                   // .asciiobject_size
  };
  for (const auto& [places, value] : numbers) set(places[column], value);
  if (free_threaded && is_14 != 0) {
    set(minor == 14 ? 304 : 368, 72);   // interpreter_frame.tlbc_index
    set(minor == 14 ? 392 : 456, 224);  // code_object.co_tlbc
  }
  return bytes;
}

inline PythonLayout LayoutOf(int minor, bool free_threaded = false) {
  const PythonBuild build{.minor = minor, .free_threaded = free_threaded};
  auto layout =
      minor >= 13 ? DescribedPythonLayout(build, DebugOffsets(minor, free_threaded)) : FixedPythonLayout(build);
  TRIBUTARY_CHECK(layout.ok());
  return *layout;
}

}  // namespace tributary::testing
