#include "reducer/symbolizer/symbol_votes.h"

#include <algorithm>
#include <utility>

namespace tributary {
namespace {

bool Contains(const std::vector<std::string>& nodes, const std::string& node_id) {
  return std::ranges::find(nodes, node_id) != nodes.end();
}

// Collectors of other releases, and other sources of names, make other tables of the same file.
bool IsComparable(const std::string& version, SymbolSource source, const SymbolVotes::Vote& with) {
  return version == with.version && source == with.digest.source;
}

}  // namespace

SymbolVotes::Question SymbolVotes::Ask(const ExecutableId& id, const std::string& node_id) {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  if (!tables_.contains(id) && !HasRoom(now)) return Question::kTooMany;
  Table& table = tables_[id];
  if (now < table.answer_by || table.asked.size() >= kNodesMax || Contains(table.asked, node_id)) return Question::kNo;
  table.asked.push_back(node_id);
  table.answer_by = now + options_.answer_ns;
  return Question::kAsk;
}

SymbolVotes::Outcome SymbolVotes::Take(const ExecutableId& id, const Stored& stored, const Vote& vote) {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end() || !Contains(it->second.asked, vote.node_id)) return {};
  Table& table = it->second;
  const auto is_of_node = [&](const Vote& known) { return known.node_id == vote.node_id; };
  if (std::ranges::any_of(table.votes, is_of_node)) return {};
  table.answer_by = 0;
  Outcome outcome;
  size_t same = 1;  // nodes with the digest of `vote`
  for (const Vote& known : table.votes) same += known.digest == vote.digest ? 1 : 0;
  if (vote.digest == stored.digest) {
    for (const std::string& node : stored.nodes) {
      const auto is_of_sender = [&](const Vote& known) { return known.node_id == node; };
      same += node == vote.node_id || std::ranges::any_of(table.votes, is_of_sender) ? 0 : 1;
    }
    outcome.verdict = same >= 2 ? Verdict::kAgreed : Verdict::kOnlyOne;
    for (const Vote& known : table.votes) {
      if (same < 2 || known.digest == vote.digest) continue;
      if (IsComparable(stored.version, stored.digest.source, known)) outcome.outvoted.push_back(known.node_id);
    }
  } else if (same >= 2) {
    outcome.verdict = Verdict::kOutvoted;
    if (IsComparable(stored.version, stored.digest.source, vote)) outcome.outvoted = stored.nodes;
    table.majority = vote.digest;
    table.has_majority = true;
  } else {
    outcome.verdict =
        IsComparable(stored.version, stored.digest.source, vote) ? Verdict::kConflict : Verdict::kNoVerdict;
  }
  table.votes.push_back(vote);
  return outcome;
}

void SymbolVotes::TakeNone(const ExecutableId& id, const std::string& node_id) {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it != tables_.end() && Contains(it->second.asked, node_id)) it->second.answer_by = 0;
}

bool SymbolVotes::IsOfMajority(const ExecutableId& id, const std::string& node_id) const {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end() || !it->second.has_majority) return false;
  return std::ranges::any_of(it->second.votes, [&](const Vote& vote) {
    return vote.node_id == node_id && vote.digest == it->second.majority;
  });
}

std::vector<std::string> SymbolVotes::Majority(const ExecutableId& id, const SymbolDigest& digest) const {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end() || !it->second.has_majority || it->second.majority != digest) return {};
  std::vector<std::string> nodes;
  for (const Vote& vote : it->second.votes) {
    if (vote.digest == digest) nodes.push_back(vote.node_id);
  }
  return nodes;
}

void SymbolVotes::Discard(const ExecutableId& id, const std::string& node_id) {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end()) return;
  Table& table = it->second;
  std::erase_if(table.votes, [&](const Vote& vote) { return vote.node_id == node_id; });
  const auto for_majority = [&](const Vote& vote) { return vote.digest == table.majority; };
  table.has_majority = table.has_majority && std::ranges::count_if(table.votes, for_majority) >= 2;
}

void SymbolVotes::Forget(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  tables_.erase(id);
}

// If the map is full, drops the tables without an open question.
bool SymbolVotes::HasRoom(int64_t now) {
  if (tables_.size() < kTablesMax) return true;
  absl::erase_if(tables_, [now](const auto& entry) { return entry.second.answer_by <= now; });
  return tables_.size() < kTablesMax;
}

}  // namespace tributary
