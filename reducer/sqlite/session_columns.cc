#include "reducer/sqlite/session_columns.h"

#include <array>

#include "base/status.h"
#include "base/varint.h"
#include "reducer/sqlite/column_codec.h"

namespace tributary::store {
namespace {

void AppendText(std::string& out, std::string_view text) {
  AppendVarint(out, text.size());
  out.append(text);
}

bool ReadText(VarintReader& reader, std::string* out) {
  uint64_t size = 0;
  std::string_view text;
  if (!reader.Read(&size) || size > kSampleTypeBytesMax || !reader.ReadBytes(size, &text)) return false;
  out->assign(text);
  return true;
}

bool ReadType(VarintReader& reader, SessionTotals* totals) {
  SampleTypeInfo type;
  uint64_t aggregation = 0, captured = 0, stored = 0, closed = 0;
  if (!ReadText(reader, &type.name) || !ReadText(reader, &type.unit) || !reader.Read(&aggregation) ||
      !reader.Read(&captured) || !reader.Read(&stored) || !reader.Read(&closed)) {
    return false;
  }
  if (aggregation == kAggregationLast) type.aggregation = Aggregation::kLast;
  bool fits = totals->accounting.captured.Split(type, captured) && totals->stored.Split(type, stored) &&
              totals->closed_captured.Split(type, closed);
  uint64_t reasons = 0;
  if (!fits || !reader.Read(&reasons)) return false;
  for (uint64_t i = 0; i < reasons; ++i) {
    uint64_t lost = 0;
    if (!reader.Read(&lost)) return false;
    if (i < kLossReasonCount && !totals->accounting.lost[i].Split(type, lost)) return false;
  }
  return true;
}

}  // namespace

std::string EncodeSessionTypes(const SessionTotals& totals) {
  if (!totals.accounting.HasParts() && totals.stored.parts().empty() && totals.closed_captured.parts().empty())
    return "";
  const NamedSampleCounts all = totals.stored + totals.closed_captured + totals.accounting.Counted();
  std::string out;
  for (const auto& [type, sum] : all.parts()) {
    AppendText(out, type.name);
    AppendText(out, type.unit);
    AppendVarint(out, static_cast<uint64_t>(type.aggregation));
    AppendVarint(out, totals.accounting.captured.Of(type));
    AppendVarint(out, totals.stored.Of(type));
    AppendVarint(out, totals.closed_captured.Of(type));
    AppendVarint(out, kLossReasonCount);
    for (const NamedSampleCounts& lost : totals.accounting.lost) AppendVarint(out, lost.Of(type));
  }
  return out;
}

absl::Status DecodeSessionTypes(std::string_view bytes, SessionTotals* totals) {
  VarintReader reader(bytes);
  while (!reader.AtEnd()) {
    if (!ReadType(reader, totals))
      return Error(absl::StatusCode::kDataLoss, "the sample counts of a session are damaged");
  }
  return absl::OkStatus();
}

std::string EncodeLosses(const NamedAccounting& accounting) {
  std::array<uint64_t, kLossReasonCount> lost;
  for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] = accounting.lost[i].total();
  return EncodeCounters(lost);
}

void DecodeLosses(std::string_view bytes, NamedAccounting* accounting) {
  std::array<uint64_t, kLossReasonCount> lost;
  DecodeCounters(bytes, lost);
  for (size_t i = 0; i < kLossReasonCount; ++i) accounting->lost[i] = lost[i];
}

}  // namespace tributary::store
