#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "bpf/include/runtimes.h"

namespace tributary {

// A build of CPython, as far as it decides the layout of the structures.
struct PythonBuild {
  int minor = 0;  // of version 3
  bool free_threaded = false;
  bool trace_refs = false;  // Py_TRACE_REFS: objects have two more links in their headers (until 3.12)
  bool musl = false;
};

// Offsets in the structures of CPython that the collector reads, in bytes.
struct PythonLayout {
  static constexpr int kMinorMin = 6, kMinorMax = 15;

  // How a code object maps positions to lines.
  enum class Lines : uint8_t {
    kDeltas,  // <= 3.9, co_lnotab: pairs of position and line deltas
    kRanges,  // 3.10, co_linetable: pairs of range sizes and line deltas
    kEntries  // >= 3.11, co_linetable: entries of several sizes
  };

  trib_python walk = {};  // for the BPF program
  // PyObject, PyCodeObject
  uint16_t type = 0;
  bool counts_references = false;  // the word before the type is the count of references
  uint16_t code_filename = 0, code_name = 0, code_qualified_name = 0;  // code_qualified_name 0: there is none
  uint16_t code_line_table = 0, code_first_line = 0;
  uint16_t code_bytes = 0;  // how many bytes of a code object to read
  Lines lines = Lines::kDeltas;
  // PyUnicodeObject
  uint16_t text_length = 0, text_state = 0;
  uint16_t text_ascii = 0;      // size of PyASCIIObject: the characters of compact ASCII follow
  uint16_t text_compact = 0;    // size of PyCompactUnicodeObject: other compact characters, or a pointer to them
  uint8_t text_kind_shift = 0;  // position of the field `kind` in the state; compact and ascii follow it
  // PyBytesObject
  uint16_t bytes_size = 0, bytes_data = 0;

  friend bool operator==(const PythonLayout& a, const PythonLayout& b);
};

// Returns the layout of a version whose structures are fixed: 3.6 to 3.12. Unimplemented: another version or build.
absl::StatusOr<PythonLayout> FixedPythonLayout(const PythonBuild& build);

// The begin of the structure _Py_DebugOffsets, with which 3.13 and later describe themselves.
constexpr size_t kPythonDebugOffsetsBytes = 888;
constexpr std::string_view kPythonDebugCookie = "xdebugpy";

// Returns the layout that the structure _Py_DebugOffsets in `bytes` describes. The build's version must be the one in
// the structure. Unimplemented: another version, or offsets that a build of this version does not have.
absl::StatusOr<PythonLayout> DescribedPythonLayout(const PythonBuild& build, std::string_view bytes);

}  // namespace tributary
