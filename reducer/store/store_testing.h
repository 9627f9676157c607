#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/directory_testing.h"
#include "profile/dictionary.h"
#include "reducer/store/store.h"

namespace tributary::store {

// A collector for tests. It interns stacks and makes batches as the wire decoder would return them. Its monotonic clock
// is its unix clock minus a constant.
class TestCollector {
 public:
  explicit TestCollector(std::string node_id, uint8_t session = 1);

  // Returns a thread of a process `pid` with the name `name`.
  ThreadRef Thread(int pid, std::string_view name);
  // Returns a stack of native frames in one executable. The outermost frame comes first.
  NodeRef Stack(const std::vector<uint64_t>& addresses);
  // Add and Lose count for the next batch.
  void Add(UnixNs time, ThreadRef thread, NodeRef node, uint64_t value = 52'631'579, Ending ending = Ending::kComplete);
  void Lose(LossReason reason, uint64_t samples);

  // Returns everything added since the last call, with the definitions that no batch of this generation has carried.
  RowBatch Take(UnixNs closed);
  // Forgets which definitions were sent, so the next batch starts a new generation.
  void StartGeneration();
  // Returns `pending`'s samples again, as a batch of the current generation would carry them.
  RowBatch Resend(const RowBatch& pending);

  static MonotonicNs Monotonic(UnixNs time) { return MonotonicNs{time.value - kBootNs}; }
  const SessionInfo& info() const { return *info_; }
  const Accounting& accounting() const { return accounting_; }
  // Continues in a derived generation. The next batch reports the eviction.
  void Evict(Eviction eviction);
  Dictionary& dictionary() { return *dictionary_; }

 private:
  static constexpr int64_t kBootNs = 1'600'000'000 * kNsPerSecond;

  std::shared_ptr<SessionInfo> info_;
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  std::optional<DerivedFrom> derived_;  // not sent yet
  DictionaryCounts sent_;
  uint32_t generation_ = 1;
  uint64_t sequence_ = 0;
  Accounting accounting_;
  std::vector<Sample> samples_;
};

// Σ over a shard's nodes.
struct Totals {
  uint64_t captured = 0, stored = 0, lost = 0, endings = 0;
};
Totals TotalsOf(StoreReader& reader);

}  // namespace tributary::store
