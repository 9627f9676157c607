#include "reducer/store/session_ledger.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>
#include <utility>

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

std::vector<size_t> ChooseEvictions(std::span<const Evictable> sessions, size_t excess) {
  std::vector<size_t> order(sessions.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(sessions[a].is_idle, sessions[a].bytes) > std::pair(sessions[b].is_idle, sessions[b].bytes);
  });
  std::vector<size_t> evicted;
  size_t freed = 0;
  const auto evict = [&](size_t session) {
    evicted.push_back(session);
    freed += sessions[session].bytes;
  };
  auto next = order.begin();
  for (; next != order.end() && sessions[*next].is_idle && freed < excess; ++next) evict(*next);
  if (freed >= excess) return evicted;

  struct Node {
    size_t bytes = 0;
    std::vector<size_t> sessions;  // active ones, the largest first
    size_t evicted = 0;
  };
  std::unordered_map<std::string_view, Node> nodes;
  for (; next != order.end(); ++next) {
    Node& node = nodes[sessions[*next].node_id];
    node.bytes += sessions[*next].bytes;
    node.sessions.push_back(*next);
  }
  std::priority_queue<std::pair<size_t, Node*>> largest;
  for (auto& [id, node] : nodes) largest.emplace(node.bytes, &node);
  while (freed < excess && !largest.empty()) {
    Node& node = *largest.top().second;
    largest.pop();
    const size_t session = node.sessions[node.evicted++];
    evict(session);
    node.bytes -= sessions[session].bytes;
    if (node.evicted < node.sessions.size()) largest.emplace(node.bytes, &node);
  }
  return evicted;
}

}  // namespace tributary::store
