#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// Chooses the symbol tables to ask one connected collector for. It asks for a few tables at a time, so that they arrive
// before another node is asked for the same tables. Once in a while it asks for everything again, because tables that
// were requested from other nodes may never have arrived. Pure. Use it on the loop's thread.
class SymbolRequests {
 public:
  static constexpr size_t kAskedMax = 8;         // unanswered at a time
  static constexpr size_t kCandidatesMax = 256;  // of one look-up in the symbol store
  static constexpr size_t kWaitingMax = 16'384;  // further ones wait for the next round
  // An unanswered question is forgotten when the collector has sent no piece of any table for kAnswerNs, and after
  // kLongestNs in any case.
  static constexpr int64_t kAnswerNs = 180 * kNsPerSecond;
  static constexpr int64_t kLongestNs = 1'800 * kNsPerSecond;
  static constexpr int64_t kRoundNs = 60 * kNsPerSecond;

  // Adds executables that the collector can read, to ask for their tables.
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

  // Forgets questions that were never answered. Starts a round over `all` if no id waits and the last round began at
  // least kRoundNs ago.
  void Tick(const std::vector<ExecutableId>& all, MonotonicNs now);

 private:
  std::deque<ExecutableId> waiting_;
  absl::flat_hash_set<ExecutableId> is_waiting_;
  std::vector<ExecutableId> looking_up_;
  absl::flat_hash_map<ExecutableId, MonotonicNs> asked_;  // value: when it was asked for
  MonotonicNs round_started_, last_progress_;
};

}  // namespace tributary::ingest
