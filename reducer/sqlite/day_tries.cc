#include "reducer/sqlite/day_tries.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

namespace tributary::store {
namespace {

constexpr int64_t kUnusedMaxNs = 60 * kNsPerMinute;

}  // namespace

DayTries::DayTries(NodeLedger& ledger, TrieLimits limits, const Clock& clock, Metrics& metrics)
    : ledger_(ledger),
      limits_(limits),
      nodes_max_(size_t{limits.nodes_max} + limits.nodes_max / 4),
      clock_(clock),
      loads_(metrics.AddCounter("tributary_reducer_trie_loads_total",
                                "Tries of days that store writers loaded from their files, to add stacks")) {}

absl::StatusOr<std::unique_ptr<DayTries>> DayTries::Prepare(Database& database, NodeLedger& ledger, TrieLimits limits,
                                                            const Clock& clock, Metrics& metrics) {
  std::unique_ptr<DayTries> tries(new DayTries(ledger, limits, clock, metrics));
  ASSIGN_OR_RETURN(tries->put_,
                   database.Prepare("INSERT INTO trie_chunk (day, raw_bytes, columns, nodes_end, frames_end) "
                                    "VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(tries->pieces_, TriePieces::Prepare(database));
  ASSIGN_OR_RETURN(tries->shares_, TrieShareTable::Prepare(database));
  return tries;
}

size_t DayTries::nodes() const {
  size_t nodes = 0;
  for (const Kept& kept : tries_) nodes += kept.trie.node_count();
  return nodes;
}

absl::StatusOr<DayTrie*> DayTries::Find(Day day) {
  const auto it = std::find_if(tries_.begin(), tries_.end(), [&](const Kept& kept) { return kept.trie.day() == day; });
  if (it != tries_.end()) {
    tries_.splice(tries_.begin(), tries_, it);
    it->is_used = true;
    return &it->trie;
  }
  RETURN_IF_ERROR(MakeRoom());
  DayTrie& trie = tries_.emplace_front(day, limits_).trie;
  absl::Cleanup drop = [this] { tries_.pop_front(); };
  RETURN_IF_ERROR(Load(trie));
  RETURN_IF_ERROR(shares_->Load(day, &trie.shares()));
  std::move(drop).Cancel();
  loads_.Add();
  return &trie;
}

absl::Status DayTries::Load(DayTrie& trie) {
  DayTrieSink sink(trie);
  std::vector<DamagedRun> damage;
  RETURN_IF_ERROR(pieces_->Read(trie.day(), 0, sink, &damage));
  if (damage.empty()) return absl::OkStatus();
  damaged_ = trie.day();
  return Error(absl::StatusCode::kDataLoss, damage.front().reason);
}

// A transaction may have samples of any number of days, so this does not wait for its end.
absl::Status DayTries::MakeRoom() {
  while (tries_.size() >= kAlwaysKept && nodes() > nodes_max_) {
    Kept& oldest = tries_.back();
    oldest.is_last = true;
    RETURN_IF_ERROR(Write(oldest));
    written_out_.push_back(oldest.trie.day());
    tries_.pop_back();
  }
  return absl::OkStatus();
}

absl::Status DayTries::Write(Kept& kept) {
  DayTrie& trie = kept.trie;
  RETURN_IF_ERROR(shares_->Write(trie.day(), /*all=*/kept.is_last, &trie.shares()));
  if (!trie.has_new()) return absl::OkStatus();
  const PackedColumns packed = PackColumns(trie.EncodeNew());
  const TrieEnds ends = trie.ends();
  RETURN_IF_ERROR(put_.Bind(trie.day().value, packed.raw_bytes, packed.bytes, ends.nodes, ends.frames).Run());
  ledger_.AddTriePiece(trie.day(), packed.bytes.size() + NodeLedger::kRowBytes);
  return absl::OkStatus();
}

absl::Status DayTries::Write() {
  const MonotonicNs now = clock_.Monotonic();
  size_t place = 0, nodes = 0;
  for (Kept& kept : tries_) {
    nodes += kept.trie.node_count();
    if (std::exchange(kept.is_used, false)) kept.last_used = now;
    kept.is_last = (++place > kAlwaysKept && nodes > nodes_max_) || now.value - kept.last_used.value >= kUnusedMaxNs;
    RETURN_IF_ERROR(Write(kept));
  }
  return absl::OkStatus();
}

void DayTries::MarkCommitted() {
  tries_.remove_if([](const Kept& kept) { return kept.is_last; });
  for (Kept& kept : tries_) kept.trie.MarkCommitted();
  written_out_.clear();
}

void DayTries::Rollback() {
  // If such a trie is in memory again, it was loaded with nodes that the file has no more.
  for (const Day day : written_out_) Forget(day);
  written_out_.clear();
  for (Kept& kept : tries_) {
    kept.is_last = false;
    kept.trie.Rollback();
  }
}

void DayTries::Forget(Day day) {
  tries_.remove_if([day](const Kept& kept) { return kept.trie.day() == day; });
}

}  // namespace tributary::store
