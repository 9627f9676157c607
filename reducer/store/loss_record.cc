#include "reducer/store/loss_record.h"

#include <set>

#include "reducer/store/session_totals.h"

namespace tributary::store {
namespace {

int64_t Difference(uint64_t before, uint64_t after) {
  static_assert(kSampleCountMax <= INT64_MAX);
  return static_cast<int64_t>(after) - static_cast<int64_t>(before);
}

}  // namespace

std::string_view ReasonText(const LossRecord& loss) { return loss.reason ? LossReasonName(*loss.reason) : "other"; }

void VisitLossChanges(const SessionTotals& before, const SessionTotals& after,
                      absl::FunctionRef<void(const SampleTypeInfo& type, LossReason reason, int64_t samples)> visit) {
  const NamedAccounting old_totals = before.WithClosing(), new_totals = after.WithClosing();
  static const SampleTypeInfo kCpu = InfoOf(*FindSampleType(SampleType::kCpu));
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    const NamedSampleCounts &from = old_totals.lost[i], &to = new_totals.lost[i];
    if (from == to) continue;
    std::set<SampleTypeInfo> types = {kCpu};
    for (const auto& [type, samples] : from.parts()) types.insert(type);
    for (const auto& [type, samples] : to.parts()) types.insert(type);
    for (const SampleTypeInfo& type : types) {
      const int64_t samples = Difference(from.Of(type), to.Of(type));
      if (samples != 0) visit(type, static_cast<LossReason>(i), samples);
    }
  }
}

}  // namespace tributary::store
