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

// One connection of one node; a number that no other connection to this reducer has.
enum class SymbolAsker : uint64_t { kNobody = 0 };

// Which symbol tables were asked of whom, so that a fleet uploads each once: while a node that was asked is sending
// tables nobody else is asked for what it owes; when its connection ends, anybody may be asked at once. One per
// reducer, any thread; a lock held for moments.
class SymbolDemand {
 public:
  struct Options {
    int64_t timeout_ns = 60 * kNsPerSecond;     // without a piece of any table from that node
    int64_t longest_ns = 1'800 * kNsPerSecond;  // however it goes on: 8 of the largest tables at 1 MiB/s take 1,024 s
    int64_t unavailable_ns = 3'600 * kNsPerSecond;  // after a node said that there is none
  };
  // Executables asked for and not yet answered; one costs about 100 bytes.
  static constexpr size_t kRequestsMax = 65'536;
  // What became free is told once, up to so many between two looks; the rest waits for somebody to ask.
  static constexpr size_t kReleasedMax = 4'096;

  SymbolDemand(Options options, const Clock& clock, Metrics& metrics);

  bool MayAsk(const ExecutableId& id) const;  // a first look, which claims nothing
  // Whether to ask: if so, it counts as asked by `asker` from now on.
  bool Ask(const ExecutableId& id, SymbolAsker asker);
  void Progress(SymbolAsker asker);  // it is sending

  void Answered(const ExecutableId& id);     // the table is here
  void Unavailable(const ExecutableId& id);  // there is none
  void Defer(const ExecutableId& id);        // what came could not be used: asked again after the time-out
  // What came was spoiled: anybody may be asked, unless somebody else is sending it by now.
  void Release(const ExecutableId& id, SymbolAsker asker);
  void Release(SymbolAsker asker);  // its connection is over: so may anybody for what it owes

  // What was released since this was called with the same cursor, which begins at 0.
  std::vector<ExecutableId> ReleasedSince(uint64_t& cursor) const;

 private:
  struct Request {
    SymbolAsker asker = SymbolAsker::kNobody;
    int64_t asked_at = 0, not_before = 0;  // monotonic ns; not_before without progress
  };
  struct Asked {
    int64_t heard_at = 0;
    absl::flat_hash_set<ExecutableId> open;  // never empty
  };
  int64_t NotBefore(const Request& request) const;
  bool HasRoom(int64_t now);
  void Leave(const ExecutableId& id, const Request& request);  // `id` is not owed by that asker any more
  void Pause(const ExecutableId& id, int64_t ns);
  void Remove(const ExecutableId& id, bool tell);

  const Options options_;
  const Clock& clock_;
  Counter &made_, &deferred_;

  mutable std::mutex mutex_;
  absl::flat_hash_map<ExecutableId, Request> requests_;  // guarded by mutex_, as all below
  absl::flat_hash_map<SymbolAsker, Asked> askers_;
  std::deque<ExecutableId> released_;  // the last ones,
  uint64_t released_count_ = 0;        // of so many
};

}  // namespace tributary
