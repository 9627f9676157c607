#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "elf/go_table.h"
#include "symbols/symbol_builder.h"

namespace tributary {

// Within a function's code, values change in steps, for example the line. The value is `value` from the end of the
// previous step up to `end`, an offset in the function's code. A value of -1 means "none".
struct GoStep {
  uint32_t end;
  int32_t value;
};

// Returns the value at `offset`, or -1 after the last step.
int32_t GoValueAt(const std::vector<GoStep>& steps, uint32_t offset);

// The bytes of Go's table. Reads strings and the steps of functions. Offsets are from the start of the table. At an
// offset outside of the table there is no data.
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

  // These functions return ids of strings in the builder. 0: there is no string.
  uint32_t FunctionName(uint32_t place);
  uint32_t FileName(uint32_t unit, int32_t file);

  // Reads the steps of a function that has `size` bytes. Returns false if a step is malformed, or if the steps exceed
  // the limits. `out` then has the steps before it.
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
