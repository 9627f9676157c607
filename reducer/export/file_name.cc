#include "reducer/export/file_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <span>

#include "base/hex.h"
#include "base/number.h"
#include "base/percent.h"
#include "base/sha256.h"

namespace tributary {
namespace {

constexpr size_t kTypeBytesMax = 24;
constexpr size_t kDigestBytes = 8;  // 16 digits
constexpr std::string_view kPart = ".part";
constexpr std::string_view kDamaged = ".damaged";
constexpr size_t kStampBytes = std::string_view("20261127T140059123Z").size();
// The stamp has four digits for the year.
constexpr int64_t kStampMsMax = 253'402'300'799'999;

bool IsPlainOfType(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; }
bool IsPlain(char c) { return IsPlainOfType(c) || c == '.'; }
bool IsNever(char) { return false; }

std::string Escape(std::string_view text, bool (*is_plain)(char)) {
  const bool escapes_first =
      text.starts_with('-') || text.starts_with('.') || text == kOtherName || text == kUnknownName;
  const size_t first = escapes_first ? 1 : 0;
  return PercentEncoded(text.substr(0, first), IsNever) + PercentEncoded(text.substr(first), is_plain);
}

std::string TypePart(std::string_view text) {
  if (text.empty()) return std::string(kUnknownName);
  std::string escaped = Escape(text.substr(0, kTypeBytesMax), IsPlainOfType);
  if (text.size() <= kTypeBytesMax && escaped.size() <= kTypeBytesMax) return escaped;
  escaped.resize(std::min(escaped.size(), kTypeBytesMax));
  const Sha256Digest digest = Sha256(text);
  return fmt::format("{}~{}", escaped, ToHex(std::span(digest).first(kDigestBytes)));
}

std::string FormatStamp(int64_t ms) {
  const auto seconds = static_cast<time_t>(ms / 1000);
  tm fields{};
  gmtime_r(&seconds, &fields);
  char text[32];
  const size_t size = strftime(text, sizeof text, "%Y%m%dT%H%M%S", &fields);
  return fmt::format("{}{:03}Z", std::string_view(text, size), ms % 1000);
}

// The result of each parsed part is checked by formatting it again.
std::optional<int64_t> ParseStamp(std::string_view text) {
  if (text.size() != kStampBytes) return std::nullopt;
  const auto number = [&](size_t at, size_t size) { return ParseNumber<int>(text.substr(at, size)).value_or(-1); };
  tm fields{};
  fields.tm_year = number(0, 4) - 1900;
  fields.tm_mon = number(4, 2) - 1;
  fields.tm_mday = number(6, 2);
  fields.tm_hour = number(9, 2);
  fields.tm_min = number(11, 2);
  fields.tm_sec = number(13, 2);
  const int64_t ms = int64_t{timegm(&fields)} * 1000 + number(15, 3);
  if (ms < 0 || ms > kStampMsMax || FormatStamp(ms) != text) return std::nullopt;
  return ms;
}

bool IsStem(std::string_view stem) {
  return !stem.empty() && std::all_of(stem.begin(), stem.end(), [](char c) {
    return IsPlain(c) || c == '%' || c == '~' || (c >= 'A' && c <= 'F');
  });
}

}  // namespace

std::string FileNameOf(std::string_view name) {
  if (name.empty()) return std::string(kUnknownName);
  if (name.size() > kFileNameBytesMax) return std::string(kOtherName);
  std::string escaped = Escape(name, IsPlain);
  return escaped.size() <= kFileNameBytesMax ? escaped : std::string(kOtherName);
}

std::string FileTypeOf(std::string_view type, std::string_view unit) {
  return fmt::format("{}.{}", TypePart(type), TypePart(unit));
}

std::string FormatFileName(const FileName& name, std::string_view extension) {
  const std::string stamp = FormatStamp(std::clamp<int64_t>(name.stamp_ms, 0, kStampMsMax));
  return fmt::format("{}.{}.{}{}", name.stem, stamp, extension, name.is_part ? kPart : name.is_damaged ? kDamaged : "");
}

std::optional<FileName> ParseFileName(std::string_view text, std::string_view extension) {
  FileName out;
  const std::string_view whole = text;
  out.is_part = text.ends_with(kPart);
  if (out.is_part) text.remove_suffix(kPart.size());
  out.is_damaged = text.ends_with(kDamaged);
  if (out.is_damaged) text.remove_suffix(kDamaged.size());
  const size_t tail = kStampBytes + 1 + extension.size();
  if (text.size() < tail + 2) return std::nullopt;
  const std::optional<int64_t> stamp = ParseStamp(text.substr(text.size() - tail, kStampBytes));
  out.stem = text.substr(0, text.size() - tail - 1);
  if (!stamp || !IsStem(out.stem)) return std::nullopt;
  out.stamp_ms = *stamp;
  if (FormatFileName(out, extension) != whole) return std::nullopt;
  return out;
}

}  // namespace tributary
