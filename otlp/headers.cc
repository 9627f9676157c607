#include "otlp/headers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii_case.h"
#include "base/percent.h"
#include "base/status.h"
#include "base/trim.h"

namespace tributary::otlp {
namespace {

// HTTP and gRPC would misread a request with two of these headers, or with another value.
constexpr std::array<std::string_view, 13> kOwnNames = {
    "accept-encoding", "connection", "content-encoding", "content-length",    "content-type", "expect",    "host",
    "keep-alive",      "te",         "trailer",          "transfer-encoding", "upgrade",      "user-agent"};

absl::Status Invalid(std::string_view what) { return Error(absl::StatusCode::kInvalidArgument, what); }

bool IsNameByte(char c) { return IsUrlUnreserved(c) && c != '~'; }
bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

absl::Status AddHeader(std::string_view name, std::string_view value, Headers* headers) {
  if (name.empty() || name.size() + value.size() > kHeaderBytesMax) {
    return Invalid(fmt::format("a header must have a name, and at most {} bytes", kHeaderBytesMax));
  }
  if (!std::all_of(name.begin(), name.end(), IsNameByte)) {
    return Invalid("the name of a header has a byte other than letters, digits, '-', '_' and '.'");
  }
  std::string lower = LowerCase(name);
  if (std::find(kOwnNames.begin(), kOwnNames.end(), lower) != kOwnNames.end() || lower.starts_with("grpc-")) {
    return Invalid(fmt::format("the header {} is set by the exporter itself", lower));
  }
  // gRPC sends such values in base64, and HTTP does not.
  if (lower.ends_with("-bin")) return Invalid(fmt::format("the name of the header {} must not end with -bin", lower));
  if (!std::all_of(value.begin(), value.end(), IsPrintable)) {
    return Invalid(fmt::format("the value of the header {} has a byte that is not printable ASCII", lower));
  }
  if (std::any_of(headers->begin(), headers->end(), [&](const auto& header) { return header.first == lower; })) {
    return Invalid(fmt::format("the header {} is given twice", lower));
  }
  if (headers->size() >= kHeadersMax) return Invalid(fmt::format("there are more than {} headers", kHeadersMax));
  headers->emplace_back(std::move(lower), value);
  return absl::OkStatus();
}

absl::StatusOr<Headers> ParseHeaderList(std::string_view text) {
  Headers headers;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view item = Trim(text.substr(0, comma), kHttpBlanks);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (item.empty()) continue;
    const size_t equals = item.find('=');
    if (equals == item.npos) return Invalid("must be a list of headers, NAME=VALUE,NAME=VALUE");
    RETURN_IF_ERROR(AddHeader(PercentDecoded(TrimEnd(item.substr(0, equals), kHttpBlanks)),
                              PercentDecoded(Trim(item.substr(equals + 1), kHttpBlanks)), &headers));
  }
  return headers;
}

absl::StatusOr<Headers> ParseHeaderFile(std::string_view text) {
  Headers headers;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end), kHttpBlanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    if (colon == line.npos) return Invalid(fmt::format("line {}: must be NAME: VALUE", number));
    RETURN_IF_ERROR(WithContext(AddHeader(line.substr(0, colon), Trim(line.substr(colon + 1), kHttpBlanks), &headers),
                                fmt::format("line {}", number)));
  }
  return headers;
}

}  // namespace tributary::otlp
