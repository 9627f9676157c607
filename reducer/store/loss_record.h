#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/types.h"
#include "profile/accounting.h"
#include "profile/sample_types.h"

namespace tributary::store {

struct SessionTotals;

// The change of one of a machine's loss totals in some time. Σ samples over all stored records of a machine, type and
// reason is the total in NodeStatus.accounting, except for losses that an earlier release stored, that have expired, or
// that are in a record of several types or reasons.
struct LossRecord {
  std::string node_id, host_name;
  SampleTypeInfo type;                                       // SampleTypeInfo{}: process events; or kOtherTypes
  std::optional<LossReason> reason = LossReason::kRingFull;  // nullopt: several reasons
  // Below 0 if samples arrived that had counted as lost, because their session had been closed.
  int64_t samples = 0;
  UnixNs first, last;  // times of the first and of the last commit with the losses
};
using LossVisitor = std::function<absl::Status(const LossRecord&)>;

// Losses of a machine that are committed within this time are added up.
constexpr int64_t kLossWindowNs = 10 * kNsPerSecond;
// In this time, the losses of at most this many types of a machine keep the names of their types. Further types become
// kOtherTypes. So a machine with very many types does not push out the losses of others.
constexpr size_t kLossTypesMax = 8;
inline const SampleTypeInfo kOtherTypes{"other", "other"};
// A shard keeps at most this many records, the newest ones.
constexpr int64_t kLossesMax = 1'000'000;

// Returns "ring_full", …, or "other" for several reasons.
std::string_view ReasonText(const LossRecord& loss);

// Calls `visit` for each loss total of a session that differs between `before` and `after`.
void VisitLossChanges(const SessionTotals& before, const SessionTotals& after,
                      absl::FunctionRef<void(const SampleTypeInfo& type, LossReason reason, int64_t samples)> visit);

}  // namespace tributary::store
