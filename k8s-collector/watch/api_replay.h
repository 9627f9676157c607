#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_recording.h"
#include "k8s-collector/watch/resource_watch.h"

namespace tributary {

// Reports a recorded API server's answers as if they came now: all kinds in the order of the recorded times, with a
// clock that shows these times. Does not wait.
class ApiReplay {
 public:
  // Opens the files that exist. NotFound if there are none. InvalidArgument names file and line. Reads a file one line
  // at a time.
  static absl::StatusOr<std::unique_ptr<ApiReplay>> Open(const std::string& directory);
  ~ApiReplay();

  // The time of the current step. Before Run() it is the time of the first step.
  const Clock& clock() const { return clock_; }

  // Calls `after_step` after each step. FailedPrecondition if the recording contains a request that this version does
  // not make.
  absl::Status Run(WatchEvents& events, Metrics& metrics, const std::function<void()>& complete,
                   const std::function<void()>& after_step);

 private:
  struct Source;
  ApiReplay();
  absl::Status Replay(Source& source);
  Source* Earliest();
  bool IsComplete() const;

  std::vector<std::unique_ptr<Source>> sources_;
  FakeClock clock_;
};

}  // namespace tributary
