#include "intake/spool/spool_accounting.h"

#include <array>

namespace tributary::intake {
namespace {

using Losses = std::array<uint64_t, kLossReasonCount>;

void AppendLosses(std::string& out, const Losses& lost) {
  size_t reasons = kLossReasonCount;
  while (reasons > 0 && lost[reasons - 1] == 0) --reasons;
  AppendVarint(out, reasons);
  for (size_t i = 0; i < reasons; ++i) AppendVarint(out, lost[i]);
}

bool ReadLosses(VarintReader& reader, Losses* out) {
  uint64_t reasons = 0;
  if (!reader.Read(&reasons) || reasons > kLossReasonsMax) return false;
  for (uint64_t i = 0; i < reasons; ++i) {
    uint64_t lost = 0;
    if (!reader.Read(&lost)) return false;
    // A loss for a reason of a later release still counts.
    (*out)[i < kLossReasonCount ? i : static_cast<uint64_t>(LossReason::kBadRecord)] += lost;
  }
  return true;
}

SampleCounts AllTypes(const Accounting& accounting, const SampleCounts& samples) {
  return samples + accounting.Counted();
}

}  // namespace

void AppendAccounting(std::string& out, const Accounting& accounting) {
  AppendVarint(out, accounting.captured.total());
  AppendVarint(out, accounting.idle);
  Losses lost;
  for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] = accounting.lost[i].total();
  AppendLosses(out, lost);
}

bool ReadAccounting(VarintReader& reader, Accounting* out) {
  uint64_t captured = 0;
  Losses lost{};
  if (!reader.Read(&captured) || !reader.Read(&out->idle) || !ReadLosses(reader, &lost)) return false;
  out->captured = captured;
  for (size_t i = 0; i < kLossReasonCount; ++i) out->lost[i] = lost[i];
  return true;
}

bool HasTypes(const Accounting& accounting, const SampleCounts& samples) {
  return !AllTypes(accounting, samples).parts().empty();
}

void AppendTypes(std::string& out, const Accounting& accounting, const SampleCounts& samples) {
  const SampleCounts all = AllTypes(accounting, samples);
  AppendVarint(out, all.parts().size());
  for (const auto& [type, sum] : all.parts()) {
    AppendVarint(out, static_cast<uint8_t>(type));
    AppendVarint(out, samples.Of(type));
    AppendVarint(out, accounting.captured.Of(type));
    Losses lost;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] = accounting.lost[i].Of(type);
    AppendLosses(out, lost);
  }
}

bool ReadTypes(VarintReader& reader, Accounting* accounting, SampleCounts* samples) {
  uint64_t types = 0;
  if (!reader.Read(&types) || types > kSampleTypesMax + 1) return false;
  for (uint64_t i = 0; i < types; ++i) {
    uint64_t number = 0, counted = 0, captured = 0;
    Losses lost{};
    if (!reader.Read(&number) || number > UINT8_MAX || !reader.Read(&counted) || !reader.Read(&captured) ||
        !ReadLosses(reader, &lost)) {
      return false;
    }
    const auto type = static_cast<SampleType>(number);
    if (!samples->Split(type, counted) || !accounting->captured.Split(type, captured)) return false;
    for (size_t reason = 0; reason < kLossReasonCount; ++reason) {
      if (!accounting->lost[reason].Split(type, lost[reason])) return false;
    }
  }
  return true;
}

}  // namespace tributary::intake
