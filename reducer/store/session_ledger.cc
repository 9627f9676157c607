#include "reducer/store/session_ledger.h"

#include <numeric>

namespace tributary::store {
namespace {

Counter& AddEvictions(Metrics& metrics, const char* was) {
  return metrics.AddCounter("tributary_reducer_session_evictions_total",
                            "Sessions whose dictionary was removed from memory because --session-memory-bytes-max was "
                            "reached; the collector sends its dictionary again. was: idle (no connection or no batch "
                            "for a minute) or active",
                            {{"was", was}});
}

}  // namespace

std::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kSessions:
      return "sessions";
    case MemoryKind::kDecoders:
      return "decoders";
    case MemoryKind::kExecutables:
      return "executables";
    case MemoryKind::kDictionaries:
      return "dictionaries";
    case MemoryKind::kStrings:
      return "strings";
  }
  return "";
}

size_t MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), size_t{0}); }

SessionLedger::SessionLedger(size_t bytes_max, Metrics& metrics)
    : bytes_max_(bytes_max),
      idle_evictions_(AddEvictions(metrics, "idle")),
      active_evictions_(AddEvictions(metrics, "active")) {
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    gauges_[kind] = &metrics.AddGauge("tributary_reducer_session_memory_bytes",
                                      "Memory that the sessions of all shards have allocated, by kind",
                                      {{"kind", std::string(MemoryKindName(static_cast<MemoryKind>(kind)))}});
  }
}

SessionLedger::~SessionLedger() { Count(&sum_, {}); }

void SessionLedger::Count(MemoryUse* counted, const MemoryUse& now) {
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    const size_t change = now.bytes[kind] - counted->bytes[kind];  // may wrap: the sums wrap back
    if (change == 0) continue;
    bytes_ += change;
    if (counted != &sum_) sum_.bytes[kind] += change;
    gauges_[kind]->Add(static_cast<int64_t>(change));
  }
  *counted = now;
}

}  // namespace tributary::store
