#include "cli/event_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "cli/json_reader.h"
#include "cli/query_parameters.h"

namespace tributary::cli {
namespace {

constexpr char kTo[] = "now-10s";
// How much later than its time an event may reach the reducer and still be printed. Without this limit, each request
// would read all events since the last one that was printed, which may be days ago if few events match.
constexpr uint64_t kLateMaxMs = 60'000;
constexpr char kEventsPerAnswer[] = "10000";

// Before March 1973, the reducer would take milliseconds for seconds.
std::string TimeOf(uint64_t unix_ms) {
  constexpr uint64_t kMillisecondsFrom = 100'000'000'000;
  return unix_ms >= kMillisecondsFrom ? fmt::format("{}", unix_ms)
                                      : fmt::format("{}.{:03}", unix_ms / 1000, unix_ms % 1000);
}

// After these errors, the same request may succeed later.
bool MayAskAgain(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kInternal;
}

}  // namespace

EventFollower::EventFollower(const EventsOptions& options, Sinks sinks) : options_(options), sinks_(std::move(sinks)) {}

absl::StatusOr<std::string> EventFollower::Get() {
  QueryOptions query = options_.query;
  if (has_answer_) query.from = TimeOf(from_ms_);
  query.to = kTo;
  HttpClient::Parameters parameters = SelectionParameters(query);
  parameters.emplace_back("order", "oldest");
  parameters.emplace_back("limit", kEventsPerAnswer);
  if (!options_.kind.empty()) parameters.emplace_back("kind", options_.kind);
  if (!cursor_.empty()) parameters.emplace_back("cursor", cursor_);
  return sinks_.get(parameters);
}

absl::Status EventFollower::Poll() {
  for (bool more = true; more;) {
    const absl::StatusOr<std::string> json = Get();
    if (!json.ok()) {
      if (!has_answer_ || !MayAskAgain(json.status())) return json.status();
      if (!is_waiting_) sinks_.report(fmt::format("{}; waiting for the reducer", Message(json.status())));
      is_waiting_ = true;
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const EventsAnswer answer, ParseEvents(*json));
    if (is_waiting_) sinks_.report("the reducer answers again");
    is_waiting_ = false;
    if (!has_answer_) from_ms_ = answer.from_ms;
    has_answer_ = true;
    if (!answer.events.empty()) RETURN_IF_ERROR(sinks_.print(*json));
    if (!answer.next.empty()) cursor_ = answer.next;
    more = answer.truncated && !answer.next.empty();
    if (!more && answer.to_ms > kLateMaxMs) from_ms_ = std::max(from_ms_, answer.to_ms - kLateMaxMs);
  }
  return absl::OkStatus();
}

}  // namespace tributary::cli
