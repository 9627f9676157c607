#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/http_client.h"
#include "cli/options.h"

namespace tributary::cli {

// Prints process events as they happen: each call of Poll prints the events since the call before, in order of time.
// Reads events only up to 10 s before now. By default, nodes send their events every 5 s, so by then most events have
// arrived, unless a node was not connected. An event that reaches the reducer more than a minute late is not printed.
// If the reducer does not answer, Poll reports this once and continues at the same position when the reducer answers
// again.
class EventFollower {
 public:
  struct Sinks {
    std::function<absl::StatusOr<std::string>(const HttpClient::Parameters&)> get;  // gets /api/v1/events
    std::function<absl::Status(std::string_view json)> print;                       // an answer with events
    std::function<void(std::string_view message)> report;
  };
  EventFollower(const EventsOptions& options, Sinks sinks);

  // Errors: the answer of the first request was an error, the reducer refuses the request, printing failed, or the
  // request was cancelled.
  absl::Status Poll();

 private:
  absl::StatusOr<std::string> Get();

  const EventsOptions options_;
  const Sinks sinks_;
  uint64_t from_ms_ = 0;  // after the first answer
  std::string cursor_;
  bool has_answer_ = false, is_waiting_ = false;
};

}  // namespace tributary::cli
