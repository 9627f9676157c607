#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "profile/executable_id.h"

namespace tributary {

// One connection of one node: a number that no other connection to this reducer has.
enum class SymbolAsker : uint64_t { kNone = 0 };

// Remembers which symbol tables were requested from which node, so that a fleet uploads each table once. While the
// asked node is sending tables, no other node is asked for the tables that the first one still owes, for at most
// `longest_ns`. When its connection ends, any node may be asked at once. One object per reducer. Any thread; a lock is
// held only for moments.
class SymbolDemand {
 public:
  struct Options {
    int64_t timeout_ns = 60 * kNsPerSecond;     // without a piece of any table from that node
    int64_t longest_ns = 1'800 * kNsPerSecond;  // even with progress: 8 of the largest tables at 1 MiB/s take 1,024 s
    int64_t unavailable_ns = 3'600 * kNsPerSecond;  // after a node reported that no table exists
  };
  // Limit of executables that are asked for and not yet answered. One of them costs about 100 bytes.
  static constexpr size_t kRequestsMax = 65'536;
  // Released executables are reported once, at most this many between two calls of ReleasedSince. The rest wait until a
  // session asks for them.
  static constexpr size_t kReleasedMax = 4'096;

  SymbolDemand(Options options, const Clock& clock, Metrics& metrics);

  bool MayAsk(const ExecutableId& id) const;  // a first check, which claims nothing
  // Returns true if `asker` should ask for `id`. If so, `id` counts as asked by `asker` from now on.
  bool Ask(const ExecutableId& id, SymbolAsker asker);
  void Progress(SymbolAsker asker);  // the asker's node is sending

  void Answered(const ExecutableId& id);     // the table is here
  void Unavailable(const ExecutableId& id);  // no table exists
  void Defer(const ExecutableId& id);        // the answer was unusable: asked again after the time-out
  // The answer could not be used: any node may be asked, unless another asker has asked for the table by now.
  void Release(const ExecutableId& id, SymbolAsker asker);
  void Release(SymbolAsker asker);  // its connection ended: any node may be asked for the tables that it owes

  // Returns the executables released since the last call with the same cursor, which begins at 0.
  std::vector<ExecutableId> ReleasedSince(uint64_t& cursor) const;

 private:
  struct Request {
    SymbolAsker asker = SymbolAsker::kNone;
    int64_t asked_at = 0, not_before = 0;  // monotonic ns; not_before applies without progress
  };
  struct Asked {
    int64_t last_progress = 0;
    absl::flat_hash_set<ExecutableId> open;  // never empty
  };
  int64_t NotBefore(const Request& request) const;
  bool HasRoom(int64_t now);
  void Leave(const ExecutableId& id, const Request& request);  // that asker does not owe `id` any more
  void Pause(const ExecutableId& id, int64_t ns);
  void Remove(const ExecutableId& id, bool released);

  const Options options_;
  const Clock& clock_;
  Counter &made_, &deferred_;

  mutable std::mutex mutex_;
  absl::flat_hash_map<ExecutableId, Request> requests_;  // guarded by mutex_, as all members below
  absl::flat_hash_map<SymbolAsker, Asked> askers_;
  std::deque<ExecutableId> released_;  // the last released ones
  uint64_t released_count_ = 0;        // number of all released ones
};

}  // namespace tributary
