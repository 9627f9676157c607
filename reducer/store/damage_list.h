#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tributary::store {

// Damaged data of one kind in one shard.
struct DamageEntry {
  uint32_t shard = 0;
  // A kind of pieces: trie, processes, samples, sums or events. Or "maintenance: " and the task that fails.
  std::string kind;
  uint64_t count = 0;  // damaged pieces, or failures of the task
  std::string reason;  // of the first one
};

// Lists the damage that a store knows. Implementations may be used on any thread.
class DamageSource {
 public:
  static constexpr size_t kEntriesMax = 256;  // of a list

  virtual ~DamageSource() = default;
  virtual std::vector<DamageEntry> ListDamage() = 0;
};

}  // namespace tributary::store
