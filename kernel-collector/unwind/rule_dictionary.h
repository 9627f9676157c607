#pragma once

#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"

namespace tributary {

// Numbers for unwind rules, one dictionary for all executables: a whole Debian system needs about 5,000 of its 65,536.
// Number 0 is the NONE rule. Rules stay for ever; when it is full, a new one gets the number of a BAD rule and is
// counted: stacks end there, visibly. Loop thread only.
class RuleDictionary {
 public:
  // `rules`: what the walk in the kernel reads (UnwindMaps::rules), all zero; outlives this.
  RuleDictionary(std::span<uint64_t> rules, Metrics& metrics);

  uint16_t Number(uint64_t rule);
  uint64_t Rule(uint16_t number) const { return rules_[number]; }
  uint32_t size() const { return size_; }

 private:
  static constexpr uint16_t kBadNumber = 1;

  std::span<uint64_t> rules_;
  absl::flat_hash_map<uint64_t, uint16_t> numbers_;
  uint32_t size_ = 0;
  Counter& refused_;
};

}  // namespace tributary
