#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/varint.h"

// Pieces that the batch encoder and decoder share.

namespace tributary::intake {

constexpr int64_t kWireTimeUnitNs = 100'000;
// The largest time whose nanoseconds are still an int64.
constexpr int64_t kWireTimeMax = INT64_MAX / kWireTimeUnitNs;
constexpr size_t kLossReasonsMax = 64;

// A column as runs of (value, length ≥ 1).
class RunWriter {
 public:
  void Add(uint64_t value) {
    if (length_ > 0 && value != value_) Flush();
    value_ = value;
    ++length_;
  }
  std::string Take() && {
    if (length_ > 0) Flush();
    return std::move(out_);
  }

 private:
  void Flush() {
    AppendVarint(out_, value_);
    AppendVarint(out_, length_);
    length_ = 0;
  }

  std::string out_;
  uint64_t value_ = 0, length_ = 0;
};

class RunReader {
 public:
  explicit RunReader(std::string_view bytes) : reader_(bytes) {}
  bool Read(uint64_t* value) {
    if (left_ == 0 && (!reader_.Read(&value_) || !reader_.Read(&left_) || left_ == 0)) return false;
    --left_;
    *value = value_;
    return true;
  }
  bool AtEnd() const { return left_ == 0 && reader_.AtEnd(); }

 private:
  VarintReader reader_;
  uint64_t value_ = 0, left_ = 0;
};

// Which of a message's new chains the next new stack is the end of. Samples come in the order in which their stacks
// were defined, nearly: a sample that names a later chain's last node moves past the ones between.
class LeafCursor {
 public:
  // The ids of the chains' last nodes, ascending.
  explicit LeafCursor(std::vector<uint32_t> leaves) : leaves_(std::move(leaves)) {}

  // 0 when there is no further chain.
  uint32_t next() const { return next_ < leaves_.size() ? leaves_[next_] : 0; }
  void Name(uint32_t node) {
    if (next_ == leaves_.size() || node < leaves_[next_]) return;
    auto it = std::lower_bound(leaves_.begin() + static_cast<ptrdiff_t>(next_), leaves_.end(), node);
    if (it != leaves_.end() && *it == node) next_ = static_cast<size_t>(it - leaves_.begin()) + 1;
  }

 private:
  std::vector<uint32_t> leaves_;
  size_t next_ = 0;
};

}  // namespace tributary::intake
