#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "profile/executable_id.h"

namespace tributary::ingest {

// Chooses the symbol tables to request from one connected collector. It requests a few tables at a time, so that these
// tables arrive soon and other nodes need not send them. About every kRoundNs it checks all executables of the
// collector again, because a table that was requested from another node may never have arrived. It does no I/O itself.
// Use it on the loop's thread.
class SymbolRequests {
 public:
  static constexpr size_t kAskedMax = 8;         // unanswered requests at a time
  static constexpr size_t kCandidatesMax = 256;  // per look-up in the symbol store
  static constexpr size_t kWaitingMax = 16'384;  // Want ignores further executables; a later Tick adds them
  // A request counts as failed if the collector has sent no part of any table for kAnswerNs, and in any case after
  // kLongestNs.
  static constexpr int64_t kAnswerNs = 180 * kNsPerSecond;
  static constexpr int64_t kLongestNs = 1'800 * kNsPerSecond;
  static constexpr int64_t kRoundNs = 60 * kNsPerSecond;

  // Adds executables of the collector's node, so that their tables may be requested.
  void Want(const std::vector<ExecutableId>& ids);

  // Returns the executables to look up in the symbol store now. Returns an empty list if no executable waits, if a
  // look-up is in progress, or if kAskedMax requests are unanswered. If the result is not empty, the caller must call
  // Chosen after the look-up.
  std::vector<ExecutableId> TakeCandidates();
  size_t ask_max() const { return kAskedMax - asked_.size(); }
  // Ends the look-up: the first `considered` candidates were checked, and the tables of `ask` are now requested. The
  // other candidates wait for the next look-up.
  void Chosen(const std::vector<ExecutableId>& ask, size_t considered, MonotonicNs now);
  void Answered(const ExecutableId& id) { asked_.erase(id); }
  void Progress(MonotonicNs now) { last_progress_ = now; }  // the collector is sending
  bool has_pending() const { return !asked_.empty() || !looking_up_.empty(); }

  // Drops the executables that wait. A later Tick adds them again.
  void DropWaiting();
  size_t memory_bytes() const;  // allocated

  // Removes failed requests. Calls Want(all), unless an executable waits or is being looked up, or the last such call
  // was less than kRoundNs ago.
  void Tick(const std::vector<ExecutableId>& all, MonotonicNs now);

 private:
  std::deque<ExecutableId> waiting_;
  absl::flat_hash_set<ExecutableId> is_waiting_;
  std::vector<ExecutableId> looking_up_;
  absl::flat_hash_map<ExecutableId, MonotonicNs> asked_;  // value: when it was asked for
  MonotonicNs round_started_, last_progress_;
};

}  // namespace tributary::ingest
