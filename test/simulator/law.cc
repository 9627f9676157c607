#include "test/simulator/law.h"

#include <fmt/format.h>

#include <set>

namespace tributary::sim {
namespace {

std::string Text(const SampleCounts& counts) {
  std::string out = fmt::format("{}", counts.total());
  for (const auto& [type, samples] : counts.parts()) out += fmt::format("/{} {}", samples, SampleTypeName(type));
  return out;
}

}  // namespace

Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores,
                     SampleCounts* stored) {
  Accounting sum;
  *stored = {};
  for (const DurableStore* store : stores) {
    for (const auto& [id, session] : store->sessions) {
      if (session.node_id != collector.name()) continue;
      sum += session.Account();
      *stored += session.stored;
    }
  }
  return sum;
}

std::string SessionsOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores) {
  std::string out;
  for (size_t i = 0; i < stores.size(); ++i) {
    for (const auto& [id, session] : stores[i]->sessions) {
      if (session.node_id != collector.name()) continue;
      const Accounting account = session.Account();
      out += fmt::format(
          "\n  session {:02x}{:02x}{:02x} at store {}: durable={} captured={} stored={} lost={} closed={}", id[1],
          id[0], id[15], i, session.durable_sequence, account.captured.total(), session.stored.total(),
          account.TotalLost().total(), session.closed_reason ? static_cast<int>(*session.closed_reason) : -1);
      if (session.closed_reason) {
        out += fmt::format(" share {} reported {} known {}", session.closed_captured.total(),
                           session.accounting.captured.total(), session.known().total());
      }
    }
  }
  return out;
}

std::string CheckStored(const SimCollector& collector, const std::vector<const DurableStore*>& stores) {
  const auto& captured = collector.samples();
  std::set<uint64_t> seen;
  for (const DurableStore* store : stores) {
    if (!store->twice.empty()) return fmt::format("sample {:x} was stored twice", store->twice.front());
    if (captured.empty()) continue;
    const auto first = store->samples.lower_bound(captured.begin()->first);
    const auto last = store->samples.upper_bound(captured.rbegin()->first);
    for (auto it = first; it != last; ++it) {
      if (!seen.insert(it->first).second) return fmt::format("sample {:x} is stored by two reducers", it->first);
      const WholeSample& truth = captured.at(it->first);
      if (it->second == truth) continue;
      return fmt::format("sample {:x} of {} differs from the captured one: [{} {}] stored as [{} {}]", it->first,
                         collector.name(), truth.time_ns, truth.place, it->second.time_ns, it->second.place);
    }
  }
  return "";
}

bool IsExact(const SimCollector& collector) {
  const SimPins& pins = collector.pins();
  return !pins.overflowed() && (pins.deaths() == 0 || pins.reducers_asked() <= 1);
}

std::string CheckLaw(const SimCollector& collector, const std::vector<const DurableStore*>& stores) {
  if (!IsExact(collector)) return "";
  SampleCounts stored;
  const Accounting account = AccountOf(collector, stores, &stored);
  const SampleCounts lost = account.TotalLost();
  const SampleCounts& in_doubt = account.LostFor(LossReason::kInDoubt);
  std::string sum = fmt::format("{}: captured {} reported {} stored {} lost {} (", collector.name(),
                                Text(collector.captured()), Text(account.captured), Text(stored), Text(lost));
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    if (account.lost[i].empty()) continue;
    sum += fmt::format(" {} {}", LossReasonName(static_cast<LossReason>(i)), Text(account.lost[i]));
  }
  sum += fmt::format(" ) waiting {}", collector.waiting_samples());
  if (account.captured != stored + lost) return "the reported numbers do not add up: " + sum;
  // Samples in doubt may have been stored. Only these samples may count both as stored and as lost.
  const SampleCounts both = account.captured - collector.captured();
  if (Max(account.captured, collector.captured()) != account.captured || Max(both, in_doubt) != in_doubt)
    return "the reported numbers differ from the captured ones: " + sum;
  return "";
}

}  // namespace tributary::sim
