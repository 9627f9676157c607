#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "profile/attributes.h"

namespace tributary::intake {

// Attributes of many things in little memory: values behind each other, keys as numbers, since all pods have the same.
// Two packs of one packer are equal where their attributes are. Keys are never forgotten: at most kKeysMax, 5 MiB; more
// are packed as they stand.
class AttributePacker {
 public:
  static constexpr size_t kKeysMax = 16'384;

  std::string Pack(const Attributes& attributes);
  Attributes Unpack(std::string_view packed) const;  // of what this packer made

 private:
  uint32_t NumberOf(std::string_view key);  // 0: no room

  std::deque<std::string> keys_;                             // number - 1
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;  // of keys_
};

}  // namespace tributary::intake
