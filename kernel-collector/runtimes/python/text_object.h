#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernel-collector/runtimes/python/python_layout.h"

namespace tributary {

// A str object of Python, without its characters.
struct PythonText {
  uint64_t length = 0;       // characters
  uint8_t width = 0;         // bytes of a character: 1, 2 or 4
  bool compact = false;      // the characters follow the object; otherwise a pointer to them
  uint64_t data_offset = 0;  // of the characters, or of the pointer to them
  uint64_t hash = 0;

  friend bool operator==(const PythonText&, const PythonText&) = default;
};

// Parses the first `layout.text_ascii` bytes of an object. InvalidArgument if they cannot belong to a str.
absl::StatusOr<PythonText> ParsePythonText(const PythonLayout& layout, std::string_view object);

// Returns the characters as UTF-8. Replaces characters that UTF-8 does not have (lone surrogates), and control
// characters, by U+FFFD. Cuts the result at a character so that it has at most `bytes_max` bytes.
std::string PythonTextToUtf8(std::string_view characters, uint8_t width, size_t bytes_max);

}  // namespace tributary
