#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "kernel-collector/probes/unwind_maps.h"

namespace tributary {

// Assigns numbers to unwind rules. All executables share one dictionary. It has 65,536 numbers; all executables of a
// Debian system together need about 5,000. Number 0 is the NONE rule (walk by frame pointers). Rules are never removed.
// When the dictionary is full, a new rule gets the number of the BAD rule, and is counted. A walk then stops at code
// with this rule, and the sample's ending shows it. Loop thread only.
class RuleDictionary {
 public:
  // Writes to the array that the walk in the kernel reads (UnwindMaps::rules). It must be all zero. Borrows `maps`.
  RuleDictionary(UnwindMaps& maps, Metrics& metrics);

  // Returns nullopt if the system has no memory for a new rule. It may have memory later.
  std::optional<uint16_t> Number(uint64_t rule);
  uint64_t Rule(uint16_t number) const { return maps_.rules()[number]; }
  uint32_t size() const { return size_; }

 private:
  static constexpr uint16_t kBadNumber = 1;

  UnwindMaps& maps_;
  absl::flat_hash_map<uint64_t, uint16_t> numbers_;
  uint32_t size_ = 0;
  Counter& refused_;
};

}  // namespace tributary
