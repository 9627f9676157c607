#include <algorithm>
#include <iterator>
#include <utility>

#include "reducer/ingest/shard_core.h"

// The symbol tables that a shard requests from its nodes.

namespace tributary::ingest {

SymbolNode ShardCore::NodeOf(const Live& live) {
  return {.connection = live.asker,
          .node_id = live.info->node_id,
          .version = live.info->agent_version,
          .peer_id = live.peer_id,
          .sends_digests = (live.session->hello().features & intake::kFeatureSymbolDigests) != 0};
}

void ShardCore::OnSymbols(const SessionInfo& info, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) {
  auto it = live_.find(info.session_id);
  if (it == live_.end()) return;
  symbols_.Take(NodeOf(it->second), id, std::move(encoded_table));
  it->second.symbols.Answered(id);
  OnSymbolProgress(info);
  AskForSymbols(info.session_id, it->second);
}

void ShardCore::OnSymbolDigest(const SessionInfo& info, const ExecutableId& id,
                               const absl::StatusOr<SymbolDigest>& digest) {
  auto it = live_.find(info.session_id);
  if (it == live_.end()) return;
  symbols_.TakeDigest(NodeOf(it->second), id, digest);
  it->second.symbols.Answered(id);
  OnSymbolProgress(info);
  AskForSymbols(info.session_id, it->second);
}

void ShardCore::OnSymbolProgress(const SessionInfo& info) {
  auto it = live_.find(info.session_id);
  if (it == live_.end()) return;
  it->second.symbols.Progress(clock_.Monotonic());
  symbols_.Progress(it->second.asker);
}

void ShardCore::AskForSymbols(const SessionId& id, Live& live) {
  std::vector<ExecutableId> candidates = live.symbols.TakeCandidates();
  if (candidates.empty()) return;
  auto reply = [this, id, asker = live.asker](const SymbolDesk::Choice& choice) {
    auto it = live_.find(id);
    if (it == live_.end() || it->second.asker != asker) return;
    std::vector<ExecutableId> asked = choice.tables;
    asked.insert(asked.end(), choice.digests.begin(), choice.digests.end());
    it->second.symbols.Chosen(asked, choice.considered, clock_.Monotonic());
    if (!choice.tables.empty()) it->second.session->NeedSymbols(choice.tables);
    if (!choice.digests.empty()) it->second.session->NeedDigests(choice.digests);
    AskForSymbols(id, it->second);
  };
  // The queue is full: all of them stay candidates.
  if (!symbols_.TryChoose(NodeOf(live), std::move(candidates), live.symbols.ask_max(), std::move(reply))) {
    live.symbols.Chosen({}, 0, clock_.Monotonic());
  }
}

// A node was cut off. Other nodes have the same executables, and need not wait for their next round.
void ShardCore::WantReleased() {
  const std::vector<ExecutableId> released = symbols_.TakeReleased();
  if (released.empty()) return;
  const absl::flat_hash_set<ExecutableId> wanted(released.begin(), released.end());
  for (auto& [id, live] : live_) {
    const SessionMemory::Entry* entry = memory_.Find(id);
    if (entry == nullptr) continue;
    std::vector<ExecutableId> has;
    std::copy_if(entry->executables.begin(), entry->executables.end(), std::back_inserter(has),
                 [&](const ExecutableId& e) { return wanted.contains(e); });
    live.symbols.Want(has);
  }
}

}  // namespace tributary::ingest
