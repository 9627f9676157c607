#include "reducer/symbolizer/symbol_votes.h"

#include <algorithm>

namespace tributary {
namespace {

bool Contains(const std::vector<SymbolWitness>& nodes, const std::string& node_id) {
  return std::ranges::find(nodes, node_id, &SymbolWitness::node_id) != nodes.end();
}

bool HasIndependentOf(const std::vector<SymbolWitness>& nodes, const SymbolWitness& node) {
  return std::ranges::any_of(nodes, [&](const SymbolWitness& other) { return other.IsIndependentOf(node); });
}

std::vector<SymbolWitness> VotersFor(const std::vector<SymbolVotes::Vote>& votes, const SymbolDigest& digest) {
  std::vector<SymbolWitness> voters;
  for (const SymbolVotes::Vote& vote : votes) {
    if (vote.digest == digest) voters.push_back(vote.by);
  }
  return voters;
}

// Collectors of other releases, and other sources of names, make other tables of the same file.
bool IsComparable(const std::string& version, SymbolSource source, const SymbolVotes::Vote& with) {
  return version == with.version && source == with.digest.source;
}

}  // namespace

SymbolVotes::Question SymbolVotes::Ask(const ExecutableId& id, const SymbolWitness& node) {
  const int64_t now = clock_.Monotonic().value;
  std::lock_guard lock(mutex_);
  if (!tables_.contains(id) && !HasRoom(now)) return Question::kTooMany;
  Table& table = tables_[id];
  const auto is_same = [&](const SymbolWitness& known) { return known.IsSameAs(node); };
  if (now < table.answer_by || table.asked.size() >= kNodesMax) return Question::kNo;
  if (std::ranges::any_of(table.asked, is_same)) return Question::kNo;
  table.asked.push_back(node);
  table.answer_by = now + options_.answer_ns;
  return Question::kAsk;
}

SymbolVotes::Outcome SymbolVotes::Take(const ExecutableId& id, const Stored& stored, const Vote& vote) {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end() || !Contains(it->second.asked, vote.by.node_id)) return {};
  Table& table = it->second;
  const auto is_of_node = [&](const Vote& known) { return known.by.node_id == vote.by.node_id; };
  if (std::ranges::any_of(table.votes, is_of_node)) return {};
  table.answer_by = 0;
  Outcome outcome;
  const bool of_stored = vote.digest == stored.digest;
  const bool two = HasIndependentOf(VotersFor(table.votes, vote.digest), vote.by) ||
                   (of_stored && HasIndependentOf(stored.nodes, vote.by));
  if (of_stored) {
    outcome.verdict = two ? Verdict::kAgreed : Verdict::kOnlyOne;
    for (const Vote& known : table.votes) {
      if (!two || known.digest == vote.digest) continue;
      if (IsComparable(stored.version, stored.digest.source, known)) outcome.outvoted.push_back(known.by.node_id);
    }
  } else if (two) {
    outcome.verdict = Verdict::kOutvoted;
    if (IsComparable(stored.version, stored.digest.source, vote)) {
      for (const SymbolWitness& node : stored.nodes) outcome.outvoted.push_back(node.node_id);
    }
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
    return vote.by.node_id == node_id && vote.digest == it->second.majority;
  });
}

std::vector<SymbolWitness> SymbolVotes::Majority(const ExecutableId& id, const SymbolDigest& digest) const {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end() || !it->second.has_majority || it->second.majority != digest) return {};
  return VotersFor(it->second.votes, digest);
}

void SymbolVotes::Discard(const ExecutableId& id, const std::string& node_id) {
  std::lock_guard lock(mutex_);
  auto it = tables_.find(id);
  if (it == tables_.end()) return;
  Table& table = it->second;
  std::erase_if(table.votes, [&](const Vote& vote) { return vote.by.node_id == node_id; });
  const std::vector<SymbolWitness> left = VotersFor(table.votes, table.majority);
  const auto is_of_two = [&](const SymbolWitness& voter) { return HasIndependentOf(left, voter); };
  table.has_majority = table.has_majority && std::ranges::any_of(left, is_of_two);
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
