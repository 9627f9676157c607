#include "reducer/web/params.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

// The part of a bad value that an error shows.
std::string Shown(std::string_view text) { return EscapeForDisplay(text.substr(0, 64)); }

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

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
