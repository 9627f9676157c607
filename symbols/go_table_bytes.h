#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "elf/go_table.h"
#include "symbols/symbol_builder.h"

namespace tributary {

// A step of a value that changes within a function (its line, for example). The value is `value` up to `end`, an offset
// in the function's code; -1: none.
struct GoStep {
  uint32_t end;
  int32_t value;
};

// Returns the value at `offset`, or -1 after the last step.
int32_t GoValueAt(const std::vector<GoStep>& steps, uint32_t offset);

// Bytes of Go's table. Reads the strings and steps of functions from it. Offsets count from the beginning of the table.
// An offset outside the table gives no data.
class GoTableBytes {
 public:
  GoTableBytes(const GoTableHeader& header, std::string bytes, SymbolTableBuilder& builder, uint32_t steps_max);

  template <typename T>
  bool Read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }
  const GoTableHeader& header() const { return header_; }
  uint64_t size() const { return bytes_.size(); }

  // Return ids of the builder's strings; 0: none.
  uint32_t FunctionName(uint32_t place);
  uint32_t FileName(uint32_t unit, int32_t file);

  // Reads steps up to `size`, the function's size. Returns false if the steps end in bytes that are not a step, or
  // exceed the limits. `out` then has the steps before.
  bool ReadSteps(uint32_t place, uint32_t size, std::vector<GoStep>* out);
  bool steps_used_up() const { return steps_left_ == 0; }

 private:
  uint32_t StringAt(uint64_t offset);
  bool ReadVarint(uint64_t* offset, uint32_t* out) const;

  const GoTableHeader header_;
  const std::string bytes_;
  SymbolTableBuilder& builder_;
  uint32_t steps_left_;
  uint64_t string_bytes_left_;
  absl::flat_hash_map<uint32_t, uint32_t> strings_;  // by offset
};

}  // namespace tributary
