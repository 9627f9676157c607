#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "bpf/include/runtimes.h"

namespace tributary {

// A frame of a chain: a function of a language runtime that has not returned.
struct RuntimeFrame {
  uint64_t code = 0;      // address of the code object; 0: not a frame, but a segment without frames
  int32_t position = 0;   // in the code, in bytes from its first instruction; -2: before the first instruction
  uint32_t check = 0;     // a hash over the code object's fields
  bool is_entry = false;  // the outermost frame of its segment: one native frame of the interpreter runs a segment
};

// The frames of one thread of a language runtime, as a record has them (bpf/include/runtimes.h). Borrows the words of
// the record.
struct RuntimeChain {
  uint16_t runtime = 0;  // number in trib_runtimes
  trib_chain_end end = TRIB_CHAIN_COMPLETE;
  std::span<const uint64_t> words;  // two for each frame

  // The number of frames. The innermost frame is At(0).
  size_t size() const { return words.size() / 2; }
  RuntimeFrame At(size_t index) const {
    const uint64_t code = words[2 * index], word = words[2 * index + 1];
    return {.code = code & ~TRIB_CHAIN_ENTRY,
            .position = static_cast<int32_t>(static_cast<uint32_t>(word)),
            .check = static_cast<uint32_t>(word >> 32),
            .is_entry = (code & TRIB_CHAIN_ENTRY) != 0};
  }
};

// Reads the chains of a record. Accepts any words: a malformed chain ends the list.
class RuntimeChains {
 public:
  // Borrows SampleRecord::chains.
  explicit RuntimeChains(std::span<const uint64_t> words) : rest_(words) {}

  // Returns the next chain, or nullopt if there is none.
  std::optional<RuntimeChain> Next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t header = rest_.front();
    const auto runtime = static_cast<uint16_t>(header);
    const size_t words = 2 * size_t{static_cast<uint16_t>(header >> 16)};
    const uint64_t end = header >> 32;
    rest_ = rest_.subspan(1);
    if (runtime == 0 || runtime >= TRIB_RUNTIMES_MAX || end >= TRIB_CHAIN_END_COUNT || words > rest_.size()) {
      rest_ = {};
      return std::nullopt;
    }
    const RuntimeChain chain{.runtime = runtime, .end = static_cast<trib_chain_end>(end), .words = rest_.first(words)};
    rest_ = rest_.subspan(words);
    return chain;
  }

 private:
  std::span<const uint64_t> rest_;
};

}  // namespace tributary
