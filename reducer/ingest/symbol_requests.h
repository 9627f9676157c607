#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// Chooses the symbol tables to ask one connected collector for. It asks for a few at a time, so that the answers come
// before another node gets the same question. Once in a while it asks for everything again, because tables asked of
// other nodes may never have come. Pure. Use it on the loop's thread.
class SymbolRequests {
 public:
  static constexpr size_t kAskedMax = 8;                       // unanswered at a time
  static constexpr size_t kCandidatesMax = 256;                // of one look-up in the symbol store
  static constexpr size_t kWaitingMax = 16'384;                // further ones wait for the next round
  static constexpr int64_t kAnswerNs = 180 * kNsPerSecond;     // limit without a piece of any table,
  static constexpr int64_t kLongestNs = 1'800 * kNsPerSecond;  // and limit in all
  static constexpr int64_t kRoundNs = 60 * kNsPerSecond;

  // Executables that the collector can read.
  void Want(const std::vector<ExecutableId>& ids);

  // Returns the ids to look up now. Empty: no id waits, a look-up runs, or kAskedMax questions are unanswered. If the
  // result is not empty, the caller must call Chosen.
  std::vector<ExecutableId> TakeCandidates();
  size_t ask_max() const { return kAskedMax - asked_.size(); }
  // Takes the look-up's answer: `considered` of the candidates were considered, and `ask` are asked for.
  void Chosen(const std::vector<ExecutableId>& ask, size_t considered, MonotonicNs now);
  void Answered(const ExecutableId& id) { asked_.erase(id); }
  void Progress(MonotonicNs now) { last_progress_ = now; }  // the collector is sending
  bool has_pending() const { return !asked_.empty() || !looking_up_.empty(); }

  // Forgets questions that were never answered. Starts a round over `all` if the last round was long ago.
  void Tick(const std::vector<ExecutableId>& all, MonotonicNs now);

 private:
  std::deque<ExecutableId> waiting_;
  absl::flat_hash_set<ExecutableId> is_waiting_;
  std::vector<ExecutableId> looking_up_;
  absl::flat_hash_map<ExecutableId, MonotonicNs> asked_;  // value: when it was asked for
  MonotonicNs round_started_, last_progress_;
};

}  // namespace tributary::ingest
