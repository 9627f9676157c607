#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

namespace tributary {

// Counts what was refused, cut or delayed because a node exceeded a limit, by node and by reason. docs/limits.md lists
// the reasons, and what each of them counts. Also writes a log line for a node and reason, but not often. Each pair of
// a node and a reason is a series of the metric tributary_reducer_refusals_total. Peers choose the ids of nodes, so the
// number of pairs has a limit: refusals of further pairs count for the node kOther. Thread-safe; locks a mutex, so call
// Add once for a message or a commit, not for each sample.
class Refusals {
 public:
  static constexpr size_t kPairsMax = 1'024;
  static constexpr std::string_view kOther = "(other)";
  static constexpr size_t kNodeBytesMax = 128;                // of a node's id, as shown; longer ids are cut
  static constexpr int64_t kLogAgainNs = 600 * kNsPerSecond;  // for the same node and reason

  Refusals(const Clock& clock, Metrics& metrics);

  // `reason` must be a constant, because it becomes a value of a label.
  void Add(std::string_view node_id, std::string_view reason, uint64_t amount = 1);

  struct Entry {
    std::string node;
    std::string_view reason;
    uint64_t amount = 0;
  };
  // Returns all pairs, sorted by node and reason.
  std::vector<Entry> List() const;
  // Returns the amounts of one node, by reason.
  std::map<std::string_view, uint64_t> Of(std::string_view node_id) const;

 private:
  struct Count {
    uint64_t amount = 0;
    MonotonicNs logged_at;
  };
  using Key = std::pair<std::string, std::string_view>;

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<Key, Count> counts_;
  LogLimit log_limit_{kNsPerSecond};
};

}  // namespace tributary
