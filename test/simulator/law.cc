#include "test/simulator/law.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace tributary::sim {
namespace {

std::string Text(const SampleCounts& counts) {
  std::string out = fmt::format("{}", counts.total());
  for (const auto& [type, records] : counts.parts()) {
    out += fmt::format("/{} {}", records, type == SampleType::kProcessEvent ? "events" : SampleTypeName(type));
  }
  return out;
}

std::string Text(const WholeSample& sample) { return fmt::format("{} {}", sample.time_ns, sample.place); }
std::string Text(const WholeEvent& event) { return event.text; }

SampleCounts EventsOf(const SampleCounts& counts) {
  SampleCounts events;
  events.AddEvents(counts.events());
  return events;
}

// Checks that every stored record is equal to the captured record with the same id, and is stored once.
template <typename Record>
std::string CheckRecords(const std::string& node, std::string_view kind, const std::map<uint64_t, Record>& captured,
                         const std::vector<const DurableStore*>& stores,
                         std::map<uint64_t, Record> DurableStore::* stored,
                         std::vector<uint64_t> DurableStore::* twice) {
  std::set<uint64_t> seen;
  for (const DurableStore* store : stores) {
    if (!(store->*twice).empty()) return fmt::format("{} {:x} was stored twice", kind, (store->*twice).front());
    if (captured.empty()) continue;
    const auto first = (store->*stored).lower_bound(captured.begin()->first);
    const auto last = (store->*stored).upper_bound(captured.rbegin()->first);
    for (auto it = first; it != last; ++it) {
      if (!seen.insert(it->first).second) return fmt::format("{} {:x} is stored by two reducers", kind, it->first);
      const Record& truth = captured.at(it->first);
      if (it->second == truth) continue;
      return fmt::format("{} {:x} of {} differs from the captured one: [{}] stored as [{}]", kind, it->first, node,
                         Text(truth), Text(it->second));
    }
  }
  return "";
}

// Checks the events of a node that has used a reducer of a release without process events: this reducer does not report
// them. If no collector was killed and no batch is in doubt, the collector has counted all losses itself.
std::string CheckUntaken(const SimCollector& collector, const Accounting& account, const SampleCounts& stored) {
  const Accounting& counted = collector.counted_lost();
  const uint64_t in_doubt =
      account.LostFor(LossReason::kInDoubt).events() + counted.LostFor(LossReason::kInDoubt).events();
  if (account.captured.events() > collector.captured().events() + in_doubt)
    return "there are more events than captured";
  if (collector.pins().deaths() > 0 || in_doubt > 0) return "";
  const uint64_t sum = stored.events() + counted.TotalLost().events();
  if (sum == collector.captured().events()) return "";
  return fmt::format("the collector counted {} lost events", counted.TotalLost().events());
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
  std::string wrong = CheckRecords(collector.name(), "sample", collector.samples(), stores, &DurableStore::samples,
                                   &DurableStore::twice);
  if (!wrong.empty()) return wrong;
  return CheckRecords(collector.name(), "event", collector.events(), stores, &DurableStore::events,
                      &DurableStore::events_twice);
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
  SampleCounts truth = collector.captured();
  const bool all_took_events =
      std::none_of(stores.begin(), stores.end(), [](const DurableStore* store) { return store->ever_took_no_events; });
  if (!all_took_events) {
    const std::string wrong = CheckUntaken(collector, account, stored);
    if (!wrong.empty()) return wrong + ": " + sum;
    truth -= EventsOf(truth - account.captured);
  }
  // Samples in doubt may have been stored. Only these samples may count both as stored and as lost.
  const SampleCounts both = account.captured - truth;
  if (Max(account.captured, truth) != account.captured || Max(both, in_doubt) != in_doubt)
    return "the reported numbers differ from the captured ones: " + sum;
  return "";
}

}  // namespace tributary::sim
