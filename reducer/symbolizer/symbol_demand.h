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

// The number of a connection of a node. No other connection to this reducer has the same number.
enum class SymbolAsker : uint64_t { kNone = 0 };

// Remembers which symbol tables were requested from which node, so that only one node of the fleet uploads each table.
// As long as this node is sending tables, the reducer does not request its remaining tables from other nodes, for at
// most `longest_ns`. When the node's connection ends, the reducer may request the remaining tables from any node at
// once. A reducer has one SymbolDemand. Any thread; calls hold a lock only for a short time.
class SymbolDemand {
 public:
  struct Options {
    int64_t timeout_ns = 60 * kNsPerSecond;     // without a piece of any table from that node
    int64_t longest_ns = 1'800 * kNsPerSecond;  // even with progress: 8 of the largest tables at 1 MiB/s take 1,024 s
    int64_t unavailable_ns = 3'600 * kNsPerSecond;  // after a node reported that no table exists
  };
  // Maximum number of requests that are remembered. A request uses about 100 bytes of memory.
  static constexpr size_t kRequestsMax = 65'536;
  // ReleasedSince returns at most this many executables. If more were released since the last call, it returns the last
  // ones. The others are requested when a session checks its executables the next time.
  static constexpr size_t kReleasedMax = 4'096;

  SymbolDemand(Options options, const Clock& clock, Metrics& metrics);

  bool MayAsk(const ExecutableId& id) const;  // a quick check, which does not count as a request
  // Returns true if the table of `id` should be requested over the connection `asker`. If so, the table counts as
  // requested from now on.
  bool Ask(const ExecutableId& id, SymbolAsker asker);
  void Progress(SymbolAsker asker);  // the node is sending a table

  void Answered(const ExecutableId& id);     // the table is stored now
  void Unavailable(const ExecutableId& id);  // no table exists
  void Defer(const ExecutableId& id);  // the table could not be stored: it may be requested again after `timeout_ns`
  // The table that `asker` sent was damaged or incomplete: the table may be requested from any node at once, unless it
  // was already requested over another connection.
  void Release(const ExecutableId& id, SymbolAsker asker);
  void Release(SymbolAsker asker);  // the connection ended: its missing tables may be requested from any node

  // A stored table may have to be replaced: sessions check the executable at once, instead of in their next round.
  void Reconsider(const ExecutableId& id);

  // Returns the executables that were released since the last call with this `cursor`, and updates the cursor. The
  // cursor must be 0 for the first call.
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
  void Leave(const ExecutableId& id, const Request& request);  // `id` is no longer expected from that connection
  void Pause(const ExecutableId& id, int64_t ns);
  void Remove(const ExecutableId& id, bool released);
  void AddReleased(const ExecutableId& id);

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
