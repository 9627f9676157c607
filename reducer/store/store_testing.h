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

// A simulated collector for tests. It interns stacks, and makes batches like those that the intake's decoder returns.
// Its monotonic clock is its unix clock minus a constant.
class TestCollector {
 public:
  explicit TestCollector(std::string node_id, uint8_t session = 1);

  // Returns a thread of the process `pid`. The thread's name is `name`.
  ThreadRef Thread(int pid, std::string_view name);
  // Returns a stack of native frames with these addresses in one executable. The address of the outermost frame comes
  // first.
  NodeRef Stack(const std::vector<uint64_t>& addresses);
  // Add samples, events or losses to the next batch.
  void Add(UnixNs time, ThreadRef thread, NodeRef node, uint64_t value = 52'631'579, Ending ending = Ending::kComplete);
  void Add(UnixNs time, ProcessEvent event);
  void Lose(LossReason reason, const SampleCounts& records);
  // Returns a start, exec or exit of the process `pid`, which runs /bin/`name` in the container c0ffee.
  ProcessEvent Event(ProcessEventKind kind, int pid, std::string_view name);

  // Returns a batch with everything that was added since the last call. It contains the definitions that were not in
  // earlier batches of the generation.
  RowBatch Take(UnixNs closed);
  // Starts a new generation, so the next batch contains all definitions again.
  void StartGeneration();
  // Returns the samples of `pending` again, in a batch of the current generation.
  RowBatch Resend(const RowBatch& pending);

  static MonotonicNs Monotonic(UnixNs time) { return MonotonicNs{time.value - kBootNs}; }
  const SessionInfo& info() const { return *info_; }
  const Accounting& accounting() const { return accounting_; }
  // Removes definitions from the dictionary, which starts a derived generation. The next batch reports the eviction.
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
  std::vector<ProcessEvent> events_;
};

// Sums over all nodes of a shard.
struct Totals {
  uint64_t captured = 0, stored = 0, lost = 0, endings = 0;
};
Totals TotalsOf(StoreReader& reader);

}  // namespace tributary::store
