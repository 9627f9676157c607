#include "reducer/symbolizer/table_eviction.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace tributary {
namespace {

constexpr uint64_t kFileOverheadBytes = 4096;

constexpr int kUnusedRank = std::numeric_limits<int>::min();

int RankOf(const SymbolFiles::Row& row) { return SymbolOriginRank(row.origin(), row.header.source); }

const int kSingleNodeRank = SymbolOriginRank(SymbolOrigin::kNode, SymbolSource::kNone);

// Returns the node that is charged for a table, or the node's peer. "": an earlier release has not stored the sender.
std::string ChargedTo(const SymbolWitness& sender) { return sender.peer_id.empty() ? sender.node_id : sender.peer_id; }

SymbolWitness SenderOf(const SymbolFiles::Row& row) {
  const TableNotes notes = row.notes();
  return notes.nodes.empty() ? SymbolWitness() : notes.nodes.front();
}

class Eviction {
 public:
  Eviction(std::vector<SymbolFiles::Row> stored, const TableLimits& limits, const NewTable* fresh)
      : fresh_(fresh), over_bytes_(-static_cast<int64_t>(limits.disk_bytes_max)) {
    std::ranges::stable_sort(stored, {}, &SymbolFiles::Row::last_used);
    if (fresh != nullptr) {
      over_bytes_ += static_cast<int64_t>(fresh->disk_bytes);
      if (fresh->rank == kSingleNodeRank) charged_[ChargedTo(fresh->sender)] += fresh->disk_bytes;
    }
    for (SymbolFiles::Row& row : stored) {
      if (fresh != nullptr && row.header.id == fresh->id) continue;  // `fresh` replaces it
      const uint64_t bytes = TableDiskBytes(row.stored_bytes);
      const int rank = row.last_used < limits.used_since ? kUnusedRank : RankOf(row);
      over_bytes_ += static_cast<int64_t>(bytes);
      std::string node;
      if (rank == kSingleNodeRank) charged_[node = ChargedTo(SenderOf(row))] += bytes;
      candidates_.push_back({.row = std::move(row), .rank = rank, .node = std::move(node)});
    }
    const uint64_t part = limits.disk_bytes_max / std::max<size_t>(charged_.size(), 1);
    share_bytes_ = std::max(part, limits.node_share_bytes_min);
  }

  std::optional<std::vector<SymbolFiles::Row>> Run() {
    const auto over_share = [this](const Candidate& candidate) {
      return candidate.rank == kSingleNodeRank && charged_[candidate.node] > share_bytes_;
    };
    if (fresh_ != nullptr && fresh_->rank == kSingleNodeRank) {
      const std::string own = ChargedTo(fresh_->sender);
      EvictWhile([&](const Candidate& c) { return over_share(c) && c.node == own; });
    }
    EvictWhile([](const Candidate& c) { return c.rank == kUnusedRank; });
    EvictWhile(over_share);
    const int rank_max = fresh_ != nullptr ? fresh_->rank : std::numeric_limits<int>::max();
    std::ranges::stable_sort(candidates_, {}, &Candidate::rank);
    EvictWhile([&](const Candidate& c) { return c.rank <= rank_max; });
    if (over_bytes_ > 0) return std::nullopt;
    return std::move(evicted_);
  }

 private:
  struct Candidate {
    SymbolFiles::Row row;
    int rank = 0;
    std::string node;  // that is charged; "" if two nodes agreed, or no node sent it
    bool evicted = false;
  };

  // Evicts the candidates that `may_go` allows, in their order, until there is enough space.
  template <typename Predicate>
  void EvictWhile(Predicate may_go) {
    for (Candidate& candidate : candidates_) {
      if (over_bytes_ <= 0) return;
      if (candidate.evicted || !may_go(candidate)) continue;
      const uint64_t bytes = TableDiskBytes(candidate.row.stored_bytes);
      over_bytes_ -= static_cast<int64_t>(bytes);
      if (candidate.rank == kSingleNodeRank) charged_[candidate.node] -= bytes;
      candidate.evicted = true;
      evicted_.push_back(candidate.row);
    }
  }

  const NewTable* const fresh_;
  int64_t over_bytes_;                                  // that must still be freed
  std::vector<Candidate> candidates_;                   // the least recently used first
  absl::flat_hash_map<std::string, uint64_t> charged_;  // bytes, by node
  uint64_t share_bytes_ = 0;
  std::vector<SymbolFiles::Row> evicted_;
};

}  // namespace

uint64_t TableDiskBytes(uint64_t stored_bytes) { return stored_bytes + kFileOverheadBytes; }

std::optional<std::vector<SymbolFiles::Row>> TablesToEvict(std::vector<SymbolFiles::Row> stored,
                                                           const TableLimits& limits, const NewTable* fresh) {
  return Eviction(std::move(stored), limits, fresh).Run();
}

}  // namespace tributary
