#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "profile/attributes.h"

namespace tributary::intake {

// Packs the attributes of many entities into little memory. Keys are packed as numbers, because all pods have nearly
// the same keys. If two sets of attributes are equal, the same packer packs them to the same bytes. The packer never
// removes a key from its table. The table has at most kKeysMax keys (5 MiB). Further keys are packed as text.
class AttributePacker {
 public:
  static constexpr size_t kKeysMax = 16'384;

  std::string Pack(const Attributes& attributes);
  Attributes Unpack(std::string_view packed) const;  // `packed` must come from this packer

 private:
  uint32_t NumberOf(std::string_view key);  // 0: the table of keys is full

  std::deque<std::string> keys_;                             // by number - 1
  absl::flat_hash_map<std::string_view, uint32_t> numbers_;  // the keys point into keys_
};

}  // namespace tributary::intake
