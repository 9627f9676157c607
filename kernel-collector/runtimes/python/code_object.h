#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "kernel-collector/runtimes/python/python_layout.h"

namespace tributary {

constexpr size_t kPythonNameBytesMax = 512;
constexpr size_t kPythonFileBytesMax = 1024;
constexpr size_t kPythonLineTableBytesMax = 48u << 10;

// Addresses of type objects in a process. 0: unknown, so the type is not checked.
struct PythonTypes {
  uint64_t code = 0, text = 0, bytes = 0;
  friend bool operator==(const PythonTypes&, const PythonTypes&) = default;
};

// Reads the code object of a Python function: its name, file and lines. See RuntimeBinary::ReadFunction. Makes three
// reads, and four if a name is not stored in its str object. The last one reads everything again on which the others
// depend, so that a result is never a mix of two objects. Names and files above the limits are cut at a character. The
// name is co_qualname, until 3.10 co_name. If the line table is longer than its limit, instructions beyond it have no
// line.
absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadPythonFunction(const PythonLayout& layout,
                                                                          const PythonTypes& types,
                                                                          ProcessMemory& memory,
                                                                          const CodeObject& object);

}  // namespace tributary
