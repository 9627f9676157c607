#include "base/refusals.h"

#include <utility>

namespace tributary {
namespace {

std::string ShownNode(std::string_view node_id) { return EscapeForDisplay(node_id.substr(0, Refusals::kNodeBytesMax)); }

}  // namespace

Refusals::Refusals(const Clock& clock, Metrics& metrics) : clock_(clock) {
  metrics.AddTable("tributary_reducer_refusals_total",
                   "What was refused, cut or delayed because of a node, by node and reason", true, [this] {
                     std::vector<Metrics::Row> rows;
                     for (Entry& entry : List()) {
                       rows.push_back({{{"node", std::move(entry.node)}, {"reason", std::string(entry.reason)}},
                                       static_cast<double>(entry.amount)});
                     }
                     return rows;
                   });
}

void Refusals::Add(std::string_view node_id, std::string_view reason, uint64_t amount) {
  if (amount == 0) return;
  Key key{ShownNode(node_id), reason};
  const MonotonicNs now = clock_.Monotonic();
  uint64_t total = 0, suppressed = 0;
  {
    std::lock_guard lock(mutex_);
    if (!counts_.contains(key) && counts_.size() >= kPairsMax) key.first = kOther;
    Count& count = counts_[key];
    const bool is_new = count.amount == 0;
    count.amount += amount;
    if (!is_new && now.value - count.logged_at.value < kLogAgainNs) return;
    if (!log_limit_.Allow(now, &suppressed)) return;
    count.logged_at = now;
    total = count.amount;
  }
  LogWarning("data of a node was refused, cut or delayed, see docs/limits.md node={} reason={} amount={} suppressed={}",
             key.first, reason, total, suppressed);
}

std::vector<Refusals::Entry> Refusals::List() const {
  std::vector<Entry> entries;
  std::lock_guard lock(mutex_);
  for (const auto& [key, count] : counts_) entries.push_back({key.first, key.second, count.amount});
  return entries;
}

std::map<std::string_view, uint64_t> Refusals::Of(std::string_view node_id) const {
  const std::string node = ShownNode(node_id);
  std::map<std::string_view, uint64_t> amounts;
  std::lock_guard lock(mutex_);
  for (auto it = counts_.lower_bound({node, {}}); it != counts_.end() && it->first.first == node; ++it) {
    amounts.emplace(it->first.second, it->second.amount);
  }
  return amounts;
}

}  // namespace tributary
