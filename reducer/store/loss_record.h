#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/types.h"
#include "profile/accounting.h"
#include "profile/sample_types.h"

namespace tributary::store {

struct SessionTotals;

// The change of one of a machine's loss totals in some time. Σ samples over all stored records of a machine, type and
// reason is the total in NodeStatus.accounting, except for losses that an earlier release stored, or that have expired.
struct LossRecord {
  std::string node_id, host_name;
  SampleTypeInfo type;  // SampleTypeInfo{}: process events
  LossReason reason = LossReason::kRingFull;
  // Below 0 if samples arrived that had counted as lost, because their session had been closed.
  int64_t samples = 0;
  UnixNs first, last;  // times of the first and of the last commit with the losses
};
using LossVisitor = std::function<absl::Status(const LossRecord&)>;

// Losses of a machine that are committed within this time are added up.
constexpr int64_t kLossWindowNs = 10 * kNsPerSecond;
// In this time, the losses of at most this many types of a machine keep the names of their types. Further types become
// kUndefinedType. So a machine with very many types does not push out the losses of others.
constexpr size_t kLossTypesMax = 8;
// A shard keeps at most this many records, the newest ones.
constexpr int64_t kLossesMax = 1'000'000;

// Calls `visit` for each loss total of a session that differs between `before` and `after`.
void VisitLossChanges(const SessionTotals& before, const SessionTotals& after,
                      absl::FunctionRef<void(const SampleTypeInfo& type, LossReason reason, int64_t samples)> visit);

}  // namespace tributary::store
