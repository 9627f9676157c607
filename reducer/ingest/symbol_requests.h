#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// Which symbol tables to ask one connected collector for: a few at a time, so that its answers come before the question
// is put to another node, and everything again once in a while, for what was asked elsewhere and never came. Pure; on
// the loop's thread.
class SymbolRequests {
 public:
  static constexpr size_t kAskedMax = 8;                       // unanswered at a time
  static constexpr size_t kCandidatesMax = 256;                // of one look into the symbol store
  static constexpr size_t kWaitingMax = 16'384;                // more wait for the next round
  static constexpr int64_t kAnswerNs = 180 * kNsPerSecond;     // without a piece of any table,
  static constexpr int64_t kLongestNs = 1'800 * kNsPerSecond;  // and in all
  static constexpr int64_t kRoundNs = 60 * kNsPerSecond;

  // Executables that the collector can read.
  void Want(const std::vector<ExecutableId>& ids);

  // What to look up now; empty: nothing, or a look-up is on its way. Chosen must follow.
  std::vector<ExecutableId> TakeCandidates();
  size_t ask_max() const { return kAskedMax - asked_.size(); }
  // The look-up's answer: `considered` of the candidates were looked at, and these are asked for.
  void Chosen(const std::vector<ExecutableId>& ask, size_t considered, MonotonicNs now);
  void Answered(const ExecutableId& id) { asked_.erase(id); }
  void Progress(MonotonicNs now) { heard_ = now; }  // it is sending
  bool owes() const { return !asked_.empty() || !looking_up_.empty(); }

  // Forgets questions that were never answered, and starts a round over `all` when the last is long past.
  void Tick(const std::vector<ExecutableId>& all, MonotonicNs now);

 private:
  std::deque<ExecutableId> waiting_;
  absl::flat_hash_set<ExecutableId> is_waiting_;
  std::vector<ExecutableId> looking_up_;
  absl::flat_hash_map<ExecutableId, MonotonicNs> asked_;  // when
  MonotonicNs round_started_, heard_;
};

}  // namespace tributary::ingest
