#include "reducer/web/params.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int64_t kUnixMsMax = INT64_MAX / kNsPerMs;

// The part of a bad value that an error shows.
std::string Shown(std::string_view text) { return EscapeForDisplay(text.substr(0, 64)); }

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

absl::Status InvalidTime(std::string_view text) {
  return Invalid(
      fmt::format("'{}' is not a time: give Unix milliseconds (1763710000000), now, -60s, now-5m or -1h", Shown(text)));
}

UnixNs WholeMs(int64_t ns) { return UnixNs{ns / kNsPerMs * kNsPerMs}; }

std::string_view Find(const Params& params, const std::string& name, std::string_view otherwise) {
  auto it = params.find(name);
  return it == params.end() || it->second.empty() ? otherwise : std::string_view(it->second);
}

absl::Status ParseNames(const Params& params, QueryRequest* request) {
  request->type = Find(params, "type", "cpu");
  std::string_view frames = Find(params, "frames", "function");
  if (frames == "function") {
    request->frames = FrameNames::kFunction;
  } else if (frames == "address") {
    request->frames = FrameNames::kAddress;
  } else {
    return Invalid(fmt::format("frames: '{}' must be function or address", Shown(frames)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UnixNs> ParseTime(std::string_view text, UnixNs now) {
  if (text == "now") return WholeMs(now.value);
  std::string_view offset = text.starts_with("now") ? text.substr(3) : text;
  if (offset.starts_with('-')) {
    absl::StatusOr<int64_t> before = ParseDurationNs(offset.substr(1));
    if (!before.ok()) return InvalidTime(text);
    return WholeMs(std::max<int64_t>(0, now.value - *before));  // both are ≥ 0: no overflow
  }
  const std::optional<int64_t> ms = ParseNumber<int64_t>(text);
  if (!ms || *ms < 0 || *ms > kUnixMsMax) return InvalidTime(text);
  return UnixNs{*ms * kNsPerMs};
}

absl::StatusOr<QueryRequest> ParseQuery(const Params& params, UnixNs now) {
  QueryRequest request;
  ASSIGN_OR_RETURN(request.selector, Selector::Parse(Find(params, "query", "")));
  absl::StatusOr<UnixNs> from = ParseTime(Find(params, "from", "-15m"), now);
  if (!from.ok()) return WithContext(from.status(), "from");
  absl::StatusOr<UnixNs> to = ParseTime(Find(params, "to", "now"), now);
  if (!to.ok()) return WithContext(to.status(), "to");
  request.range = {*from, *to};
  RETURN_IF_ERROR(ParseNames(params, &request));
  return request;
}

absl::StatusOr<uint64_t> ParseNumber(const Params& params, const std::string& name, uint64_t value_if_none,
                                     uint64_t min, uint64_t max) {
  std::string_view text = Find(params, name, "");
  if (text.empty()) return value_if_none;
  const std::optional<uint64_t> value = ParseNumber<uint64_t>(text);
  if (!value || *value < min || *value > max) {
    return Invalid(fmt::format("{}: '{}' is not a number from {} to {}", name, Shown(text), min, max));
  }
  return *value;
}

}  // namespace tributary
