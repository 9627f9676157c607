#pragma once

#include <cstdint>

namespace tributary {

// Half-open range of ELF virtual addresses.
struct AddressRange {
  uint64_t begin = 0, end = 0;

  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

}  // namespace tributary
