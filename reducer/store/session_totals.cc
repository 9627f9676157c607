#include "reducer/store/session_totals.h"

#include <algorithm>
#include <utility>

namespace tributary::store {
namespace {

// The losses that only the store counts: a collector knows neither the store's retention nor what the store drops.
constexpr LossReason kStoresOwn[] = {LossReason::kTooOld, LossReason::kOptedOutAtReducer};

}  // namespace

NamedAccounting SessionTotals::WithClosing() const {
  NamedAccounting all = accounting;
  all.LostFor(LossReason::kOptedOut) += std::exchange(all.LostFor(LossReason::kOptedOutAtReducer), {});
  if (closed_reason == kOpen) return all;
  all.captured = Max(known(), closed_captured);
  // A reason of a later release counts as kCollectorKilled.
  const auto reason = static_cast<uint64_t>(closed_reason) < kLossReasonCount ? static_cast<LossReason>(closed_reason)
                                                                              : LossReason::kCollectorKilled;
  all.LostFor(reason) += all.captured - known();
  return all;
}

void SessionTotals::Account(const RowBatch& batch) {
  NamedAccounting reported = NamedAccountingOf(batch);
  for (const LossReason reason : kStoresOwn) reported.LostFor(reason) = {};
  if (reported.HasParts()) reported = Types().Bound(reported);
  if (batch.sequence == 0) {
    accounting += reported;
  } else {
    durable_sequence = batch.sequence;
    for (const LossReason reason : kStoresOwn) reported.LostFor(reason) = std::move(accounting.LostFor(reason));
    accounting = std::move(reported);
  }
}

void SessionTotals::Close(LossReason reason, const NamedSampleCounts* share) {
  const bool was_open = closed_reason == kOpen;
  if (share != nullptr) {
    closed_captured = Max(closed_captured, Types().Bound(*share));
  } else if (was_open) {
    closed_captured = known();
  }
  if (share != nullptr || was_open) closed_reason = static_cast<int64_t>(reason);
}

BoundedTypes SessionTotals::Types() const {
  BoundedTypes types;
  types.Keep(stored);
  types.Keep(closed_captured);
  types.Keep(accounting);
  return types;
}

SampleTypeInfo NameOf(const RowBatch& batch, SampleType type) {
  if (static_cast<uint8_t>(type) > kSampleTypesUndefinedMax) {
    for (const SampleTypeDefinition& defined : batch.sample_types) {
      if (defined.type == type && defined.info != SampleTypeInfo{}) return defined.info;
    }
  }
  const SampleTypeRow* built_in = FindSampleType(type);
  return built_in != nullptr ? InfoOf(*built_in) : kUndefinedType;
}

NamedSampleCounts Named(const RowBatch& batch, const SampleCounts& counts) {
  NamedSampleCounts named = counts.cpu();
  for (const auto& [type, records] : counts.parts()) {
    named.Add(type == SampleType::kProcessEvent ? SampleTypeInfo{} : NameOf(batch, type), records);
  }
  return named;
}

NamedAccounting NamedAccountingOf(const RowBatch& batch) {
  NamedAccounting named{.captured = Named(batch, batch.accounting.captured), .idle = batch.accounting.idle};
  for (size_t i = 0; i < kLossReasonCount; ++i) named.lost[i] = Named(batch, batch.accounting.lost[i]);
  return named;
}

}  // namespace tributary::store
