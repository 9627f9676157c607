#include "test/simulator/law.h"

#include <fmt/format.h>

#include <set>

namespace tributary::sim {

Accounting AccountOf(const SimCollector& collector, const std::vector<const DurableStore*>& stores, uint64_t* stored) {
  Accounting sum;
  *stored = 0;
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
      out +=
          fmt::format("\n  session {:02x}{:02x}{:02x} at store {}: durable={} captured={} stored={} lost={} closed={}",
                      id[1], id[0], id[15], i, session.durable_sequence, account.captured, session.stored,
                      account.TotalLost(), session.closed_reason ? static_cast<int>(*session.closed_reason) : -1);
      if (session.closed_reason) {
        out += fmt::format(" with {} told {} known {}", session.closed_captured, session.accounting.captured,
                           session.known());
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
      return fmt::format("sample {:x} of {} is not what was captured: [{} {}] stored as [{} {}]", it->first,
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
  uint64_t stored = 0;
  const Accounting account = AccountOf(collector, stores, &stored);
  const uint64_t lost = account.TotalLost();
  const uint64_t in_doubt = account.lost[static_cast<size_t>(LossReason::kInDoubt)];
  std::string sum = fmt::format("{}: captured {} told {} stored {} lost {} (", collector.name(), collector.captured(),
                                account.captured, stored, lost);
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    if (account.lost[i] > 0) sum += fmt::format(" {} {}", LossReasonName(static_cast<LossReason>(i)), account.lost[i]);
  }
  sum += fmt::format(" ) waiting {}", collector.waiting_samples());
  if (account.captured != stored + lost) return "what was told does not add up: " + sum;
  // What was in doubt may have been stored: it is the one thing that may count as both.
  const uint64_t both = account.captured - std::min(account.captured, collector.captured());
  if (account.captured < collector.captured() || both > in_doubt) return "not what was captured: " + sum;
  return "";
}

}  // namespace tributary::sim
