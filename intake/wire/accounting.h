#pragma once

#include "intake/wire/wire.h"

// Converts the accounting of a batch, and its list of ended sessions (ClosedSession), to Cap'n Proto and back.

namespace tributary::intake {

using LossList = capnp::List<uint64_t, capnp::Kind::PRIMITIVE>;
using TypeCountsList = capnp::List<wire::TypeCounts, capnp::Kind::STRUCT>;

// The limit for each number of samples in a message: captured samples of a session, and samples lost for one reason. No
// node takes that many samples in its life. The sum over all loss reasons of a message stays within kSampleCountMax.
constexpr uint64_t kSamplesOfMessageMax = uint64_t{1} << 48;
static_assert(kSamplesOfMessageMax <= kSampleCountMax / kLossReasonsMax);

// Writes `lost` without the zeros at its end. `init(size)` allocates the list. `init` is not called if all values are
// 0.
template <typename InitLost>
void WriteLost(const uint64_t (&lost)[kLossReasonCount], InitLost&& init) {
  unsigned used = kLossReasonCount;
  while (used > 0 && lost[used - 1] == 0) --used;
  if (used == 0) return;
  LossList::Builder list = init(used);
  for (unsigned i = 0; i < used; ++i) list.set(i, lost[i]);
}

// Returns the types that typeCounts lists, process events included.
inline std::vector<SampleType> TypesExceptCpu(const Accounting& accounting) {
  std::vector<SampleType> types;
  const SampleCounts counted = accounting.Counted();
  for (const auto& [type, samples] : counted.parts()) types.push_back(type);
  return types;
}

inline void WriteAccounting(const Accounting& accounting, wire::Batch::Builder to) {
  uint64_t lost[kLossReasonCount];
  to.setCaptured(accounting.captured.total());
  to.setIdle(accounting.idle);
  for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] = accounting.lost[i].total();
  WriteLost(lost, [&to](unsigned size) { return to.initLost(size); });
  const std::vector<SampleType> types = TypesExceptCpu(accounting);
  if (types.empty()) return;
  auto list = to.initTypeCounts(static_cast<unsigned>(types.size()));
  for (unsigned t = 0; t < types.size(); ++t) {
    list[t].setNumber(static_cast<uint8_t>(types[t]));
    list[t].setCaptured(accounting.captured.Of(types[t]));
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] = accounting.lost[i].Of(types[t]);
    WriteLost(lost, [counts = list[t]](unsigned size) mutable { return counts.initLost(size); });
  }
}

// Samples that were lost for a reason that only a later release knows count as kBadRecord. So captured = stored + lost
// still holds.
inline absl::Status ReadLost(LossList::Reader from, uint64_t (&lost)[kLossReasonCount], IncomingBatch* out) {
  if (from.size() > kLossReasonsMax) return Malformed("there are too many loss reasons");
  for (unsigned i = 0; i < from.size(); ++i) {
    if (from[i] > kSamplesOfMessageMax) return Malformed("the number of lost samples is too large");
    const bool known = i < kLossReasonCount;
    if (!known && from[i] != 0) ++out->unknown_values;
    lost[known ? i : static_cast<unsigned>(LossReason::kBadRecord)] += from[i];
  }
  return absl::OkStatus();
}

// Calls `split(type, counts)` for each sample type, and for process events. InvalidArgument if there are too many
// sample types, if a type appears twice, if a number is too large, or if a type is CPU: the counts of CPU samples
// follow from the totals.
template <typename Split>
absl::Status ReadTypeCounts(TypeCountsList::Reader from, Split&& split) {
  if (from.size() > kSampleTypesMax + 1) return Malformed("there are counts for too many sample types");
  std::bitset<256> seen;
  for (const auto counts : from) {
    const auto type = static_cast<SampleType>(counts.getNumber());
    if (type == SampleType::kCpu)
      return Malformed("there are counts for a sample type that is never counted separately");
    if (seen.test(counts.getNumber())) return Malformed("there are two counts for one sample type");
    seen.set(counts.getNumber());
    // The totals do not limit the number of process events.
    if (counts.getCaptured() > kSamplesOfMessageMax) return Malformed("the number of captured records is too large");
    RETURN_IF_ERROR(split(type, counts));
  }
  seen.reset(static_cast<size_t>(SampleType::kProcessEvent));
  return seen.count() <= kSampleTypesMax ? absl::OkStatus() : Malformed("there are counts for too many sample types");
}

inline absl::Status ReadAccounting(wire::Batch::Reader from, IncomingBatch* out) {
  Accounting& accounting = out->accounting;
  if (from.getCaptured() > kSamplesOfMessageMax) return Malformed("the number of captured samples is too large");
  accounting.captured = from.getCaptured();
  accounting.idle = from.getIdle();
  uint64_t lost[kLossReasonCount] = {};
  RETURN_IF_ERROR(ReadLost(from.getLost(), lost, out));
  for (size_t i = 0; i < kLossReasonCount; ++i) accounting.lost[i] = lost[i];
  return ReadTypeCounts(from.getTypeCounts(), [&](SampleType type, wire::TypeCounts::Reader counts) -> absl::Status {
    uint64_t of_type[kLossReasonCount] = {};
    RETURN_IF_ERROR(ReadLost(counts.getLost(), of_type, out));
    bool fits = accounting.captured.Split(type, counts.getCaptured());
    for (size_t i = 0; i < kLossReasonCount; ++i) fits = fits && accounting.lost[i].Split(type, of_type[i]);
    return fits ? absl::OkStatus() : Malformed("a sample type has more samples than all types together");
  });
}

inline void WriteCloses(const std::vector<ClosedSession>& closes, wire::Batch::Builder to) {
  if (closes.empty()) return;
  auto list = to.initCloses(static_cast<unsigned>(closes.size()));
  for (unsigned i = 0; i < closes.size(); ++i) {
    list[i].setSessionId({closes[i].session_id.data(), closes[i].session_id.size()});
    list[i].setCaptured(closes[i].captured.total());
    list[i].setReason(static_cast<uint8_t>(closes[i].reason));
    const auto parts = closes[i].captured.parts();
    if (parts.empty()) continue;
    auto types = list[i].initTypeCounts(static_cast<unsigned>(parts.size()));
    for (unsigned t = 0; t < parts.size(); ++t) {
      types[t].setNumber(static_cast<uint8_t>(parts[t].first));
      types[t].setCaptured(parts[t].second);
    }
  }
}

inline absl::Status ReadCloses(wire::Batch::Reader from, IncomingBatch* out) {
  const auto list = from.getCloses();
  if (list.size() > kClosedSessionsMax) return Malformed("there are too many closed sessions");
  for (const auto closed : list) {
    ClosedSession& session = out->closes.emplace_back();
    RETURN_IF_ERROR(ReadSessionId(closed.getSessionId(), &session.session_id));
    if (closed.getCaptured() > kSamplesOfMessageMax) return Malformed("the number of captured samples is too large");
    session.captured = closed.getCaptured();
    RETURN_IF_ERROR(ReadTypeCounts(closed.getTypeCounts(), [&](SampleType type, wire::TypeCounts::Reader counts) {
      return session.captured.Split(type, counts.getCaptured())
                 ? absl::OkStatus()
                 : Malformed("a closed session has more samples of a type than of all types together");
    }));
    const auto reason = static_cast<LossReason>(closed.getReason());
    if (reason == LossReason::kShutdown) {
      session.reason = reason;
    } else if (reason != LossReason::kCollectorKilled) {
      ++out->unknown_values;
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary::intake
