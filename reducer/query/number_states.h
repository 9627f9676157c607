#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"

namespace tributary {

// Whether a process or thread is selected. kUnread: the range has no description of it.
enum class NumberState : uint8_t { kUnread = 0, kOut = 1, kSelected = 2, kSometimes = 3 };

// The states of processes or threads, by their numbers. A store gives numbers in order, so the numbers of a time range
// are close together. The memory depends on how many blocks of 256 numbers have a state, not on the largest number:
// about 0.4 bytes for each number if all numbers of a block have one, and 110 bytes if only one has. A look-up takes
// about 5 ns. Used by one thread.
class NumberStates {
 public:
  NumberState Get(uint32_t number) const {
    const auto block = blocks_.find(number / kBlockNumbers);
    if (block == blocks_.end()) return NumberState::kUnread;
    return static_cast<NumberState>((*block->second)[number % kBlockNumbers / 4] >> (number % 4 * 2) & 3);
  }
  void Set(uint32_t number, NumberState state) {
    std::unique_ptr<Block>& block = blocks_[number / kBlockNumbers];
    if (block == nullptr) block = std::make_unique<Block>();
    uint8_t& byte = (*block)[number % kBlockNumbers / 4];
    const uint32_t shift = number % 4 * 2;
    byte = static_cast<uint8_t>((byte & ~(3u << shift)) | static_cast<uint32_t>(state) << shift);
  }
  size_t bytes() const { return blocks_.size() * kBlockBytes; }

 private:
  static constexpr uint32_t kBlockNumbers = 256;
  static constexpr size_t kBlockBytes = 110;  // with the memory allocator's share, and that of the hash table
  using Block = std::array<uint8_t, kBlockNumbers / 4>;

  absl::flat_hash_map<uint32_t, std::unique_ptr<Block>> blocks_;
};

}  // namespace tributary
