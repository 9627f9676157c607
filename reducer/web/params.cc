#include "reducer/web/params.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "profile/frame_kinds.h"

namespace tributary {
namespace {

// The part of a bad value that an error shows.
std::string Shown(std::string_view text) { return EscapeForDisplay(text.substr(0, 64)); }

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

std::string_view Find(const Params& params, const std::string& name, std::string_view otherwise) {
  auto it = params.find(name);
  return it == params.end() || it->second.empty() ? otherwise : std::string_view(it->second);
}

// Returns the kinds of a comma-separated list of languages, as bits 1 << FrameKind; 0 for an empty list.
absl::StatusOr<uint32_t> ParseLanguages(std::string_view list) {
  static_assert(kFrameKindCount <= 32);
  uint32_t kinds = 0;
  while (!list.empty()) {
    const std::string_view language = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), language.size() + 1));
    std::set<std::string_view> known;
    for (uint32_t kind = 0; kind < kFrameKindCount; ++kind) {
      const std::string_view name = kFrameKinds[kind].language;
      if (name.empty()) continue;
      if (name == language) kinds |= 1u << kind;
      known.insert(name);
    }
    if (!known.contains(language)) {
      return Invalid(fmt::format("language: '{}' must be a list of these languages, separated by commas: {}",
                                 Shown(language), fmt::join(known, ", ")));
    }
  }
  return kinds;
}

absl::Status ParseNames(const Params& params, QueryRequest* request) {
  request->type = Find(params, "type", "cpu");
  std::string_view frames = Find(params, "frames", "function");
  if (frames == "function" || frames == "all") {
    request->frames = FrameNames::kFunction;
    request->all_frames = frames == "all";
  } else if (frames == "address") {
    request->frames = FrameNames::kAddress;
  } else {
    return Invalid(fmt::format("frames: '{}' must be function, all or address", Shown(frames)));
  }
  ASSIGN_OR_RETURN(const uint64_t lines, ParseNumber(params, "lines", 0, 0, 1));
  request->lines = lines != 0;
  ASSIGN_OR_RETURN(request->languages, ParseLanguages(Find(params, "language", "")));
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
